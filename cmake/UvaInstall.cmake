# The installed files, in two components: for running programs, and for building
# them. The command and its man page are a third, in tools/. Windows has the
# runtime library alone.
include(CMakePackageConfigHelpers)
include(UvaPrelink)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/uvarrow"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development
    FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
set(parts) # beside the runtime
set(packages uvarrow)
set(libraries uvarrow_shared uvarrow_static)
if(NOT WIN32)
    set(parts io adbc)
    list(APPEND packages uvarrow-tck uvarrow-io uvarrow-adbc)
    list(APPEND libraries uvarrow_tck_shared uvarrow_tck_static)
endif()
install(TARGETS ${libraries} EXPORT uvarrow
    RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT runtime
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        COMPONENT runtime NAMELINK_COMPONENT development
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
foreach(name IN LISTS parts)
    install(TARGETS uvarrow_${name}_shared uvarrow_${name}_static EXPORT uvarrow
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
            COMPONENT ${name} NAMELINK_COMPONENT development
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
endforeach()
if(NOT WIN32)
    install(TARGETS uvarrow_oneapi
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime)
    install(TARGETS uvarrow_sqlite
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT adbc)
    uva_prelink(uvarrow_static) # overwrites it
    uva_prelink(uvarrow_tck_static WEAK) # has the base layers, too
    uva_prelink(uvarrow_io_static)
    uva_prelink(uvarrow_adbc_static)
endif()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE"
    DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT runtime)
if(PROJECT_IS_TOP_LEVEL) # laid out as here, so that links lead somewhere
    install(FILES "${PROJECT_SOURCE_DIR}/README.md"
        "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
        "${PROJECT_SOURCE_DIR}/CONTRIBUTING.md"
        DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT development)
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs"
        "${PROJECT_SOURCE_DIR}/examples"
        DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT development
        FILES_MATCHING PATTERN "*.md" PATTERN "*.c" PATTERN "*.cc"
        PATTERN "*.h" PATTERN "*.png" PATTERN "*.svg"
        REGEX "/consumer/[a-z]+/[^/]+$" REGEX "/examples/tck/.*[^/]$")
endif()
set(config "${CMAKE_INSTALL_LIBDIR}/cmake/uvarrow")
set(UVA_COMPONENTS)
if(NOT WIN32)
    set(UVA_COMPONENTS "io adbc tck")
endif()
install(EXPORT uvarrow NAMESPACE uvarrow:: DESTINATION "${config}"
    FILE uvarrow-targets.cmake COMPONENT development)
configure_package_config_file(
    "${PROJECT_SOURCE_DIR}/cmake/uvarrow-config.cmake.in"
    uvarrow-config.cmake INSTALL_DESTINATION "${config}")
write_basic_package_version_file(uvarrow-config-version.cmake
    COMPATIBILITY ${UVA_COMPATIBILITY})
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/uvarrow-config.cmake"
    "${CMAKE_CURRENT_BINARY_DIR}/uvarrow-config-version.cmake"
    DESTINATION "${config}" COMPONENT development)

# A .pc names folders relative to its own, so that an installed tree can be
# moved, unless a folder was given by an absolute path.
set(pkgconfig "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(IS_ABSOLUTE "${pkgconfig}")
    set(PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
else()
    cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
        BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}/${pkgconfig}"
        OUTPUT_VARIABLE up)
    set(PC_PREFIX "\${pcfiledir}/${up}")
endif()
foreach(folder IN ITEMS LIBDIR INCLUDEDIR)
    set(PC_${folder} "${CMAKE_INSTALL_${folder}}")
    if(NOT IS_ABSOLUTE "${PC_${folder}}")
        string(PREPEND PC_${folder} "\${prefix}/")
    endif()
endforeach()
set(PC_CFLAGS_STATIC)
set(PC_LIBS_STATIC "-pthread")
if(WIN32)
    set(PC_CFLAGS_STATIC "-DUVA_STATIC")
    string(APPEND PC_LIBS_STATIC " -lws2_32 -lsynchronization")
endif()
foreach(name IN LISTS packages)
    configure_file("${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in" ${name}.pc @ONLY)
    install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${name}.pc"
        DESTINATION "${pkgconfig}" COMPONENT development)
endforeach()
