# What bench/ needs as a project of its own: an installed library, found by
# CMAKE_PREFIX_PATH, under the names that the targets have in the whole build.
set(UVA_BENCH_KIND static CACHE STRING "The installed library: static or shared")
set(UVA_VENV "${CMAKE_CURRENT_SOURCE_DIR}/../.venv" CACHE PATH
    "Virtual environment made by scripts/bootstrap")
list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_SOURCE_DIR}/../cmake")
include(UvaBuild)
include(UvaVenv)
find_package(uvarrow REQUIRED COMPONENTS io)
foreach(name IN ITEMS uvarrow io)
    string(REPLACE uvarrow_uvarrow uvarrow target uvarrow_${name}_static)
    add_library(${target} INTERFACE)
    target_link_libraries(${target}
        INTERFACE uvarrow::${name}_${UVA_BENCH_KIND})
endforeach()
