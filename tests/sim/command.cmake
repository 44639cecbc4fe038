# The command uvarrow-sim: the whole runtime compiled for the engine, on a fake
# libuv and a fake system, with peers that run as fibers. Not installed.

# The foundations of the library are replaced: base/atomic.c by the engine's,
# libuv by fake_uv.c, and these system functions, at link time, by __wrap_NAME
# in fake_files.c and fake_threads.c.
set(sim_wrapped
    eventfd timerfd_create timerfd_settime read write close poll
    mmap munmap madvise
    pthread_create pthread_join pthread_detach pthread_self
    pthread_setcancelstate pthread_setname_np pthread_sigmask
    pthread_mutex_lock pthread_cond_wait pthread_cond_broadcast
    sched_getaffinity getpid getenv clock_gettime nanosleep sched_yield
    __assert_fail)
# Two functions of the library are replaced, too: slots stay in quarantine for
# less than 256 other allocations, or no stream here would be long enough to see
# one reused.
list(APPEND sim_wrapped uva__slab_take uva__slab_put)
# Two more, which must not be called on a loop.
list(APPEND sim_wrapped uva__devices_load uva__device_thread_end)
# Memory that the library keeps for the exit of the process would differ in the
# first schedule that uses a device.
list(APPEND sim_wrapped uva__driver_gate_watch)
# Vendors' libraries come from gpu_peer.c.
list(APPEND sim_wrapped uva__shared_library_open uva__shared_library_resolve)

file(GLOB sim_runtime CONFIGURE_DEPENDS "${runtime_dir}/*/*.c")
list(FILTER sim_runtime EXCLUDE REGEX
    "/base/atomic\\.c$|_(posix|windows)\\.c$|/timer_thread\\.c$")
# libraries beside the runtime
list(FILTER sim_runtime EXCLUDE REGEX "/runtime/(adbc|io)/")
add_library(sim_runtime OBJECT ${sim_runtime})
target_link_libraries(sim_runtime PUBLIC sim_flags)
target_include_directories(sim_runtime SYSTEM PUBLIC ${LIBUV_INCLUDE_DIRS})
target_compile_definitions(sim_runtime PRIVATE UVA_BUILD UVA_ONEAPI_SHIM="")
# Objects that outlive runtimes use malloc(); here that is the arena (arena.h).
foreach(name IN ITEMS malloc calloc aligned_alloc free)
    target_compile_definitions(sim_runtime PRIVATE ${name}=sim_${name})
endforeach()
set_source_files_properties("${runtime_dir}/base/thread.c"
    TARGET_DIRECTORY sim_runtime PROPERTIES
    COMPILE_DEFINITIONS uva__thread_self=sim_address_of_thread)

# The library of databases, with the replacement of <stdatomic.h>. The fake driver
# of adbc_peer.c replaces the code that loads libraries, and the table of known
# drivers.
file(GLOB sim_adbc CONFIGURE_DEPENDS "${runtime_dir}/adbc/*.c")
list(FILTER sim_adbc EXCLUDE REGEX "/(find|interrupt|known|library|manifest)\\.c$")
add_library(sim_adbc OBJECT ${sim_adbc})
target_include_directories(sim_adbc BEFORE PRIVATE
    "${CMAKE_CURRENT_SOURCE_DIR}/std")
target_link_libraries(sim_adbc PUBLIC sim_flags)
target_include_directories(sim_adbc SYSTEM PUBLIC ${LIBUV_INCLUDE_DIRS})
foreach(name IN ITEMS malloc calloc free)
    target_compile_definitions(sim_adbc PRIVATE ${name}=sim_${name})
endforeach()

# The simulated environment of the library, and the peers.
add_library(sim_world STATIC adbc_peer.c fake_server.c hosts.c expectation.c batches.c arena.c
    fake_uv.c fake_files.c fake_threads.c peers.c blocking_peer.c
    squatter_peer.c limited_peer.c callback_peer.c task_peer.c pusher_peer.c
    producer_peer.c awaiting_peer.c reader_peer.c handler_peer.c monitor.c executor.c device_peer.c
    device_stages.c gpu_peer.c vulkan_peer.c async_stage.c
    hostile_producer_peer.c hostile_handler_peer.c
    ../support/reference_producer.c ../support/reference_consumer.c
    ../support/reference_data.c ../support/reference_shape.c
    ../support/producer_mutants.c ../support/consumer_mutants.c)
target_link_libraries(sim_world PUBLIC sim_flags sim_engine)
target_include_directories(sim_world SYSTEM PUBLIC ${LIBUV_INCLUDE_DIRS})
foreach(name IN LISTS sim_wrapped)
    target_link_options(sim_world INTERFACE "LINKER:--wrap=${name}")
endforeach()

# sim_program(NAME SOURCE...): a program in this environment
function(sim_program name)
    add_executable(${name} ${ARGN})
    target_link_libraries(${name} PRIVATE sim_runtime sim_adbc sim_world)
    target_compile_options(${name} PRIVATE -UNDEBUG)
endfunction()

sim_program(uvarrow-sim main.c scenario.c chain.c)
target_compile_options(sim_runtime PRIVATE ${sim_optimized} -UNDEBUG)
target_compile_options(sim_adbc PRIVATE ${sim_optimized} -UNDEBUG)
target_compile_options(sim_world PRIVATE -UNDEBUG)

# ---- in CTest ---------------------------------------------------------------

# A part of the schedules of .ci/run, always with the same seeds, so that only a
# change can make it fail. The long mode uses new seeds.
set(sim_share 20000)
if(UVA_SANITIZE)
    set(sim_share 2000)
elseif(UVA_COVERAGE)
    set(sim_share 10000)
endif()
uva_add_test(NAME sim/uvarrow-sim COMMAND uvarrow-sim --schedules ${sim_share})
uva_test_properties(sim/uvarrow-sim sim)
uva_add_test(NAME sim/command COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/check_command
    $<TARGET_FILE:uvarrow-sim>)
uva_test_properties(sim/command sim)

# The planted bugs that it must find, compiled with the commands of this build
# folder. Once is enough, in a build that compiles fast; it goes first, as it
# takes longest and all others can run beside it.
if(CMAKE_BUILD_TYPE STREQUAL "Debug" AND NOT UVA_SANITIZE AND
        NOT UVA_COVERAGE AND CMAKE_GENERATOR STREQUAL "Ninja")
    uva_add_test(NAME sim/planted COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/planted/run
        "${PROJECT_BINARY_DIR}")
    uva_test_properties(sim/planted sim)
    set_tests_properties(sim/planted PROPERTIES COST 1000)
endif()
