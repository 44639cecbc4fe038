/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces `release` and `private_data` of a schema or an array, puts them back
 * right before the release runs, and reports a release that is repeated, not
 * allowed, or not done properly. */
#ifndef UVA_CHECK_RELEASE_HOOK_H
#define UVA_CHECK_RELEASE_HOOK_H

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

struct uva__reporter;

/* Puts a release hook into the live `array` (borrowed), which then is passed
 * on; the struct may be moved as before. `ordinal` names it in reports. From
 * now on it is checked that it is released once and through a live struct, that
 * its release marks it, and that buffers and children are unchanged until then;
 * with `deep` in the check, children and dictionary too. Holds a reference to
 * the reporter until released. Returns 0; or ENOMEM, with `array` untouched.
 * Thread: any.
 * Clauses: LC-02, LC-03, LC-05, LC-07, LC-10, LC-11, DA-13. */
UVA_MUST_CHECK int uva__release_hook_array(struct uva__reporter *reporter,
                                           struct ArrowArray *array,
                                           int64_t ordinal);

/* As the function above, for a schema. Thread: any. */
UVA_MUST_CHECK int uva__release_hook_schema(struct uva__reporter *reporter,
                                            struct ArrowSchema *schema,
                                            int64_t ordinal);

/* For a call that failed and so gave no array: makes a release of `array`
 * (borrowed) a breach of `clause`, a static id. Leaves one alone that is marked
 * as released, which its consumer will not release. Does so only with `keep`: a
 * trap holds no reference to the reporter, which may be gone when it is called.
 * Without memory it has no effect. Thread: any. */
void uva__release_hook_trap_array(struct uva__reporter *reporter,
                                  struct ArrowArray *array, const char *clause);

/* As the function above, for a schema. Thread: any. */
void uva__release_hook_trap_schema(struct uva__reporter *reporter,
                                   struct ArrowSchema *schema,
                                   const char *clause);

/* Whether `array` (borrowed) is such a trap, of any check: where one check
 * follows another, the failed call gave no array. Thread: any. */
bool uva__release_hook_array_is_trap(const struct ArrowArray *array);

/* As the function above, for a schema. Thread: any. */
bool uva__release_hook_schema_is_trap(const struct ArrowSchema *schema);

#endif
