/* SPDX-License-Identifier: Apache-2.0 */
/* One state, offered as a blocking stream and as a source of tasks. Memory
 * comes from malloc(), so that the library's own allocations can be counted and
 * failed separately. */
#include "support/fake_source.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "uvarrow/arrow.h"

/* ---- schema and batches ------------------------------------------------- */

static void child_schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void schema_release(struct ArrowSchema *schema)
{
    struct fake_source *fake = schema->private_data;

    free(schema->children[0]);
    free(schema->children);
    atomic_fetch_sub(&fake->live, 1);
    schema->release = NULL;
}

void fake_source_schema(struct fake_source *fake, struct ArrowSchema *out)
{
    memset(out, 0, sizeof(*out));
    out->format = "+s";
    out->name = "";
    out->n_children = 1;
    out->children = malloc(sizeof(*out->children));
    out->children[0] = calloc(1, sizeof(*out));
    out->children[0]->format = "l";
    out->children[0]->name = fake->column != NULL ? fake->column : "n";
    out->children[0]->release = child_schema_release;
    out->private_data = fake;
    out->release = schema_release;
    atomic_fetch_add(&fake->live, 1);
}

static void child_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static void batch_release(struct ArrowArray *array)
{
    struct fake_source *fake = array->private_data;
    struct ArrowArray *child = array->children[0];

    free(child->private_data);
    free(child->buffers);
    free(child);
    free(array->children);
    free(array->buffers);
    atomic_fetch_sub(&fake->live, 1);
    array->release = NULL;
}

static void column_make(struct ArrowArray *out, int64_t rows, int64_t first)
{
    int64_t *values = malloc(sizeof(*values) * (size_t)(rows + 1)), i;

    for (i = 0; i < rows; i++)
        values[i] = first + i;
    memset(out, 0, sizeof(*out));
    out->length = rows;
    out->n_buffers = 2;
    out->buffers = calloc(2, sizeof(*out->buffers));
    out->buffers[1] = values; /* a test may replace the values there */
    out->private_data = values;
    out->release = child_release;
}

static void plain_batch(struct fake_source *fake, int64_t ordinal,
                        struct ArrowArray *out)
{
    memset(out, 0, sizeof(*out));
    out->length = fake->rows;
    out->n_buffers = fake->wrong_shape ? 7 : 1;
    out->n_children = 1;
    out->buffers = calloc(7, sizeof(*out->buffers));
    out->children = malloc(sizeof(*out->children));
    out->children[0] = malloc(sizeof(**out->children));
    column_make(out->children[0], fake->rows, ordinal * 10);
    out->private_data = fake;
    out->release = batch_release;
    atomic_fetch_add(&fake->live, 1);
}

void fake_source_batch(struct fake_source *fake, int64_t ordinal,
                       struct ArrowDeviceArray *out)
{
    struct ArrowArray plain;

    plain_batch(fake, ordinal, &plain);
    uva_array_from_cpu(&plain, out);
}

/* ---- calls -------------------------------------------------------------- */

static void call_begin(struct fake_stream *stream)
{
    atomic_fetch_add(&stream->fake->inside, 1);
    if (atomic_fetch_add(&stream->inside, 1) != 0)
        atomic_store(&stream->fake->overlapped, true);
}

static int call_end(struct fake_stream *stream, int code)
{
    atomic_fetch_sub(&stream->inside, 1);
    atomic_fetch_sub(&stream->fake->inside, 1);
    return code;
}

static void gate_wait(struct fake_source *fake)
{
    pthread_mutex_lock(&fake->lock);
    fake->waiting = true;
    pthread_cond_broadcast(&fake->changed);
    while (!fake->open)
        pthread_cond_wait(&fake->changed, &fake->lock);
    fake->waiting = false;
    pthread_mutex_unlock(&fake->lock);
}

void fake_source_open_gate(struct fake_source *fake)
{
    pthread_mutex_lock(&fake->lock);
    fake->open = true;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
}

bool fake_source_is_waiting(struct fake_source *fake)
{
    bool waiting;

    pthread_mutex_lock(&fake->lock);
    waiting = fake->waiting;
    pthread_mutex_unlock(&fake->lock);
    return waiting;
}

