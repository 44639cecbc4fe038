# The flags of every target here, and the words the folders' lists are written
# in: uva_layer, uva_program. None of this reaches a user's project.

set(UVA_C_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes
    -Wmissing-prototypes)
set(UVA_CXX_WARNINGS -Wall -Wextra -Wpedantic -Wshadow)

add_library(uva_plain_flags INTERFACE)
target_compile_features(uva_plain_flags INTERFACE c_std_11 cxx_std_17)
target_compile_options(uva_plain_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C>:${UVA_C_WARNINGS}>
    $<$<COMPILE_LANGUAGE:CXX>:${UVA_CXX_WARNINGS}>
    $<$<BOOL:${UVA_WERROR}>:-Werror> -pthread)
target_link_options(uva_plain_flags INTERFACE -pthread
    $<$<BOOL:${UVA_WERROR}>:-Werror>) # a whole optimisation warns when it links

if(UVA_SANITIZE)
    set(sanitize -fsanitize=${UVA_SANITIZE} -fno-omit-frame-pointer)
    if(UVA_SANITIZE MATCHES undefined)
        list(APPEND sanitize -fno-sanitize-recover=undefined)
    endif()
    target_compile_options(uva_plain_flags INTERFACE ${sanitize})
    target_link_options(uva_plain_flags INTERFACE ${sanitize})
endif()

