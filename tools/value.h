/* SPDX-License-Identifier: Apache-2.0 */
/* A parameter of a query, as a command line or a request states it. */
#ifndef UVA_TOOLS_VALUE_H
#define UVA_TOOLS_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "uvarrow/base.h"

/* The types that a value may have: those of JSON. */
enum uva__value_kind {
    UVA__VALUE_NULL = 0,
    UVA__VALUE_BOOL,
    UVA__VALUE_INT,
    UVA__VALUE_FLOAT,
    UVA__VALUE_TEXT
};

/* One value. Zeroes: null. */
struct uva__value {
    enum uva__value_kind kind; /* member below that is valid */
    bool boolean;
    int64_t integer;
    double number;
    char *text;  /* ends with a NUL, which `size` does not count */
    size_t size; /* of the text, in bytes */
};

/* Reads a value: a number, true, false, null or a string in quotes, as in JSON.
 * What is none of these is a text as it stands. Returns 0 and gives `out`,
 * freed by uva__value_fini(); EINVAL for a number that is too large; ENOMEM.
 * Thread: any. */
UVA_MUST_CHECK int uva__value_read(const char *from, struct uva__value *out,
                                   struct uva_error *error);

/* Frees the text. Thread: any. */
void uva__value_fini(struct uva__value *value);

#endif
