/* SPDX-License-Identifier: Apache-2.0 */
/* The request that a client sends. */
#ifndef UVA_CLIENT_ASK_H
#define UVA_CLIENT_ASK_H

#include "address.h"
#include "bytes.h"
#include "options.h"

/* Writes the request of `options`: a GET of the address, or, with a query, a
 * POST of JSON with it and its parameters. Returns 0 and gives `out`; EINVAL
 * for a query or a parameter that is not UTF-8, and an invalid token; ENOMEM;
 * the error of the system if the token cannot be read. Thread: any. */
UVA_MUST_CHECK int uva__ask_write(const struct uva__address *address,
                                  const struct uva__options *options,
                                  struct uva__bytes *out,
                                  struct uva_error *error);

#endif
