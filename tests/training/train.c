/* SPDX-License-Identifier: Apache-2.0 */
/* The training of a release of the preset `release-pgo`: streams as programs
 * use them, of tables of numbers and of texts. They differ from bench/: a
 * profile of the measured programs would only flatter the figures. Exits with 1
 * if a stream fails or loses a row. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "uvarrow/uvarrow.h"

enum { ROWS = 256, COLUMNS = 5, BATCHES = 3000, STREAMS = 200, SHORT = 2 };

/* ---- tables ------------------------------------------------------------- */

static int64_t numbers[ROWS];
static double ratios[ROWS];
static int32_t offsets[ROWS + 1];
static char letters[ROWS];
static char texts_name[] = "text";

/* The memory of one batch. Its buffers are static. */
struct table {
    struct ArrowArray columns[COLUMNS];
    struct ArrowArray *children[COLUMNS];
    const void *none[1];
    const void *of_numbers[2], *of_ratios[2], *of_texts[3];
};

static void column_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static void table_release(struct ArrowArray *array)
{
    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release != NULL)
            array->children[i]->release(array->children[i]);
    free(array->private_data);
    array->release = NULL;
}

/* Gives a batch of four columns of numbers and, with `texts`, a column of text.
 */
static int table_make(bool texts, struct ArrowArray *out)
{
    struct table *table = calloc(1, sizeof(*table));

    if (table == NULL)
        return ENOMEM;
    table->of_numbers[1] = numbers;
    table->of_ratios[1] = ratios;
    table->of_texts[1] = offsets;
    table->of_texts[2] = letters;
    for (int i = 0; i < COLUMNS; i++) {
        table->columns[i] = (struct ArrowArray){
            .length = ROWS,
            .n_buffers = i == COLUMNS - 1 ? 3 : 2,
            .buffers = i % 2 == 0 ? table->of_numbers : table->of_ratios,
            .release = column_release};
        table->children[i] = &table->columns[i];
    }
    table->columns[COLUMNS - 1].buffers = table->of_texts;
    *out = (struct ArrowArray){.length = ROWS,
                               .n_buffers = 1,
                               .n_children = texts ? COLUMNS : COLUMNS - 1,
                               .buffers = table->none,
                               .children = table->children,
                               .release = table_release,
                               .private_data = table};
    return 0;
}

struct columns {
    struct ArrowSchema all[COLUMNS], *children[COLUMNS];
};

static void column_schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void schema_release(struct ArrowSchema *schema)
{
    free(schema->private_data);
    schema->release = NULL;
}

static int table_schema(bool texts, struct ArrowSchema *out)
{
    struct columns *columns = calloc(1, sizeof(*columns));

    if (columns == NULL)
        return ENOMEM;
    for (int i = 0; i < COLUMNS; i++) {
        columns->all[i] =
            (struct ArrowSchema){.format = i % 2 == 0 ? "l" : "g",
                                 .name = "number",
                                 .release = column_schema_release};
        columns->children[i] = &columns->all[i];
    }
    columns->all[COLUMNS - 1].format = "u";
    columns->all[COLUMNS - 1].name = texts_name;
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = texts ? COLUMNS : COLUMNS - 1,
                                .children = columns->children,
                                .release = schema_release,
                                .private_data = columns};
    return 0;
}

/* ---- the source --------------------------------------------------------- */

struct reader {
    int left; /* batches */
    bool texts;
};

static int reader_get_schema(struct ArrowArrayStream *self,
                             struct ArrowSchema *out)
{
    const struct reader *reader = self->private_data;

    return table_schema(reader->texts, out);
}

static int reader_get_next(struct ArrowArrayStream *self,
                           struct ArrowArray *out)
{
    struct reader *reader = self->private_data;

    if (reader->left-- > 0)
        return table_make(reader->texts, out);
    out->release = NULL;
    return 0;
}

static const char *reader_get_last_error(struct ArrowArrayStream *self)
{
    (void)self;
    return NULL;
}

static void reader_release(struct ArrowArrayStream *self)
{
    free(self->private_data);
    self->release = NULL;
}

static struct uva_stream *stream_of(struct uva_runtime *rt, int batches,
                                    bool texts, bool on_loop)
{
    struct reader *reader = calloc(1, sizeof(*reader));
    struct ArrowArrayStream stream = {.get_schema = reader_get_schema,
                                      .get_next = reader_get_next,
                                      .get_last_error = reader_get_last_error,
                                      .release = reader_release,
                                      .private_data = reader};

    if (reader == NULL)
        abort();
    reader->left = batches;
    reader->texts = texts;
    return uva_stream_from_arrow_stream(
        rt, &stream, &(struct uva_arrow_source){.on_loop = on_loop});
}

/* ---- consumers ---------------------------------------------------------- */

static int64_t rows, sum; /* taken */
static int failures;

