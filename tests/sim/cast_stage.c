/* SPDX-License-Identifier: Apache-2.0 */
/* The oracle is that of the whole chain: each batch arrives once, in order, as
 * if no cast were there. A number that a type cannot hold ends the chain. */
#include "sim/cast_stage.h"

#include <errno.h>
#include <stdint.h>

#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/engine.h"
#include "sim/peers.h"
#include "uvarrow/arrow.h"
#include "uvarrow/uvarrow.h"

enum { OTHERS = 2, MORE = 3 };

static bool may_cast(const struct expectation *expectation)
{
    return !expectation->foreign && !expectation->device &&
           !expectation->on_device;
}

/* ---- there and back ----------------------------------------------------- */

static void cast_to(struct uva_stream *stream,
                    const struct batches_types *types)
{
    struct ArrowSchema schema;

    batches_typed_schema(types, &schema);
    (void)uva_stream_cast(stream, &schema);
}

static void cast_back(struct uva_stream *stream)
{
    struct ArrowSchema schema;

    batches_schema(&schema);
    (void)uva_stream_cast(stream, &schema);
}

/* The last number of a batch does not fit 32 bits. */
static void number_draw(struct batches_types *types,
                        struct expectation *expectation)
{
    static const char *const wide[] = {"l", "L", "g"};

    types->number = wide[sim_choose(3)];
    if (!peers_chance(1, 4))
        return;
    types->number = peers_chance(1, 2) ? "i" : "S";
    expectation->excuses |= EXCUSE_MAP;
    expectation->overflows =
        expectation->overflows ||
        (expectation->total + expectation->added > 0 && expectation->limit > 0);
}

void cast_add_stage(struct uva_stream *stream, struct expectation *expectation)
{
    static const char *const texts[] = {"u", "U", "vu"};
    const struct uva_parallel parallel = {.workers = 1 + (int32_t)sim_choose(3),
                                          .window = peers_window()};
    struct batches_types types = {.text = texts[sim_choose(3)],
                                  .turned = peers_chance(1, 2)};

    if (!may_cast(expectation))
        return;
    number_draw(&types, expectation);
    expectation->joined = true; /* numbers may be copied */
    expectation_note("chain %d: cast to %s and %s%s, and back",
                     expectation->number, types.number, types.text,
                     types.turned ? ", turned" : "");
    cast_to(stream, &types);
    if (peers_chance(1, 2))
        (void)uva_stream_parallel(stream, &parallel);
    cast_back(stream);
}

/* ---- other streams ------------------------------------------------------ */

/* A blocking source of batches that have other types. */
struct other {
    int64_t next, end; /* the ordinals of its batches */
    int64_t hops;
    bool fails; /* instead of its end */
};

static int other_schema(struct ArrowArrayStream *stream,
                        struct ArrowSchema *out)
{
    const struct batches_types types = batches_other_types();

    (void)stream;
    peers_dawdle();
    batches_typed_schema(&types, out);
    return 0;
}

static int other_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct other *other = stream->private_data;

    peers_dawdle();
    if (other->next < other->end)
        batches_other_batch(other->next++, other->hops, out);
    else if (other->fails)
        return EIO;
    else
        out->release = NULL;
    return 0;
}

static const char *other_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return NULL;
}

static void other_release(struct ArrowArrayStream *stream)
{
    arena_free(stream->private_data);
    stream->release = NULL;
}

static struct uva_stream *other_blocking(struct uva_runtime *runtime,
                                         struct expectation *expectation,
                                         int64_t first, int64_t count)
{
    struct other *other = arena_new(sizeof(*other), "a source to be cast");
    struct ArrowArrayStream source = {other_schema, other_next, other_error,
                                      other_release, other};

    *other = (struct other){first, first + count, expectation->hops,
                            peers_chance(1, 10)};
    if (other->fails)
        expectation->excuses |= EXCUSE_MAP;
    return uva_stream_from_arrow_stream(runtime, &source, NULL);
}

static struct uva_stream *other_arrays(struct uva_runtime *runtime,
                                       const struct expectation *expectation,
                                       int64_t first, int64_t count)
{
    const struct batches_types types = batches_other_types();
    struct ArrowDeviceArray arrays[MORE];
    struct ArrowSchema schema;
    struct ArrowArray plain;

    for (int64_t i = 0; i < count; i++) {
        batches_other_batch(first + i, expectation->hops, &plain);
        uva_array_from_cpu(&plain, &arrays[i]);
    }
    batches_typed_schema(&types, &schema);
    return uva_stream_from_arrays(runtime, &schema, arrays, (size_t)count);
}

/* Makes a stream of a few batches, which are counted. */
static struct uva_stream *other_stream(struct uva_runtime *runtime,
                                       struct expectation *expectation)
{
    const int64_t first = expectation->total + expectation->added;
    const int64_t count = (int64_t)sim_choose(MORE + 1);

    expectation->added += count;
    return peers_chance(1, 2)
               ? other_blocking(runtime, expectation, first, count)
               : other_arrays(runtime, expectation, first, count);
}

/* Stages that count or measure all batches stand after the added ones. */
static bool may_add(const struct expectation *expectation)
{
    return may_cast(expectation) && expectation->limit == INT64_MAX &&
           expectation->rate == 0 &&
           expectation->total + expectation->added + OTHERS * MORE <=
               EXPECTATION_BATCHES;
}

void cast_add_others(struct uva_runtime *runtime, struct uva_stream *stream,
                     struct expectation *expectation)
{
    const struct uva_merge options = {.cast = true,
                                      .keep_going = peers_chance(1, 2),
                                      .open_at_once = (int32_t)sim_choose(4),
                                      .window = peers_window()};
    const size_t count = 1 + (size_t)sim_choose(OTHERS);
    const bool concat = peers_chance(1, 2);
    struct uva_stream *others[OTHERS];

    if (!may_add(expectation))
        return;
    for (size_t i = 0; i < count; i++)
        others[i] = other_stream(runtime, expectation);
    expectation_note("chain %d: %s with %d streams that are cast, of %lld "
                     "batches",
                     expectation->number, concat ? "concat" : "merge",
                     (int)count, (long long)expectation->added);
    expectation->unordered = expectation->unordered || !concat;
    expectation->joined = true; /* numbers may be copied */
    if (concat)
        (void)uva_stream_concat(
            stream, others, count,
            &(struct uva_merge){.cast = true,
                                .open_at_once = options.open_at_once});
    else
        (void)uva_stream_merge(stream, others, count, &options);
}
