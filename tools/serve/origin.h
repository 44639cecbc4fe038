/* SPDX-License-Identifier: Apache-2.0 */
/* The origin of a page, as browsers write it. */
#ifndef UVA_SERVE_ORIGIN_H
#define UVA_SERVE_ORIGIN_H

#include "uvarrow/base.h"

/* Room for the longest origin, with its NUL. */
#define UVA__ORIGIN_ROOM 300

/* Gives the origin of a URL without a path, "https://App.Example:443" as
 * "https://app.example", by the rules of the URL standard: scheme and host in
 * lower case, addresses in their one form, no default port. "null" stays: it is
 * the origin of a page of a file. Returns 0; EINVAL for an invalid origin, or
 * for a name beyond ASCII, which browsers write as xn--. Thread: any. */
UVA_MUST_CHECK int uva__origin_normalise(const char *text,
                                         char out[UVA__ORIGIN_ROOM]);

#endif
