/* SPDX-License-Identifier: Apache-2.0 */
/* The log: the lines of each level, that lines and errors carry the name of
 * their stream, and the environment variable that turns the log on for a
 * program without a log. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop/loop.h"
#include "stage/limit.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/hostile_fixture.h"
#include "support/recording_handler.h"

static struct fixture f;

/* ---- the log ------------------------------------------------------------ */

/* The lines, as "LEVEL STREAM: MESSAGE CLAUSE". */
static struct {
    pthread_mutex_t lock;
    char text[1 << 16];
} lines = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void keep_line(void *ctx, const struct uva_log_record *record)
{
    static const char levels[] = " ewid";
    size_t used;

    (void)ctx;
    ck_assert_int_eq(pthread_mutex_lock(&lines.lock), 0);
    used = strlen(lines.text);
    (void)snprintf(lines.text + used, sizeof(lines.text) - used,
                   "%c %s: %s%s%s\n", levels[record->level],
                   record->stream != NULL ? record->stream : "-",
                   record->message, record->clause != NULL ? " " : "",
                   record->clause != NULL ? record->clause : "");
    ck_assert_int_eq(pthread_mutex_unlock(&lines.lock), 0);
}

/* Keeps only the lines that contain `part`. */
static const char *lines_with(const char *part)
{
    static char kept[sizeof(lines.text)];
    const char *line = lines.text, *end;
    size_t used = 0;

    for (; *line != '\0'; line = end) {
        end = strchr(line, '\n') + 1;
        if (memmem(line, (size_t)(end - line), part, strlen(part)) == NULL)
            continue;
        memcpy(kept + used, line, (size_t)(end - line));
        used += (size_t)(end - line);
    }
    kept[used] = '\0';
    return kept;
}

/* Opens a runtime that logs up to `level`, and a source of `batches`. */
static void open_logged(enum uva_log_level level, int64_t batches)
{
    const struct uva_runtime_options options = {
        .name = "server", .log = {keep_line, NULL, level}};

    lines.text[0] = '\0';
    fixture_open_with(&f, batches, &options);
}

/* Makes a stream of tasks with that name. */
static void make_named(const char *name)
{
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_set_name(f.stream, name), 0);
}

/* Adds a stage, so that the stream has two joints. */
static void add_parallel(void)
{
    const struct uva_parallel options = {.workers = 1,
                                         .window = {.batches = 1}};

    ck_assert_int_eq(uva_stream_parallel(f.stream, &options), 0);
}

/* ---- levels ------------------------------------------------------------- */

START_TEST(info_is_what_was_opened_and_closed)
{
    open_logged(UVA_LOG_INFO, 3);
    make_named("flights");
    add_parallel();
    ck_assert_int_eq(fixture_run(&f), 0);
    fixture_close(&f);
    ck_assert_str_eq(lines.text, "i -: runtime server opened, on the program's "
                                 "loop\n"
                                 "i flights: opened by for_each\n"
                                 "i flights: closed: complete\n"
                                 "i -: runtime server closed\n");
}
END_TEST

START_TEST(info_has_why_a_stream_was_closed)
{
    open_logged(UVA_LOG_INFO, 3);
    f.fake.extract_at = 1;
    f.fake.fail_code = EIO;
    f.fake.fail_text = "first\n\tsecond";
    make_named("flights");
    add_parallel();
    ck_assert_int_eq(fixture_run(&f), EIO);
    fixture_close(&f);
    ck_assert_str_eq(lines_with("closed: "),
                     "i flights: closed: EIO: tasks: first  second\n");
}
END_TEST

START_TEST(warn_has_nothing_of_a_stream_that_runs_well)
{
    open_logged(UVA_LOG_WARN, 3);
    make_named("flights");
    ck_assert_int_eq(fixture_run(&f), 0);
    fixture_close(&f);
    ck_assert_str_eq(lines.text, "");
}
END_TEST

/* Checks the steps of the one joint below a source without stages. */
static void check_steps(const char *steps)
{
    ck_assert_str_eq(lines_with("device_stream: "), steps);
}