void fake_source_await(struct fake_source *fake)
{
    pthread_mutex_lock(&fake->lock);
    while (!fake->waiting)
        pthread_cond_wait(&fake->changed, &fake->lock);
    pthread_mutex_unlock(&fake->lock);
}

/* Returns 0 with `ordinal` of the next batch, or with -1 at the end; or an
 * error code. */
static int source_step(struct fake_source *fake, int64_t *ordinal)
{
    int64_t k = atomic_load(&fake->given);

    if (k == fake->gate_at)
        gate_wait(fake);
    if (k == fake->fail_at)
        return fake->fail_code;
    *ordinal = k < fake->batches ? k : -1;
    if (*ordinal >= 0)
        atomic_fetch_add(&fake->given, 1);
    return 0;
}

/* ---- as a blocking stream ----------------------------------------------- */

static int plain_get_schema(struct ArrowArrayStream *stream,
                            struct ArrowSchema *out)
{
    struct fake_stream *self = stream->private_data;
    struct fake_source *fake = self->fake;

    call_begin(self);
    if (fake->schema_code == 0)
        fake_source_schema(fake, out);
    return call_end(self, fake->schema_code);
}

static int plain_get_next(struct ArrowArrayStream *stream,
                          struct ArrowArray *out)
{
    struct fake_stream *self = stream->private_data;
    struct fake_source *fake = self->fake;
    int64_t ordinal;
    int code;

    call_begin(self);
    code = source_step(fake, &ordinal);
    if (code == 0 && ordinal >= 0)
        plain_batch(fake, ordinal, out);
    else if (code == 0)
        out->release = NULL;
    return call_end(self, code);
}

static const char *plain_get_last_error(struct ArrowArrayStream *stream)
{
    return ((struct fake_stream *)stream->private_data)->fake->fail_text;
}

static void plain_release(struct ArrowArrayStream *stream)
{
    struct fake_stream *self = stream->private_data;
    struct fake_source *fake = self->fake;

    call_begin(self);
    stream->release = NULL;
    atomic_fetch_add(&fake->released, 1);
    (void)call_end(self, 0);
}

static struct fake_stream *stream_make(struct fake_source *fake)
{
    return &fake->streams[atomic_fetch_add(&fake->made, 1) %
                          FAKE_SOURCE_STREAMS];
}

void fake_source_plain(struct fake_source *fake, struct ArrowArrayStream *out)
{
    out->get_schema = plain_get_schema;
    out->get_next = plain_get_next;
    out->get_last_error = plain_get_last_error;
    out->release = plain_release;
    out->private_data = stream_make(fake);
}

static int device_get_schema(struct ArrowDeviceArrayStream *stream,
                             struct ArrowSchema *out)
{
    struct ArrowArrayStream plain = {.private_data = stream->private_data};

    return plain_get_schema(&plain, out);
}

static int device_get_next(struct ArrowDeviceArrayStream *stream,
                           struct ArrowDeviceArray *out)
{
    struct ArrowArrayStream plain = {.private_data = stream->private_data};
    struct ArrowArray array = {0};
    int code = plain_get_next(&plain, &array);

    if (code != 0)
        return code;
    uva_array_from_cpu(&array, out);
    out->device_type = stream->device_type;
    return 0;
}

static const char *device_get_last_error(struct ArrowDeviceArrayStream *stream)
{
    return ((struct fake_stream *)stream->private_data)->fake->fail_text;
}

static void device_release(struct ArrowDeviceArrayStream *stream)
{
    struct ArrowArrayStream plain = {.private_data = stream->private_data};

    plain_release(&plain);
    stream->release = NULL;
}

void fake_source_device(struct fake_source *fake, ArrowDeviceType device_type,
                        struct ArrowDeviceArrayStream *out)
{
    atomic_fetch_add(&fake->opened, 1);
    out->device_type = device_type;
    out->get_schema = device_get_schema;
    out->get_next = device_get_next;
    out->get_last_error = device_get_last_error;
    out->release = device_release;
    out->private_data = stream_make(fake);
}

bool fake_source_again(struct fake_source *fake)
{
    if (atomic_load(&fake->released) != atomic_load(&fake->opened) ||
        atomic_load(&fake->inside) != 0)
        return false;
    atomic_store(&fake->given, 0);
    return true;
}

