/* SPDX-License-Identifier: Apache-2.0 */
/* Whether queries can be kept from changing anything: which driver it is, as it
 * is known of some alone how to do that, and what the user of a database may do
 * that a transaction that only reads does not stop: files and programs of its
 * machine, other connections, other users.
 *
 * Happy path:  ask -> the driver is the expected one -> the rights are few ->
 *              on_answer with a complete outcome; then nothing is asked any
 *              more.
 * What fails:  a question: so does the outcome; another driver, or too many
 *              rights: it fails with EACCES. The next one asks again. */
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
    bool are_few;               /* nothing has to be asked any more */
    bool are_many;        /* by the last answer, or it is another driver */
    enum uva__kind found; /* as the driver has stated */
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