if(UVA_FUZZ) # the compiler adds counters that the fuzzer reads
    target_compile_options(uva_plain_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Every target has these flags; the simulation has uva_plain_flags, so that it is
# optimised and counts nothing.
add_library(uva_flags INTERFACE)
target_link_libraries(uva_flags INTERFACE uva_plain_flags)
if(UVA_COVERAGE) # threads and forked children count together
    target_compile_options(uva_flags INTERFACE
        --coverage -fprofile-update=atomic)
    target_compile_definitions(uva_flags INTERFACE UVA_COVERAGE)
    target_link_options(uva_flags INTERFACE --coverage)
endif()

# A release is optimised as a whole: a batch passes through a dozen files. The
# objects contain code as well, so that the tests can link libuvarrow.a without
# that option; only gcc can do this. The installed library: UvaPrelink.cmake.
set(UVA_WHOLE OFF)
if(UVA_LTO AND CMAKE_C_COMPILER_ID STREQUAL GNU AND NOT UVA_SANITIZE AND
    NOT UVA_COVERAGE)
    include(CheckIPOSupported)
    check_ipo_supported(RESULT UVA_WHOLE LANGUAGES C)
endif()

# clang's objects of that kind hold no code. So it compiles each layer to them once
# more, for the shared library, if the tools of its version are here: UvaPrelink.cmake.
set(UVA_BITCODE OFF)
if(UVA_LTO AND CMAKE_C_COMPILER_ID STREQUAL Clang AND
    CMAKE_SYSTEM_NAME STREQUAL Linux AND NOT UVA_SANITIZE AND NOT UVA_TESTS AND
    CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo)$")
    set(UVA_BITCODE ON)
    foreach(tool IN ITEMS llvm-link opt)
        execute_process(COMMAND "${CMAKE_C_COMPILER}" -print-prog-name=${tool}
            OUTPUT_VARIABLE UVA_${tool} OUTPUT_STRIP_TRAILING_WHITESPACE)
        if(NOT EXISTS "${UVA_${tool}}")
            set(UVA_BITCODE OFF)
        endif()
    endforeach()
endif()

# uva_optimise(TARGET...): as a whole, in a release
function(uva_optimise)
    if(NOT UVA_WHOLE)
        return()
    endif()
    set_target_properties(${ARGN} PROPERTIES
        INTERPROCEDURAL_OPTIMIZATION_RELEASE ON
        INTERPROCEDURAL_OPTIMIZATION_RELWITHDEBINFO ON)
    foreach(target IN LISTS ARGN)
        target_compile_options(${target} PRIVATE
            $<$<CONFIG:Release,RelWithDebInfo>:-ffat-lto-objects>)
    endforeach()
endfunction()

# uva_link_plain(TARGET SCOPE): what links with it uses the plain code, as link-time
# optimisation takes seconds for each program; the command, the Python package and
# the bench that measures have it.
function(uva_link_plain target scope)
    if(UVA_WHOLE)
        target_link_options(${target} ${scope} -fno-lto)
    endif()
endfunction()

# Of the files platform_*.c and readiness_*.c only one system's are built;
# tests/unit/base tests platform_posix.c on Linux as well.
if(WIN32)
    set(UVA_OTHER_PLATFORMS "_(linux|posix|unix)")
elseif(UVA_PORTABLE)
    set(UVA_OTHER_PLATFORMS "_(linux|windows)")
else()
    set(UVA_OTHER_PLATFORMS "_(posix|windows)|/timer_thread")
endif()
if(MINGW) # the printf() of C11, and the Windows that has WaitOnAddress()
    target_compile_definitions(uva_flags INTERFACE
        __USE_MINGW_ANSI_STDIO=1 _WIN32_WINNT=0x0A00)
endif()

function(uva_layer_objects name)
    add_library(${name} OBJECT ${ARGN})
    target_include_directories(${name} PRIVATE
        "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/runtime"
        "${PROJECT_SOURCE_DIR}")
    # _DEFAULT_SOURCE: in strict C11 the C library hides POSIX
    target_compile_definitions(${name} PRIVATE UVA_BUILD _DEFAULT_SOURCE)
    target_link_libraries(${name} PRIVATE uva_flags)
    set_target_properties(${name} PROPERTIES
        C_EXTENSIONS OFF C_VISIBILITY_PRESET hidden
        POSITION_INDEPENDENT_CODE ON)
endfunction()

# uva_layer(NAME FOLDER...): the objects of one layer of the library, for both
# libraries and for tests that link it alone. A folder without a source
# is no layer. Adds to UVA_LAYERS in the caller's scope.
function(uva_layer name)
    set(sources)
    foreach(folder IN LISTS ARGN)
        file(GLOB found CONFIGURE_DEPENDS
            "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.c")
        list(APPEND sources ${found})
    endforeach()
    list(FILTER sources EXCLUDE REGEX "(${UVA_OTHER_PLATFORMS})\\.c$")
    if(NOT sources)
        return()
    endif()
    uva_layer_objects(${name} ${sources})
    uva_optimise(${name})
    if(UVA_TOGETHER)
        set_target_properties(${name} PROPERTIES
            UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
    endif()
    if(UVA_BITCODE)
        uva_layer_objects(${name}_bitcode ${sources})
        target_compile_options(${name}_bitcode PRIVATE -flto)
        set_target_properties(${name}_bitcode PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
    uva_profile(${name} ${sources})
    set(UVA_LAYERS ${UVA_LAYERS} ${name} PARENT_SCOPE)
endfunction()

# uva_beside(NAME LIBRARY...): a library beside the runtime, which sees public
# headers only: runtime/NAME as uvarrow::NAME and uvarrow::NAME_static, with
# their needs
function(uva_beside name)
    set(UVA_LAYERS)
    uva_layer(uva_${name} .)
    target_link_libraries(uva_${name} PRIVATE ${ARGN})
    foreach(kind IN ITEMS shared static)
        set(library uvarrow_${name}_${kind})
        string(TOUPPER ${kind} type)
        add_library(${library} ${type} $<TARGET_OBJECTS:uva_${name}>)
        set_target_properties(${library} PROPERTIES
            OUTPUT_NAME uvarrow-${name} EXPORT_NAME ${name}_${kind}
            LINKER_LANGUAGE C
            VERSION ${PROJECT_VERSION} SOVERSION ${UVA_SOVERSION})
        target_link_libraries(${library}
            PRIVATE $<BUILD_INTERFACE:uva_flags> PUBLIC uvarrow_${kind}
            PRIVATE ${ARGN})
        uva_optimise(${library})
        add_library(uvarrow::${name}_${kind} ALIAS ${library})
    endforeach()
    set(library uvarrow_${name}_shared)
    add_library(uvarrow::${name} ALIAS ${library})
    uva_version_script(uvarrow-${name})
    set_target_properties(${library} PROPERTIES BUILD_RPATH "$ORIGIN/..")
    if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr") # where the system looks anyway
        set_target_properties(${library} PROPERTIES INSTALL_RPATH "$ORIGIN")
    endif()
    if(NOT UVA_SANITIZE)
        target_link_options(${library} PRIVATE -Wl,-z,defs)
    endif()
endfunction()

# uva_split_programs(PROGRAMS PARTS SOURCE...): separates the sources with a
# main from those without
function(uva_split_programs programs parts)
    set(with)
    set(without)
    foreach(source IN LISTS ARGN)
        file(STRINGS "${source}" has_main REGEX "^int main\\(")
        if(has_main)
            list(APPEND with "${source}")
        else()
            list(APPEND without "${source}")
        endif()
    endforeach()
    set(${programs} ${with} PARENT_SCOPE)
    set(${parts} ${without} PARENT_SCOPE)
endfunction()

# uva_program(NAME SOURCE...): a program of this repository, linked with the
# static library, so that it runs without an installation. C or C++ by the
# sources.
function(uva_program name)
    add_executable(${name} ${ARGN})
    target_link_libraries(${name} PRIVATE uva_flags uvarrow_static)
endfunction()

include(UvaTestLimits)

# uva_test_properties(TEST LABEL): how the sanitizers, Check and Python behave in
# it. Check measures time on the clock, which passes in vain on a busy machine:
# its limits are off, as uva_run_limited aborts the case that hangs. CTest's
# limit only matters if uva_run_limited itself should hang. Arrow's allocator
# starts no thread: Check forks its cases, and AddressSanitizer's own allocator
# is locked for ever in a child of a fork that met such a thread's start. Leaks are
# looked for without the list of dynamic TLS blocks, as clang guesses a block's
# bounds from its address and crashes where the guess is wrong (about one block
# in 128): blocks are found as any other memory is.
function(uva_test_properties test label)
    uva_test_clock_limit(last_limit ${test})
    set(supp "${PROJECT_SOURCE_DIR}/tests/suppressions")
    set_tests_properties(${test} PROPERTIES
        LABELS ${label} TIMEOUT ${last_limit} SKIP_RETURN_CODE 77)
    set_property(TEST ${test} PROPERTY ENVIRONMENT
        CK_TIMEOUT_MULTIPLIER=0
        JE_ARROW_MALLOC_CONF=background_thread:false
        PYTHONFAULTHANDLER=1
        ASAN_OPTIONS=detect_leaks=1:intercept_tls_get_addr=0
        LSAN_OPTIONS=suppressions=${supp}/lsan.txt:print_suppressions=0
        UBSAN_OPTIONS=print_stacktrace=1
        TSAN_OPTIONS=halt_on_error=1:atexit_sleep_ms=0:suppressions=${supp}/tsan.txt)
    if(UVA_SANITIZE) # its dlopen() looks in no path of the program
        set_tests_properties(${test} PROPERTIES ENVIRONMENT_MODIFICATION
            "LD_LIBRARY_PATH=path_list_prepend:${PROJECT_BINARY_DIR}/runtime/adbc")
    endif()
    if(UVA_COVERAGE)
        set_tests_properties(${test} PROPERTIES FIXTURES_REQUIRED counts)
    endif()
endfunction()
