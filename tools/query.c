/* SPDX-License-Identifier: Apache-2.0 */
/* uvarrow query: a query in, rows out, which a stage of the stream encodes.
 *
 * Happy path:  open sink -> stream starts -> schema -> (part written)* -> done
 * -> sink written and closed -> handles closed -> runtime detached -> summary.
 * Failures:    the driver, the database, the query (exit code 2 before the
 *              schema arrives, 1 later); the sink. A pipe closed by its reader
 *              is no failure: the reader has read enough.
 * On cancel:   the first Ctrl-C cancels the stream; queued chunks are still
 *              written, so the output ends with a whole line, unless its reader
 *              stands still for READER_MS. Any other call that stands still (a
 *              terminal, a disk, a driver) is ended by the guard. The second
 *              one exits at once. */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "connect.h"
#include "from.h"
#include "guard.h"
#include "heartbeat.h"
#include "json_array.h"
#include "loop.h"
#include "options.h"
#include "output.h"
#include "plain_types.h"
#include "plan.h"
#include "progress.h"
#include "report.h"
#include "script.h"
#include "sql.h"
#include "table.h"
#include "tables.h"
#include "target.h"
#include "terminal.h"
#include "uvarrow/adbc.h"
#include "uvarrow/stages.h"
#include "uvarrow/uvarrow.h"

#define PROGRESS_MS   100
#define READER_MS     400 /* for the reader, after a signal */
#define GUARD_MS      800 /* for all, after a signal */
#define STAGES_MOST   64  /* that are looked at for progress */
#define COLUMNS_USUAL 80  /* of a terminal that does not say */

static const char HELP[] =
    "Usage: uvarrow query [OPTION]... DATABASE SQL\n"
    "       uvarrow query --from FILE [OPTION]...\n"
    "       uvarrow query --from URL [OPTION]... [SQL]\n"
    "\n"
    "Runs SQL through an ADBC driver and writes the rows.\n"
    "\n"
    "  --driver DRIVER            its library, its name or a manifest (told "
    "by\n"
    "                             the bytes of the file, the scheme of the "
    "URI)\n"
    "  --entrypoint NAME          its first function (guessed)\n"
    "  --uri URI                  of the database, like DATABASE\n"
    "  --option KEY=VALUE         sets something on the database\n"
    "  --connection-option K=V    the same on the connection\n"
    "  --statement-option K=V     the same on the statement\n"
    "  --batch-bytes N            about so large is a batch of the driver's\n"
    "                             (262144)\n"
    "  --partitions N             reads the result in parts, N at one time, if "
    "the\n"
    "                             database gives it so\n"
    "  --retry N                  --partitions: a part that fails is read "
    "again, so\n"
    "                             often, after the rows that came\n"
    "  --param VALUE              for the next ? (or $1, $2, ...) of the "
    "query:\n"
    "                             a number, true, false, null, a text; a text\n"
    "                             in any case is in quotes: '\"1\"'\n"
    "  --file FILE                reads SQL from there, - from standard input\n"
    "  --from FILE                reads Arrow IPC there instead; -: standard\n"
    "                             input\n"
    "  --from URL                 asks a server instead, such as uvarrow "
    "serve,\n"
    "                             by HTTP or HTTPS\n"
    "                             several --from: one after the other\n"
    "  --merge                    several --from: their rows as they come\n"
    "  --cast                     several --from: with the types of the first "
    "one\n"
    "  --max-bytes BYTES          reads no larger batch of --from (256 MiB, or "
    "16\n"
    "                             times the size of the file)\n"
    "  --token-file FILE          the token for the server is its first line\n"
    "  --tls-ca FILE              trusts these certificates, PEM (the "
    "system's)\n"
    "  --output FILE              writes there, not to standard output\n"
    "  --in-place                 writes into FILE itself, not into a new file "
    "that\n"
    "                             replaces it at the end\n"
    "  --format FORMAT            arrow (a stream), arrow-file, csv, json "
    "(lines),\n"
    "                             json-array or table (that of FILE's ending;\n"
    "                             table in a terminal, otherwise csv)\n"
    "  --explain                  the plan of the query, as the database has "
    "it\n"
    "  --limit ROWS               no more rows: then the query is ended\n"
    "  --compression METHOD       Arrow: none, lz4 or zstd (none)\n"
    "  --plain-types              Arrow: without views, list views and run "
    "ends,\n"
    "                             which old readers do not know\n"
    "  --no-header                CSV without the line of names\n"
    "  --null TEXT                CSV: writes NULL as this (nothing)\n"
    "  --delimiter CHARACTER      CSV: between fields; \\t is a tab (,)\n"
    "  --as-stored                CSV, JSON: UUIDs as hexadecimal, JSON as "
    "strings\n"
    "  --trace FILE               writes a trace there, for uvarrow timeline\n"
    "  --quiet                    no progress, no summary\n"
    "  --verbose                  a summary with delays of the event loop\n"
    "  -h, --help                 prints this\n"
    "\n"
    "A table shows the first and the last 20 rows, and fits the terminal. "
    "NO_COLOR\n"
    "turns its colours off.\n"
    "\n"
    "CSV is that of RFC 4180, with plain newlines. NULL is an empty field, an\n"
    "empty string \"\". Binary is hexadecimal, nested values are JSON. The "
    "format\n"
    "json is an object a line, arrow the stream of Arrow IPC.\n"
    "\n"
    "Exit codes: 0 done, or the reader stopped; 1 failed half-way; 2 wrong\n"
    "path, driver, database, query or option; 130 after Ctrl-C.\n";

