/* SPDX-License-Identifier: Apache-2.0 */
/* Stands between a schema or an array and its release: replaces `release` and
 * `private_data`, puts them back right before the release runs, and reports who
 * releases twice, what should not be, or not as it should. */
#ifndef UVA_CHECK_SHIM_H
#define UVA_CHECK_SHIM_H

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

struct uva__witness;

/* Puts a shim into the live `array` (borrowed), which is what is handed on; its
 * struct may be moved as before. `ordinal` tells it from others in reports.
 * From now on: released once (LC-02), through a struct that is live (DA-13);
 * its release marks it (LC-07); buffers and children stay as they were (LC-11).
 * With `deep` in the check, children and dictionary too (LC-03, LC-05, LC-10).
 * Counts on the witness until released. 0; or ENOMEM with `array` untouched.
 * Thread: any. */
UVA_MUST_CHECK int uva__shim_array(struct uva__witness *witness,
                                   struct ArrowArray *array, int64_t ordinal);

/* The same for a schema. Thread: any. */
UVA_MUST_CHECK int uva__shim_schema(struct uva__witness *witness,
                                    struct ArrowSchema *schema,
                                    int64_t ordinal);

/* For a call that failed and so gave nothing in `array` (borrowed): reports
 * `clause`, a static id, if its consumer releases it all the same. Leaves one
 * alone that reads as released, for then nobody would; and any without `keep`,
 * for a trap does not count on the witness, which may be gone when somebody
 * steps into it. Of no use, without harm, when there is no memory.
 * Thread: any. */
void uva__shim_trap_array(struct uva__witness *witness,
                          struct ArrowArray *array, const char *clause);

/* The same for a schema. Thread: any. */
void uva__shim_trap_schema(struct uva__witness *witness,
                           struct ArrowSchema *schema, const char *clause);

/* Whether `array` (borrowed) is such a trap, of whatever check: where checks
 * stand one behind the other, the call that failed gave nothing. Thread: any.
 */
bool uva__shim_array_is_trap(const struct ArrowArray *array);

/* The same for a schema. Thread: any. */
bool uva__shim_schema_is_trap(const struct ArrowSchema *schema);

#endif
