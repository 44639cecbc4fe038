/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_cast(): a map that casts (arrow/cast.h). The cast is planned when
 * the schema of the stream is known, and does not change after that. */
#include "stage/cast.h"

#include <errno.h>

#include "arrow/cast.h"
#include "arrow/structs.h"
#include "base/error.h"
#include "base/memory.h"
#include "stream/stream_impl.h"
#include "uvarrow/arrow.h"

struct casting {
    struct uva__rt *rt; /* counts: its allocator made this */
    struct ArrowSchema target;
    struct uva__cast *cast; /* owns; NULL: no schema has come */
};

static int casting_schema(void *ctx, const struct ArrowSchema *in,
                          struct ArrowSchema *out, struct uva_error *error)
{
    struct casting *casting = ctx;
    const struct uva_allocator *allocator = &casting->rt->allocator;
    int code =
        uva__cast_new(allocator, in, &casting->target, &casting->cast, error);

    if (code == 0)
        code = uva__structs_copy_schema(allocator, &casting->target, out);
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
    struct uva__rt *rt = casting->rt;

    uva__cast_free(casting->cast);
    uva_schema_release(&casting->target);
    uva__memory_free(&rt->allocator, casting, sizeof(*casting));
    uva__rt_release(rt);
}

int uva__cast_map(struct uva__rt *rt, const struct ArrowSchema *target,
                  struct uva_map *map)
{
    struct casting *casting = uva__memory_new(&rt->allocator, sizeof(*casting));
    int code;

    if (casting == NULL)
        return ENOMEM;
    code = uva__structs_copy_schema(&rt->allocator, target, &casting->target);
    if (code != 0) {
        uva__memory_free(&rt->allocator, casting, sizeof(*casting));
        return code;
    }
    casting->rt = uva__rt_acquire(rt);
    *map = (struct uva_map){.batch = casting_batch,
                            .schema = casting_schema,
                            .free_ctx = casting_free,
                            .ctx = casting};
    return 0;
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
        code = uva__cast_map(stream->rt, target, &map);
        if (code != 0)
            code = uva__stream_fail(stream, code,
                                    "cast: the schema cannot be used: %s",
                                    uva_error_name(code));
    }
    if (live)
        uva_schema_release(target);
    return code == 0 ? uva_stream_map(stream, &map) : code;
}
