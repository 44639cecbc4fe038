# Puts page.html, page.css and the scripts of FOLDER, page.js after the other
# ones, into the C file OUT:
#   cmake -DFOLDER=tools/timeline -DOUT=timeline_page.c -DHEADER=timeline_page.h
#     -DNAME=uva__timeline -P embed_page.cmake
# They become the array NAME; NAME_head and NAME_tail, if the page has @EVENTS@.
# NAME_policy is the content security policy, as a header of HTTP can have it.
# The page may run that script and use that style alone, because its content
# security policy names the hash of each.

# hash_source(TEXT VARIABLE): 'sha256-...' as a policy has it, in base64
function(hash_source text variable)
    set(letters ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
    string(SHA256 hex "${text}")
    string(APPEND hex 00) # 33 bytes; the last letter becomes the "="
    set(code)
    foreach(at RANGE 0 60 6)
        string(SUBSTRING ${hex} ${at} 6 three)
        math(EXPR bits "0x${three}")
        foreach(shift IN ITEMS 18 12 6 0)
            math(EXPR letter "(${bits} >> ${shift}) & 63")
            string(SUBSTRING ${letters} ${letter} 1 letter)
            string(APPEND code ${letter})
        endforeach()
    endforeach()
    string(SUBSTRING ${code} 0 43 code)
    set(${variable} "sha256-${code}=" PARENT_SCOPE)
endfunction()

include("${CMAKE_CURRENT_LIST_DIR}/embed_array.cmake")

foreach(part IN ITEMS html css)
    file(READ "${FOLDER}/page.${part}" ${part})
endforeach()
file(GLOB scripts "${FOLDER}/*.js")
list(SORT scripts)
list(REMOVE_ITEM scripts "${FOLDER}/page.js")
set(js)
foreach(script IN LISTS scripts ITEMS "${FOLDER}/page.js")
    file(READ "${script}" text)
    string(APPEND js "${text}")
endforeach()
hash_source("${css}" css_hash)
hash_source("${js}" js_hash)
string(REPLACE "@STYLE_HASH@" "${css_hash}" html "${html}")
string(REPLACE "@SCRIPT_HASH@" "${js_hash}" html "${html}")
string(REPLACE "@STYLE@" "${css}" html "${html}")
string(REPLACE "@SCRIPT@" "${js}" html "${html}")
set(begin "/* Made by cmake/embed_page.cmake. */\n#include \"${HEADER}\"\n")
string(FIND "${html}" "@EVENTS@" at)
if(at EQUAL -1)
    as_array("${html}" ${NAME} page)
    string(REGEX MATCH "Content-Security-Policy\" content=\"([^\"]*)\"" policy
        "${html}")
    set(policy "${CMAKE_MATCH_1}")
    file(WRITE "${OUT}"
        "${begin}${page}const char ${NAME}_policy[] = \"${policy}\";\n")
    return()
endif()
string(SUBSTRING "${html}" 0 ${at} head)
math(EXPR at "${at} + 8")
string(SUBSTRING "${html}" ${at} -1 tail)
as_array("${head}" ${NAME}_head head)
as_array("${tail}" ${NAME}_tail tail)
file(WRITE "${OUT}" "${begin}${head}${tail}")
