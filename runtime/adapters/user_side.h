/* SPDX-License-Identifier: Apache-2.0 */
/* The half of an outlet that the reading thread has: waiting, taking tasks,
 * extracting them. One thread at a time, and never a loop's: what the loop does
 * is in adapters/outlet.c. */
#ifndef UVA_ADAPTERS_USER_SIDE_H
#define UVA_ADAPTERS_USER_SIDE_H

#include "adapters/outlet.h"

/* Gives a copy of the schema, when it is known; `out` is released on failure.
 * This and the next two return 0 or a code, which uva__user_side_text()
 * explains. Thread: reader. */
UVA_MUST_CHECK int uva__user_side_schema(struct uva__outlet *outlet,
                                         struct ArrowSchema *out);

/* Gives the next batch, when there is one; at the end, nothing. `out` is
 * cleared if no batch is given. Thread: reader. */
UVA_MUST_CHECK int uva__user_side_next(struct uva__outlet *outlet,
                                       struct ArrowDeviceArray *out);

/* Ends the stream, as its reader has no use for what came. Returns how it
 * ended: `code`, unless something else was first. Thread: reader. */
int uva__user_side_refuse(struct uva__outlet *outlet, int code,
                          const char *text);

/* What the last call had to say, or NULL. Borrows, until the next call.
 * Thread: reader. */
const char *uva__user_side_text(const struct uva__outlet *outlet);

#endif