START_TEST(debug_has_every_step_of_a_source)
{
    open_logged(UVA_LOG_DEBUG, 2);
    f.stream = fixture_on_loop(&f);
    ck_assert_int_eq(uva_stream_set_name(f.stream, "flights"), 0);
    ck_assert_int_eq(fixture_run(&f), 0);
    fixture_close(&f);
    check_steps("d flights: device_stream: on_schema\n"
                "d flights: device_stream: request 1\n"
                "d flights: device_stream: on_next_task 0\n"
                "d flights: device_stream: request 1\n"
                "d flights: device_stream: on_next_task 1\n"
                "d flights: device_stream: request 1\n"
                "d flights: device_stream: on_next_task, the end\n"
                "d flights: device_stream: release\n");
}
END_TEST

/* Above the stage, requests and the end come as its worker gets on. */
START_TEST(debug_has_every_step_on_both_sides_of_a_stage)
{
    const char *above;

    open_logged(UVA_LOG_DEBUG, 2);
    make_named("flights");
    add_parallel();
    ck_assert_int_eq(fixture_run(&f), 0);
    fixture_close(&f);
    ck_assert_str_eq(lines_with("parallel: "),
                     "d flights: parallel: on_schema\n"
                     "d flights: parallel: request 1\n"
                     "d flights: parallel: on_next_task 0\n"
                     "d flights: parallel: request 1\n"
                     "d flights: parallel: on_next_task 1\n"
                     "d flights: parallel: request 1\n"
                     "d flights: parallel: on_next_task, the end\n"
                     "d flights: parallel: release\n");
    above = lines_with("tasks: ");
    ck_assert_ptr_eq(strstr(above, "d flights: tasks: on_schema\n"
                                   "d flights: tasks: request 1\n"
                                   "d flights: tasks: on_next_task 0\n"),
                     above);
    ck_assert_ptr_nonnull(strstr(above, "tasks: on_next_task 1\n"));
    ck_assert_ptr_null(strstr(above, "tasks: on_next_task 2\n"));
    ck_assert_ptr_nonnull(strstr(above, "tasks: on_next_task, the end\n"));
    ck_assert_ptr_nonnull(strstr(above, "tasks: release\n"));
}
END_TEST

START_TEST(debug_has_a_cancel)
{
    open_logged(UVA_LOG_DEBUG, 2);
    f.stream = fixture_on_loop(&f);
    f.got.batch_code = ECANCELED;
    (void)fixture_run(&f);
    fixture_close(&f);
    check_steps("d -: device_stream: on_schema\n"
                "d -: device_stream: request 1\n"
                "d -: device_stream: on_next_task 0\n"
                "d -: device_stream: cancel\n"
                "d -: device_stream: release\n");
}
END_TEST

START_TEST(debug_has_an_error)
{
    open_logged(UVA_LOG_DEBUG, 2);
    f.fake.fail_at = 0;
    f.fake.fail_code = EIO;
    f.fake.fail_text = "no disk";
    f.stream = fixture_on_loop(&f);
    ck_assert_int_eq(fixture_run(&f), EIO);
    fixture_close(&f);
    check_steps("d -: device_stream: on_schema\n"
                "d -: device_stream: request 1\n"
                "d -: device_stream: on_error EIO: device_stream: no disk\n"
                "d -: device_stream: release\n"
                "i -: closed: EIO: device_stream: no disk\n");
}
END_TEST

/* ---- a handler that requests from outside ------------------------------- */

static bool has_schema(void *ctx)
{
    return recording_handler_saw(ctx, "schema");
}

static bool has_task(void *ctx)
{
    return recording_handler_tasks(ctx) == 1;
}

static bool is_released(void *ctx)
{
    return recording_handler_is_released(ctx);
}

static void drive_named(struct recording_handler *h,
                        const struct uva_drive *options)
{
    make_named("flights");
    ck_assert_int_eq(uva_stream_drive(f.stream, &h->handler, options, NULL), 0);
}

