/* SPDX-License-Identifier: Apache-2.0 */
/* What the user of a database may do that a transaction that only reads does
 * not stop: files and programs of its machine, other connections, other users.
 *
 * Happy path:  ask -> the rights are few -> on_answer with a complete outcome;
 *              then nothing is asked any more.
 * What fails:  the question: so does the outcome; the rights are too many: it
 *              fails with EACCES. The next one asks again. */
#ifndef UVA_SERVE_RIGHTS_H
#define UVA_SERVE_RIGHTS_H

#include <stdbool.h>

#include "database.h"
#include "uvarrow/adbc.h"

/* Zeroes, then `pool` and `are_few`. */
struct uva__rights {
    struct uva_adbc_pool *pool; /* borrows */
    bool are_few;               /* or nothing has to be asked */
    bool are_many;              /* by the last answer */
};

/* A question. Zeroes: none is under way. */
struct uva__rights_question {
    struct uva__rights *rights; /* borrows, as long as it is under way */
    struct uva_stream *stream;  /* counts; NULL: none is under way */
    void (*on_answer)(void *ctx, const struct uva_outcome *outcome);
    void *ctx; /* borrows, as `rights` */
};

/* Asks: `on_answer` is called once, unless the question is dropped. Returns 0,
 * or an errno with an error, and nothing is called. Thread: loop, as all here.
 */
UVA_MUST_CHECK int uva__rights_ask(struct uva__rights *rights,
                                   struct uva__rights_question *question,
                                   struct uva_error *error);

/* Ends the question without a call, if one is under way. */
void uva__rights_drop(struct uva__rights_question *question);

#endif
