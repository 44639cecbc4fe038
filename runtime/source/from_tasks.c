/* SPDX-License-Identifier: Apache-2.0 */
/* A source in two halves: source/reader finds items in order on a worker of the
 * blocking lane; each item is made into data on the thread that extracts its
 * task.
 *
 * Happy path:  schema -> (next)* -> each item extracted, once -> free_ctx.
 *              An item that is made at once is a batch of the reader.
 *
 * Failures:
 * - schema or next, and what is made at once: reported after the items before
 *   it;
 * - extract: its task fails, and the stream with it.
 *
 * On stop:     interrupt, while schema or next is in progress; extract frees
 *              items that are not wanted, without `out`. free_ctx is called
 *              when no task is left, which may be long after the stream. */
#include <errno.h>

#include "base/error.h"
#include "source/reader.h"
#include "stream/source_kind.h"
#include "stream/window.h"
#include "uvarrow/sources.h"

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
    const struct items *items = ctx;
    const struct uva_task_source *source = &items->source;
    struct uva_error unread = {0};
    int code = source->extract(source->ctx, item, out,
                               error != NULL ? error : &unread);

    if (code != 0 && error != NULL && error->message[0] != '\0')
        uva__error_prefix(error, items->reader.source.name);
    return uva__error_positive(code);
}

/* The size of an item for a window. */
static int64_t items_size(const struct uva_task_source *source,
                          const void *item)
{
    const int64_t size = source->size(source->ctx, item);

    return size < 0 ? 0 : uva__window_size(size);
}

/* Makes the data of an item where it was found: the reader has a batch. */
static int items_make(const struct uva_task_source *source,
                      struct uva__read *out, struct uva_error *error)
{
    void *item = out->lazy.item;
    int code;

    out->lazy.item = NULL;
    code = source->extract(source->ctx, item, out->array, error);
    if (code == 0 && out->array->array.release == NULL)
        code = uva_error_set(error, EPROTO,
                             "the extraction succeeded and gave no array");
    return uva__error_positive(code);
}

static int items_next(struct uva__reader *reader, struct uva__read *out,
                      struct uva_error *error)
{
    struct items *items = items_of(reader);
    const struct uva_task_source *source = &items->source;
    int code;

    uva__error_begin(error);
    out->lazy = (struct uva__lazy){.extract = items_extract, .ctx = items};
    code = source->next(source->ctx, &out->lazy.item, &out->metadata, error);
    if (code != 0 || out->lazy.item == NULL)
        return uva__error_positive(code);
    if (source->size != NULL)
        out->bytes = items_size(source, out->lazy.item);
    return source->at_once != NULL &&
                   source->at_once(source->ctx, out->lazy.item)
               ? items_make(source, out, error)
               : 0;
}

static void items_expect(struct uva__reader *reader, int64_t *rows,
                         int64_t *bytes)
{
    const struct uva_task_source *source = &items_of(reader)->source;

    if (source->expect != NULL)
        source->expect(source->ctx, rows, bytes);
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

static void items_free(struct uva__reader *reader)
{
    const struct uva_task_source *source = &items_of(reader)->source;

    if (source->free_ctx != NULL)
        source->free_ctx(source->ctx);
}

static const struct uva__reader_ops items_ops = {
    .call = "next",
    .open = items_open,
    .next = items_next,
    .expect = items_expect,
    .close = items_close,
    .interrupt = items_interrupt,
    .free = items_free,
};

/* ---- making one --------------------------------------------------------- */

static int items_check(struct uva__source_setup *setup, struct uva_error *error)
{
    const struct uva_task_source *source = setup->options;

    if (source->schema == NULL || source->next == NULL ||
        source->extract == NULL)
        return uva_error_set(error, EINVAL,
                             "uva_task_source: schema, next and extract are "
                             "mandatory");
    if (source->permits != NULL &&
        !uva__permits_are_of(source->permits, setup->rt))
        return uva_error_set(error, EINVAL,
                             "uva_task_source: `permits` are those of another "
                             "runtime");
    uva__reader_require(setup, false, false);
    return 0;
}

static int items_init(struct uva__source *source,
                      const struct uva__source_setup *setup,
                      struct uva_error *error)
{
    const struct uva_task_source *options = setup->options;
    struct items *items =
        items_of(uva__container_of(source, struct uva__reader, source));

    (void)error;
    items->source = *options;
    source->extraction = UVA__EXTRACTION_EXPENSIVE;
    if (options->device_type != 0)
        source->device_type = options->device_type;
    return uva__reader_init(&items->reader, &items_ops, setup, false,
                            options->interrupt != NULL, options->permits);
}

/* Extra threads free items that are not wanted. */
static const struct uva__source_kind items_kind = {
    .options = {UVA__OPTIONS(uva_task_source),
                UVA__OPTIONS_CTX(uva_task_source),
                UVA__OPTIONS_WINDOW(uva_task_source)},
    .size = sizeof(struct items),
    .needs = UVA__READER_NEEDS | UVA__SOURCE_UNCAPPED,
    .check = items_check,
    .init = items_init,
    .name_at = offsetof(struct uva_task_source, name),
    .source = {.name = "tasks"},
};

struct uva_stream *uva_stream_from_tasks(struct uva_runtime *runtime,
                                         const struct uva_task_source *source)
{
    return uva__source_add(runtime, &items_kind, source, NULL);
}
