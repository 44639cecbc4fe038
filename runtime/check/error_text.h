/* SPDX-License-Identifier: Apache-2.0 */
/* Error texts that are valid for a limited time: the consumer gets a copy,
 * which is overwritten when its time is over, and freed later. */
#ifndef UVA_CHECK_ERROR_TEXT_H
#define UVA_CHECK_ERROR_TEXT_H

#include "check/quarantine.h"

#define UVA__ERROR_TEXTS 8 /* poisoned texts that are kept */

/* A copy. */
struct uva__error_text {
    struct uva__quarantined block; /* first */
    char text[];
};

/* The texts of one stream. For one thread at a time. */
struct uva__error_texts {
    struct uva__error_text *current; /* owns; valid; or NULL */
    struct uva__quarantine poisoned; /* the texts before it */
};

/* Makes the empty set in cleared memory. `allocator` is copied. Thread: any. */
void uva__error_texts_init(struct uva__error_texts *texts,
                           const struct uva_allocator *allocator);

/* Returns a copy of `text` (borrowed) that is valid until the next poison or
 * fini; `text` itself if there is no memory. Thread: any one at a time. */
const char *uva__error_texts_copy(struct uva__error_texts *texts,
                                  const char *text);

/* Overwrites the valid text, if there is one. Thread: any one at a time. */
void uva__error_texts_poison(struct uva__error_texts *texts);

/* Poisons the valid text and moves all texts to `quarantine`, which has the
 * same allocator. Thread: any one at a time. */
void uva__error_texts_fini(struct uva__error_texts *texts,
                           struct uva__quarantine *quarantine);

#endif
