/* SPDX-License-Identifier: Apache-2.0 */
/* What every checker has: whom it tells of breaches, and the last calls to tell
 * with them. One witness belongs to one checked thing, counted by everything
 * that may still be called about it. */
#ifndef UVA_CHECK_WITNESS_H
#define UVA_CHECK_WITNESS_H

#include "core/sync.h"
#include "uvarrow/check.h"

struct uva__witness;

/* Makes one with one count, by `how` (may be NULL; borrowed for the call, but
 * its ctx is taken). 0; EINVAL, ENOMEM: then nothing is taken. Thread: any. */
UVA_MUST_CHECK int uva__witness_new(const struct uva_check *how,
                                    struct uva__witness **out,
                                    struct uva_error *error);

/* Counts; the last release calls free_ctx and frees it. Thread: any. */
struct uva__witness *uva__witness_acquire(struct uva__witness *witness);
void uva__witness_release(struct uva__witness *witness);

/* What the report was made with, completed: no time is 0, `allocator` has both
 * functions, `name` is never NULL. Borrowed from it. Thread: any. */
const struct uva_check *uva__witness_how(const struct uva__witness *witness);

/* Adds a line to the transcript. `format` is static, with at most two
 * conversions, both PRId64, for `a` and `b`; it is not formatted before a
 * breach is told. Thread: any. */
void uva__witness_note(struct uva__witness *witness, const char *format,
                       int64_t a, int64_t b);

/* Tells of a breach of `clause`, a static id of the catalogue (clauses.h), with
 * the transcript so far; severity is the catalogue's. `party` is who did it,
 * for a clause that binds either; 0: as the catalogue says. Calls the user's
 * function: hold no lock. Thread: any. */
UVA_PRINTF(4, 5)
void uva__witness_breach(struct uva__witness *witness, const char *clause,
                         enum uva_party party, const char *format, ...);

/* How many breaches of ERROR or worse were told. Thread: any. */
int64_t uva__witness_count(const struct uva__witness *witness);

/* With a perturb_seed: delays the caller by a random while, or not at all.
 * Thread: any, with no lock held. */
void uva__witness_perturb(struct uva__witness *witness);

#endif
