# uvarrow for vcpkg, built from this source, as an overlay port:
#     vcpkg install uvarrow --overlay-ports=cmake/packaging/vcpkg
cmake_path(ABSOLUTE_PATH CMAKE_CURRENT_LIST_DIR OUTPUT_VARIABLE port)
cmake_path(SET SOURCE_PATH NORMALIZE "${port}/../../..")

vcpkg_find_acquire_program(PKGCONFIG)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS "-DPKG_CONFIG_EXECUTABLE=${PKGCONFIG}" -DUVA_TESTS=OFF
        -DUVA_TOOLS=OFF -DUVA_EXAMPLES=OFF -DUVA_BENCH=OFF
        -DUVA_PYTHON_PACKAGE=OFF -DUVA_NODE_PACKAGE=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/uvarrow)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include"
    "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
