/* SPDX-License-Identifier: Apache-2.0 */
/* Whether queries can be kept from changing the database: which driver it is,
 * as the way is known for some alone, and the rights of the user of a database
 * that a read-only transaction does not stop: files and programs of its
 * machine, other connections, other users.
 *
 * Happy path:  ask -> the driver is the expected one -> the rights are few ->
 *              on_answer with a complete outcome; no more questions follow.
 *
 * Failures:    a question fails: so does the outcome; another driver, or too
 *              many rights: it fails with EACCES. The next one asks again. */
#ifndef UVA_SERVE_RIGHTS_H
#define UVA_SERVE_RIGHTS_H

#include <stdbool.h>

#include "database.h"
#include "uvarrow/adbc.h"

/* Zeroes, then the first four. */
struct uva__rights {
    struct uva_adbc_pool *pool; /* borrows */
    enum uva__kind kind;        /* of the database, as it was opened */
    bool must_match;            /* or queries could write */
    bool must_be_few;           /* the user's rights */
    bool are_few;               /* no more questions are needed */
    bool are_many;        /* by the last answer, or it is another driver */
    enum uva__kind found; /* as the driver has stated */
};

/* A question. Zeroes: not under way. */
struct uva__rights_question {
    struct uva__rights *rights; /* borrows, as long as it is under way */
    struct uva_stream *stream;  /* counts; NULL: not under way */
    void (*on_answer)(void *ctx, const struct uva_outcome *outcome);
    void *ctx; /* borrows, as `rights` */
};

/* Asks: `on_answer` is called once, unless the question is dropped. Returns 0,
 * or an errno with an error, and no callback comes. Thread: loop, as all here.
 */
UVA_MUST_CHECK int uva__rights_ask(struct uva__rights *rights,
                                   struct uva__rights_question *question,
                                   struct uva_error *error);

/* Ends the question without a call, if one is under way. */
void uva__rights_drop(struct uva__rights_question *question);

#endif