static const char TABLES_HELP[] =
    "Usage: uvarrow tables [OPTION]... DATABASE [TABLE]\n"
    "\n"
    "Lists the tables and views of a database, or the columns of one: name, "
    "type,\n"
    "and whether a value may be missing. TABLE may be SCHEMA.TABLE.\n"
    "\n"
    "  --driver, --entrypoint, --uri, --option, --connection-option\n"
    "                             as in uvarrow query, where they are "
    "explained\n"
    "  --output FILE, --in-place, --format FORMAT, --compression METHOD\n"
    "                             as there\n"
    "  --no-header, --null TEXT, --delimiter CHARACTER, --plain-types\n"
    "                             as there\n"
    "  --limit ROWS               no more rows\n"
    "  --trace FILE               writes a trace there, for uvarrow timeline\n"
    "  --quiet                    no progress, no summary\n"
    "  --verbose                  a summary with delays of the event loop\n"
    "  -h, --help                 prints this\n"
    "\n"
    "Tables of the system are left out. Exit codes are those of uvarrow "
    "query.\n";

/* One run of the command. */
struct query {
    struct uva__options options;   /* owns */
    uv_loop_t loop;                /* loop of all the members below */
    struct uva_runtime *runtime;   /* owns, until closed */
    struct uva__script script;     /* owns: the statements */
    size_t statement;              /* the one that runs */
    struct uva_adbc_pool *session; /* owns, while some are to come */
    struct uva_stream *stream;     /* owns a reference, until done */
    struct uva_stream *rows;     /* owns: of partitions, while it is the next */
    struct uva__guard guard;     /* ends it if all else fails */
    struct uva__target target;   /* the file that the rows end in */
    struct uva__output output;   /* where the rows go */
    struct uva__heartbeat heart; /* measures how late the loop is */
    struct uva__json_array array;            /* if that is the format */
    struct uva__plan plan;                   /* if that is asked for */
    struct uva__table table;                 /* the rows, to be shown as one */
    struct uva__progress line;               /* of progress */
    uv_timer_t progress;                     /* shows it */
    uv_timer_t reader;                       /* of READER_MS */
    uv_signal_t signals[UVA__GUARD_SIGNALS]; /* Ctrl-C and the like */
    struct uva__tally tally;                 /* the written rows */
    struct uva_runtime_stats stats; /* of the runtime, once it is closed */
    struct uva_error error;         /* code 0: no error */
    bool has_begun;                 /* the schema has arrived */
    bool reader_gone;               /* the reader has closed the pipe */
    int signal;                     /* the signal that stopped it, or 0 */
};

