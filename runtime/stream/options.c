/* SPDX-License-Identifier: Apache-2.0 */
/* Checks options by the table of their kind. */
#include "stream/options.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "stream/stream_impl.h"
#include "stream/window.h"

static const void *member(const void *options, size_t offset)
{
    return (const char *)options + offset;
}

const void *uva__options_or_zeroes(const void *options)
{
    static const union {
        void *pointer;
        int64_t number;
        char bytes[256]; /* more than any options take */
    } zeroes;

    return options != NULL ? options : &zeroes;
}

bool uva__options_are_clear(const struct uva__options_kind *kind,
                            const void *options)
{
    return options == NULL ||
           uva__memory_is_clear(member(options, kind->reserved),
                                kind->reserved_size / sizeof(void *));
}

static int64_t number_read(const struct uva__option_limit *limit,
                           const void *options)
{
    int32_t small;
    int64_t large;

    if (limit->size == sizeof(small)) {
        memcpy(&small, member(options, limit->offset), sizeof(small));
        return small;
    }
    memcpy(&large, member(options, limit->offset), sizeof(large));
    return large;
}

static int number_fail(const struct uva__options_kind *kind,
                       const struct uva__option_limit *limit,
                       struct uva_error *error)
{
    if (limit->max < INT32_MAX)
        return uva_error_set(error, EINVAL, "%s: %s must be from %lld to %lld",
                             kind->name, limit->name, (long long)limit->min,
                             (long long)limit->max);
    if (limit->min == 0)
        return uva_error_set(error, EINVAL, "%s: %s must not be negative",
                             kind->name, limit->name);
    return uva_error_set(error, EINVAL, "%s: %s must be %lld or more",
                         kind->name, limit->name, (long long)limit->min);
}

static int numbers_check(const struct uva__options_kind *kind,
                         const void *options, struct uva_error *error)
{
    const struct uva__option_limit *limit = kind->limits;
    int64_t value;

    for (; limit != NULL && limit->name != NULL; limit++) {
        value = number_read(limit, options);
        if (value < limit->min || value > limit->max)
            return number_fail(kind, limit, error);
    }
    return 0;
}

static int window_complete(const struct uva__options_kind *kind,
                           const void *options, struct uva__window *window,
                           struct uva_error *error)
{
    const struct uva_window *given;
    int code;

    if (kind->window == 0)
        return 0;
    given = member(uva__options_or_zeroes(options), kind->window);
    code = kind->follows ? uva__window_follow(given, window)
                         : uva__window_complete(given, window);
    return code == 0
               ? 0
               : uva_error_set(error, code,
                               "%s: no negative window, whose reserved members "
                               "must be NULL",
                               kind->name);
}

static bool has_needed(const struct uva__options_kind *kind,
                       const void *options)
{
    return options != NULL &&
           !uva__memory_is_clear(member(options, kind->needed), 1);
}

int uva__options_check_all(const struct uva__options_kind *kind,
                           const void *options, struct uva__window *window,
                           struct uva_error *error)
{
    int code;

    if (!uva__options_are_clear(kind, options))
        return uva_error_set(error, EINVAL,
                             "%s: reserved members must be NULL; clear the "
                             "struct before filling it in",
                             kind->name);
    if (kind->needed_name != NULL && !has_needed(kind, options))
        return uva_error_set(error, EINVAL, "%s: %s is mandatory", kind->name,
                             kind->needed_name);
    if (options == NULL && kind->mandatory)
        return uva_error_set(error, EINVAL, "%s: options are mandatory",
                             kind->name);
    code = options != NULL ? numbers_check(kind, options, error) : 0;
    return code == 0 ? window_complete(kind, options, window, error) : code;
}

void uva__options_free_ctx(const struct uva__options_kind *kind,
                           const void *options)
{
    void (*free_ctx)(void *ctx);
    void *ctx;

    if (options == NULL || kind->free_ctx == 0)
        return;
    memcpy(&free_ctx, member(options, kind->free_ctx), sizeof(free_ctx));
    memcpy(&ctx, member(options, kind->ctx), sizeof(ctx));
    if (free_ctx != NULL)
        free_ctx(ctx);
}

int uva__options_accept(const struct uva__options_kind *kind,
                        struct uva_stream *stream, const void *options,
                        struct uva__window *window)
{
    const bool clear = uva__options_are_clear(kind, options);
    struct uva_error error;
    int code = uva__stream_building(stream);

    uva__error_begin(&error);
    if (code != 0 && !clear)
        return code;
    if (code == 0) {
        code = uva__options_check_all(kind, options, window, &error);
        if (code != 0)
            code = uva__stream_fail(stream, code, "%s", error.message);
    }
    if (code != 0 && clear)
        uva__options_free_ctx(kind, options);
    return code;
}
