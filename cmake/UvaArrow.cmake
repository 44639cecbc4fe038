# The target uva_arrow: Arrow C++ as the wheel of pyarrow has it, for tests and
# benches. It is not there where the wheel is not.

if(TARGET uva_arrow OR NOT EXISTS "${UVA_ARROW_LIBRARY}")
    return()
endif()

# The wheel is built with one of the two string types of libstdc++: linking
# shows which.
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_INCLUDES "${UVA_PYARROW_INCLUDE}")
set(CMAKE_REQUIRED_LIBRARIES "${UVA_ARROW_LIBRARY}")
set(CMAKE_REQUIRED_FLAGS -std=c++20)
foreach(abi IN ITEMS 1 0)
    set(CMAKE_REQUIRED_DEFINITIONS -D_GLIBCXX_USE_CXX11_ABI=${abi})
    check_cxx_source_compiles("#include <arrow/status.h>
        int main() { return arrow::Status::IOError(\"\").ok(); }"
        UVA_ARROW_HAS_ABI_${abi})
    if(UVA_ARROW_HAS_ABI_${abi})
        break()
    endif()
endforeach()
if(NOT UVA_ARROW_HAS_ABI_1 AND NOT UVA_ARROW_HAS_ABI_0)
    message(WARNING "${UVA_ARROW_LIBRARY} cannot be linked: Arrow C++ is left "
        "out of tests and benches")
    return()
endif()

add_library(uva_arrow INTERFACE)
target_include_directories(uva_arrow SYSTEM INTERFACE "${UVA_PYARROW_INCLUDE}")
target_compile_definitions(uva_arrow INTERFACE
    ${CMAKE_REQUIRED_DEFINITIONS})
target_compile_features(uva_arrow INTERFACE cxx_std_20)
target_link_libraries(uva_arrow INTERFACE uva_flags "${UVA_ARROW_LIBRARY}")