/* ---- the stream --------------------------------------------------------- */

/* Keeps how many rows the query has changed, if the driver reports that. */
static void query_read_affected(struct query *q,
                                const struct uva_stream_info *info)
{
    const int64_t affected = uva_adbc_rows_changed(info);
    const char *sql =
        q->options.set == UVA__OPTIONS_OUTPUT ? q->options.sql : NULL;

    if (affected > 0 ||
        (affected == 0 && sql != NULL && uva__sql_is_update(sql)))
        q->tally.affected = /* some report 0 of any query */
            affected + (q->tally.affected > 0 ? q->tally.affected : 0);
}

static int query_on_schema(void *ctx, const struct uva_stream_info *info)
{
    struct query *q = ctx;

    assert(!q->has_begun || q->statement > 0);
    query_read_affected(q, info);
    q->has_begun = true;
    return q->options.view == UVA__VIEW_TABLE
               ? uva__table_begin(&q->table, info->schema)
               : 0;
}

/* The terminal that shows the rows has no room for progress. */
static void query_end_progress(struct query *q)
{
    (void)uv_timer_stop(&q->progress);
    uva__progress_wipe(&q->line);
}

/* Whether rows are written as a stage of the stream encodes them. */
static bool is_encoded(const struct uva__options *options)
{
    return options->view == UVA__VIEW_ENCODED ||
           options->view == UVA__VIEW_ARRAY;
}

static int query_write_plan(struct query *q, struct uva_batch *batch)
{
    char *text;
    size_t size;
    int code = uva__plan_text(&q->plan, batch->schema, &batch->data, &text,
                              &size, &q->error);

    if (q->output.kind == UVA__OUTPUT_TERMINAL)
        query_end_progress(q);
    if (code == 0 && size > 0)
        code = uva__output_write(&q->output, text, size);
    free(text);
    return code;
}

/* Rows for a table are counted here, and not where they are written. */
static int query_on_rows(void *ctx, struct uva_batch *batch)
{
    struct query *q = ctx;
    int64_t bytes = 0;

    if (uva_array_size(batch->schema, &batch->data, &bytes) == 0)
        q->tally.bytes += bytes;
    q->tally.rows += batch->data.array.length;
    q->tally.batches += batch->data.array.length > 0;
    if (q->options.view == UVA__VIEW_PLAN)
        return query_write_plan(q, batch);
    uva__table_add(&q->table, &batch->data);
    return 0;
}

static int query_write_table(struct query *q)
{
    const int columns = uva__terminal_columns(STDOUT_FILENO);
    const bool is_shown = q->output.kind == UVA__OUTPUT_TERMINAL;
    const struct uva__table_style style = {
        .columns = columns == 0 && is_shown ? COLUMNS_USUAL : columns,
        .has_colors = is_shown && uva__terminal_has_colors(STDOUT_FILENO),
        .is_ascii = !uva__terminal_has_unicode(),
        .as_stored = q->options.encode.as_stored};
    char *text;
    size_t size;
    int code;

    query_end_progress(q);
    code = uva__table_print(&q->table, &style, &text, &size, &q->error);

    if (code == 0 && size > 0 && uva__output_write(&q->output, text, size) != 0)
        code = uva_error_set(&q->error, ENOMEM, "out of memory");
    free(text);
    return code;
}

