/* SPDX-License-Identifier: Apache-2.0 */
/* uvarrow stall: runs the same query on the loop thread and through uvarrow,
 * and compares how late a timer fires that is set to every millisecond.
 *
 * Happy path:  for each of the two: heart beats -> query opened -> (batch
 *              turned into CSV, thrown away)* -> end -> heart stopped -> line
 *              printed.
 * Failures: as in query; the first error ends the command. On cancel: there is
 * no cancel; Ctrl-C ends the program.
 *
 * The loop-thread run is as considerate as possible: it reads one batch in each
 * loop iteration, so that timers can fire in between. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "blocking_query.h"
#include "commands.h"
#include "connect.h"
#include "heartbeat.h"
#include "loop.h"
#include "options.h"
#include "report.h"
#include "uvarrow/uvarrow.h"

static const char HELP[] =
    "Usage: uvarrow stall --driver DRIVER [OPTION]... [DATABASE] SQL\n"
    "\n"
    "Runs SQL twice: with every call made on the thread of a libuv loop, one\n"
    "batch a turn, and through uvarrow. Turns the rows into CSV both times "
    "and\n"
    "prints how late a 1 ms timer on the loop was.\n"
    "\n"
    "  --sync, --async            only the first, only the second\n"
    "  --driver, --entrypoint, --uri, --option, --connection-option and\n"
    "  --statement-option         as in uvarrow query\n";

static const struct uva_encode csv = {.format = UVA_FORMAT_CSV};

/* A run of the two. */
struct run {
    const struct uva__options *options; /* borrows */
    uv_loop_t loop;                     /* its own loop */
    struct uva__heartbeat heart;        /* delays of the timer */
    struct uva__tally tally;            /* rows and bytes read */
    struct uva_error error;             /* code 0: no error */
    bool stuck;                         /* a driver call has not returned */

    struct uva__blocking_query session; /* sync: owns */
    uv_idle_t idle;                     /* sync: one iteration of the loop */
    struct ArrowArrayStream rows;       /* sync: owns */
    struct ArrowSchema schema;          /* sync: owns; released: not open */

    struct uva_runtime *runtime; /* async: owns, until closed */
};

static int run_begin(struct run *run)
{
    const int code = uva__loop_open(&run->loop, &run->error);

    if (code != 0)
        return code;
    uva__heartbeat_start(&run->heart, &run->loop);
    run->tally.begin_ns = uv_hrtime();
    return 0;
}

static void run_stop(struct run *run)
{
    run->tally.end_ns = uv_hrtime();
    uva__heartbeat_stop(&run->heart);
}

static void run_end(struct run *run)
{
    const int code = uv_loop_close(&run->loop);

    if (code != 0 && run->error.code == 0)
        uva_error_set(&run->error, -code, "the loop does not close: %s",
                      uv_strerror(code));
}

static void run_count(struct run *run, int64_t rows, size_t bytes)
{
    run->tally.rows += rows;
    run->tally.bytes += (int64_t)bytes;
    run->tally.batches++;
}

/* ---- on the loop thread ------------------------------------------------- */

static int sync_error(struct run *run, int code, const char *what)
{
    const char *why = run->rows.get_last_error(&run->rows);

    return uva_error_set(&run->error, code, "%s: %s", what,
                         why == NULL ? strerror(code) : why);
}

static int sync_open(struct run *run)
{
    int code = uva__blocking_query_open(&run->session, run->options, &run->rows,
                                        &run->error);

    if (code != 0)
        return code;
    code = run->rows.get_schema(&run->rows, &run->schema);
    return code == 0 ? 0 : sync_error(run, code, "the driver gives no schema");
}

/* Reads one batch; `more` returns whether there was one. */
static int sync_step(struct run *run, bool *more)
{
    struct ArrowArray array = {0};
    struct ArrowDeviceArray batch;
    struct uva_part part = {0};
    int64_t rows;
    int code = run->rows.get_next(&run->rows, &array);

    if (code != 0)
        return sync_error(run, code, "the query fails");
    *more = array.release != NULL;
    if (!*more)
        return 0;
    rows = array.length;
    uva_array_from_cpu(&array, &batch);
    code = uva_array_encode(&run->schema, &batch, 1, &csv, &part, &run->error);
    run_count(run, rows, (size_t)part.bytes);
    uva_part_release(&part);
    uva_array_release(&batch);
    return code;
}

static void sync_on_idle(uv_idle_t *idle)
{
    struct run *run = idle->data;
    bool more = true;
    int code = 0;

    assert(run->error.code == 0);
    if (run->schema.release == NULL)
        code = sync_open(run);
    else
        code = sync_step(run, &more);
    if (code == 0 && more)
        return;
    uv_close((uv_handle_t *)idle, NULL);
    run_stop(run);
}

static void sync_free(struct run *run)
{
    uva_schema_release(&run->schema);
    if (run->rows.release != NULL)
        run->rows.release(&run->rows);
    uva__blocking_query_close(&run->session);
}

