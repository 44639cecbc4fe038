/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the outline of the last stream: a server has many streams of few
 * schemas. */
#include "stream/outline.h"

#include <errno.h>

#include "arrow/structs.h"
#include "base/atomic.h"
#include "base/memory.h"

struct uva__outline {
    struct uva__atomic64 users;            /* streams, and the runtime */
    const struct uva_allocator *allocator; /* borrows: the runtime's */
    struct uva__measure measure;           /* owns: a copy of the schema */
};

/* What a runtime keeps. */
struct outline_kept {
    struct uva__rt_data data; /* first */
    struct uva__lock lock;
    struct uva__outline *last; /* counts; NULL: no stream had a schema yet */
};

struct uva__outline *uva__outline_share(struct uva__outline *outline)
{
    if (outline != NULL)
        uva__atomic64_add(&outline->users, 1);
    return outline;
}

void uva__outline_release(struct uva__outline *outline)
{
    if (outline == NULL || uva__atomic64_sub(&outline->users, 1) != 1)
        return;
    uva__measure_fini(&outline->measure);
    uva__memory_free(outline->allocator, outline, sizeof(*outline));
}

static void kept_free(struct uva__rt *rt, struct uva__rt_data *data)
{
    struct outline_kept *kept =
        uva__container_of(data, struct outline_kept, data);

    uva__outline_release(kept->last);
    uva__memory_free(&rt->allocator, kept, sizeof(*kept));
}

static struct uva__rt_data *kept_new(struct uva__rt *rt)
{
    struct outline_kept *kept = uva__memory_new(&rt->allocator, sizeof(*kept));

    if (kept == NULL)
        return NULL;
    kept->data.free = kept_free;
    return &kept->data;
}

/* Gives the outline that is kept, with a count for the caller; or NULL. */
static struct uva__outline *kept_acquire(struct outline_kept *kept)
{
    struct uva__outline *outline;

    uva__lock_take(&kept->lock);
    outline = uva__outline_share(kept->last);
    uva__lock_drop(&kept->lock);
    return outline;
}

/* Keeps a new outline in place of the last one. */
static void kept_replace(struct outline_kept *kept,
                         struct uva__outline *outline)
{
    struct uva__outline *before;

    uva__lock_take(&kept->lock);
    before = kept->last;
    kept->last = uva__outline_share(outline);
    uva__lock_drop(&kept->lock);
    uva__outline_release(before);
}

/* Makes an outline with a count for the caller. 0, or as
 * uva__measure_init(). */
static int outline_new(const struct uva_allocator *allocator,
                       const struct ArrowSchema *schema,
                       struct uva__outline **out)
{
    struct uva__outline *outline = uva__memory_new(allocator, sizeof(*outline));
    int code;

    if (outline == NULL)
        return ENOMEM;
    code = uva__measure_init(&outline->measure, allocator, schema);
    if (code != 0) {
        uva__memory_free(allocator, outline, sizeof(*outline));
        return code;
    }
    outline->allocator = allocator;
    uva__atomic64_store(&outline->users, 1);
    *out = outline;
    return 0;
}

const struct uva__measure *
uva__outline_measure(const struct uva__outline *outline)
{
    return &outline->measure;
}

int uva__outline_acquire(struct uva__rt *rt, const struct ArrowSchema *schema,
                         struct uva__outline **out)
{
    struct outline_kept *kept =
        (void *)uva__rt_get_data(rt, UVA__RT_DATA_OUTLINE, kept_new);
    int code;

    *out = NULL;
    if (kept == NULL)
        return ENOMEM;
    *out = kept_acquire(kept);
    if (*out != NULL && uva__structs_is_like(&(*out)->measure.schema, schema))
        return 0;
    uva__outline_release(*out);
    *out = NULL;
    code = outline_new(&rt->allocator, schema, out);
    if (code == 0)
        kept_replace(kept, *out);
    return code;
}