static void source_interrupt(void *ctx)
{
    struct fake_source *fake = ctx;

    atomic_fetch_add(&fake->interrupts, 1);
    fake_source_open_gate(fake);
}

static void source_free(void *ctx)
{
    atomic_fetch_add(&((struct fake_source *)ctx)->freed, 1);
}

struct uva_arrow_source fake_source_options(struct fake_source *fake)
{
    return (struct uva_arrow_source){
        .interrupt = source_interrupt, .free_ctx = source_free, .ctx = fake};
}

/* ---- as a source of tasks ----------------------------------------------- */

struct item {
    int64_t ordinal;
};

static int tasks_schema(void *ctx, struct ArrowSchema *out,
                        struct uva_error *error)
{
    struct fake_source *fake = ctx;

    if (fake->schema_code != 0)
        return uva_error_set(error, fake->schema_code, "%s", fake->fail_text);
    fake_source_schema(fake, out);
    return 0;
}

static int tasks_next(void *ctx, void **out, const char **metadata,
                      struct uva_error *error)
{
    struct fake_source *fake = ctx;
    struct item *item;
    int64_t ordinal = -1;
    int code;

    call_begin(&fake->tasks);
    code = source_step(fake, &ordinal);
    if (code != 0)
        return call_end(&fake->tasks,
                        uva_error_set(error, code, "%s", fake->fail_text));
    *metadata = fake->metadata;
    if (ordinal >= 0) {
        item = malloc(sizeof(*item));
        item->ordinal = ordinal;
        atomic_fetch_add(&fake->live, 1);
        *out = item;
    }
    return call_end(&fake->tasks, 0);
}

static int tasks_extract(void *ctx, void *given, struct ArrowDeviceArray *out,
                         struct uva_error *error)
{
    struct fake_source *fake = ctx;
    struct item *item = given;
    int64_t ordinal = item->ordinal;

    free(item);
    atomic_fetch_sub(&fake->live, 1);
    if (out == NULL)
        return 0;
    if (pthread_equal(fake->maker, pthread_self()))
        atomic_fetch_add(&fake->extracted_here, 1);
    if (ordinal == fake->extract_at)
        return uva_error_set(error, fake->fail_code, "%s", fake->fail_text);
    fake_source_batch(fake, ordinal, out);
    return 0;
}

static int64_t tasks_size(void *ctx, const void *item)
{
    const struct fake_source *fake = ctx;

    (void)item;
    return fake->item_size;
}

static bool tasks_at_once(void *ctx, const void *given)
{
    const struct fake_source *fake = ctx;
    const struct item *item = given;

    return item->ordinal % fake->at_once == 0;
}

struct uva_task_source fake_source_tasks(struct fake_source *fake)
{
    return (struct uva_task_source){
        .schema = tasks_schema,
        .next = tasks_next,
        .extract = tasks_extract,
        .interrupt = source_interrupt,
        .free_ctx = source_free,
        .size = fake->item_size == 0 ? NULL : tasks_size,
        .at_once = fake->at_once == 0 ? NULL : tasks_at_once,
        .ctx = fake};
}

/* ---- beginning and end -------------------------------------------------- */

void fake_source_init(struct fake_source *fake, int64_t batches)
{
    int i;

    memset(fake, 0, sizeof(*fake));
    fake->tasks.fake = fake;
    for (i = 0; i < FAKE_SOURCE_STREAMS; i++)
        fake->streams[i].fake = fake;
    fake->batches = batches;
    fake->rows = 3;
    fake->fail_at = fake->extract_at = fake->gate_at = -1;
    fake->fail_code = EIO;
    fake->fail_text = "the disk is on fire";
    fake->maker = pthread_self();
    pthread_mutex_init(&fake->lock, NULL);
    pthread_cond_init(&fake->changed, NULL);
}

void fake_source_fini(struct fake_source *fake)
{
    assert(atomic_load(&fake->live) == 0);
    assert(!atomic_load(&fake->overlapped));
    pthread_mutex_destroy(&fake->lock);
    pthread_cond_destroy(&fake->changed);
}
