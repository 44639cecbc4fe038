/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the flights that left five hours late or later, in two databases and
 * among some in memory; writes them to a CSV file, prints the first of them,
 * and adds them up for each carrier:
 *
 *     example_pipeline DRIVER.so FIRST-URI SECOND-URI OUT.csv
 *
 *     first --- timeout - retry --.
 *     second -- timeout - retry --+ merge - rebatch - filter - inspect
 *     memory ---------------------'                              |
 *              timeout - parallel - map - rebatch ---------------'
 *                 |     (to hours)              (the late ones)
 *         .------ + ------ tee ------ tee ------.
 *         |                 |                   |
 *     add up, print    limit_rows, print   transform (to CSV)
 *                                          concat, after the names
 *                                          throttle
 *                                          map_async (to the file)
 *
 * Ctrl-C cancels the whole program. UVA_LOG=debug logs every step, and
 * UVA_TRACE=trace.json is drawn by `uvarrow timeline trace.json`. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "columns.h"
#include "csv_encode.h"
#include "database.h"

enum { CARRIER, FLIGHT, DEST, DISTANCE, LATE, COLUMNS };
enum { LATE_MINUTES = 300, PRINTED = 5, MOST_CARRIERS = 100 };
#define SQL                                                                    \
    "SELECT carrier, flight, dest, distance, dep_delay AS late FROM flights"

/* Every source has these columns; `late` is in minutes at first. */
#define COLUMN(letter, title)                                                  \
    {                                                                          \
        .format = (letter), .name = (title), .flags = ARROW_FLAG_NULLABLE,     \
        .release = columns_keep_schema                                         \
    }
static struct ArrowSchema flight_columns[COLUMNS] = {
    COLUMN("u", "carrier"), COLUMN("l", "flight"), COLUMN("u", "dest"),
    COLUMN("l", "distance"), COLUMN("l", "late")};
static const char names_in_csv[] = "carrier,flight,dest,distance,late\n";

/* ---- sources ------------------------------------------------------------ */

struct query {
    struct uva_runtime *rt;
    const char *name, *driver, *uri;
};

static struct uva_stream *query_stream(const struct query *q)
{
    struct uva_stream *s = database_query(q->rt, q->driver, q->uri,
                                          &(struct uva_adbc_query){.sql = SQL});

    uva_stream_set_name(s, q->name);
    uva_stream_timeout(
        s, &(struct uva_timeout){.first_ms = 30000, .between_ms = 10000});
    return s;
}

/* A database that is locked may be free a moment later; other failures would
 * only be repeated. */
static struct uva_stream *query_again(void *ctx,
                                      const struct uva_outcome *failed,
                                      int32_t attempt, int64_t passed,
                                      int64_t rows)
{
    const struct query *q = ctx;

    (void)passed, (void)rows; /* 0 without `resume` */
    if (strstr(failed->error.message, "locked") == NULL)
        return NULL; /* gives up: the failure is passed on */
    fprintf(stderr, "%s: attempt %d, as this failed: %s\n", q->name,
            (int)attempt + 1, failed->error.message);
    return query_stream(q);
}

static struct uva_stream *database_stream(struct query *q)
{
    struct uva_stream *s = query_stream(q);

    uva_stream_retry(
        s, &(struct uva_retry){.again = query_again, .ctx = q, .times = 8});
    return s;
}

/* Flights that are in no database so far. Without memory for them the batch is
 * a released one, and the stream fails. */
static struct uva_stream *memory_stream(struct uva_runtime *rt)
{
    static struct ArrowSchema *children[COLUMNS];
    struct ArrowSchema schema = {.format = "+s",
                                 .name = "",
                                 .n_children = COLUMNS,
                                 .children = children,
                                 .release = columns_keep_schema};
    static const struct text carriers[] = {{"ZZ", 2}, {"UA", 2}};
    static const struct text dests[] = {{"Bar, \"ME\"", 9}, {"SFO", 3}};
    static const int64_t numbers[COLUMNS][2] = {
        [FLIGHT] = {1, 2}, [DISTANCE] = {100, 2586}, [LATE] = {721, 299}};
    struct ArrowArray columns[COLUMNS] = {{.length = 0}};
    struct ArrowDeviceArray batch;

