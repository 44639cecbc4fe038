/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of a text of SQL, and what is put in front of one. */
#ifndef UVA_TOOLS_SCRIPT_H
#define UVA_TOOLS_SCRIPT_H

#include <stddef.h>

#include "options.h"
#include "uvarrow/base.h"

/* Several statements. Zeroes: none. */
struct uva__script {
    char **texts; /* owns */
    size_t count;
};

/* Takes the query of the options apart: as the database does whose driver they
 * name, or not at all if how that one reads is not known. With `explain` among
 * the options a statement asks for the plan. 0; or EINVAL, with an error, for
 * options that are for one statement alone; ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__script_init(struct uva__script *script,
                                    const struct uva__options *options,
                                    struct uva_error *error);

/* Returns the setting of a statement that the database needs to give a plan, as
 * key and value; or NULL. Thread: any. */
const struct uva_pair *
uva__script_explains_with(const struct uva__options *options);

/* Frees it. Thread: any. */
void uva__script_fini(struct uva__script *script);

#endif
