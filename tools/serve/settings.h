/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `uvarrow serve`, on its command line and in a file. */
#ifndef UVA_SERVE_SETTINGS_H
#define UVA_SERVE_SETTINGS_H

#include <stdbool.h>
#include <uv.h>

#include "access.h"
#include "config.h"
#include "database.h"
#include "proxies.h"
#include "server_limits.h"

/* One value of an option, as it was given. */
struct uva__given {
    size_t option;     /* its number in the table of settings.c */
    const char *value; /* borrows, as all texts */
};

/* Their content. Texts are borrowed from the command line and from `file`. */
struct uva__settings {
    struct uva__limits limits;       /* with defaults */
    struct uva__database database;   /* owns */
    struct uva__access access;       /* owns: names and sites */
    struct uva__proxies proxies;     /* that are trusted */
    struct uva__config file;         /* owns; of `config` */
    struct uva__given *given;        /* owns: what counts of both, in order */
    size_t n_given;                  /* number of these */
    const char *config;              /* a file of options, or NULL */
    const char *listen;              /* ADDRESS:PORT */
    struct sockaddr_storage address; /* its meaning */
    const char *token_file;          /* or NULL */
    const char *certificate, *key;   /* of TLS, or both NULL */
    const char *log;                 /* a file; NULL: standard output */
    bool is_quiet;                   /* no access log */
    bool help;                       /* only print the help */
};

/* Parses the arguments after "serve", and the file that they name: an option of
 * the command line replaces all lines of that name. Returns 0; EINVAL, or the
 * errno of a file, with an error that describes the fault; ENOMEM.
 * uva__settings_fini() frees it in every case. Thread: loop, as all here. */
UVA_MUST_CHECK int uva__settings_init(struct uva__settings *settings,
                                      char **args, struct uva_error *error);

/* Parses both again, and writes the names of the options that are given in
 * another way now: "listen, max-head". No option is changed, no file but that
 * of the options is read. Returns as uva__settings_init(). Thread: any. */
UVA_MUST_CHECK int uva__settings_compare(const struct uva__settings *settings,
                                         char **args, char *out, size_t room,
                                         struct uva_error *error);

/* Prints settings that are possible, and not safe. */
void uva__settings_warn(const struct uva__settings *settings);

/* Frees its content. */
void uva__settings_fini(struct uva__settings *settings);

/* Prints the help. */
void uva__settings_help(void);

#endif
