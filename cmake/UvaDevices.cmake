# The headers of devices' vendors, for tests and examples: the library needs
# none of them. AUTO takes those that are installed, ON fails if they
# are missing, OFF takes none.

# uva_vendor(NAME HEADER PACKAGE [HINT...]): sets UVA_<NAME>_INCLUDE, which is
# false where there are none; PACKAGE is Debian's
function(uva_vendor name header package)
    set(UVARROW_${name} AUTO CACHE STRING
        "Use the headers of ${name}: AUTO, ON or OFF")
    set_property(CACHE UVARROW_${name} PROPERTY STRINGS AUTO ON OFF)
    if(NOT UVARROW_${name} STREQUAL "AUTO" AND NOT UVARROW_${name})
        set(UVA_${name}_INCLUDE FALSE PARENT_SCOPE)
        return()
    endif()
    find_path(UVA_${name}_INCLUDE ${header} HINTS ${ARGN})
    mark_as_advanced(UVA_${name}_INCLUDE)
    if(NOT UVA_${name}_INCLUDE AND NOT UVARROW_${name} STREQUAL "AUTO")
        message(FATAL_ERROR "UVARROW_${name} is ON, but there is no "
            "${header}: install the package ${package}")
    endif()
endfunction()

uva_vendor(CUDA cuda.h nvidia-cuda-dev /usr/local/cuda/include)
uva_vendor(HIP hip/hip_runtime_api.h libamdhip64-dev /opt/rocm/include)
uva_vendor(OPENCL CL/cl.h opencl-headers)
uva_vendor(VULKAN vulkan/vulkan.h libvulkan-dev)
