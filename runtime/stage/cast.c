/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_cast(): a map that casts (arrow/cast.h). The cast is planned when
 * the schema of the stream is known, and does not change after that. */
#include "stage/cast.h"

#include <errno.h>

#include "arrow/cast.h"
#include "arrow/structs.h"
#include "base/atomic.h"
#include "base/error.h"
#include "base/memory.h"
#include "stream/stream_impl.h"
#include "uvarrow/arrow.h"

struct uva__cast_target {
    struct uva__rt *rt;          /* counts: its allocator made this */
    struct uva__atomic64 owners; /* references */
    struct ArrowSchema schema;   /* owns; or released */
};

struct casting {
    struct uva__cast_target *target; /* counts */
    struct uva__cast *cast;          /* owns; NULL: no schema has come */
};

/* ---- the target --------------------------------------------------------- */

struct uva__cast_target *uva__cast_target_new(struct uva__rt *rt)
{
    struct uva__cast_target *target =
        uva__memory_new(&rt->allocator, sizeof(*target));

    if (target == NULL)
        return NULL;
    target->rt = uva__rt_acquire(rt);
    uva__atomic64_store(&target->owners, 1);
    return target;
}

int uva__cast_target_set(struct uva__cast_target *target,
                         const struct ArrowSchema *schema)
{
    return uva__structs_copy_schema(&target->rt->allocator, schema,
                                    &target->schema);
}

struct uva__cast_target *
uva__cast_target_acquire(struct uva__cast_target *target)
{
    if (target != NULL)
        (void)uva__atomic64_add(&target->owners, 1);
    return target;
}

void uva__cast_target_release(struct uva__cast_target *target)
{
    struct uva__rt *rt;

    if (target == NULL || uva__atomic64_sub(&target->owners, 1) != 1)
        return;
    rt = target->rt;
    uva_schema_release(&target->schema);
    uva__memory_free(&rt->allocator, target, sizeof(*target));
    uva__rt_release(rt);
}

/* ---- the map ------------------------------------------------------------ */

static int casting_schema(void *ctx, const struct ArrowSchema *in,
                          struct ArrowSchema *out, struct uva_error *error)
{
    struct casting *casting = ctx;
    const struct uva__cast_target *target = casting->target;
    const struct uva_allocator *allocator = &target->rt->allocator;
    int code =
        uva__cast_new(allocator, in, &target->schema, &casting->cast, error);

    if (code == 0)
        code = uva__structs_copy_schema(allocator, &target->schema, out);
    return code;
}

static int casting_batch(void *ctx, struct uva_batch *in,
                         struct ArrowDeviceArray *out, struct uva_error *error)
{
    const struct casting *casting = ctx;

    return uva__cast_array(casting->cast, &in->data, out, error);
}

static void casting_free(void *ctx)
{
    struct casting *casting = ctx;
    struct uva__cast_target *target = casting->target;

    uva__cast_free(casting->cast);
    uva__memory_free(&target->rt->allocator, casting, sizeof(*casting));
    uva__cast_target_release(target);
}

int uva__cast_map(struct uva__cast_target *target, struct uva_map *map)
{
    struct casting *casting =
        uva__memory_new(&target->rt->allocator, sizeof(*casting));

    if (casting == NULL)
        return ENOMEM;
    casting->target = uva__cast_target_acquire(target);
    *map = (struct uva_map){.batch = casting_batch,
                            .schema = casting_schema,
                            .free_ctx = casting_free,
                            .ctx = casting};
    return 0;
}

/* The map of a cast to `schema`. */
static int map_to(struct uva__rt *rt, const struct ArrowSchema *schema,
                  struct uva_map *map)
{
    struct uva__cast_target *target = uva__cast_target_new(rt);
    int code = target != NULL ? uva__cast_target_set(target, schema) : ENOMEM;

    if (code == 0)
        code = uva__cast_map(target, map);
    uva__cast_target_release(target);
    return code;
}

int uva_stream_cast(struct uva_stream *stream, struct ArrowSchema *target)
{
    const bool live = target != NULL && target->release != NULL;
    struct uva_map map;
    int code = uva__stream_building(stream);

    if (code == 0 && !live)
        code = uva__stream_fail(stream, EINVAL, "cast: the schema is %s",
                                target == NULL ? "NULL" : "released");
    if (code == 0) {
        code = map_to(stream->rt, target, &map);
        if (code != 0)
            code = uva__stream_fail(stream, code,
                                    "cast: the schema cannot be used: %s",
                                    uva_error_name(code));
    }
    if (live)
        uva_schema_release(target);
    return code == 0 ? uva_stream_map(stream, &map) : code;
}
