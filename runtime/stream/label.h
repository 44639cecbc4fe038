/* SPDX-License-Identifier: Apache-2.0 */
/* What the log and the texts of errors call a stream: its name. The stream and
 * all of its sources count it, since sources may outlive the stream. */
#ifndef UVA_STREAM_LABEL_H
#define UVA_STREAM_LABEL_H

#include "loop/rt.h"

/* A name. Any thread may read it from the making of the label on, so a name is
 * never changed in place: a new one goes in front of those before it. */
struct uva__label_name {
    struct uva__label_name *before; /* owns; NULL: none */
    char text[64];                  /* ended by a NUL */
};

struct uva__label {
    struct uva__rt *rt;        /* holds its memory */
    struct uva__atomic64 refs; /* the stream, its sources, checks on its hops */
    struct uva__atomic_ptr now; /* owns: the name; NULL: none */
};

/* Makes a label without a name, with one reference; NULL without memory.
 * Thread: any. */
struct uva__label *uva__label_new(struct uva__rt *rt);

/* Counts references; the last release frees it. NULL is allowed. Thread: any.
 */
struct uva__label *uva__label_acquire(struct uva__label *label);
void uva__label_release(struct uva__label *label);

/* Sets the name: copies as many whole characters as fit. 0 or ENOMEM.
 * Thread: builder. */
UVA_MUST_CHECK int uva__label_set(struct uva__label *label, const char *name);

/* The name, as long as the label lives; NULL for none. Thread: any. */
static inline const char *uva__label_text(const struct uva__label *label)
{
    const struct uva__label_name *name =
        label != NULL ? uva__atomic_ptr_load(&label->now) : NULL;

    return name != NULL ? name->text : NULL;
}

#endif
