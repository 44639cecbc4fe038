/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in memory as a source. All batches exist from the beginning, and are
 * moved out on demand.
 *
 * Happy path:  checked -> moved into one block -> taken one by one -> end.
 *
 * Failures:    making the stream, if the schema or an array is not valid:
 *              EINVAL, which names it. All arrays are released.
 *
 * On cancel:   arrays that were not taken are released, on the loop thread;
 *              the arrays of a stream that was never started, by the thread
 * that releases it. */
#include <errno.h>
#include <string.h>

#include "arrow/fixed_width.h"
#include "arrow/layout.h"
#include "arrow/structs.h"
#include "base/error.h"
#include "stream/source_kind.h"
#include "stream/stream_impl.h"
#include "uvarrow/arrow.h"

struct item {
    struct ArrowDeviceArray array;
    int64_t bytes; /* of its buffers, as far as known */
};

struct arrays {
    struct uva__source source; /* first */
    size_t count;              /* of `items` */
    size_t taken;              /* of `items`, or released */
    struct item items[];       /* owns the arrays from `taken` on */
};

static struct arrays *arrays_at(struct uva__source *source)
{
    return uva__container_of(source, struct arrays, source);
}

/* ---- the loop: as a source ----------------------------------------------- */

static void arrays_start(struct uva__source *source)
{
    (void)source; /* the schema was set when it was made */
}

static void arrays_pull(struct uva__source *source, int64_t demand)
{
    (void)source; /* `ready` only changes in take */
    (void)demand;
}

static struct uva__task *arrays_take(struct uva__source *source)
{
    struct arrays *a = arrays_at(source);
    struct uva__task *task = uva__producer_take_task(source->producer);
    const struct item *item = &a->items[a->taken];

    if (task == NULL)
        return NULL;
    task->array = item->array; /* not cleared: `taken` counts it */
    task->info.bytes = item->bytes;
    task->info.ordinal = (int64_t)a->taken++;
    source->ready--;
    return task;
}

static void arrays_stop(struct uva__source *source)
{
    struct arrays *a = arrays_at(source);

    source->ready = 0;
    for (; a->taken < a->count; a->taken++)
        uva_array_release(&a->items[a->taken].array);
}

static void arrays_free(struct uva__source *source,
                        const struct uva_allocator *allocator)
{
    (void)allocator;
    arrays_stop(source);
}

static const struct uva__source_ops arrays_ops = {
    .name = "from_arrays",
    .sized = true,
    .start = arrays_start,
    .pull = arrays_pull,
    .take = arrays_take,
    .stop = arrays_stop,
    .free = arrays_free,
};

/* ---- making one --------------------------------------------------------- */

static int given_check(const struct ArrowSchema *schema,
                       const struct ArrowDeviceArray *arrays, size_t count,
                       struct uva_error *error)
{
    int code = uva__structs_check_schema(schema, error);

    if (code == 0 && arrays == NULL && count > 0)
        return uva_error_set(
            error, EINVAL, "from_arrays: arrays is NULL, count is %zu", count);
    return code;
}

/* Gives the size of an array that is valid; 0 if it has an unknown format. */
static int array_check(const struct arrays *a,
                       const struct uva__fixed_width *shape,
                       const struct ArrowDeviceArray *arrays, size_t i,
                       int64_t *bytes, struct uva_error *error)
{
    struct uva_error detail;

    if (!uva_array_is_live(&arrays[i]))
        return uva_error_set(error, EINVAL,
                             "from_arrays: array %zu is released", i);
    if (arrays[i].device_type != arrays[0].device_type)
        return uva_error_set(error, EINVAL,
                             "from_arrays: array %zu is of device type %d, the "
                             "first one of %d: one stream is of one type",
                             i, (int)arrays[i].device_type,
                             (int)arrays[0].device_type);
    if (uva__fixed_width_measure(shape, &arrays[i].array, bytes))
        return 0;
    *bytes = 0;
    uva__error_begin(&detail);
    if (uva__layout_measure_shaped(shape, &a->source.schema, &arrays[i], bytes,
                                   &detail) != EINVAL)
        return 0; /* the sizes of an unknown format are not checked */
    return uva_error_set(error, EINVAL,
                         "from_arrays: array %zu does not fit the schema: %s",
                         i, detail.message);
}

/* Takes all arrays, or no array. */
static int arrays_take_all(struct arrays *a, struct ArrowDeviceArray *arrays,
                           size_t count, struct uva_error *error)
{
    struct uva__fixed_width shape;
    int code = 0;

    uva__fixed_width_read(&shape, &a->source.schema);
    for (size_t i = 0; i < count && code == 0; i++)
        code = array_check(a, &shape, arrays, i, &a->items[i].bytes, error);
    if (code != 0)
        return code;
    for (size_t i = 0; i < count; i++)
        uva_array_move(&arrays[i], &a->items[i].array);
    a->count = count;
    return 0;
}

/* The source is taken on failure too: it is released here. */
static struct uva_stream *arrays_fail(struct uva_runtime *runtime,
                                      struct ArrowSchema *schema,
                                      struct ArrowDeviceArray *arrays,
                                      size_t count,
                                      const struct uva_error *error)
{
    size_t i;

    if (schema != NULL)
        uva_schema_release(schema);
    for (i = 0; arrays != NULL && i < count; i++)
        uva_array_release(&arrays[i]);
    return uva__stream_failed(runtime, error);
}

/* Gives no source if it fails: then the schema was taken, the arrays were not.
 */
static struct arrays *arrays_new(struct uva__rt *rt, struct ArrowSchema *schema,
                                 struct ArrowDeviceArray *arrays, size_t count,
                                 struct uva_error *error)
{
    struct uva__source *source = uva__source_new(
        &arrays_ops, rt, sizeof(struct arrays) + count * sizeof(struct item));
    struct arrays *a;

    if (source == NULL) {
        (void)uva_error_set(error, ENOMEM, "no memory for %zu arrays", count);
        return NULL;
    }
    a = arrays_at(source);
    uva_schema_move(schema, &source->schema);
    if (arrays_take_all(a, arrays, count, error) != 0) {
        uva__source_release(source);
        return NULL;
    }
    if (count > 0)
        a->source.device_type = a->items[0].array.device_type;
    a->source.schema_known = true;
    a->source.ready = (int64_t)count;
    a->source.ended = true;
    return a;
}

struct uva_stream *uva_stream_from_arrays(struct uva_runtime *runtime,
                                          struct ArrowSchema *schema,
                                          struct ArrowDeviceArray *arrays,
                                          size_t count)
{
    struct uva__rt *rt = uva__loop_rt(runtime);
    struct uva_error error;
    struct arrays *a = NULL;

    uva__error_begin(&error);
    if (given_check(schema, arrays, count, &error) == 0 && rt != NULL &&
        uva__rt_is_alive(rt))
        a = arrays_new(rt, schema, arrays, count, &error);
    return a != NULL ? uva__stream_new(&a->source)
                     : arrays_fail(runtime, schema, arrays, count, &error);
}