/* Writes the rows of a part, which it takes, as those of an array of JSON. */
static int query_write_array(struct query *q, struct uva_part *part)
{
    const int64_t rows = part->rows;
    size_t size;
    char *text = uva__json_array_text(&q->array, part, &size);
    const int code = text != NULL
                         ? uva__output_write_rows(&q->output, text, size, rows)
                         : ENOMEM;

    free(text);
    return code;
}

static int query_on_batch(void *ctx, struct uva_batch *batch)
{
    struct query *q = ctx;
    struct uva_part part;
    int code = uva_part_take(&batch->data, &part);

    if (code != 0)
        return code;
    if (q->output.kind == UVA__OUTPUT_TERMINAL)
        query_end_progress(q);
    q->tally.bytes += part.bytes;
    q->tally.rows += part.rows;
    q->tally.batches += part.rows > 0;
    code = q->options.view == UVA__VIEW_ARRAY
               ? query_write_array(q, &part)
               : uva__output_write_part(&q->output, &part);
    if (code != 0)
        return code;
    return uva__output_is_full(&q->output) ? EAGAIN : 0;
}

static void query_end_array(struct query *q)
{
    const char *end = uva__json_array_end(&q->array);

    if (q->output.kind == UVA__OUTPUT_TERMINAL)
        query_end_progress(q);
    if (uva__output_write(&q->output, end, strlen(end)) != 0)
        (void)uva_error_set(&q->error, ENOMEM, "out of memory");
}

/* Keeps how the stream has ended, and lets it go. */
static void query_end_stream(struct query *q, const struct uva_outcome *outcome)
{
    assert(q->stream != NULL);
    if ((outcome->end == UVA_END_FAILED || outcome->end == UVA_END_REJECTED) &&
        q->error.code == 0)
        q->error = outcome->error;
    uva_stream_release(q->stream);
    q->stream = NULL;
}

static void query_on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct query *q = ctx;

    query_end_stream(q, outcome);
    if (q->options.view == UVA__VIEW_TABLE && !q->reader_gone)
        (void)query_write_table(q); /* also the rows before a failure */
    if (q->options.view == UVA__VIEW_ARRAY && outcome->end == UVA_END_COMPLETE)
        query_end_array(q);
    uva__output_close(&q->output);
}

/* ---- the sink ----------------------------------------------------------- */

static void query_on_room(void *ctx)
{
    struct query *q = ctx;

    if (q->stream != NULL)
        uva_stream_resume(q->stream);
}

static void query_on_failed(void *ctx, int code)
{
    struct query *q = ctx;

    if (code == EPIPE)
        q->reader_gone = true;
    else if (q->error.code == 0)
        uva_error_set(&q->error, code, "cannot write: %s", uv_strerror(-code));
    if (q->stream != NULL)
        uva_stream_cancel(q->stream, 0, "the output is closed");
}

static void query_on_detached(void *ctx)
{
    struct query *q = ctx;

    uva_runtime_get_stats(q->runtime, &q->stats);
}

/* All has been written, or never will be. A reader that leaves has seen a part
 * of a chunk, of unknown size: then what was given to the output counts. */
static void query_end_target(struct query *q)
{
    const struct uva__output_written *written = &q->output.written;

    if (is_encoded(&q->options) && !q->reader_gone) {
        q->tally.bytes = written->bytes;
        q->tally.rows = written->rows;
        q->tally.batches = written->batches;
    }
    if (q->error.code != 0 || q->signal != 0)
        uva__target_drop(&q->target);
    else if (uva__target_keep(&q->target, &q->error) != 0)
        assert(q->has_begun);
}

static void query_unwatch(struct query *q)
{
    size_t i;

    uva__heartbeat_stop(&q->heart);
    uv_close((uv_handle_t *)&q->progress, NULL);
    uv_close((uv_handle_t *)&q->reader, NULL);
    for (i = 0; i < UVA__GUARD_SIGNALS; i++)
        uv_close((uv_handle_t *)&q->signals[i], NULL);
}

