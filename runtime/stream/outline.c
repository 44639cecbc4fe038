/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the outlines that were used last: a server has many streams of few
 * schemas, and a stream has a second one if a stage changes its schema. */
#include "stream/outline.h"

#include <errno.h>

#include "arrow/structs.h"
#include "base/atomic.h"
#include "base/memory.h"

enum { OUTLINES = 4 }; /* kept at most */

struct uva__outline {
    struct uva__atomic64 users;            /* streams, and the runtime */
    const struct uva_allocator *allocator; /* borrows: the runtime's */
    struct uva__measure measure;           /* owns: a copy of the schema */
};

/* What a runtime keeps. */
struct outline_kept {
    struct uva__rt_data data; /* first */
    struct uva__lock lock;
    struct uva__outline *last[OUTLINES]; /* counts: the last one first; NULL
                                            after them */
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

    for (int i = 0; i < OUTLINES; i++)
        uva__outline_release(kept->last[i]);
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

/* Gives an outline that is kept, with a count for the caller; or NULL. */
static struct uva__outline *kept_acquire(struct outline_kept *kept, int i)
{
    struct uva__outline *outline;

    uva__lock_take(&kept->lock);
    outline = uva__outline_share(kept->last[i]);
    uva__lock_drop(&kept->lock);
    return outline;
}

/* Keeps an outline as the last one: moves it there, or drops the oldest. */
static void kept_put(struct outline_kept *kept, struct uva__outline *outline)
{
    struct uva__outline *moved = uva__outline_share(outline), *next;

    uva__lock_take(&kept->lock);
    for (int i = 0; i < OUTLINES; i++) {
        next = kept->last[i];
        kept->last[i] = moved;
        moved = next;
        if (next == NULL || next == outline)
            break;
    }
    uva__lock_drop(&kept->lock);
    uva__outline_release(moved);
}

/* Finds the outline of a schema with these contents, with a count for the
 * caller; or NULL. Others are told apart by their first difference. */
static struct uva__outline *kept_find(struct outline_kept *kept,
                                      const struct ArrowSchema *schema)
{
    struct uva__outline *outline;

    for (int i = 0; i < OUTLINES; i++) {
        outline = kept_acquire(kept, i);
        if (outline == NULL)
            break;
        if (uva__structs_is_like(&outline->measure.schema, schema)) {
            if (i > 0)
                kept_put(kept, outline);
            return outline;
        }
        uva__outline_release(outline);
    }
    return NULL;
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
    *out = kept_find(kept, schema);
    if (*out != NULL)
        return 0;
    code = outline_new(&rt->allocator, schema, out);
    if (code == 0)
        kept_put(kept, *out);
    return code;
}
