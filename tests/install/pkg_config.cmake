# The programs of CMakeLists.txt, linked with the libraries that pkg-config
# names: the shared libraries; or with STATIC_ONLY, where the shared ones were
# removed, the static libraries. No compiler is called by hand here, so this
# works for any platform that a toolchain file of CMake describes.
find_package(PkgConfig REQUIRED)
foreach(name IN ITEMS uvarrow uvarrow-io uvarrow-adbc uvarrow-tck)
    pkg_check_modules(${name} REQUIRED ${name}>=${WANTED})
endforeach()
pkg_check_modules(uv REQUIRED libuv)
foreach(names IN ITEMS "program uvarrow" "io_program uvarrow-io"
        "adbc_program uvarrow-adbc" "tck_program uvarrow-tck")
    separate_arguments(names)
    list(GET names 0 program)
    list(GET names 1 name)
    add_executable(${program} ${program}.c)
    target_compile_options(${program} PRIVATE ${${name}_CFLAGS} ${uv_CFLAGS})
    if(STATIC_ONLY)
        target_link_libraries(${program} ${${name}_STATIC_LDFLAGS})
    else()
        target_link_libraries(${program} ${${name}_LDFLAGS} ${uv_LDFLAGS})
        set_target_properties(${program} PROPERTIES
            BUILD_RPATH "${${name}_LIBRARY_DIRS}")
    endif()
endforeach()