    (void)column_texts(carriers, 2, &columns[CARRIER]);
    (void)column_texts(dests, 2, &columns[DEST]);
    for (int i = 0; i < COLUMNS; i++) {
        int64_t *to =
            numbers[i][0] != 0 ? column_numbers(2, &columns[i]) : NULL;
        if (to != NULL)
            memcpy(to, numbers[i], sizeof(numbers[i]));
        children[i] = &flight_columns[i];
    }
    (void)columns_join(columns, COLUMNS, 2, &batch);
    return uva_stream_from_arrays(rt, &schema, &batch, 1);
}

/* ---- the flights that are late ------------------------------------------ */

static bool is_late(const struct ArrowArray *rows, int64_t row)
{
    return !columns_is_null(rows, LATE, row) && /* it was not cancelled */
           columns_number(rows, LATE, row) >= LATE_MINUTES;
}

/* A filter: it keeps the late ones. */
static int keep_late(void *ctx, const struct uva_batch *batch, uint8_t *bits,
                     struct uva_error *error)
{
    (void)ctx, (void)error;
    for (int64_t i = 0; i < batch->data.array.length; i++)
        if (is_late(&batch->data.array, i))
            bits[i / 8] |= (uint8_t)(1 << i % 8);
    return 0;
}

/* A map: the minutes become hours. */
static int to_hours(void *ctx, struct uva_batch *in,
                    struct ArrowDeviceArray *out, struct uva_error *error)
{
    const struct ArrowArray *rows = &in->data.array;
    struct ArrowArray columns[COLUMNS];
    int64_t *hours = column_numbers(rows->length, &columns[LATE]);

    (void)ctx;
    for (int64_t i = 0; hours != NULL && i < rows->length; i++)
        hours[i] = columns_number(rows, LATE, i) / 60; /* without nulls */
    for (int i = 0; i < LATE; i++) {
        columns[i] = *rows->children[i];
        columns[i].offset += rows->offset;
        columns[i].length = rows->length;
        if (columns[i].null_count != 0)
            columns[i].null_count = -1;    /* not known of a slice */
        rows->children[i]->release = NULL; /* it was moved */
    }
    if (columns_join(columns, COLUMNS, rows->length, out) != 0)
        return uva_error_set(error, ENOMEM, "no memory for hours");
    return 0;
}

/* ---- the file ----------------------------------------------------------- */

struct file {
    uv_loop_t *loop;
    int descriptor;
    int64_t size; /* with the data being written */
};

struct write {
    uv_fs_t request;
    struct uva_reply *reply;
    struct ArrowDeviceArray text;
};

static void on_written(uv_fs_t *request)
{
    struct write *w = request->data;
    const ssize_t result = request->result;
    struct uva_error error;

    uv_fs_req_cleanup(request);
    if (result == (ssize_t)csv_text_of(&w->text).size) {
        uva_reply_give(w->reply, &w->text, NULL);
    } else {
        (void)uva_error_set(&error, result < 0 ? (int)-result : ENOSPC,
                            "the file cannot be written");
        uva_reply_give(w->reply, NULL, &error);
        uva_array_release(&w->text);
    }
    free(w);
}

/* An asynchronous map: a thread of libuv's pool writes, meanwhile the loop goes
 * on, and the text is passed on when it is in the file. */
static int write_begin(void *ctx, struct uva_batch *in, struct uva_reply *reply)
{
    const struct text text = csv_text_of(&in->data);
    const uv_buf_t bytes = uv_buf_init((char *)text.data, (unsigned)text.size);
    struct write *w = malloc(sizeof(*w));
    struct file *file = ctx;
    int code;

    if (w == NULL)
        return ENOMEM;
    w->request.data = w;
    w->reply = reply;
    uva_array_move(&in->data, &w->text);
    code = uv_fs_write(file->loop, &w->request, file->descriptor, &bytes, 1,
                       file->size, on_written);
    if (code != 0) {
        uva_array_release(&w->text);
        free(w);
        return -code;
    }
    file->size += (int64_t)text.size;
    return 0;
}

/* The last write has ended. */
static void file_close(void *ctx)
{
    (void)close(((struct file *)ctx)->descriptor);
}

