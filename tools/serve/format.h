/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of rows, and which one a client wants. */
#ifndef UVA_SERVE_FORMAT_H
#define UVA_SERVE_FORMAT_H

#include "uvarrow/base.h"

enum uva__rows {
    UVA__ROWS_ARROW = 0, /* the default */
    UVA__ROWS_CSV,
    UVA__ROWS_JSON,   /* an object a line */
    UVA__ROWS_ARRAY,  /* of such objects */
    UVA__ROWS_FORMATS /* number of them */
};

/* Returns the name. Thread: any, as all here. */
const char *uva__format_name(enum uva__rows format);

/* Returns the media type. */
const char *uva__format_type(enum uva__rows format);

/* Finds a format by the name that the parameter `format` has for it. Returns 0
 * or ENOENT. */
UVA_MUST_CHECK int uva__format_find(const char *name, enum uva__rows *out);

/* Picks the format that an Accept header likes best. NULL: the default. Returns
 * 0; ENOENT if it accepts no format. */
UVA_MUST_CHECK int uva__format_accepted(const char *accept,
                                        enum uva__rows *out);

#endif