START_TEST(debug_has_requests_of_other_threads)
{
    struct recording_handler h;

    open_logged(UVA_LOG_DEBUG, 2);
    recording_handler_init(&h, 0, 0);
    drive_named(&h, NULL);
    loop_until(&f.loop, has_schema, &h);
    recording_handler_request(&h, 1); /* outside of a turn */
    loop_until(&f.loop, has_task, &h);
    recording_handler_request(&h, INT64_MAX);
    loop_until(&f.loop, is_released, &h);
    fixture_close(&f);
    recording_handler_fini(&h);
    ck_assert_str_eq(lines_with("request"),
                     "d flights: tasks: request 1\n"
                     "d flights: tasks: request 9223372036854775807\n");
}
END_TEST

START_TEST(debug_has_a_request_of_nothing)
{
    struct recording_handler h;

    open_logged(UVA_LOG_DEBUG, 2);
    recording_handler_init(&h, 0, 0);
    drive_named(&h, NULL);
    loop_until(&f.loop, has_schema, &h);
    h.handler.producer->request(h.handler.producer, 0);
    loop_until(&f.loop, is_released, &h);
    fixture_close(&f);
    recording_handler_fini(&h);
    ck_assert_str_eq(lines_with("request 0"), "d flights: tasks: request 0\n");
}
END_TEST

/* ---- a foreign producer ------------------------------------------------- */

static void play_hostile(struct hostile_fixture *h, const char *script,
                         int64_t stop_at)
{
    lines.text[0] = '\0';
    hostile_open(h, script);
    h->stop_at = stop_at;
    uva__loop_rt(h->loop.runtime)->log =
        (struct uva_log){keep_line, NULL, UVA_LOG_DEBUG};
    hostile_make(h);
    ck_assert_int_eq(uva_stream_set_name(h->stream, "peers"), 0);
    hostile_start(h);
    hostile_finish(h);
    hostile_close(h);
}

START_TEST(debug_has_the_steps_of_a_foreign_producer)
{
    struct hostile_fixture h;

    play_hostile(&h, "schema task end release", -1);
    ck_assert_str_eq(lines_with("peer of async: "),
                     "d peers: peer of async: on_schema\n"
                     "d peers: peer of async: request 64\n"
                     "d peers: peer of async: on_next_task\n"
                     "d peers: peer of async: on_next_task, the end\n"
                     "d peers: peer of async: release\n");
}
END_TEST

START_TEST(debug_has_a_cancel_and_an_error_at_a_foreign_producer)
{
    struct hostile_fixture h;

    play_hostile(&h, "thread schema task*2 cancelled release", 0);
    ck_assert_str_eq(lines_with("peer of async: cancel"),
                     "d peers: peer of async: cancel\n");
    play_hostile(&h, "schema error release", -1);
    ck_assert_str_eq(lines_with("peer of async: on_error"),
                     "d peers: peer of async: on_error\n");
}
END_TEST

START_TEST(a_rule_that_a_peer_breaks_is_logged_with_the_name)
{
    struct hostile_fixture h;

    play_hostile(&h, "schema schema release", -1);
    ck_assert_ptr_nonnull(strstr(lines.text, "w peers: "));
    ck_assert_ptr_null(strstr(lines.text, "w -: "));
}
END_TEST

START_TEST(a_rule_that_the_checker_finds_broken_is_logged_with_the_name)
{
    const struct uva_runtime_options options = {
        .log = {keep_line, NULL, UVA_LOG_WARN}, .check = true};
    struct recording_handler h;

    lines.text[0] = '\0';
    fixture_open_with(&f, 2, &options);
    recording_handler_init(&h, 0, 0);
    drive_named(&h, NULL);
    loop_until(&f.loop, has_schema, &h);
    h.handler.producer->request(h.handler.producer, 0);
    loop_until(&f.loop, is_released, &h);
    fixture_close(&f);
    recording_handler_fini(&h);
    ck_assert_ptr_nonnull(strstr(lines.text, "e flights: tasks: "));
    ck_assert_ptr_nonnull(strstr(lines.text, "e flights:   after: "));
    ck_assert_ptr_null(strstr(lines.text, " -: "));
}
END_TEST

