# The static archives that are installed. A release is compiled for link-time
# optimisation, but a user's program is not linked with it. So the layers are
# optimised here, into one object of plain code, and that one is installed;
# programs of this repository still link the objects themselves.
#
# The compiler has to know which symbols other objects may use, otherwise it
# inlines far less: about a tenth more instructions for each batch. A linker
# plugin reports every symbol as used in a relocatable link, hence without the
# plugin, and as for a shared library, which keeps hidden symbols local. Each
# function has its own section, for programs linked with --gc-sections.

# clang links the bitcode of the layers to one module in which only the functions
# of the interface are global, and compiles that: a tenth fewer instructions for each
# batch. The object is the shared core library, in builds without tests. The static
# one is as it is compiled: programs here call functions of it that are not public,
# and the tck's has parts of it.

# uva_bitcode_object(OBJECT NAME LAYER...): sets the variable OBJECT to the object
# of a library with the layers, whose interface is the list runtime/symbols/NAME.txt
function(uva_bitcode_object object name)
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/whole")
    file(STRINGS "${PROJECT_SOURCE_DIR}/runtime/symbols/${name}.txt" functions
        REGEX "^uva_")
    list(TRANSFORM functions REPLACE " .*" "")
    list(JOIN functions "\n" functions)
    file(MAKE_DIRECTORY "${folder}")
    file(WRITE "${folder}/${name}.api" "${functions}\n")
    set(objects)
    foreach(layer IN LISTS ARGN)
        list(APPEND objects $<TARGET_OBJECTS:${layer}_bitcode>)
    endforeach()
    string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
    separate_arguments(flags NATIVE_COMMAND
        "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${type}}")
    add_custom_command(OUTPUT "${folder}/${name}.o"
        COMMAND "${UVA_llvm-link}" -o "${folder}/${name}.all.bc" "${objects}"
        COMMAND "${UVA_opt}" -passes=internalize
            "--internalize-public-api-file=${folder}/${name}.api"
            -o "${folder}/${name}.bc" "${folder}/${name}.all.bc"
        COMMAND "${CMAKE_C_COMPILER}" ${flags} -fPIC -ffunction-sections
            -fdata-sections -Wno-unused-command-line-argument
            -c "${folder}/${name}.bc" -o "${folder}/${name}.o"
        DEPENDS "${objects}" COMMAND_EXPAND_LISTS VERBATIM
        COMMENT "Optimising ${name} as a whole")
    set_source_files_properties("${folder}/${name}.o" PROPERTIES
        EXTERNAL_OBJECT ON GENERATED ON)
    set(${object} "${folder}/${name}.o" PARENT_SCOPE)
endfunction()

# uva_prelink(TARGET [WEAK]): builds such an archive of the objects of a static
# library, and installs it over that library. The target's property
# UVA_PRELINKED is its path, if this is a release. The symbols of a WEAK archive
# give way to those of another archive with the same functions.
function(uva_prelink target)
    get_property(several GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
    if(NOT UVA_WHOLE OR (NOT several AND
        NOT CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo)$"))
        return()
    endif()
    get_target_property(objects ${target} SOURCES)
    get_target_property(name ${target} OUTPUT_NAME)
    set(file "${CMAKE_STATIC_LIBRARY_PREFIX}${name}${CMAKE_STATIC_LIBRARY_SUFFIX}")
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/prelinked/$<CONFIG>")
    set(object "${folder}/${target}.o")
    separate_arguments(flags NATIVE_COMMAND "${CMAKE_C_FLAGS}")
    if(UVA_WERROR)
        list(APPEND flags -Werror)
    endif()
    # The checker's archive has functions of the core that only itself calls.
    set(list "${PROJECT_SOURCE_DIR}/runtime/symbols/${name}.txt")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${list}")
    file(STRINGS "${list}" functions REGEX "^uva_")
    list(TRANSFORM functions REPLACE " .*" "")
    list(TRANSFORM functions PREPEND "--keep-global-symbol=")
    set(narrow COMMAND "${CMAKE_OBJCOPY}" ${functions})
    if("WEAK" IN_LIST ARGN)
        list(APPEND narrow --wildcard "--weaken-symbol=uva_*")
    endif()
    list(APPEND narrow "${object}")
    add_custom_command(OUTPUT "${folder}/${file}"
        COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}"
        COMMAND "${CMAKE_COMMAND}" -E rm -f "${folder}/${file}"
        COMMAND "${CMAKE_C_COMPILER}" ${flags} -r -nostdlib -flto
            -flto-partition=one -fno-use-linker-plugin -flinker-output=dyn
            -ffunction-sections -fdata-sections "${objects}" -o "${object}"
        ${narrow}
        COMMAND "${CMAKE_AR}" rcs "${folder}/${file}" "${object}"
        DEPENDS "${objects}" COMMAND_EXPAND_LISTS VERBATIM
        COMMENT "Optimising the installed ${file} as a whole")
    add_custom_target(${target}_prelinked ALL DEPENDS "${folder}/${file}")
    add_dependencies(${target}_prelinked ${target}) # make cannot make its objects
    set_target_properties(${target} PROPERTIES
        UVA_PRELINKED "${folder}/${file}")
    # A file that is as old as the one to be installed would be left alone.
    set(there "${CMAKE_INSTALL_LIBDIR}/${file}")
    if(NOT IS_ABSOLUTE "${there}")
        string(PREPEND there "\${CMAKE_INSTALL_PREFIX}/")
    endif()
    install(CODE "
        if(CMAKE_INSTALL_CONFIG_NAME MATCHES \"^(Release|RelWithDebInfo)$\")
            file(REMOVE \"\$ENV{DESTDIR}${there}\")
        endif()" COMPONENT development)
    install(FILES "${folder}/${file}" DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        COMPONENT development CONFIGURATIONS Release RelWithDebInfo)
endfunction()
