/* SPDX-License-Identifier: Apache-2.0 */
/* What the options of a stage, a source or a consumer have in common is stated
 * in a table for each kind: the reserved members, the ctx and its free_ctx, the
 * window, a function that must be there, and the limits of numbers. One
 * function checks them all, and each error has the same text everywhere.
 * Thread: any, here. */
#ifndef UVA_STREAM_OPTIONS_H
#define UVA_STREAM_OPTIONS_H

#include <stddef.h>

#include "stream/window.h"
#include "uvarrow/base.h"
#include "uvarrow/stream.h"

struct uva_stream;

/* The limits of one number: an int32_t, an int64_t or an enum. */
struct uva__option_limit {
    const char *name; /* of the member; NULL ends the table */
    size_t offset, size;
    int64_t min, max; /* both are allowed */
};

#define UVA__LIMIT(type, member, min, max)                                     \
    {                                                                          \
#member, offsetof(struct type, member),                                \
            sizeof(((struct type *)NULL)->member), min, max                    \
    }

/* One kind of options: a static table. An offset of 0 states that the struct
 * has no such member. */
struct uva__options_kind {
    const char *name; /* of the struct; for errors */
    size_t size;
    size_t reserved, reserved_size; /* the reserved members */
    size_t free_ctx, ctx;           /* the ctx, which the options own */
    size_t window;                  /* a struct uva_window */
    bool follows;   /* without a number of batches it follows the requests */
    bool mandatory; /* NULL does not stand for zeroes */
    const char *needed_name; /* a function that must be there; NULL: none */
    size_t needed;
    const struct uva__option_limit *limits; /* NULL: none */
};

/* Members of that table, for the struct `type`. */
#define UVA__OPTIONS(type)                                                     \
    .name = #type, .size = sizeof(struct type),                                \
    .reserved = offsetof(struct type, reserved),                               \
    .reserved_size = sizeof(((struct type *)NULL)->reserved)
#define UVA__OPTIONS_CTX(type)                                                 \
    .free_ctx = offsetof(struct type, free_ctx),                               \
    .ctx = offsetof(struct type, ctx)
#define UVA__OPTIONS_WINDOW(type) .window = offsetof(struct type, window)
#define UVA__OPTIONS_NEED(type, member)                                        \
    .needed_name = #member, .needed = offsetof(struct type, member)

/* Gives zeroes in place of NULL. */
const void *uva__options_or_zeroes(const void *options);

/* Whether the reserved members are NULL: else no member can be trusted, and no
 * argument is taken. */
bool uva__options_are_clear(const struct uva__options_kind *kind,
                            const void *options);

/* Checks all members, and completes the window (NULL: there is none).
 * 0; EINVAL with `error`. */
UVA_MUST_CHECK int uva__options_check_all(const struct uva__options_kind *kind,
                                          const void *options,
                                          struct uva__window *window,
                                          struct uva_error *error);

/* Frees the ctx; no effect on NULL. */
void uva__options_free_ctx(const struct uva__options_kind *kind,
                           const void *options);

/* For an argument of a stage that is added to `stream`: both checks, after that
 * of the stream. Returns 0, or the first error of the stream, which keeps it;
 * then the ctx is freed, if the options can be trusted. Thread: builder. */
UVA_MUST_CHECK int uva__options_accept(const struct uva__options_kind *kind,
                                       struct uva_stream *stream,
                                       const void *options,
                                       struct uva__window *window);

#endif