/* The sink is closed: closes everything that keeps the loop alive. */
static void query_on_sink_closed(void *ctx)
{
    struct query *q = ctx;

    assert(q->stream == NULL);
    if (q->session != NULL)
        uva_adbc_pool_release(q->session);
    query_end_target(q);
    q->tally.end_ns = uv_hrtime();
    query_unwatch(q);
    (void)uva_runtime_close(q->runtime, 0, query_on_detached, q);
}

/* ---- the user ----------------------------------------------------------- */

static void query_on_late(uv_timer_t *timer)
{
    struct query *q = timer->data;

    uva__output_cut(&q->output);
}

/* The guard sees it, too, and also a second one. */
static void query_on_signal(uv_signal_t *handle, int signal)
{
    struct query *q = handle->data;

    if (q->signal != 0)
        return;
    q->signal = signal;
    (void)uv_timer_start(&q->reader, query_on_late, READER_MS, 0);
    if (q->stream != NULL)
        uva_stream_cancel(q->stream, 0, "interrupted");
}

/* Asks the sources how much they will give, and have given. Returns what the
 * first one waits for. */
static enum uva_waiting query_expect(struct query *q)
{
    struct uva_stage_stats stages[STAGES_MOST];
    size_t count = STAGES_MOST;

    if (q->stream == NULL ||
        uva_stream_get_stats(q->stream, stages, &count) != 0 || count == 0)
        return UVA_WAITING_NONE;
    uva__progress_expect(&q->tally, stages,
                         count < STAGES_MOST ? count : STAGES_MOST);
    return stages[0].waiting;
}

static void query_on_progress(uv_timer_t *timer)
{
    struct query *q = timer->data;

    uva__progress_show(&q->line, query_expect(q), q->output.full);
}

static bool query_shows_progress(const struct query *q)
{
    return !q->options.quiet && uva__terminal_is(STDERR_FILENO);
}

static void query_watch_signals(struct query *q)
{
    static const int SIGNALS[UVA__GUARD_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};
    int i;

    for (i = 0; i < UVA__GUARD_SIGNALS; i++) {
        (void)uv_signal_init(&q->loop, &q->signals[i]);
        q->signals[i].data = q;
        if (SIGNALS[i] != SIGHUP || uva__guard_takes_hangup())
            (void)uv_signal_start(&q->signals[i], query_on_signal, SIGNALS[i]);
    }
}

static void query_watch(struct query *q)
{
    (void)uv_timer_init(&q->loop, &q->progress);
    (void)uv_timer_init(&q->loop, &q->reader);
    q->progress.data = q->reader.data = q;
    query_watch_signals(q);
    if (query_shows_progress(q))
        (void)uv_timer_start(&q->progress, query_on_progress, 0, PROGRESS_MS);
    uva__heartbeat_start(&q->heart, &q->loop);
}

/* ---- the run ------------------------------------------------------------ */

/* The stream keeps the first failure, which its start reports. */
static void query_add_stages(struct query *q)
{
    const struct uva__options *options = &q->options;

    if (options->limit >= 0)
        (void)uva_stream_limit_rows(q->stream, options->limit);
    if ((options->extras & UVA__EXTRA_PLAIN_TYPES) != 0)
        (void)uva__plain_types(q->stream);
    if (is_encoded(options))
        (void)uva_stream_encode(q->stream, &options->encode);
}

/* Starts the stream whose rows are written. */
static int query_start_rows(struct query *q,
                            void (*on_done)(void *ctx,
                                            const struct uva_outcome *outcome))
{
    query_add_stages(q);
    return uva_stream_for_each(
        q->stream,
        &(struct uva_consumer){.on_schema = query_on_schema,
                               .on_batch = is_encoded(&q->options)
                                               ? query_on_batch
                                               : query_on_rows,
                               .on_done = on_done,
                               .ctx = q},
        &q->error);
}

static int query_start_statement(struct query *q);

