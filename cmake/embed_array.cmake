# as_array(TEXT NAME VARIABLE): the definition of an array NAME with the bytes of
# a text, and of its size. Needs a folder for a file beside OUT.
function(as_array text name variable)
    file(WRITE "${OUT}.part" "${text}")
    file(READ "${OUT}.part" hex HEX)
    file(REMOVE "${OUT}.part")
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
    string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n"
        bytes "${bytes}")
    set(${variable} "const unsigned char ${name}[] = {\n${bytes}};\n\
const size_t ${name}_size = sizeof(${name});\n" PARENT_SCOPE)
endfunction()
