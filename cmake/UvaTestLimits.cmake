# How much CPU time a test may use: 60 s; the table lists the tests that need
# more, each with its reason. Instrumented builds and emulated programs run
# several times slower, so that they have five times these limits.
# tests/run_limited.c counts, and finds a test that hangs.

set(UVA_TEST_LIMIT 60)
set(UVA_TEST_LIMIT_FACTOR 1)
if(UVA_SANITIZE OR UVA_COVERAGE OR CMAKE_CROSSCOMPILING_EMULATOR)
    set(UVA_TEST_LIMIT_FACTOR 5)
endif()

# uva_limit(TEST SECONDS REASON)
function(uva_limit test seconds reason)
    set_property(GLOBAL PROPERTY "uva_limit_${test}" ${seconds})
endfunction()

uva_limit(fuzz/planted 180
    "compiles and fuzzes once for each planted bug; instrumented, so 900 s")
uva_limit(model/test_written_off 180
    "explores half a million schedules of a lane, and its planted faults")
foreach(name extract_pool foreign task_ring)
    uva_limit(model/test_${name} 180
        "explores half a million schedules, and more of them in weak memory")
endforeach()
uva_limit(interop/conformance 180
    "runs the whole suite twice, and most cases of Arrow C++ end by waiting")
uva_limit(interop/stream_duckdb 180
    "starts Python and imports DuckDB once for each case")
uva_limit(interop/stream_postgresql 180
    "makes a database and starts its server before the cases")
uva_limit(scripts/tck_mutants 180
    "runs the suite once for each mutant, on both cores")
uva_limit(scripts/install 240
    "installs the package and builds programs against it in several ways")

uva_limit(scripts/gpu_bundle 180
    "runs a bundle eight times, and programs of it until their time is over")

uva_limit(scripts/test_timeline_page 180
    "starts a browser, and draws 200,000 events in it without a GPU")
uva_limit(scripts/test_perfetto 180
    "starts a browser, and opens four traces in Perfetto")
uva_limit(scripts/test_serve_page 180
    "starts a browser, and shows a million rows in it")
uva_limit(scripts/test_serve_query 180
    "has a thousand clients, and 200 queries that fill the buffers of theirs")
uva_limit(scripts/test_serve_schemathesis 600
    "makes hundreds of requests of each operation, three times")
uva_limit(unit/serve/test_serve_memory 180
    "asks for several thousand answers, in each of which an allocation fails")
uva_limit(scripts/test_query_server 180
    "starts 300 clients, one after the other, and a dozen servers")

uva_limit(node/life 600
    "starts 40 processes of Node.js, and 600 in the nightly")
uva_limit(python/test_life 180
    "makes 10,000 streams, 600 event loops, and some processes of Python")
uva_limit(python/test_engines 600
    "starts Ray, Dask and Sail, if they are installed: two minutes")
uva_limit(python/test_exit 300
    "starts 80 processes of Python, most of them five at a time")
uva_limit(python/test_sources 180
    "reads each kind of source whole, and leaves it early, on three loops")
uva_limit(python/test_adbc 180
    "stops queries without an end, on three loops")

# uva_test_limit(VARIABLE TEST): the limit of a test, in seconds of CPU time
function(uva_test_limit variable test)
    get_property(seconds GLOBAL PROPERTY "uva_limit_${test}")
    if(NOT seconds)
        set(seconds ${UVA_TEST_LIMIT})
    endif()
    math(EXPR seconds "${seconds} * ${UVA_TEST_LIMIT_FACTOR}")
    set(${variable} ${seconds} PARENT_SCOPE)
endfunction()

# uva_test_clock_limit(VARIABLE TEST): the seconds after which CTest gives up: more
# than uva_run_limited takes to do so (its CLOCK, and the rest)
function(uva_test_clock_limit variable test)
    uva_test_limit(seconds ${test})
    math(EXPR seconds "${seconds} * 12 + 120")
    set(${variable} ${seconds} PARENT_SCOPE)
endfunction()

# uva_add_test(NAME name COMMAND command... [WORKING_DIRECTORY folder]): as
# add_test(), but the command runs under its limit, and no process that it
# starts outlives it (tests/run_limited.c). Built for another platform, a program
# runs in CMAKE_CROSSCOMPILING_EMULATOR; UVA_RUN_LIMITED then names a
# uva_run_limited of this machine's.
function(uva_add_test)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;WORKING_DIRECTORY"
        "COMMAND")
    list(POP_FRONT arg_COMMAND program)
    if(TARGET "${program}")
        if(NOT UVA_RUN_LIMITED)
            add_dependencies(${program} uva_run_limited)
        endif()
        set(program ${CMAKE_CROSSCOMPILING_EMULATOR}
            "$<TARGET_FILE:${program}>")
    endif()
    set(runner uva_run_limited) # made in tests/, after other folders
    if(UVA_RUN_LIMITED)
        set(runner "${UVA_RUN_LIMITED}")
    endif()
    set(folder)
    if(arg_WORKING_DIRECTORY)
        set(folder WORKING_DIRECTORY "${arg_WORKING_DIRECTORY}")
    endif()
    uva_test_limit(limit "${arg_NAME}")
    add_test(NAME "${arg_NAME}" COMMAND "${runner}" ${limit} ${program}
        ${arg_COMMAND} ${folder})
endfunction()
