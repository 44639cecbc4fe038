/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `uvarrow serve`. */
#ifndef UVA_SERVE_SETTINGS_H
#define UVA_SERVE_SETTINGS_H

#include <stdbool.h>
#include <uv.h>

#include "access.h"
#include "database.h"
#include "proxies.h"
#include "server_limits.h"

/* Its content. Texts are borrowed from it. */
struct uva__settings {
    struct uva__limits limits;       /* with defaults */
    struct uva__database database;   /* owns */
    struct uva__access access;       /* owns: names and sites */
    struct uva__proxies proxies;     /* that are trusted */
    const char *listen;              /* ADDRESS:PORT */
    struct sockaddr_storage address; /* its meaning */
    const char *token_file;          /* or NULL */
    const char *certificate, *key;   /* of TLS, or both NULL */
    const char *log;                 /* a file; NULL: standard output */
    bool is_quiet;                   /* no access log */
    bool help;                       /* only print the help */
};

/* Parses the arguments after "serve". Returns 0; EINVAL with an error that
 * describes the fault; ENOMEM. uva__settings_fini() frees it in every case.
 * Thread: loop, as all here. */
UVA_MUST_CHECK int uva__settings_init(struct uva__settings *settings,
                                      char **args, struct uva_error *error);

/* Prints settings that are possible, and not safe. */
void uva__settings_warn(const struct uva__settings *settings);

/* Frees its content. */
void uva__settings_fini(struct uva__settings *settings);

/* Prints the help. */
void uva__settings_help(void);

#endif
