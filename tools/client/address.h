/* SPDX-License-Identifier: Apache-2.0 */
/* The URL of a server. */
#ifndef UVA_CLIENT_ADDRESS_H
#define UVA_CLIENT_ADDRESS_H

#include <stdbool.h>

#include "uvarrow/base.h"

/* A URL of http or https, in its parts. */
struct uva__address {
    bool is_tls;
    char *host;      /* owns: a name or an address, without brackets */
    char *port;      /* owns: a number */
    char *authority; /* owns: as a request states both */
    char *target;    /* owns: path and parameters; "/" without a path */
};

/* Takes a URL of http or https apart. Returns 0, and `address` is freed by
 * uva__address_fini(); EINVAL with an error if it is malformed, has a user in
 * it or a fragment; ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__address_init(struct uva__address *address,
                                     const char *url, struct uva_error *error);

/* Frees its parts. Thread: any. */
void uva__address_fini(struct uva__address *address);

#endif
