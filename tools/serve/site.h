/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of `uvarrow serve`: a table of paths. */
#ifndef UVA_SERVE_SITE_H
#define UVA_SERVE_SITE_H

#include "access.h"
#include "access_log.h"
#include "answer.h"
#include "database.h"
#include "http.h"
#include "uvarrow/runtime.h"

/* The site. Zeroes, then all members. */
struct uva__site {
    struct uva__http http;       /* the server below */
    struct uva__access access;   /* owns: which requests are answered */
    struct uva__answers answers; /* queries under way */
    const struct uva__database *database; /* borrows: which queries may run */
    struct uva_adbc_pool *reading_pool;   /* borrows: of queries that may not
                                             write; NULL: as the answers */
    int64_t query_ms;                     /* the most for one query */
    struct uva__access_log *log;          /* borrows; may be NULL */
    struct uva_runtime *runtime;          /* borrows: of the streams */
    void (*on_starved)(void *ctx, int code); /* as of the server */
    void (*on_closed)(void *ctx);            /* the last call, as well */
    void *ctx;                               /* borrows, until then */
};

/* Returns the functions that answer requests to `site`. Thread: loop. */
struct uva__http_handler uva__site_handler(struct uva__site *site);

#endif
