# The results of `cpack` for an installation: an archive, or Debian packages.
# Those want the folders of the system: configure with the preset `package`.

if(UVA_COMPLETE)
    set(missing)
    foreach(program IN ITEMS dpkg-shlibdeps file)
        find_program(UVA_HAS_${program} ${program})
        mark_as_advanced(UVA_HAS_${program})
        if(NOT UVA_HAS_${program})
            list(APPEND missing "${program}")
        endif()
    endforeach()
    if(missing)
        list(JOIN missing ", " missing)
        message(FATAL_ERROR "Run scripts/bootstrap: missing ${missing}")
    endif()
endif()

set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/package")
set(CPACK_PACKAGE_NAME uvarrow)
set(CPACK_PACKAGE_VENDOR uvarrow)
set(CPACK_PACKAGE_CONTACT "uvarrow <uvarrow@example.org>")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
if(NOT CPACK_GENERATOR)
    set(CPACK_GENERATOR TGZ)
endif()

# The runtime may lie beside another version's: the name has the SONAME.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL runtime io adbc development)
if(TARGET uvarrow)
    list(APPEND CPACK_COMPONENTS_ALL tools tck)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)

set(runtime libuvarrow${UVA_SOVERSION})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${runtime})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION
    "The shared libraries that programs run with.")

# A library beside the runtime, so that programs without it need no codecs.
set(io libuvarrow-io${UVA_SOVERSION})
set(CPACK_DEBIAN_IO_PACKAGE_NAME ${io})
set(CPACK_DEBIAN_IO_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_IO_PACKAGE_DEPENDS "${runtime} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}/runtime")
set(CPACK_COMPONENT_IO_DESCRIPTION
    "The shared library that writes batches as Arrow IPC.")

set(adbc libuvarrow-adbc${UVA_SOVERSION})
set(CPACK_DEBIAN_ADBC_PACKAGE_NAME ${adbc})
set(CPACK_DEBIAN_ADBC_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_ADBC_PACKAGE_DEPENDS "${runtime} (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_ADBC_DESCRIPTION
    "The shared library that runs queries through any ADBC driver.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libuvarrow-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
# Its file for CMake asks pkg-config for libuv and for the libraries of a static
# libuvarrow-io.
set(depends)
foreach(name IN ITEMS ${runtime} ${io} ${adbc})
    list(APPEND depends "${name} (= ${PROJECT_VERSION})")
endforeach()
list(APPEND depends "libuv1-dev (>= ${UVA_LIBUV_MIN})" "pkgconf | pkg-config")
foreach(codec IN LISTS UVA_IO_CODECS)
    string(TOLOWER "lib${codec}-dev" name)
    list(APPEND depends ${name})
endforeach()
list(JOIN depends ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "To build programs: headers, static libraries, pkg-config and CMake files,
and the documents and examples.")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME uvarrow)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION database)
set(CPACK_COMPONENT_TOOLS_DESCRIPTION
    "The command uvarrow: a query through any ADBC driver as CSV, and the
test suite for other implementations of Arrow's asynchronous streams.")

set(CPACK_DEBIAN_TCK_PACKAGE_NAME uvarrow-tck)
set(CPACK_DEBIAN_TCK_PACKAGE_SECTION devel)
set(CPACK_COMPONENT_TCK_DESCRIPTION
    "The command uvarrow-tck: the test suite for other implementations of
Arrow's asynchronous streams, in any language, and templates of subjects in C,
C++, Go and Rust. It needs no other package of uvarrow.")

include(CPack)