/* The line of names, as a stream for itself. */
static struct uva_stream *names_stream(struct uva_runtime *rt)
{
    struct ArrowSchema schema;
    struct ArrowDeviceArray batch;

    (void)csv_encode_schema(NULL, NULL, &schema, NULL);
    uva_array_clear(&batch);
    (void)csv_text((struct text){names_in_csv, strlen(names_in_csv)}, &batch);
    return uva_stream_from_arrays(rt, &schema, &batch, 1);
}

/* ---- the program -------------------------------------------------------- */

struct total {
    char carrier[8];
    int64_t flights, hours;
};

struct app {
    struct uva_runtime *rt;
    struct uva_group *group;
    uv_signal_t ctrl_c;
    struct query first, second;
    struct file file;
    struct total totals[MOST_CARRIERS];
    int carriers; /* number of `totals` */
    int64_t kept; /* batches that passed the filter */
    int code;     /* why the first stream ended that did not end well */
};

static int print_row(void *ctx, struct uva_batch *batch)
{
    const struct ArrowArray *rows = &batch->data.array;

    (void)ctx;
    for (int64_t i = 0; i < rows->length; i++) {
        const struct text carrier = columns_text(rows, CARRIER, i);
        printf("%.*s %" PRId64 " was late by %" PRId64 " hours\n",
               (int)carrier.size, carrier.data, columns_number(rows, FLIGHT, i),
               columns_number(rows, LATE, i));
    }
    return 0;
}

static int add_up(void *ctx, struct uva_batch *batch)
{
    const struct ArrowArray *rows = &batch->data.array;
    struct app *app = ctx;

    for (int64_t i = 0; i < rows->length; i++) {
        const struct text carrier = columns_text(rows, CARRIER, i);
        char name[sizeof(app->totals->carrier)];
        int at = 0;

        (void)snprintf(name, sizeof(name), "%.*s", (int)carrier.size,
                       carrier.data);
        while (at < app->carriers && strcmp(app->totals[at].carrier, name) != 0)
            at++;
        if (at == MOST_CARRIERS)
            return EOVERFLOW; /* the stream ends REJECTED */
        if (at == app->carriers)
            memcpy(app->totals[app->carriers++].carrier, name, sizeof(name));
        app->totals[at].flights++;
        app->totals[at].hours += columns_number(rows, LATE, i);
    }
    return 0;
}

static int count_text(void *ctx, struct uva_batch *batch)
{
    (void)ctx, (void)batch; /* it is in the file */
    return 0;
}

/* A stream has ended. If it has failed, the group cancels the rest. */
static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct app *app = ctx;

    if (app->code == 0 && outcome->end != UVA_END_COMPLETE) {
        app->code = outcome->error.code;
        fprintf(stderr, "%s\n", outcome->error.message);
    }
}

static void on_ctrl_c(uv_signal_t *signal, int number)
{
    (void)number;
    uva_group_cancel(((struct app *)signal->data)->group, 0, "interrupted");
}

/* All streams of the group have ended. */
static void on_all_done(void *ctx)
{
    struct app *app = ctx;

    for (int i = 0; app->code == 0 && i < app->carriers; i++)
        printf("%s: %" PRId64 " flights, %" PRId64 " hours\n",
               app->totals[i].carrier, app->totals[i].flights,
               app->totals[i].hours);
    if (app->code == 0)
        printf("%" PRId64 " batches had one, %" PRId64
               " bytes are in the file\n",
               app->kept, app->file.size);
    uv_close((uv_handle_t *)&app->ctrl_c, NULL);
    uva_runtime_close(app->rt, 0, NULL, NULL);
}

/* An inspector after the filter. */
static void count_kept(void *ctx, const struct uva_trace_event *event)
{
    ((struct app *)ctx)->kept += event->kind == UVA_TRACE_BATCH;
}

/* The flights of all three sources that are late. */
static struct uva_stream *late_stream(struct app *app)
{
    struct uva_stream *s = database_stream(&app->first);
    struct uva_stream *others[] = {database_stream(&app->second),
                                   memory_stream(app->rt)};

