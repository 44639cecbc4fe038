/* SPDX-License-Identifier: Apache-2.0 */
/* What every checker has: whom it tells of breaches, and the last calls to tell
 * with them. One witness belongs to one checked thing, counted by everything
 * that may still be called about it. */
#ifndef UVA_CHECK_WITNESS_H
#define UVA_CHECK_WITNESS_H

#include "check/quarantine.h"
#include "core/sync.h"
#include "uvarrow/check.h"

struct uva__ledger;
struct uva__witness;

/* Makes one with one count, by `how` (may be NULL; borrowed for the call, but
 * its ctx is taken). 0; EINVAL, ENOMEM: then nothing is taken. Thread: any. */
UVA_MUST_CHECK int uva__witness_new(const struct uva_check *how,
                                    struct uva__witness **out,
                                    struct uva_error *error);

/* Counts; the last release calls free_ctx and frees it. Thread: any. */
struct uva__witness *uva__witness_acquire(struct uva__witness *witness);
void uva__witness_release(struct uva__witness *witness);

/* Ends one that has a single count, without free_ctx: for a constructor that
 * fails after it made one, and so has taken nothing. Thread: any. */
void uva__witness_undo(struct uva__witness *witness);

/* Has it tell of each clause once, for each severity and party: for what is
 * checked more often than it can be told of. Thread: any, before the first
 * breach. */
void uva__witness_once(struct uva__witness *witness);

/* What the report was made with, completed: no time is 0, `allocator` has both
 * functions, `name` is never NULL. Borrowed from it. Thread: any. */
const struct uva_check *uva__witness_how(const struct uva__witness *witness);

/* Where the schemas and arrays that it sees are kept account of (ledger.h).
 * Borrowed from it. Thread: any. */
struct uva__ledger *uva__witness_ledger(struct uva__witness *witness);

/* Keeps blocks of its allocator until the witness is freed, so that a late call
 * finds what it belongs to. It must hold a reference, or something that is
 * still live must. Borrowed from the witness. Thread: any. */
struct uva__quarantine *uva__witness_quarantine(struct uva__witness *witness);

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

/* The same, by the catalogue's party, for a breach that is milder or worse than
 * most of its clause. Thread: any. */
UVA_PRINTF(4, 5)
void uva__witness_breach_as(struct uva__witness *witness, const char *clause,
                            enum uva_severity severity, const char *format,
                            ...);

/* Reports the schemas and arrays that are still live as never released, and
 * returns their number. Thread: any, when nothing will be released any more.
 * Clauses: LC-02. */
int64_t uva__witness_settle(struct uva__witness *witness);

/* How many breaches of ERROR or worse were told. Thread: any. */
int64_t uva__witness_count(const struct uva__witness *witness);

/* With a perturb_seed: delays the caller by a random while, or not at all.
 * Thread: any, with no lock held. */
void uva__witness_perturb(struct uva__witness *witness);

#endif