/* ---- devices ------------------------------------------------------------ */

/* Both joints meet the type. */
START_TEST(info_has_the_first_use_of_a_device)
{
    open_logged(UVA_LOG_INFO, 1);
    fixture_device(&f, SOFT_POLLS_ON_LOOP);
    soft_event_end(&f.device, 0, 0);
    f.stream = fixture_device_stream(&f);
    ck_assert_int_eq(uva_stream_set_name(f.stream, "pixels"), 0);
    ck_assert_int_eq(uva_stream_ready(f.stream, NULL), 0);
    ck_assert_int_eq(fixture_run(&f), 0);
    fixture_close_now(&f);
    ck_assert_str_eq(lines_with("device"),
                     "i pixels: first use of device type EXT_DEV\n");
}
END_TEST

START_TEST(an_array_may_be_the_first_use_of_a_device)
{
    struct ArrowDeviceArray array;

    open_logged(UVA_LOG_INFO, 1);
    fixture_device(&f, SOFT_POLLS_ON_LOOP);
    soft_event_end(&f.device, 0, 0);
    soft_device_batch(&f.device, &f.fake, 0, &array);
    fixture_wait(&f, &array, UVA_FOREVER);
    ck_assert_int_eq(fixture_await_answers(&f, 1), 0);
    uva_array_release(&array);
    fixture_close_now(&f);
    ck_assert_str_eq(lines_with("device"),
                     "i -: first use of device type EXT_DEV\n");
}
END_TEST

/* ---- names in errors ---------------------------------------------------- */

static void fail_named(void)
{
    open_logged(UVA_LOG_WARN, 3);
    f.fake.extract_at = 0;
    f.fake.fail_code = EIO;
    f.fake.fail_text = "no disk";
    make_named("flights");
}

START_TEST(an_outcome_has_the_name)
{
    struct uva_error error;

    fail_named();
    ck_assert_int_eq(fixture_run(&f), EIO);
    ck_assert_str_eq(f.got.outcome.error.message, "flights: tasks: no disk");
    ck_assert_int_eq(uva_stream_status(f.stream, &error), EIO);
    ck_assert_str_eq(error.message, "flights: tasks: no disk");
    ck_assert_int_eq(uva_stream_status(f.stream, NULL), EIO);
    fixture_close(&f);
}
END_TEST

START_TEST(an_error_of_the_start_has_the_name)
{
    struct uva_error error;

    open_logged(UVA_LOG_WARN, 3);
    make_named("flights");
    ck_assert_int_eq(uva__stream_limit(f.stream, -1), EINVAL);
    ck_assert_int_eq(fixture_try(&f, &error), EINVAL);
    ck_assert_ptr_eq(strstr(error.message, "flights: "), error.message);
    ck_assert_int_eq(fixture_try(&f, NULL), EINVAL);
    fixture_close(&f);
}
END_TEST

START_TEST(a_start_on_a_closing_runtime_has_the_name)
{
    struct uva_error error;

    open_logged(UVA_LOG_WARN, 3);
    f.stream = fixture_on_loop(&f);
    ck_assert_int_eq(uva_stream_set_name(f.stream, "flights"), 0);
    loop_close_runtime(&f.loop, 0);
    ck_assert_int_eq(fixture_try(&f, &error), ESHUTDOWN);
    ck_assert_str_eq(error.message, "flights: the runtime is closing");
    fixture_close(&f);
}
END_TEST

START_TEST(a_reason_of_a_cancel_has_the_name)
{
    open_logged(UVA_LOG_WARN, 3);
    make_named("flights");
    fixture_start(&f);
    uva_stream_cancel(f.stream, 0, "enough");
    ck_assert_int_eq(fixture_await(&f), ECANCELED);
    ck_assert_str_eq(f.got.outcome.error.message, "flights: enough");
    fixture_close(&f);
}
END_TEST

