/* SPDX-License-Identifier: Apache-2.0 */
/* The reporter of a check: reports breaches to the user's function, with the
 * last calls before them. Each check has one, referenced by everything that may
 * still be called about it. */
#ifndef UVA_CHECK_REPORTER_H
#define UVA_CHECK_REPORTER_H

#include "base/atomic.h"
#include "check/quarantine.h"
#include "uvarrow/check.h"

struct uva__live_structs;
struct uva__reporter;

/* Makes one with one reference, by `options` (may be NULL; borrowed for the
 * call, but its ctx is taken). Returns 0; EINVAL or ENOMEM, which take no
 * argument.
 * Thread: any. */
UVA_MUST_CHECK int uva__reporter_new(const struct uva_check *options,
                                     struct uva__reporter **out,
                                     struct uva_error *error);

/* Adds and drops a reference; the last release frees it and calls free_ctx.
 * Thread: any. */
struct uva__reporter *uva__reporter_acquire(struct uva__reporter *reporter);
void uva__reporter_release(struct uva__reporter *reporter);

/* Frees a reporter with a single reference, without free_ctx: for a constructor
 * that fails later on, and so has taken no argument. Thread: any. */
void uva__reporter_free_unused(struct uva__reporter *reporter);

/* Makes it report each clause once, for each severity and party, for checks
 * that find a breach again at every call. Thread: any, before the first breach.
 */
void uva__reporter_set_once(struct uva__reporter *reporter);

/* Returns the options that it was made with, completed: `allocator` has
 * both functions, `name` is never NULL. Borrowed from it.
 * Thread: any. */
const struct uva_check *
uva__reporter_options(const struct uva__reporter *reporter);

/* Returns the live schemas and arrays that the check saw. Borrowed
 * from it. Thread: any. */
struct uva__live_structs *
uva__reporter_live_structs(struct uva__reporter *reporter);

/* Returns the quarantine for blocks of its allocator, which lasts as long as
 * the reporter. A late call finds them there as long as a reference exists: of
 * something live, or of the caller. Borrowed from it. Thread: any. */
struct uva__quarantine *
uva__reporter_quarantine(struct uva__reporter *reporter);

/* Adds a line to the transcript. `format` is static, with at most two
 * conversions, both PRId64, for `a` and `b`; it is not formatted before a
 * breach is reported. Thread: any. */
void uva__reporter_note(struct uva__reporter *reporter, const char *format,
                        int64_t a, int64_t b);

/* Reports a breach of `clause`, a static id of clauses.h, with the transcript
 * so far and the severity of the table. `party` broke it, where the clause
 * binds both; 0: the party of the table. Calls the user's function: hold no
 * lock. Thread: any. */
UVA_PRINTF(4, 5)
void uva__reporter_breach(struct uva__reporter *reporter, const char *clause,
                          enum uva_party party, const char *format, ...);

/* Reports a breach with the party of the table, and another severity than most
 * breaches of its clause have. Thread: any. */
UVA_PRINTF(4, 5)
void uva__reporter_breach_as(struct uva__reporter *reporter, const char *clause,
                             enum uva_severity severity, const char *format,
                             ...);

/* Reports the schemas and arrays that are still live as never released, and
 * returns their number. Thread: any, when no struct will be released any more.
 * Clauses: LC-02. */
int64_t uva__reporter_settle(struct uva__reporter *reporter);

/* Returns how many breaches of ERROR or worse were reported. Thread: any. */
int64_t uva__reporter_count(const struct uva__reporter *reporter);

/* With a perturb_seed: delays the caller for a random time, or not at all.
 * Thread: any, with no lock held. */
void uva__reporter_perturb(struct uva__reporter *reporter);

#endif
