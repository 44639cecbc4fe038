# Releases that are laid out by a profile: the preset `release-pgo` sets
# UVA_PROFILE to `use`. Its build then builds the library once more, in a
# separate folder with counters in it, runs tests/training on that, and compiles
# with the counts. Only gcc's flags are known here. Code that no training ran is
# compiled as in any release, and so is a file without a profile.

set(UVA_PROFILE "" CACHE STRING "generate: count while training; use: both")
set(UVA_PROFILE_FOLDER "${PROJECT_BINARY_DIR}/training/profile" CACHE PATH
    "What the training counts")

if(UVA_PROFILE AND NOT CMAKE_C_COMPILER_ID STREQUAL GNU)
    message(FATAL_ERROR "UVA_PROFILE needs gcc")
endif()
set(common -fprofile-prefix-path=${PROJECT_BINARY_DIR})
if(UVA_PROFILE STREQUAL generate)
    set(UVA_PROFILE_FLAGS ${common} -fprofile-generate=${UVA_PROFILE_FOLDER}
        -fprofile-update=prefer-atomic)
    target_link_options(uva_flags INTERFACE
        -fprofile-generate=${UVA_PROFILE_FOLDER})
elseif(UVA_PROFILE STREQUAL use)
    set(UVA_PROFILE_FLAGS ${common} -fprofile-use=${UVA_PROFILE_FOLDER}
        -fprofile-partial-training -fprofile-correction -Wno-missing-profile)
elseif(UVA_PROFILE)
    message(FATAL_ERROR "UVA_PROFILE is neither empty, generate nor use")
endif()

# uva_profile(TARGET SOURCE...): compiles the objects of a layer so
function(uva_profile target)
    if(NOT UVA_PROFILE)
        return()
    endif()
    target_compile_options(${target} PRIVATE
        $<$<COMPILE_LANGUAGE:C>:${UVA_PROFILE_FLAGS}>)
    if(UVA_PROFILE STREQUAL use)
        set_source_files_properties(${ARGN} PROPERTIES
            OBJECT_DEPENDS "${UVA_PROFILE_FOLDER}/trained")
        add_dependencies(${target} uva_trained)
    endif()
endfunction()

if(NOT UVA_PROFILE STREQUAL use)
    return()
endif()

file(GLOB_RECURSE library CONFIGURE_DEPENDS
    "${PROJECT_SOURCE_DIR}/runtime/*.[ch]" "${PROJECT_SOURCE_DIR}/include/*.h")
set(training "${PROJECT_BINARY_DIR}/training")
add_custom_command(OUTPUT "${UVA_PROFILE_FOLDER}/trained"
    COMMAND "${CMAKE_COMMAND}" -E rm -rf "${UVA_PROFILE_FOLDER}"
    COMMAND "${CMAKE_COMMAND}" -S "${PROJECT_SOURCE_DIR}" -B "${training}"
        -G "${CMAKE_GENERATOR}" -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}
        -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER}
        -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
        -DCMAKE_C_FLAGS=${CMAKE_C_FLAGS} -DUVA_PORTABLE=${UVA_PORTABLE}
        -DUVA_PROFILE=generate -DUVA_PROFILE_FOLDER=${UVA_PROFILE_FOLDER}
        -DUVA_LTO=OFF -DUVA_TESTS=OFF -DUVA_EXAMPLES=OFF -DUVA_TOOLS=OFF
        -DUVA_BENCH=OFF -DUVA_PYTHON_PACKAGE=OFF -DUVA_NODE_PACKAGE=OFF
    COMMAND "${CMAKE_COMMAND}" --build "${training}" --target uva_train
    COMMAND "${training}/tests/training/uva_train"
    COMMAND "${CMAKE_COMMAND}" -E touch "${UVA_PROFILE_FOLDER}/trained"
    DEPENDS ${library} "${PROJECT_SOURCE_DIR}/tests/training/train.c"
    USES_TERMINAL VERBATIM COMMENT "Training the library")
add_custom_target(uva_trained DEPENDS "${UVA_PROFILE_FOLDER}/trained")
