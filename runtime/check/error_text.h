/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that are good for a while: a receiver gets a copy, which is spoiled
 * when its time is over, and not yet freed. */
#ifndef UVA_CHECK_ERROR_TEXT_H
#define UVA_CHECK_ERROR_TEXT_H

#include "check/witness.h"

#define UVA__ERROR_TEXTS 8 /* spoiled ones that are kept */

/* A copy. */
struct uva__error_text {
    struct uva__grave grave; /* first */
    size_t size;             /* of the whole block */
    char text[];
};

/* All zeroes is none. For one thread at a time. */
struct uva__error_texts {
    struct uva__error_text *current;                   /* owns; good; or NULL */
    struct uva__error_text *spoiled[UVA__ERROR_TEXTS]; /* owns */
    unsigned next; /* of them, to be replaced */
};

/* Gives a copy of `text` (borrows), to be good until they are spoiled; `text`
 * itself if there is no memory. Thread: any one at a time. */
const char *uva__error_texts_copy(struct uva__error_texts *texts,
                                  struct uva__witness *witness,
                                  const char *text);

/* Spoils the text that is good, if there is one. Thread: any one at a time. */
void uva__error_texts_spoil(struct uva__error_texts *texts,
                            struct uva__witness *witness);

/* Leaves all of them to the witness. Thread: any one at a time. */
void uva__error_texts_fini(struct uva__error_texts *texts,
                           struct uva__witness *witness);

#endif
