/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests are answered at all. Against programs elsewhere: a token.
 * Against pages of other sites, which the user's own browser runs: the Host of
 * a request must be a name of this server (not a name that an attacker's DNS
 * points here), and its Origin this server's own, or allowed. */
#ifndef UVA_SERVE_ACCESS_H
#define UVA_SERVE_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "connection.h"
#include "origin.h"

/* Most names, and most sites. */
#define UVA__ACCESS_MOST 16

/* The configuration. */
struct uva__access {
    char *token;                         /* owns; may be NULL */
    const char *hosts[UVA__ACCESS_MOST]; /* borrows: NAME or NAME:PORT */
    size_t n_hosts;                      /* number of these */
    char origins[UVA__ACCESS_MOST][UVA__ORIGIN_ROOM]; /* sites that may read */
    size_t n_origins;                                 /* number of these */
    bool is_exposed; /* others can read or change the token's file */
    bool has_tls;    /* own Origins are https: */
};

/* Reads the token: the first line of a file, at least 16 printable bytes.
 * Returns 0; an errno with an error. Thread: any; the others loop. */
UVA_MUST_CHECK int uva__access_load(struct uva__access *access,
                                    const char *path, struct uva_error *error);

/* Frees its content. */
void uva__access_fini(struct uva__access *access);

/* Returns the site of another page that the request states and that may read
 * the answer; NULL: not stated, or not read to its end. It is the request's
 * text. */
const char *uva__access_origin(const struct uva__access *access,
                               const struct uva__request *request);

/* Returns 0 if the request of `connection` may come from where it does.
 * Otherwise the status to refuse it with, and in `why` the reason. In both
 * cases gives, in `origin`, the result of uva__access_origin(). */
int uva__access_check(const struct uva__access *access,
                      const struct uva__connection *connection,
                      const char **origin, const char **why);

/* Returns whether the request has the token, if one is configured. */
bool uva__access_has_token(const struct uva__access *access,
                           const struct uva__request *request);

#endif
