# The headers of devices' vendors, for tests and examples: the library does not
# need them. AUTO takes the installed ones, ON fails if they are missing, OFF
# takes none. CMake ends with the names of the parts that are not checked
# without them.

# uva_unchecked(NAME REASON): adds a line to the summary
function(uva_unchecked name reason)
    string(TOLOWER ${name} test)
    set_property(GLOBAL APPEND PROPERTY UVA_UNCHECKED
        "not checked: abi/${test}, our declarations of ${name}: ${reason}")
endfunction()

function(uva_print_unchecked)
    get_property(lines GLOBAL PROPERTY UVA_UNCHECKED)
    foreach(line IN LISTS lines)
        message(STATUS "${line}")
    endforeach()
endfunction()

# uva_vendor(NAME HEADER PACKAGE [HINT...]): sets UVA_<NAME>_INCLUDE, which is
# false where they are missing; PACKAGE is Debian's
function(uva_vendor name header package)
    set(UVARROW_${name} AUTO CACHE STRING
        "Use the headers of ${name}: AUTO, ON or OFF")
    set_property(CACHE UVARROW_${name} PROPERTY STRINGS AUTO ON OFF)
    if(NOT UVARROW_${name} STREQUAL "AUTO" AND NOT UVARROW_${name})
        set(UVA_${name}_INCLUDE FALSE PARENT_SCOPE)
        uva_unchecked(${name} "UVARROW_${name} is ${UVARROW_${name}}")
        return()
    endif()
    find_path(UVA_${name}_INCLUDE ${header} HINTS ${ARGN})
    mark_as_advanced(UVA_${name}_INCLUDE)
    if(NOT UVA_${name}_INCLUDE AND NOT UVARROW_${name} STREQUAL "AUTO")
        message(FATAL_ERROR "UVARROW_${name} is ON, but there is no "
            "${header}: install the package ${package}")
    endif()
    if(NOT UVA_${name}_INCLUDE)
        uva_unchecked(${name} "there is no ${header}: run scripts/bootstrap")
    endif()
endfunction()

# a wheel has CUDA's headers
file(GLOB uva_cuda_headers
    "${UVA_VENV}/lib/python3*/site-packages/nvidia/cu*/include")
uva_vendor(CUDA cuda.h nvidia-cuda-dev /usr/local/cuda/include
    ${uva_cuda_headers})
# scripts/bootstrap unpacks HIP's
uva_vendor(HIP hip/hip_runtime_api.h libamdhip64-dev /opt/rocm/include
    "${UVA_VENV}/hip")
uva_vendor(OPENCL CL/cl.h opencl-headers)
uva_vendor(VULKAN vulkan/vulkan.h libvulkan-dev)

if(PROJECT_IS_TOP_LEVEL)
    cmake_language(DEFER CALL uva_print_unchecked)
endif()
