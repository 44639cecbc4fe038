/* SPDX-License-Identifier: Apache-2.0 */
/* The driver that a URI names by its scheme. */
#ifndef UVA_ADBC_URI_H
#define UVA_ADBC_URI_H

#include <stdbool.h>

/* Gives the length of the scheme of `uri`; 0: no scheme. */
int uva__adbc_uri_scheme(const char *uri);

/* Gives the name of the driver for a scheme of `length` characters, which the
 * caller frees. NULL without memory. */
char *uva__adbc_uri_driver(const char *uri, int length);

/* Gives the driver's part: "sqlite:flights.db" is "flights.db" for the driver
 * sqlite, while "postgresql://localhost" stays as it is. */
char *uva__adbc_uri_rest(char *uri, int length);

#endif