static void take(const struct ArrowArray *array)
{
    const struct ArrowArray *first = array->children[0];

    rows += array->length;
    sum += ((const int64_t *)first->buffers[1])[first->offset];
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    take(&batch->data.array);
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    failures += outcome->error.code != 0;
}

static void consume(struct uva_stream *stream)
{
    const struct uva_consumer consumer = {.on_batch = on_batch,
                                          .on_done = on_done};

    failures += uva_stream_for_each(stream, &consumer, NULL) != 0;
    uva_stream_release(stream);
}

static int pass(void *ctx, struct uva_batch *in, struct ArrowDeviceArray *out,
                struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    return 0;
}

static int handler_on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                             struct ArrowSchema *schema)
{
    schema->release(schema);
    self->producer->request(self->producer, 16);
    return 0;
}

static int handler_on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                                struct ArrowAsyncTask *task,
                                const char *metadata)
{
    struct ArrowDeviceArray batch;
    int code;

    (void)metadata;
    if (task == NULL)
        return 0;
    code = task->extract_data(task, &batch);
    if (code != 0)
        return code;
    take(&batch.array);
    batch.array.release(&batch.array);
    self->producer->request(self->producer, 1);
    return 0;
}

static void handler_on_error(struct ArrowAsyncDeviceStreamHandler *self,
                             int code, const char *message,
                             const char *metadata)
{
    (void)self;
    (void)code;
    (void)message;
    (void)metadata;
    failures++;
}

static void handler_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    self->release = NULL;
}

/* ---- the training ------------------------------------------------------- */

static void run(uv_loop_t *loop)
{
    (void)uv_run(loop, UV_RUN_DEFAULT);
}

static void train_for_each(struct uva_runtime *rt, uv_loop_t *loop)
{
    struct uva_stream *stream;

    for (int i = 0; i < 6; i++) {
        stream = stream_of(rt, BATCHES, i % 3 == 2, false);
        if (i % 2 != 0)
            uva_stream_map(stream,
                           &(struct uva_map){.batch = pass, .on_loop = true});
        if (i == 5)
            uva_stream_parallel(stream, &(struct uva_parallel){.workers = 2});
        consume(stream);
    }
    run(loop);
    for (int i = 0; i < STREAMS; i++)
        consume(stream_of(rt, SHORT, false, false));
    run(loop);
}

static void train_drive(struct uva_runtime *rt, uv_loop_t *loop)
{
    struct ArrowAsyncDeviceStreamHandler handlers[3];
    struct uva_stream *stream;

    for (int i = 0; i < 3; i++) {
        handlers[i] = (struct ArrowAsyncDeviceStreamHandler){
            .on_schema = handler_on_schema,
            .on_next_task = handler_on_next_task,
            .on_error = handler_on_error,
            .release = handler_release};
        stream = stream_of(rt, BATCHES, i == 2, true);
        for (int map = 0; map < i; map++)
            uva_stream_map(stream,
                           &(struct uva_map){.batch = pass, .on_loop = true});
        failures += uva_stream_drive(stream, &handlers[i], NULL, NULL) != 0;
        uva_stream_release(stream);
    }
    run(loop);
}

static void read_all(void *ctx)
{
    struct ArrowArrayStream *stream = ctx;
    struct ArrowArray array;

    while (stream->get_next(stream, &array) == 0 && array.release != NULL) {
        take(&array);
        array.release(&array);
    }
    stream->release(stream);
}

static void train_to_arrow_stream(struct uva_runtime *rt, uv_loop_t *loop)
{
    struct ArrowArrayStream out;
    struct uva_stream *stream;
    uv_thread_t thread;

    for (int i = 0; i < 2; i++) {
        stream = stream_of(rt, BATCHES, i == 1, true);
        if (uva_stream_to_arrow_stream(stream, NULL, &out, NULL) != 0)
            abort();
        uva_stream_release(stream);
        if (uv_thread_create(&thread, read_all, &out) != 0)
            abort();
        run(loop);
        (void)uv_thread_join(&thread);
    }
}

int main(void)
{
    const int64_t all = ROWS * ((int64_t)11 * BATCHES + STREAMS * SHORT);
    uv_loop_t *loop = uv_default_loop();
    struct uva_runtime *rt;

    for (int i = 0; i < ROWS; i++) {
        numbers[i] = i;
        ratios[i] = i;
        letters[i] = 'a';
        offsets[i + 1] = i + 1;
    }
    if (uva_runtime_open(loop, NULL, &rt, NULL) != 0)
        return 1;
    train_for_each(rt, loop);
    train_drive(rt, loop);
    train_to_arrow_stream(rt, loop);
    (void)uva_runtime_close(rt, 0, NULL, NULL);
    run(loop);
    if (rows != all || failures != 0)
        fprintf(stderr, "%d streams failed, %lld rows of %lld\n", failures,
                (long long)rows, (long long)all);
    return rows != all || failures != 0 || sum != 0;
}