static int query_on_statement_schema(void *ctx,
                                     const struct uva_stream_info *info)
{
    query_read_affected(ctx, info);
    return 0;
}

static int query_on_statement_rows(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    (void)batch;
    return 0;
}

/* Whether the user or the output has ended the run, which may be after the last
 * word of a statement: its stream is complete then. */
static bool query_is_stopped(const struct query *q)
{
    return q->signal != 0 || q->error.code != 0 || q->reader_gone;
}

/* A statement before the last one has ended. Without rows it shows no table, as
 * a statement that gives none has an empty one with some drivers. */
static void query_on_statement(void *ctx, const struct uva_outcome *outcome)
{
    struct query *q = ctx;

    query_end_stream(q, outcome);
    if (q->table.rows > 0 && !q->reader_gone)
        (void)query_write_table(q);
    uva__table_fini(&q->table);
    q->table = (struct uva__table){0};
    if (outcome->end == UVA_END_COMPLETE)
        q->statement++;
    if (outcome->end == UVA_END_COMPLETE && !query_is_stopped(q)) {
        if (query_start_statement(q) == 0)
            return;
        uva_stream_release(q->stream);
        q->stream = NULL;
    }
    uva__output_close(&q->output);
}

/* ---- partitions --------------------------------------------------------- */

/* The partitions are known, all in one batch: the stream of their rows is next.
 */
static int query_on_partitions(void *ctx, struct uva_batch *batch)
{
    struct query *q = ctx;
    const struct uva_adbc_partitions options = {.retries = q->options.retries};

    q->rows =
        uva_stream_from_partitions(q->session, &batch->data.array, &options);
    return 0;
}

static void query_on_partitions_end(void *ctx,
                                    const struct uva_outcome *outcome)
{
    struct query *q = ctx;

    query_end_stream(q, outcome);
    q->stream = q->rows;
    q->rows = NULL;
    uva_adbc_pool_release(q->session); /* the stream keeps it */
    q->session = NULL;
    if (outcome->end == UVA_END_COMPLETE && !query_is_stopped(q) &&
        query_start_rows(q, query_on_done) == 0)
        return;
    uva_stream_release(q->stream); /* NULL after a failure */
    q->stream = NULL;
    uva__output_close(&q->output);
}

static int query_start_partitions(struct query *q)
{
    q->stream =
        uva__connect_ask(q->session, &q->options, q->options.sql, false);
    return uva_stream_for_each(
        q->stream,
        &(struct uva_consumer){.on_batch = query_on_partitions,
                               .on_done = query_on_partitions_end,
                               .ctx = q},
        &q->error);
}

/* ---- statements --------------------------------------------------------- */

/* Tables of all results can be shown, one after the other. In a file of another
 * format are the rows of one: that of the last statement. */
static int query_start_statement(struct query *q)
{
    const bool is_last = q->statement + 1 >= q->script.count,
               is_shown = is_last || q->options.view == UVA__VIEW_TABLE;
    const char *sql = q->options.sql; /* of one, its errors count its lines */

    if (q->script.count > 1 || (q->options.extras & UVA__EXTRA_EXPLAIN) != 0)
        sql = q->script.texts[q->statement];
    q->stream = uva__connect_ask(q->session, &q->options, sql, !is_shown);
    if (!is_last && is_shown)
        return query_start_rows(q, query_on_statement);
    if (!is_last)
        return uva_stream_for_each(
            q->stream,
            &(struct uva_consumer){.on_schema = query_on_statement_schema,
                                   .on_batch = query_on_statement_rows,
                                   .on_done = query_on_statement,
                                   .ctx = q},
            &q->error);
    uva_adbc_pool_release(q->session); /* the stream keeps it */
    q->session = NULL;
    return query_start_rows(q, query_on_done);
}

