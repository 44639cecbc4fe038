/* SPDX-License-Identifier: Apache-2.0 */
/* A parameter of a query, as a command line or a request states it. */
#ifndef UVA_TOOLS_PARAMETER_H
#define UVA_TOOLS_PARAMETER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "uvarrow/base.h"

/* The types that a value may have: JSON's. */
enum uva__parameter_kind {
    UVA__PARAMETER_NULL = 0,
    UVA__PARAMETER_BOOL,
    UVA__PARAMETER_INT,
    UVA__PARAMETER_FLOAT,
    UVA__PARAMETER_TEXT
};

/* One value. Zeroes: null. */
struct uva__parameter {
    enum uva__parameter_kind kind; /* member below that is valid */
    bool boolean;
    int64_t integer;
    double number;
    char *text;  /* ends with a NUL, which `size` does not count */
    size_t size; /* of the text, in bytes */
};

/* Reads a value: a number, true, false, null or a string in quotes, as in JSON.
 * Any other text is a text as it stands. Returns 0 and gives `out`, freed by
 * uva__parameter_fini(); EINVAL for a number that is too large; ENOMEM. Thread:
 * any. */
UVA_MUST_CHECK int uva__parameter_read(const char *from,
                                       struct uva__parameter *out,
                                       struct uva_error *error);

/* Frees the text. Thread: any. */
void uva__parameter_fini(struct uva__parameter *value);

#endif
