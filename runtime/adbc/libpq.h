/* SPDX-License-Identifier: Apache-2.0 */
/* The text by which PostgreSQL's driver connects: a URI, or a list "key=value
 * key=value", as libpq reads them. */
#ifndef UVA_ADBC_LIBPQ_H
#define UVA_ADBC_LIBPQ_H

/* Gives a copy of `text` with the parameters key, value, ..., NULL that it does
 * not set itself, which the caller frees. Their values are letters and digits.
 * NULL without memory. Thread: any. */
char *uva__libpq_with(const char *text, const char *const *parameters);

#endif