static int query_start_stream(struct query *q)
{
    if (q->options.from != NULL) {
        q->stream = uva__from_stream(q->runtime, &q->options, &q->error);
        return query_start_rows(q, query_on_done);
    }
    if (uva__connect_open(q->runtime, &q->options, q->script.count > 1,
                          &q->session, &q->error) != 0)
        return q->error.code;
    if (q->options.set == UVA__OPTIONS_TABLES) {
        q->stream = uva__tables_stream(q->session, q->options.sql);
        uva_adbc_pool_release(q->session); /* the stream keeps it */
        q->session = NULL;
        return query_start_rows(q, query_on_done);
    }
    return q->options.partitions > 0 ? query_start_partitions(q)
                                     : query_start_statement(q);
}

/* The library reads the path of the trace from the environment. */
static int query_set_trace(struct query *q)
{
    const char *path = q->options.trace;
    FILE *file;

    if (path == NULL)
        return 0;
    file = fopen(path, "ae");
    if (file == NULL)
        return uva_error_set(&q->error, errno, "cannot write the trace %s: %s",
                             path, strerror(errno));
    (void)fclose(file);
    return setenv("UVA_TRACE", path, 1) == 0
               ? 0
               : uva_error_set(&q->error, ENOMEM, "out of memory");
}

/* Prints a note about the rows. Any thread. */
static void query_on_log(void *ctx, const struct uva_log_record *record)
{
    uva__report_note(record->message, query_shows_progress(ctx));
}

/* The log for rows that are read, unless the environment asks for one. */
static struct uva_log query_log(struct query *q)
{
    const bool is_noted = q->options.from != NULL && getenv("UVA_LOG") == NULL;

    return (struct uva_log){.write = is_noted ? query_on_log : NULL, .ctx = q};
}

static int query_open_output(struct query *q)
{
    const struct uva__output_events events = {.on_writable = query_on_room,
                                              .on_failed = query_on_failed,
                                              .on_closed = query_on_sink_closed,
                                              .ctx = q};
    const char *path = q->options.output;
    int code = uva__target_open(&q->target, &q->options, &q->guard, &q->error);

    if (code != 0)
        return code;
    code =
        q->target.fd < 0
            ? uva__output_open(&q->output, &q->loop, path, &events, &q->error)
            : uva__output_open_fd(&q->output, &q->loop, q->target.fd, path,
                                  &events, &q->error);
    if (code != 0)
        uva__target_drop(&q->target);
    return code;
}

static void query_start(struct query *q)
{
    const struct uva_runtime_options options = {
        .log = query_log(q), /* bytes that are read are for the progress */
        .measure = q->options.from != NULL && query_shows_progress(q)};

    if (uva__target_check(&q->options, &q->error) != 0 ||
        query_set_trace(q) != 0 ||
        uva__guard_open(&q->guard, GUARD_MS, 0, true, &q->error) != 0 ||
        uva_runtime_open(&q->loop, &options, &q->runtime, &q->error) != 0)
        return;
    if (query_open_output(q) != 0) {
        (void)uva_runtime_close(q->runtime, 0, NULL, NULL);
        return;
    }
    query_watch(q);
    q->tally.begin_ns = uv_hrtime();
    if (query_start_stream(q) != 0) {
        if (q->stream != NULL)
            uva_stream_release(q->stream);
        q->stream = NULL;
        uva__output_close(&q->output);
    }
}

static const char *query_ending(const struct query *q)
{
    if (q->signal != 0)
        return "interrupted";
    if (q->error.code != 0)
        return "failed";
    return q->reader_gone ? "the reader stopped" : "complete";
}

/* The limit of the library is an option here, which has another name. */
static void query_name_limit(struct query *q)
{
    static const char name[] = "(max_bytes)";
    char *at = strstr(q->error.message, name);

    if (q->options.from != NULL && at != NULL &&
        at + sizeof(name) + 2 <= q->error.message + sizeof(q->error.message))
        memcpy(at, "(--max-bytes)", sizeof(name) + 2);
}

