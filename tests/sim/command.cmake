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
# The library of databases. The fake driver of adbc_peer.c replaces the code that
# loads libraries, and the table of known drivers.
file(GLOB sim_adbc CONFIGURE_DEPENDS "${runtime_dir}/adbc/*.c")
list(FILTER sim_adbc EXCLUDE REGEX "/(environment|find|interrupt|known|library|manifest)\\.c$")

# The encoder, without its codecs.
file(GLOB sim_io CONFIGURE_DEPENDS "${runtime_dir}/io/encode*.c"
    "${runtime_dir}/io/ipc_*.c" "${runtime_dir}/io/flatbuffer_writer.c"
    "${runtime_dir}/io/text*.c" "${runtime_dir}/io/part.c")
list(FILTER sim_io EXCLUDE REGEX
    "/ipc_(check|decoder|framer|read_.*|source|turn)\\.c$")

# sim_layer(NAME OPTIMISATION SOURCE...): sources of the library for this
# environment. Objects that outlive runtimes use malloc(); here that is the arena
# (arena.h).
function(sim_layer name optimisation)
    add_library(${name} OBJECT ${ARGN})
    target_link_libraries(${name} PUBLIC sim_flags)
    target_include_directories(${name} SYSTEM PUBLIC ${LIBUV_INCLUDE_DIRS})
    target_compile_options(${name} PRIVATE ${optimisation} -UNDEBUG)
    foreach(function IN ITEMS malloc calloc aligned_alloc realloc strdup free)
        target_compile_definitions(${name} PRIVATE ${function}=sim_${function})
    endforeach()
    if(name MATCHES "adbc|io") # with the replacement of <stdatomic.h>
        target_include_directories(${name} BEFORE PRIVATE
            "${CMAKE_CURRENT_SOURCE_DIR}/std")
    else()
        target_compile_definitions(${name} PRIVATE UVA_BUILD UVA_ONEAPI_SHIM="")
        set_source_files_properties("${runtime_dir}/base/thread.c"
            TARGET_DIRECTORY ${name} PROPERTIES
            COMPILE_DEFINITIONS uva__thread_self=sim_address_of_thread)
    endif()
endfunction()

sim_layer(sim_runtime ${sim_optimized} ${sim_runtime})
sim_layer(sim_adbc ${sim_optimized} ${sim_adbc})
sim_layer(sim_io ${sim_optimized} ${sim_io})

# The simulated environment of the library, and the peers.
add_library(sim_world STATIC adbc_peer.c fake_server.c hosts.c expectation.c batches.c arena.c
    fake_uv.c fake_files.c fake_threads.c peers.c blocking_peer.c
    squatter_peer.c limited_peer.c callback_peer.c task_peer.c pusher_peer.c
    producer_peer.c taking_peer.c reader_peer.c handler_peer.c monitor.c device_peer.c
    device_stages.c gpu_peer.c vulkan_peer.c async_stage.c cast_stage.c
    parts_stage.c
    hostile_producer_peer.c hostile_handler_peer.c
    ../support/reference_producer.c ../support/reference_consumer.c
    ../support/reference_data.c ../support/reference_shape.c
    ../support/producer_mutants.c ../support/consumer_mutants.c)
target_link_libraries(sim_world PUBLIC sim_flags sim_engine)
target_include_directories(sim_world SYSTEM PUBLIC ${LIBUV_INCLUDE_DIRS})
foreach(name IN LISTS sim_wrapped)
    target_link_options(sim_world INTERFACE "LINKER:--wrap=${name}")
endforeach()

target_compile_options(sim_world PRIVATE -UNDEBUG)

# sim_program(NAME SOURCE...): a program in this environment
function(sim_program name)
    add_executable(${name} ${ARGN})
    target_link_libraries(${name} PRIVATE sim_runtime sim_adbc sim_io sim_world m)
    target_compile_options(${name} PRIVATE -UNDEBUG)
endfunction()

set(sim_command main.c scenario.c chain.c)
sim_program(uvarrow-sim ${sim_command})
sim_program(uvarrow-sim-cluster cluster.c)

# It reaches the code behind races. Its branches are added to those of the
# library, which is not optimised.
if(UVA_COVERAGE)
    sim_layer(sim_runtime_counted -O0 ${sim_runtime})
    sim_layer(sim_adbc_counted -O0 ${sim_adbc})
    sim_layer(sim_io_counted -O0 ${sim_io})
    foreach(layer IN ITEMS sim_runtime_counted sim_adbc_counted sim_io_counted)
        target_compile_options(${layer} PRIVATE --coverage)
    endforeach()
    add_executable(uvarrow-sim-counted ${sim_command})
    target_link_libraries(uvarrow-sim-counted PRIVATE sim_runtime_counted
        sim_adbc_counted sim_io_counted sim_world m)
    target_compile_options(uvarrow-sim-counted PRIVATE -UNDEBUG)
    target_link_options(uvarrow-sim-counted PRIVATE --coverage)
endif()

# ---- in CTest ---------------------------------------------------------------

# A part of the schedules of .ci/run, always with the same seeds, so that only a
# change can make it fail. The long mode uses new seeds.
set(sim_share 20000)
if(UVA_SANITIZE)
    set(sim_share 2000)
endif()
uva_add_test(NAME sim/uvarrow-sim COMMAND uvarrow-sim --schedules ${sim_share})
uva_test_properties(sim/uvarrow-sim sim)
if(UVA_COVERAGE)
    uva_add_test(NAME sim/counted COMMAND uvarrow-sim-counted --schedules 30000)
    uva_test_properties(sim/counted sim)
    set_tests_properties(sim/counted PROPERTIES COST 100)
endif()
uva_add_test(NAME sim/command COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/check_command
    $<TARGET_FILE:uvarrow-sim>)
uva_test_properties(sim/command sim)

# Hosts that are lost: each batch comes once, or its host is reported.
foreach(lost IN ITEMS killed cut)
    foreach(replicas IN ITEMS 0 1)
        uva_add_test(NAME sim/cluster_${lost}_${replicas} COMMAND
            uvarrow-sim-cluster --hosts 300 --${lost} 20 --replicas ${replicas})
        uva_test_properties(sim/cluster_${lost}_${replicas} sim)
    endforeach()
endforeach()

# The planted bugs that it must find: .ci/nightly compiles them and searches.
if(NOT UVA_SANITIZE)
    uva_add_test(NAME sim/planted COMMAND
        ${CMAKE_CURRENT_SOURCE_DIR}/planted/run --fit)
    uva_test_properties(sim/planted sim)
endif()
