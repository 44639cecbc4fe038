/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two schemas, and names the first field in which they differ. */
#ifndef UVA_ARROW_SCHEMA_COMPARE_H
#define UVA_ARROW_SCHEMA_COMPARE_H

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* Returns 0 if an array of `given` is also one of `expected`: the formats,
 * names, flags, children and dictionaries are equal. Metadata does not count;
 * neither does the name of the root, or whether a root that is a struct is
 * nullable, since that root is a record batch. Otherwise returns EINVAL, and
 * `error` names the field by its path. `expected` is valid; `given` may be
 * anything that is live. Thread: any. */
UVA_MUST_CHECK int uva__schema_compare(const struct ArrowSchema *expected,
                                       const struct ArrowSchema *given,
                                       struct uva_error *error);

#endif