/* Of several statements, says which one has failed. */
static void query_name_statement(struct query *q)
{
    const struct uva_error error = q->error;

    if (error.code != 0 && q->script.count > 1)
        (void)uva_error_set(&q->error, error.code,
                            "statement %zu of %zu: %.960s", q->statement + 1,
                            q->script.count, error.message);
}

static int query_finish(struct query *q)
{
    int exit_code = UVA__EXIT_OK;

    uva__progress_wipe(&q->line);
    query_name_limit(q);
    query_name_statement(q);
    if (q->error.code != 0 && q->signal == 0)
        exit_code = uva__report_error(
            &q->error, q->has_begun || q->statement > 0 ? UVA__EXIT_FAILED
                                                        : UVA__EXIT_USAGE);
    if (q->signal != 0)
        exit_code = UVA__EXIT_SIGNAL + q->signal;
    if (!q->options.quiet && exit_code != UVA__EXIT_USAGE) {
        uva__report_summary(query_ending(q), &q->tally);
        if (q->options.verbose)
            uva__report_loop(q->heart.max_ns, (uint64_t)q->stats.hold_max_ns);
    }
    uva__guard_close(&q->guard);
    uva__table_fini(&q->table);
    if (q->stats.calls_stuck > 0)
        _exit(exit_code); /* skip cleanup: a driver call is still running */
    return exit_code;
}

static int query_run(struct query *q)
{
    int code = uva__loop_open(&q->loop, &q->error);

    if (code != 0)
        return uva__report_error(&q->error, UVA__EXIT_FAILED);
    query_start(q);
    (void)uv_run(&q->loop, UV_RUN_DEFAULT);
    code = uv_loop_close(&q->loop);
    if (code != 0 && q->error.code == 0)
        uva_error_set(&q->error, -code, "the loop does not close: %s",
                      uv_strerror(code));
    return query_finish(q);
}

/* Says what the line of progress waits for. */
static const char *query_source(const struct uva__options *options)
{
    if (options->from == NULL)
        return "the database";
    if (options->n_froms > 1)
        return uva__options_from_server(options) ? "the servers" : "the files";
    return uva__options_from_server(options) ? "the server" : "the file";
}

/* A terminal gets a table, unless something else is asked for. */
static void query_choose_view(struct uva__options *options)
{
    const struct uva_csv *csv = &options->encode.csv;

    if (!options->has_format && (options->extras & UVA__EXTRA_EXPLAIN) != 0)
        options->view = UVA__VIEW_PLAN;
    else if (!options->has_format && options->output == NULL &&
             csv->delimiter == '\0' && csv->null_text == NULL &&
             !csv->rows_only && uva__terminal_is(STDOUT_FILENO))
        options->view = UVA__VIEW_TABLE;
}

static int query_main(char **args, enum uva__options_set set, const char *help)
{
    struct query q = {.tally.affected = -1, .line.tally = &q.tally};
    int exit_code = UVA__EXIT_OK;

    if (uva__options_init(&q.options, args, set, &q.error) != 0)
        exit_code = uva__report_error(&q.error, UVA__EXIT_USAGE);
    else if (q.options.help)
        fputs(help, stdout);
    else if (q.options.from == NULL && set == UVA__OPTIONS_OUTPUT &&
             uva__script_init(&q.script, &q.options, &q.error) != 0)
        exit_code = uva__report_error(&q.error, UVA__EXIT_USAGE);
    else {
        query_choose_view(&q.options);
        q.line.source = query_source(&q.options);
        exit_code = query_run(&q);
    }
    uva__script_fini(&q.script);
    uva__options_fini(&q.options);
    return exit_code;
}

int uva__query_main(char **args)
{
    return query_main(args, UVA__OPTIONS_OUTPUT, HELP);
}

int uva__tables_main(char **args)
{
    return query_main(args, UVA__OPTIONS_TABLES, TABLES_HELP);
}