static void sync_run(struct run *run)
{
    if (run_begin(run) != 0)
        return;
    (void)uv_idle_init(&run->loop, &run->idle);
    run->idle.data = run;
    (void)uv_idle_start(&run->idle, sync_on_idle);
    (void)uv_run(&run->loop, UV_RUN_DEFAULT);
    sync_free(run);
    run_end(run);
}

/* ---- through uvarrow ---------------------------------------------------- */

static int async_on_batch(void *ctx, struct uva_batch *batch)
{
    struct uva_part part;
    const int code = uva_part_take(&batch->data, &part);

    if (code != 0)
        return code;
    if (part.rows > 0)
        run_count(ctx, part.rows, (size_t)part.bytes);
    uva_part_release(&part);
    return 0;
}

static void async_on_detached(void *ctx)
{
    struct run *run = ctx;
    struct uva_runtime_stats stats;

    uva_runtime_get_stats(run->runtime, &stats);
    run->stuck = stats.calls_stuck > 0;
}

static void async_stop(struct run *run)
{
    run_stop(run);
    (void)uva_runtime_close(run->runtime, 0, async_on_detached, run);
}

static void async_on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct run *run = ctx;

    if (outcome->end != UVA_END_COMPLETE)
        run->error = outcome->error;
    async_stop(run);
}

static int async_start(struct run *run)
{
    struct uva_stream *stream = uva__connect(run->runtime, run->options);
    int code;

    (void)uva_stream_encode(stream, &csv);
    code = uva_stream_for_each(
        stream,
        &(struct uva_consumer){
            .on_batch = async_on_batch, .on_done = async_on_done, .ctx = run},
        &run->error);
    uva_stream_release(stream);
    return code;
}

static void async_run(struct run *run)
{
    if (run_begin(run) != 0)
        return;
    if (uva_runtime_open(&run->loop, NULL, &run->runtime, &run->error) != 0)
        run_stop(run);
    else if (async_start(run) != 0)
        async_stop(run);
    (void)uv_run(&run->loop, UV_RUN_DEFAULT);
    run_end(run);
}

/* ---- the command -------------------------------------------------------- */

static void print_head(void)
{
    printf("%-20s%12s%10s%10s%11s%11s%12s\n", "", "rows", "seconds", "beats",
           "late p50", "late p99", "late max");
}

static void print_run(const char *name, const struct run *run)
{
    const double seconds =
        (double)(run->tally.end_ns - run->tally.begin_ns) / 1e9;

    printf("%-20s%12s%10.2f%10llu%8.2f ms%8.2f ms%9.2f ms\n", name,
           uva__report_figure(run->tally.rows).text, seconds,
           (unsigned long long)run->heart.beats,
           (double)uva__heartbeat_quantile_ns(&run->heart, 0.5) / 1e6,
           (double)uva__heartbeat_quantile_ns(&run->heart, 0.99) / 1e6,
           (double)run->heart.max_ns / 1e6);
    (void)fflush(stdout);
}

/* Prints a line of the table, with its head if it is the first. */
static int stall_one(const struct uva__options *options, const char *name,
                     void (*how)(struct run *run), bool is_first)
{
    struct run run = {.options = options};
    int exit_code = UVA__EXIT_OK;

    how(&run);
    if (run.error.code != 0)
        exit_code = uva__report_error(&run.error, run.tally.batches > 0
                                                      ? UVA__EXIT_FAILED
                                                      : UVA__EXIT_USAGE);
    if (exit_code == UVA__EXIT_OK && is_first)
        print_head();
    if (exit_code == UVA__EXIT_OK)
        print_run(name, &run);
    if (run.stuck)
        _exit(exit_code); /* skip cleanup: a driver call is still running */
    return exit_code;
}

static int stall_both(const struct uva__options *options)
{
    const unsigned both = UVA__RUN_SYNC | UVA__RUN_ASYNC;
    const unsigned runs = options->runs != 0 ? options->runs : both;
    int exit_code = UVA__EXIT_OK;

    if ((runs & UVA__RUN_SYNC) != 0)
        exit_code = stall_one(options, "on the loop thread", sync_run, true);
    if ((runs & UVA__RUN_ASYNC) != 0 && exit_code == UVA__EXIT_OK)
        exit_code = stall_one(options, "through uvarrow", async_run,
                              runs == UVA__RUN_ASYNC);
    return exit_code;
}

int uva__stall_main(char **args)
{
    struct uva__options options;
    struct uva_error error = {0};
    int exit_code = UVA__EXIT_OK;

    if (uva__options_init(&options, args, UVA__OPTIONS_RUNS, &error) != 0)
        exit_code = uva__report_error(&error, UVA__EXIT_USAGE);
    else if (options.help)
        fputs(HELP, stdout);
    else
        exit_code = stall_both(&options);
    uva__options_fini(&options);
    return exit_code;
}
