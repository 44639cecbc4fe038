/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in memory as a source. All batches exist from the beginning, and are
 * moved out on demand.
 *
 * Happy path:  checked -> moved into one block -> taken one by one -> end.
 *
 * Failures:    making the stream, if the schema or an array is not valid:
 *              EINVAL, which names it. All arrays are released.
 *
 * On cancel:   arrays that were not taken are released, on the loop thread; by
 *              the thread that releases a stream that was never started. */
#include <errno.h>

#include "arrow/structs.h"
#include "base/error.h"
#include "stream/producer.h"
#include "stream/source_kind.h"
#include "uvarrow/arrow.h"
#include "uvarrow/sources.h"

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

static struct uva__task *arrays_take(struct uva__source *source)
{
    struct arrays *a = arrays_at(source);
    struct uva__task *task = uva__producer_take_task(source->producer);
    const struct item *item = &a->items[a->taken];

    if (task == NULL)
        return NULL;
    task->array = item->array; /* not cleared: `taken` counts it */
    task->info.bytes = item->bytes;
    task->measured = true;
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

/* ---- making one --------------------------------------------------------- */

/* The arguments of the call that makes the stream. */
struct given {
    struct ArrowSchema *schema;
    struct ArrowDeviceArray *arrays;
    size_t count;
};

static int arrays_check(struct uva__source_setup *setup,
                        struct uva_error *error)
{
    const struct given *given = setup->given;
    const int code = uva__structs_check_schema(given->schema, error);

    if (code == 0 && given->arrays == NULL && given->count > 0)
        return uva_error_set(error, EINVAL,
                             "from_arrays: arrays is NULL, count is %zu",
                             given->count);
    setup->more = given->count * sizeof(struct item);
    return code;
}

/* Gives the size of an array that is valid; 0 if it has an unknown format. */
static int array_check(const struct uva__measure *measure,
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
    if (uva__measure(measure, &arrays[i], bytes, &detail) == 0)
        return 0;
    return uva_error_set(error, EINVAL,
                         "from_arrays: array %zu does not fit the schema: %s",
                         i, detail.message);
}

static void arrays_drop(void *ctx)
{
    const struct given *given = ctx;

    if (given->schema != NULL)
        uva_schema_release(given->schema);
    for (size_t i = 0; given->arrays != NULL && i < given->count; i++)
        uva_array_release(&given->arrays[i]);
}

/* Takes all arrays, or no array. */
static int arrays_init(struct uva__source *source,
                       const struct uva__source_setup *setup,
                       struct uva_error *error)
{
    struct given *given = setup->given;
    struct arrays *a = arrays_at(source);
    int code = 0;

    if (given->count > 0)
        code =
            uva__outline_acquire(source->rt, given->schema, &source->outline);
    for (size_t i = 0; i < given->count && code == 0; i++)
        code = array_check(uva__outline_measure(source->outline), given->arrays,
                           i, &a->items[i].bytes, error);
    if (code != 0) {
        arrays_drop(given);
        return code;
    }
    uva_schema_move(given->schema, &source->schema);
    for (size_t i = 0; i < given->count; i++)
        uva_array_move(&given->arrays[i], &a->items[i].array);
    a->count = given->count;
    if (a->count > 0)
        source->device_type = a->items[0].array.device_type;
    source->schema_known = true;
    source->ready = (int64_t)a->count;
    source->ended = true;
    return 0;
}

static const struct uva__source_kind arrays_kind = {
    .size = sizeof(struct arrays),
    .check = arrays_check,
    .init = arrays_init,
    .drop = arrays_drop,
    .source = {.name = "arrays",
               .sized = true,
               .take = arrays_take,
               .stop = arrays_stop,
               .free = arrays_free},
};

struct uva_stream *uva_stream_from_arrays(struct uva_runtime *runtime,
                                          struct ArrowSchema *schema,
                                          struct ArrowDeviceArray *arrays,
                                          size_t count)
{
    return uva__source_add(runtime, &arrays_kind, NULL,
                           &(struct given){schema, arrays, count});
}