START_TEST(a_driven_handler_gets_the_name)
{
    const struct uva_drive options = {
        .on_done = recording_on_done, .ctx = &f.got, .on_worker = _i != 0};
    struct recording_handler h;
    struct uva_error error;

    open_logged(UVA_LOG_WARN, 3);
    f.fake.fail_at = 0;
    f.fake.fail_code = EIO;
    f.fake.fail_text = "no disk";
    recording_handler_init(&h, 8, 0);
    drive_named(&h, &options);
    ck_assert_int_eq(fixture_await(&f), EIO);
    ck_assert_str_eq(h.message, "flights: tasks: no disk");
    ck_assert_str_eq(f.got.outcome.error.message, "flights: tasks: no disk");
    ck_assert_int_eq(uva_stream_status(f.stream, &error), EIO);
    ck_assert_str_eq(error.message, "flights: tasks: no disk");
    fixture_close(&f);
    recording_handler_fini(&h);
}
END_TEST

static struct ArrowDeviceArrayStream blocking;
static char last_error[64];
static atomic_bool read_over;

static void *read_blocking(void *ctx)
{
    struct ArrowDeviceArray array;

    (void)ctx;
    if (blocking.get_next(&blocking, &array) != 0)
        (void)snprintf(last_error, sizeof(last_error), "%s",
                       blocking.get_last_error(&blocking));
    blocking.release(&blocking);
    atomic_store(&read_over, true);
    loop_nudge(&f.loop);
    return NULL;
}

static bool is_read(void *ctx)
{
    (void)ctx;
    return atomic_load(&read_over);
}

START_TEST(a_blocking_stream_gives_the_name)
{
    pthread_t thread;

    fail_named();
    ck_assert_int_eq(
        uva_stream_to_device_stream(f.stream, NULL, &blocking, NULL), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, read_blocking, NULL), 0);
    loop_until(&f.loop, is_read, NULL);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_str_eq(last_error, "flights: tasks: no disk");
    fixture_close(&f);
}
END_TEST

START_TEST(the_last_name_counts)
{
    char name[80];

    fail_named();
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    ck_assert_int_eq(uva_stream_set_name(f.stream, name), 0);
    name[63] = '\0';
    ck_assert_int_eq(fixture_run(&f), EIO);
    ck_assert_int_eq(strncmp(f.got.outcome.error.message, name, 63), 0);
    ck_assert_str_eq(f.got.outcome.error.message + 63, ": tasks: no disk");
    fixture_close(&f);
}
END_TEST

/* ---- the environment ---------------------------------------------------- */

