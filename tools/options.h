/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the sub-commands that run a query. */
#ifndef UVA_TOOLS_OPTIONS_H
#define UVA_TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "uvarrow/base.h"

/* Settings of a driver that fit on a command line. */
#define UVA__OPTIONS_SETTINGS 32

/* Which options a sub-command has besides those of every query. */
enum uva__options_set {
    UVA__OPTIONS_OUTPUT = 1, /* --output, --quiet */
    UVA__OPTIONS_RUNS = 2    /* --sync, --async */
};

/* What a setting is made on. */
enum uva__setting_place {
    UVA__SETTING_DATABASE = 0,
    UVA__SETTING_CONNECTION,
    UVA__SETTING_STATEMENT
};

/* One setting of a driver. */
struct uva__setting {
    enum uva__setting_place place; /* what it is made on */
    char *key;                     /* owns */
    const char *value;             /* borrows, from the command line */
};

/* What was asked for. All strings but keys are borrowed from the command line.
 */
struct uva__options {
    enum uva__options_set set; /* options that are known */
    const char *driver;        /* path of the driver's shared library */
    const char *entrypoint;    /* name of its first function */
    const char *uri;           /* of the database; NULL: not set */
    const char *sql;           /* the query */
    const char *output;        /* path of the file; NULL: standard output */
    bool quiet;                /* no progress, no summary */
    bool help;                 /* only explain */
    bool sync_only;            /* stall: no run through uvarrow */
    bool async_only;           /* stall: no run without */
    size_t n_settings;         /* how many there are below */
    struct uva__setting settings[UVA__OPTIONS_SETTINGS]; /* in order */
};

/* Reads the arguments behind the name of a sub-command, which has the options
 * in `set`. 0; EINVAL with what is wrong; ENOMEM. In each case
 * uva__options_fini() frees it. Thread: any. */
UVA_MUST_CHECK int uva__options_init(struct uva__options *options, char **args,
                                     enum uva__options_set set,
                                     struct uva_error *error);

/* Frees what `options` owns. Thread: any. */
void uva__options_fini(struct uva__options *options);

#endif