    uva_stream_merge(s, others, 2, NULL);
    uva_stream_set_name(s, "flights");
    /* splits: a batch without a late flight is not passed on */
    uva_stream_rebatch(s, &(struct uva_rebatch){.rows = 256});
    uva_stream_filter(s, &(struct uva_filter){.keep = keep_late});
    uva_stream_inspect(s, &(struct uva_trace){.event = count_kept, .ctx = app});
    /* joins, but keeps no row waiting */
    uva_stream_rebatch(s, &(struct uva_rebatch){
                              .rows = 100, .bytes = 1 << 20, .wait_ms = 1000});
    uva_stream_map(s, &(struct uva_map){.batch = to_hours});
    uva_stream_parallel(s, &(struct uva_parallel){.workers = 2});
    uva_stream_timeout(s, &(struct uva_timeout){.total_ms = 600000});
    return s;
}

/* Writes the rows of `s` as text after the content of `text`. */
static void file_stages(struct app *app, struct uva_stream *text,
                        struct uva_stream *s)
{
    uva_stream_transform(s,
                         &(struct uva_transform){.batch = csv_encode_batch,
                                                 .schema = csv_encode_schema});
    uva_stream_concat(text, &s, 1, NULL);
    uva_stream_throttle(text, &(struct uva_throttle){.bytes_per_s = 20 << 20});
    uva_stream_map_async(text, &(struct uva_async_map){.begin = write_begin,
                                                       .free_ctx = file_close,
                                                       .ctx = &app->file,
                                                       .at_once = 4});
}

/* Starts a stream as part of the group, and gives it away. */
static void run(struct app *app, struct uva_stream *s,
                int (*on_batch)(void *ctx, struct uva_batch *batch))
{
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = app};
    struct uva_error error;
    int code = uva_group_add(app->group, s);

    if (code == 0)
        code = uva_stream_for_each(s, &consumer, &error);
    if (code != 0 && app->code == 0) {
        app->code = code;
        fprintf(stderr, "%s\n", error.message);
    }
    if (code != 0)
        uva_group_cancel(app->group, code, NULL);
    uva_stream_release(s); /* it runs to its end */
}

/* Adds the branches and starts them. */
static void run_all(struct app *app)
{
    struct uva_stream *text = names_stream(app->rt);
    struct uva_stream *s = late_stream(app);
    struct uva_stream *rows = uva_stream_tee(s, NULL);
    struct uva_stream *few = uva_stream_tee(s, NULL);

    file_stages(app, text, rows);
    uva_stream_limit_rows(few, PRINTED);
    run(app, text, count_text);
    run(app, few, print_row);
    run(app, s, add_up);
}

int main(int argc, char **argv)
{
    uv_loop_t *loop = uv_default_loop();
    static struct app app; /* cleared */
    struct uva_error error;

    if (argc != 5) {
        fprintf(stderr, "usage: %s DRIVER.so FIRST-URI SECOND-URI OUT.csv\n",
                argv[0]);
        return 2;
    }
    if (access(argv[1], R_OK) != 0) {
        fprintf(stderr, "skipped: %s, the driver, is not there\n", argv[1]);
        return 77;
    }
    app.file.descriptor = open(argv[4], O_CREAT | O_TRUNC | O_WRONLY, 0644);
    if (app.file.descriptor < 0) {
        perror(argv[4]);
        return 1;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    app.file.loop = loop;
    if (uva_runtime_open(
            loop, &(struct uva_runtime_options){.memory_bytes = 16 << 20},
            &app.rt, &error) != 0 ||
        uva_group_new(app.rt, true, &app.group, &error) != 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    app.first = (struct query){app.rt, "first", argv[1], argv[2]};
    app.second = (struct query){app.rt, "second", argv[1], argv[3]};
    app.ctrl_c.data = &app;
    uv_signal_init(loop, &app.ctrl_c);
    uv_signal_start(&app.ctrl_c, on_ctrl_c, SIGINT);

    run_all(&app);
    if (uva_group_on_done(app.group, on_all_done, &app) != 0)
        return 1;
    uv_run(loop, UV_RUN_DEFAULT); /* until all is closed */
    uva_group_release(app.group);
    return uv_loop_close(loop) != 0 || app.code != 0;
}
