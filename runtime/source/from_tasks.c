/* SPDX-License-Identifier: Apache-2.0 */
/* A source in two halves: source/reader finds items in order on a worker of the
 * blocking lane; each item is made into data on the thread that extracts its
 * task.
 *
 * Happy path:  schema -> (next)* -> each item extracted, once -> free_ctx.
 *
 * Failures:
 * - schema or next: reported after the items before it;
 * - extract: its task fails, and the stream with it.
 *
 * On stop:     interrupt, while schema or next is in progress; extract frees
 *              items that are not wanted, without `out`. free_ctx is called
 *              when no task is left, which may be long after the stream. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "source/reader.h"
#include "stream/stream_impl.h"
#include "stream/window.h"

enum { RESERVED = 3 };

struct items {
    struct uva__reader reader;     /* first */
    struct uva_task_source source; /* owns its ctx */
};

static struct items *items_of(struct uva__reader *reader)
{
    return uva__container_of(reader, struct items, reader);
}

static int items_open(struct uva__reader *reader, struct ArrowSchema *schema,
                      struct uva_error *error)
{
    const struct uva_task_source *source = &items_of(reader)->source;
    int code = source->schema(source->ctx, schema, error);

    if (code != 0)
        schema->release = NULL;
    return uva__error_positive(code);
}

/* The item is extracted through this, so that the user's functions only get
 * their own ctx and item. */
static int items_extract(void *ctx, void *item, struct ArrowDeviceArray *out,
                         struct uva_error *error)
{
    const struct uva_task_source *source = ctx;
    struct uva_error unread = {0};
    int code = source->extract(source->ctx, item, out,
                               error != NULL ? error : &unread);

    return uva__error_positive(code);
}

/* The size of an item for a window. */
static int64_t items_size(const struct uva_task_source *source,
                          const void *item)
{
    const int64_t size = source->size(source->ctx, item);

    return size < 0 ? 0 : uva__window_size(size);
}

static int items_next(struct uva__reader *reader, struct uva__read *out,
                      struct uva_error *error)
{
    struct uva_task_source *source = &items_of(reader)->source;
    int code;

    uva__error_begin(error);
    out->lazy = (struct uva__lazy){.extract = items_extract, .ctx = source};
    out->metadata = NULL;
    out->bytes = 0;
    code = source->next(source->ctx, &out->lazy.item, &out->metadata, error);
    if (code == 0 && out->lazy.item != NULL && source->size != NULL)
        out->bytes = items_size(source, out->lazy.item);
    return uva__error_positive(code);
}

static void items_close(struct uva__reader *reader)
{
    (void)reader; /* the ctx is in use while tasks are not extracted */
}

static void items_interrupt(struct uva__reader *reader)
{
    const struct uva_task_source *source = &items_of(reader)->source;

    source->interrupt(source->ctx);
}

static void source_free(const struct uva_task_source *source)
{
    if (source->free_ctx != NULL)
        source->free_ctx(source->ctx);
}

static void items_free(struct uva__reader *reader)
{
    source_free(&items_of(reader)->source);
}

static const struct uva__reader_ops items_ops = {
    .name = "from_tasks",
    .call = "next",
    .size = sizeof(struct items),
    .open = items_open,
    .next = items_next,
    .close = items_close,
    .interrupt = items_interrupt,
    .free = items_free,
};

/* ---- making one --------------------------------------------------------- */

static int source_check(const struct uva_task_source *source,
                        struct uva_error *error)
{
    if (source == NULL || source->schema == NULL || source->next == NULL ||
        source->extract == NULL)
        return uva_error_set(error, EINVAL,
                             "uva_task_source: schema, next and extract are "
                             "mandatory");
    if (!uva__memory_is_clear(source->reserved, RESERVED))
        return uva_error_set(error, EINVAL,
                             "uva_task_source: reserved members must be NULL; "
                             "clear the struct before filling it in");
    return 0;
}

/* Makes the reader; on failure the source was not taken. */
static int items_new(struct uva__rt *rt, const struct uva_task_source *source,
                     struct items **out)
{
    struct uva__reader *reader;
    struct items *items;
    int code =
        uva__rt_ensure_uncapped(rt); /* it frees items that are not wanted */

    if (code == 0)
        code = uva__reader_new(&reader, &items_ops, rt, &source->window, false,
                               source->interrupt != NULL, NULL);
    if (code != 0)
        return code;
    items = items_of(reader);
    items->source = *source;
    items->reader.source.extraction = UVA__EXTRACTION_EXPENSIVE;
    if (source->device_type != 0)
        items->reader.source.device_type = source->device_type;
    *out = items;
    return 0;
}

struct uva_stream *uva_stream_from_tasks(struct uva_runtime *runtime,
                                         const struct uva_task_source *source)
{
    struct uva__rt *rt = uva__loop_rt(runtime);
    struct uva_error error = {0};
    struct items *items;
    int code = source_check(source, &error);

    if (code == 0 && rt != NULL && uva__rt_is_alive(rt)) {
        code = items_new(rt, source, &items);
        if (code == 0)
            return uva__stream_new(&items->reader.source);
        (void)uva_error_set(&error, code, "from_tasks: %s",
                            code == EINVAL
                                ? "a window must not be negative, and its "
                                  "reserved members must be NULL"
                                : strerror(code));
    }
    if (source != NULL && uva__memory_is_clear(source->reserved, RESERVED))
        source_free(source); /* otherwise its members cannot be trusted */
    return uva__stream_failed(runtime, &error);
}
