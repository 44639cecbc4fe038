# The files that scripts/gpu_bundle puts into a GPU bundle. The lines have the
# form of tests/gpu/plan.h, with the paths of this build, in
# <build>/gpu_bundle.plan.

# uva_bundle(PART KIND LIMIT NAME TARGET [ENV VARIABLE=VALUE...] [ARGS
# argument...]): one more program. It looks for libraries in lib/ beside its
# folder, also for dependencies of other libraries.
function(uva_bundle part kind limit name target)
    cmake_parse_arguments(PARSE_ARGV 5 arg "" "" "ENV;ARGS")
    set(fields ${part} ${kind} ${limit} "${name}" ${arg_ENV} --
        "$<TARGET_FILE:${target}>" ${arg_ARGS})
    list(JOIN fields "\t" line)
    get_property(plan GLOBAL PROPERTY UVA_BUNDLE_PLAN)
    if(kind STREQUAL facts) # they come first
        string(PREPEND plan "${line}\n")
    else()
        string(APPEND plan "${line}\n")
    endif()
    set_property(GLOBAL PROPERTY UVA_BUNDLE_PLAN "${plan}")
    get_property(known GLOBAL PROPERTY UVA_BUNDLE_TARGETS)
    if(NOT target IN_LIST known)
        set_property(GLOBAL APPEND PROPERTY UVA_BUNDLE_TARGETS ${target})
        set_property(TARGET ${target} APPEND PROPERTY
            BUILD_RPATH "$ORIGIN/../lib")
        set_property(TARGET ${target} APPEND PROPERTY
            LINK_OPTIONS LINKER:--disable-new-dtags)
    endif()
endfunction()

# uva_bundle_plan(): writes the plan, and adds the target gpu_bundle, which
# builds its programs
function(uva_bundle_plan)
    get_property(plan GLOBAL PROPERTY UVA_BUNDLE_PLAN)
    get_property(targets GLOBAL PROPERTY UVA_BUNDLE_TARGETS)
    file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/gpu_bundle.plan"
        CONTENT "${plan}")
    add_custom_target(gpu_bundle DEPENDS ${targets} uva_run_limited)
endfunction()
