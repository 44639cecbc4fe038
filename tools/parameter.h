/* SPDX-License-Identifier: Apache-2.0 */
/* A parameter of a query, as a command line or a request states it. */
#ifndef UVA_TOOLS_PARAMETER_H
#define UVA_TOOLS_PARAMETER_H

#include "uvarrow/adbc.h"

/* Reads a value: a number, true, false, null or a string in quotes, as in JSON.
 * Any other text is a text as it stands. Returns 0 and gives `out`, which owns
 * its text, freed by uva__parameter_fini(); EINVAL for a number that is too
 * large; ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__parameter_read(const char *from, struct uva_value *out,
                                       struct uva_error *error);

/* Frees the text, and clears the value. Thread: any. */
void uva__parameter_fini(struct uva_value *value);

#endif
