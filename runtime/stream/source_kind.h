/* SPDX-License-Identifier: Apache-2.0 */
/* Sources that count their users: their wake-up runs the producer, and the last
 * release frees the object. A source of the user is declared as a const table,
 * which the call that makes its stream passes to uva__source_add(). */
#ifndef UVA_STREAM_SOURCE_KIND_H
#define UVA_STREAM_SOURCE_KIND_H

#include "stream/options.h"
#include "stream/source.h"

/* Sets up the common part of an object of `size` bytes, or 0 for memory that
 * the allocator of `rt` has not given. The reference is the producer's.
 * Thread: any. */
void uva__source_init_counted(struct uva__source *source,
                              const struct uva__source_ops *ops,
                              struct uva__rt *rt, size_t size);

/* Makes such an object, cleared but for the common part, with which it begins.
 * NULL without memory. Thread: any. */
struct uva__source *uva__source_new(const struct uva__source_ops *ops,
                                    struct uva__rt *rt, size_t size);

/* The arguments of a new source. */
struct uva__source_setup {
    struct uva__rt *rt;
    const void *options;       /* checked; never NULL */
    void *given;               /* of the call that makes the stream */
    struct uva__window window; /* complete, if the options have one */
    int needs;                 /* bits, beside those of its kind */
    size_t more;               /* bytes of its object beyond its size */
};

/* What a source needs, besides memory. */
enum {
    UVA__SOURCE_SLOTS = 1,    /* memory that late calls may touch */
    UVA__SOURCE_DISCARD = 2,  /* a queue for discards that may block */
    UVA__SOURCE_BLOCKING = 4, /* a worker that may block */
    UVA__SOURCE_UNCAPPED = 8  /* extra threads */
};

/* A kind of source: a static table. The functions are called by the thread that
 * makes the stream. */
struct uva__source_kind {
    struct uva__options_kind options; /* by their name; NULL: it has none */
    size_t size;                      /* of its object, which begins with a
                                         struct uva__source */
    int needs;                        /* bits UVA__SOURCE_... */
    bool always_frees; /* the ctx, even if a reserved member is not NULL */
    size_t name_at;    /* offset of `name` in the options; 0: they have none */
    /* checks the setup further, and may add to `needs` and `more`. 0; a code
     * with `error`. NULL: it is complete */
    int (*check)(struct uva__source_setup *setup, struct uva_error *error);
    /* makes the object, for memory that the allocator does not give. NULL: of
     * `size` and `more` bytes; NULL without memory */
    struct uva__source *(*make)(const struct uva__source_setup *setup);
    /* sets up the rest of the object, which is cleared. Takes the ctx of the
     * options and the objects given, also on failure. 0; a code, with `error`
     * unless there is no memory */
    int (*init)(struct uva__source *source,
                const struct uva__source_setup *setup, struct uva_error *error);
    /* releases what is given, as no object was made. NULL: it owns no more */
    void (*drop)(void *given);
    struct uva__source_ops source;
};

/* Makes a stream that begins with a source of `kind`. Takes the ctx of the
 * options (NULL: zeroes, unless they are mandatory), and what is given; but not
 * the ctx if a reserved member is not NULL, unless the kind always does. The
 * stream states what failed. Thread: any.
 */
struct uva_stream *uva__source_add(struct uva_runtime *runtime,
                                   const struct uva__source_kind *kind,
                                   const void *options, void *given);

#endif
