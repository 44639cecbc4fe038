/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the sub-commands that run a query. */
#ifndef UVA_TOOLS_OPTIONS_H
#define UVA_TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "parameter.h"
#include "uvarrow/base.h"
#include "uvarrow/io.h"

/* Maximum number of driver settings on a command line. */
#define UVA__OPTIONS_SETTINGS 32

/* Maximum number of inputs on a command line. */
#define UVA__OPTIONS_FROMS 100

/* Maximum number of parameters on a command line. */
#define UVA__OPTIONS_PARAMS 100

/* Most partitions that are read at one time, and most retries. */
#define UVA__OPTIONS_PARTS 1000

/* Options of a sub-command beyond the options of every query. */
enum uva__options_set {
    UVA__OPTIONS_OUTPUT = 1, /* --output, --in-place, --format and its options,
                                --from, --param, --trace, --quiet, --verbose */
    UVA__OPTIONS_RUNS = 2,   /* --sync, --async */
    UVA__OPTIONS_TABLES = 3 /* those of the output; `sql` is a table, or NULL */
};

/* How several inputs become one. 0: one after the other. */
enum uva__together {
    UVA__TOGETHER_MERGE = 1, /* their rows as they come */
    UVA__TOGETHER_CAST = 2   /* they get the types of the first one */
};

/* What rows are written as. */
enum uva__view {
    UVA__VIEW_ENCODED = 0, /* in the format of `encode` */
    UVA__VIEW_TABLE,       /* the first and the last ones, for a person */
    UVA__VIEW_ARRAY,       /* JSON lines as one array */
    UVA__VIEW_PLAN         /* the lines of an explanation */
};

/* Wishes that are rare. */
enum uva__extra {
    UVA__EXTRA_PLAIN_TYPES = 1, /* of Arrow IPC: those that any reader knows */
    UVA__EXTRA_EXPLAIN = 2      /* the plan of the query instead */
};

/* The runs of `stall`. */
enum uva__run {
    UVA__RUN_SYNC = 1, /* on the loop thread */
    UVA__RUN_ASYNC = 2 /* through uvarrow */
};

/* The object that a setting applies to. */
enum uva__setting_place {
    UVA__SETTING_DATABASE = 0,
    UVA__SETTING_CONNECTION,
    UVA__SETTING_STATEMENT
};

/* One setting of a driver. */
struct uva__setting {
    enum uva__setting_place place; /* object it applies to */
    char *key;                     /* owns */
    const char *value;             /* borrows, from the command line */
};

/* The parsed options. All strings except keys and parameters are borrowed
 * from the command line. */
struct uva__options {
    enum uva__options_set set; /* accepted options */
    const char *driver;        /* its library, name or manifest; NULL: from the
                                  scheme of `uri`, but not for a stall */
    const char *entrypoint;    /* its init function; NULL: guessed */
    const char *uri;           /* URI of the database; NULL: not set */
    const char *sql;           /* the query */
    char *sql_text;            /* owns: the query, if it was in a file */
    const char *file;          /* its path; "-": standard input; may be NULL */
    const char *from; /* path or URL of rows read instead; may be NULL */
    const char *froms[UVA__OPTIONS_FROMS]; /* all of them, from the first on */
    size_t n_froms;                        /* number of these */
    unsigned together;        /* of several: bits of enum uva__together */
    int64_t batch_bytes;      /* see struct uva_adbc_query; 0: not set */
    int32_t partitions;       /* read at one time; 0: rows are not in parts */
    int32_t retries;          /* of each of these */
    int64_t max_bytes;        /* see struct uva_ipc_source; 0: not set */
    const char *token_file;   /* for a server, as the next one; may be NULL */
    const char *tls_ca;       /* its certificates; NULL: the system's */
    const char *output;       /* path of the file; NULL: standard output */
    struct uva_encode encode; /* format, and how CSV is written */
    enum uva__view view;      /* without --format not a table */
    int64_t limit;            /* rows at most; -1: not set */
    unsigned extras;          /* bits of enum uva__extra */
    bool has_format;          /* the command line names it */
    bool in_place;            /* the file itself is written to */
    const char *trace;        /* path of the trace; may be NULL */
    bool quiet;               /* no progress, no summary */
    bool verbose;             /* a longer summary */
    bool help;                /* only print the help */
    unsigned runs;            /* stall: bits of enum uva__run; 0: both */
    size_t n_settings;        /* number of settings below */
    struct uva__setting settings[UVA__OPTIONS_SETTINGS]; /* in order */
    size_t n_params;                                     /* and of these: */
    struct uva_value params[UVA__OPTIONS_PARAMS + 1]; /* owns; ends with {0} */
};

/* Parses the arguments after the name of a sub-command, which accepts the
 * options in `set`. Reads the query if it is in a file. Without a driver it is
 * guessed from the database. Returns 0; EINVAL with an error that describes the
 * fault; ENOMEM; the code of uva__sql_read() or uva__guess_driver().
 * uva__options_fini() frees it in every case. Thread: any. */
UVA_MUST_CHECK int uva__options_init(struct uva__options *options, char **args,
                                     enum uva__options_set set,
                                     struct uva_error *error);

/* Returns whether `from` is a URL of a server. Thread: any. */
bool uva__options_from_server(const struct uva__options *options);

/* Frees the content of `options`. Thread: any. */
void uva__options_fini(struct uva__options *options);

#endif