/* Logs a line of each kind, and returns the text on standard error. */
static const char *logged(const char *level)
{
    static char text[1024];
    FILE *file = tmpfile();
    const int before = dup(STDERR_FILENO);
    struct loop_fixture loop;
    struct uva__rt *rt;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(setenv("UVA_LOG", level, 1), 0);
    ck_assert_int_ge(dup2(fileno(file), STDERR_FILENO), 0);
    loop_open(&loop);
    rt = uva__loop_rt(loop.runtime);
    uva__rt_log(rt, UVA_LOG_ERROR, NULL, NULL, "lost %d", 3);
    uva__rt_log(rt, UVA_LOG_WARN, "flights", "AP-06", "too many");
    uva__rt_log(rt, UVA_LOG_INFO, "flights", NULL, "open");
    uva__rt_log(rt, UVA_LOG_DEBUG, NULL, "AH-11", "end");
    loop_close(&loop);
    (void)dup2(before, STDERR_FILENO);
    (void)close(before);
    rewind(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    (void)fclose(file);
    return text;
}

START_TEST(the_environment_says_how_much_is_told)
{
    ck_assert_str_eq(logged("error"), "uvarrow: error: lost 3\n");
    ck_assert_str_eq(logged("warn"),
                     "uvarrow: error: lost 3\n"
                     "uvarrow: warn: flights: too many AP-06\n");
    ck_assert_str_eq(logged("info"),
                     "uvarrow: info: runtime opened, on the program's loop\n"
                     "uvarrow: error: lost 3\n"
                     "uvarrow: warn: flights: too many AP-06\n"
                     "uvarrow: info: flights: open\n"
                     "uvarrow: info: runtime closed\n");
    ck_assert_ptr_nonnull(strstr(logged("debug"), "debug: end AH-11\n"));
}
END_TEST

START_TEST(a_word_that_is_no_level_means_silence)
{
    ck_assert_str_eq(logged("loud"), "");
    ck_assert_str_eq(logged(""), "");
}
END_TEST

static void count_lines(void *ctx, const struct uva_log_record *record)
{
    (void)record;
    (*(int *)ctx)++;
}

START_TEST(a_log_of_the_programs_own_goes_first)
{
    int count = 0;
    const struct uva_runtime_options options = {
        .log = {count_lines, &count, UVA_LOG_ERROR}};
    struct uva_runtime *runtime;
    struct uva__rt *rt;

    ck_assert_int_eq(setenv("UVA_LOG", "debug", 1), 0);
    ck_assert_int_eq(
        uva_runtime_open_turned(NULL, NULL, &options, &runtime, NULL), 0);
    rt = uva__loop_rt(runtime);
    uva__rt_log(rt, UVA_LOG_ERROR, NULL, NULL, "lost");
    uva__rt_log(rt, UVA_LOG_WARN, NULL, NULL, "too many");
    ck_assert_int_eq(count, 1);
    ck_assert_int_eq(uva_runtime_join(runtime, 0), 0);
}
END_TEST

START_TEST(a_library_on_top_writes_lines_too)
{
    struct uva_runtime *runtime;

    open_logged(UVA_LOG_WARN, 0);
    runtime = uva_runtime_acquire(f.loop.runtime);
    uva_runtime_log(NULL, UVA_LOG_WARN, NULL, "no runtime");
    uva_runtime_log(runtime, UVA_LOG_WARN, NULL, NULL);
    uva_runtime_log(runtime, (enum uva_log_level)0, NULL, "no level");
    uva_runtime_log(runtime, (enum uva_log_level)5, NULL, "no level");
    uva_runtime_log(runtime, UVA_LOG_INFO, NULL, "left out");
    uva_runtime_log(runtime, UVA_LOG_WARN, NULL, "100 %s\nof it");
    uva_runtime_log(runtime, UVA_LOG_ERROR, "orders", "lost");
    ck_assert_str_eq(lines.text, "w -: 100 %s of it\ne orders: lost\n");
    loop_close_runtime(&f.loop, 0);
    uva_runtime_log(runtime, UVA_LOG_ERROR, NULL, "too late");
    ck_assert_str_eq(lines_with("too late"), "");
    uva_runtime_release(runtime);
    fixture_close(&f);
}
END_TEST

int main(void)
{
    TCase *levels = suite_tests(
        "levels", info_is_what_was_opened_and_closed,
        info_has_why_a_stream_was_closed,
        warn_has_nothing_of_a_stream_that_runs_well,
        debug_has_every_step_of_a_source,
        debug_has_every_step_on_both_sides_of_a_stage, debug_has_a_cancel,
        debug_has_an_error, debug_has_requests_of_other_threads,
        debug_has_a_request_of_nothing,
        debug_has_the_steps_of_a_foreign_producer,
        debug_has_a_cancel_and_an_error_at_a_foreign_producer,
        a_rule_that_a_peer_breaks_is_logged_with_the_name,
        a_rule_that_the_checker_finds_broken_is_logged_with_the_name,
        info_has_the_first_use_of_a_device,
        an_array_may_be_the_first_use_of_a_device,
        a_library_on_top_writes_lines_too, NULL);
    TCase *names = suite_tests(
        "names", an_outcome_has_the_name, an_error_of_the_start_has_the_name,
        a_start_on_a_closing_runtime_has_the_name,
        a_reason_of_a_cancel_has_the_name, a_blocking_stream_gives_the_name,
        the_last_name_counts, NULL);
    TCase *tcase = suite_tests("lines", the_environment_says_how_much_is_told,
                               a_word_that_is_no_level_means_silence,
                               a_log_of_the_programs_own_goes_first, NULL);

    suite_add_loops(names, 0, 2, a_driven_handler_gets_the_name, NULL);
    return suite_main("log", NULL, NULL, levels, names, tcase, NULL);
}
