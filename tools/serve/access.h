/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests are answered at all. Against programs elsewhere: a token.
 * Against pages of other sites, which the user's own browser runs: the Host of
 * a request must be a name of this server (a name that an attacker's DNS points
 * here is none), and its Origin this server's own, or allowed. */
#ifndef UVA_SERVE_ACCESS_H
#define UVA_SERVE_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "connection.h"

/* Most names, and most sites. */
#define UVA__ACCESS_MOST 16

/* What is configured. */
struct uva__access {
    char *token;                           /* owns; NULL: none */
    const char *hosts[UVA__ACCESS_MOST];   /* borrows: NAME or NAME:PORT */
    size_t n_hosts;                        /* number of these */
    const char *origins[UVA__ACCESS_MOST]; /* borrows: sites that may read */
    size_t n_origins;                      /* number of these */
    bool has_tls;                          /* own Origins are https: */
};

/* Reads the token: the first line of a file, at least 16 printable bytes.
 * Returns 0; an errno with an error. Thread: loop, as all here. */
UVA_MUST_CHECK int uva__access_load(struct uva__access *access,
                                    const char *path, struct uva_error *error);

/* Frees what it owns. */
void uva__access_fini(struct uva__access *access);

/* Returns 0 if the request of `connection` may come from where it does, and
 * then, in `origin`, the other site that may read the answer, or NULL.
 * Otherwise the status to refuse it with, and in `why` the reason. */
int uva__access_check(const struct uva__access *access,
                      const struct uva__connection *connection,
                      const char **origin, const char **why);

/* Returns whether the request has the token, if one is configured. */
bool uva__access_has_token(const struct uva__access *access,
                           const struct uva__request *request);

#endif
