/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a stream beside its run: its name, for the log and the texts
 * of errors, and the meters of its stages. The stream and all of its sources
 * count it, since sources may outlive the stream, and a stream its sources. */
#ifndef UVA_STREAM_LABEL_H
#define UVA_STREAM_LABEL_H

#include <stddef.h>

#include "stream/meter.h"

/* A name. Any thread may read it from the making of the label on, so a name is
 * never changed in place: a new one goes in front of those before it. */
struct uva__label_name {
    struct uva__label_name *before; /* owns; NULL: none */
    char text[64];                  /* ended by a NUL */
};

struct uva__label {
    struct uva__rt *rt;        /* holds its memory */
    struct uva__atomic64 refs; /* the stream, its sources, checks on its hops */
    struct uva__atomic_ptr now;    /* owns: the name; NULL: none */
    uint64_t id;                   /* number of the stream in its runtime */
    struct uva__atomic_ptr meters; /* owns: of its stages, the source first */
    struct uva__point consumer;    /* for trace events of the sink */
    struct uva__label *beside;     /* counts: in the list `joined` of a meter */
    bool shared; /* its stages give batches to other streams too: what is above
                    may run before the stream starts, and after it is freed */
    uint32_t size;           /* of its memory, with what lies behind it */
    struct uva__meter first; /* memory for the meter of the first stage */
};

/* Makes a label without a name, with one reference, and behind it, for its
 * maker, `cleared` bytes and `more` that are not cleared: they are freed with
 * the label. NULL without memory. Thread: any. */
struct uva__label *uva__label_new(struct uva__rt *rt, size_t cleared,
                                  size_t more);

/* The memory behind it, aligned as the label. Thread: any. */
static inline void *uva__label_behind(struct uva__label *label)
{
    return label + 1;
}

/* Counts references; the last release frees it. NULL is allowed. Thread: any.
 */
struct uva__label *uva__label_acquire(struct uva__label *label);
void uva__label_release(struct uva__label *label);

/* Sets the name: copies as many whole characters as fit. 0 or ENOMEM.
 * Thread: builder. */
UVA_MUST_CHECK int uva__label_set(struct uva__label *label, const char *name);

/* Adds the meter of a stage, behind those so far, which the label owns; of a
 * map of the stage with the meter `source`, unless that is NULL. NULL without
 * memory. Thread: builder. */
struct uva__meter *uva__label_add_meter(struct uva__label *label,
                                        const char *name,
                                        struct uva__meter *source);

/* Notes that the stage of `meter` takes in the stream with the label `other`,
 * to which it takes a reference; once for each label. Thread: builder. */
void uva__label_join(struct uva__meter *meter, struct uva__label *other);

/* The name, as long as the label lives; NULL for none. Thread: any. */
static inline const char *uva__label_text(const struct uva__label *label)
{
    const struct uva__label_name *name =
        label != NULL ? uva__atomic_ptr_load(&label->now) : NULL;

    return name != NULL ? name->text : NULL;
}

#endif
