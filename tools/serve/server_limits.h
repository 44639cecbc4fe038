/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of `uvarrow serve`: the costs of one client. Each has a default
 * and an option of the command, which the table in server_limits.c lists. */
#ifndef UVA_SERVE_LIMITS_H
#define UVA_SERVE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "uvarrow/base.h"

/* Descriptors that are kept for a query: files of a database and temporary
 * ones, or a socket. */
#define UVA__LIMITS_QUERY 8

/* 0 is a value of three alone: any number, or as many as another. */
struct uva__limits {
    int64_t head_bytes;  /* of request line and headers, and of all trailers */
    int64_t url_bytes;   /* of the target of a request */
    int64_t body_bytes;  /* of a request */
    int64_t connections; /* open at one time */
    int64_t client_connections; /* of one client; 0: any number */
    int64_t client_queries;     /* the same, waiting ones included */
    int64_t head_ms;      /* from the first byte of a request to its last header
                           */
    int64_t body_ms;      /* from there to the end of the body */
    int64_t idle_ms;      /* between two requests */
    int64_t write_ms;     /* without a byte that the client has taken */
    int64_t linger_ms;    /* for the client's close after the last answer */
    int64_t drain_ms;     /* for running answers after SIGTERM */
    int64_t queries;      /* running at one time: connections to the database */
    int64_t stuck;        /* connections that are replaced while a call on them
                             does not return; 0: as many as `queries` */
    int64_t query_ms;     /* that the database may take for one query */
    int64_t waiting;      /* queries that wait for a connection */
    int64_t wait_ms;      /* the longest such wait */
    int64_t lock_ms;      /* for a lock of another program */
    int64_t memory_bytes; /* of batches, of all queries together */
    int64_t batch_bytes;  /* size of a batch that drivers are asked for */
    int64_t max_batch_bytes; /* of rows that the database gives at once */
};

/* A limit. */
struct uva__limit {
    const char *option;  /* "--max-head" */
    const char *meaning; /* for --help */
    size_t offset;       /* in struct uva__limits */
    int64_t normal;      /* the default */
    int64_t least, most; /* the accepted values */
};

/* Sets the defaults. Thread: any. */
void uva__limits_init(struct uva__limits *limits);

/* Returns the limit at a position, in the order of --help; NULL after the
 * last. Thread: any. */
const struct uva__limit *uva__limits_at(size_t i);

/* Lowers the queries and the connections to the numbers for which `most`
 * descriptors are enough, of which `used` are open before the server is.
 * Returns 0; EMFILE with an error if these are too few for one of each. Thread:
 * any. */
UVA_MUST_CHECK int uva__limits_fit(struct uva__limits *limits, int64_t most,
                                   int64_t used, struct uva_error *error);

/* Sets the limit that `option` names. Returns 0; ENOENT if no limit has that
 * name; EINVAL with an error for a value that is no number or outside of its
 * range. Thread: any. */
UVA_MUST_CHECK int uva__limits_set(struct uva__limits *limits,
                                   const char *option, const char *value,
                                   struct uva_error *error);

#endif
