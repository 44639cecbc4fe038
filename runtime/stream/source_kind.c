/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a counted source, and the sources that tables declare. */
#include "stream/source_kind.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "stream/discard_queue.h"
#include "stream/producer.h"
#include "stream/slots.h"
#include "stream/stream_impl.h"

/* ---- the life of a source ----------------------------------------------- */

static struct uva__source *source_at(struct uva__wakeup *wakeup)
{
    return uva__container_of(wakeup, struct uva__source, wakeup);
}

static bool source_on_wakeup(struct uva__wakeup *wakeup)
{
    struct uva__source *source = source_at(wakeup);

    if (source->ops->posted != NULL)
        source->ops->posted(source);
    if (source->started && !source->stopped)
        uva__producer_run(source->producer);
    return false;
}

static void source_free(struct uva__wakeup *wakeup)
{
    struct uva__source *source = source_at(wakeup);
    const size_t size = source->size;
    struct uva__rt *rt = uva__rt_acquire(source->rt);

    if (source->ops->free != NULL)
        source->ops->free(source, &rt->allocator);
    if (size != 0) {
        uva__source_fini(source);
        uva__memory_free(&rt->allocator, source, size);
    }
    uva__rt_release(rt);
}

void uva__source_init_counted(struct uva__source *source,
                              const struct uva__source_ops *ops,
                              struct uva__rt *rt, size_t size)
{
    static const struct uva__wakeup_ops wakeup_ops = {source_on_wakeup,
                                                      source_free};

    uva__source_init(source, ops, rt);
    source->size = size;
    uva__wakeup_init(&source->wakeup, &wakeup_ops, 1);
}

struct uva__source *uva__source_new(const struct uva__source_ops *ops,
                                    struct uva__rt *rt, size_t size)
{
    struct uva__source *source = uva__memory_new(&rt->allocator, size);

    if (source != NULL)
        uva__source_init_counted(source, ops, rt, size);
    return source;
}

/* ---- kinds of sources --------------------------------------------------- */

static int source_ensure(struct uva__rt *rt, int needs)
{
    int code = 0;

    if (needs & UVA__SOURCE_SLOTS)
        code = uva__slots_ensure(rt);
    if (code == 0 && (needs & UVA__SOURCE_DISCARD))
        code = uva__discard_ensure(rt);
    if (code == 0 && (needs & UVA__SOURCE_BLOCKING))
        code = uva__rt_ensure_lane(rt, UVA_LANE_BLOCKING);
    if (code == 0 && (needs & UVA__SOURCE_UNCAPPED))
        code = uva__rt_ensure_uncapped(rt);
    return code;
}

/* The name that the program gives the source; NULL: that of its kind. */
static const char *source_name(const struct uva__source_kind *kind,
                               const void *options)
{
    const char *name = NULL;

    if (kind->name_at != 0)
        memcpy(&name, (const char *)options + kind->name_at, sizeof(name));
    return name != NULL && name[0] != '\0' ? name : NULL;
}

/* Gives NULL, with `error`, unless the object is made. */
static struct uva__source *source_make(const struct uva__source_kind *kind,
                                       struct uva__source_setup *setup,
                                       struct uva_error *error)
{
    struct uva__source *source = NULL;
    int code = kind->check != NULL ? kind->check(setup, error) : 0;

    if (code != 0)
        return NULL;
    code = source_ensure(setup->rt, kind->needs | setup->needs);
    if (code == 0)
        source = kind->make != NULL ? kind->make(setup)
                                    : uva__source_new(&kind->source, setup->rt,
                                                      kind->size + setup->more);
    if (source == NULL)
        (void)uva_error_set(
            error, code != 0 ? code : ENOMEM, "%s: %s", kind->source.name,
            code == ESHUTDOWN ? "the runtime is closing"
                              : "no memory or no thread for the stream");
    return source;
}

static struct uva_stream *source_open(struct uva_runtime *runtime,
                                      const struct uva__source_kind *kind,
                                      struct uva__source *source,
                                      const struct uva__source_setup *setup,
                                      struct uva_error *error)
{
    int code = kind->init(source, setup, error);

    if (code == 0)
        return uva__stream_new(source, source_name(kind, setup->options));
    if (error->code == 0)
        (void)uva_error_set(error, code, "%s: no memory for the stream",
                            kind->source.name);
    uva__source_release(source);
    return uva__stream_failed(runtime, error);
}

struct uva_stream *uva__source_add(struct uva_runtime *runtime,
                                   const struct uva__source_kind *kind,
                                   const void *options, void *given)
{
    struct uva__source_setup setup = {
        .rt = uva__loop_rt(runtime),
        .options = uva__options_or_zeroes(options),
        .given = given,
    };
    const bool has_options = kind->options.name != NULL;
    struct uva__source *source = NULL;
    struct uva_error error;
    int code = 0;

    uva__error_begin(&error);
    if (has_options)
        code = uva__options_check_all(&kind->options, options, &setup.window,
                                      &error);
    if (code == 0 && setup.rt != NULL && uva__rt_is_alive(setup.rt))
        source = source_make(kind, &setup, &error);
    if (source != NULL)
        return source_open(runtime, kind, source, &setup, &error);
    if (kind->drop != NULL)
        kind->drop(given);
    if (has_options &&
        (kind->always_frees || uva__options_are_clear(&kind->options, options)))
        uva__options_free_ctx(&kind->options, options);
    return uva__stream_failed(runtime, &error);
}
