/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a query: a stream on one side, a connection on the other.
 *
 * Happy path:  the rights are few -> stream starts -> schema -> first batch:
 *              head and schema sent -> (batch sent)* -> done -> end sent.
 *              Failures: the question of rights; the query, before its first
 *              batch: an error with a status; later: the body is cut. The
 *              client leaves: the stream is dropped, which cancels the query.
 *              Limits: no batch is taken while much waits to be written, so the
 *              query stands still with its client. */
#ifndef UVA_SERVE_ANSWER_H
#define UVA_SERVE_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "coding.h"
#include "connection.h"
#include "format.h"
#include "rest.h"
#include "rights.h"
#include "uvarrow/adbc.h"
#include "uvarrow/io.h"

/* Batches that the stream of an answer reads ahead of its client. */
#define UVA__ANSWER_WINDOW 4

/* The room for the begin of a query's text. */
#define UVA__ANSWER_SQL 1024

struct uva__answers;

/* An answer under way. */
struct uva__answer {
    struct uva__answers *answers;         /* borrows: the list of all answers */
    struct uva__answer *next;             /* in their list */
    struct uva__answer **previous;        /* the pointer to this one */
    struct uva__connection *connection;   /* borrows, until it is gone */
    struct uva_stream *stream;            /* counts, until done */
    struct uva__rights_question question; /* asked before the stream starts */
    enum uva__rows format;                /* of the rows */
    enum uva__coding coding;              /* of the body */
    const char *origin;        /* a site that may read it, or NULL; static */
    int64_t limit_ms;          /* that the database may take */
    int64_t id;                /* number, from 1 */
    int64_t rows;              /* sent so far */
    int64_t bytes;             /* the same of the body */
    uint64_t begun;            /* by uv_hrtime() */
    struct uva_error why;      /* of the answer itself; code 0: no error */
    bool has_begun;            /* the head was sent */
    bool is_paused;            /* the client does not read at the moment */
    char sql[UVA__ANSWER_SQL]; /* the begin of its text; "": it has none */
};

/* Why an answer was cut, for a client that has seen its begin. */
struct uva__cut {
    int64_t id;     /* of the answer; 0: not cut */
    char text[256]; /* the text of the failure, as far as it fits */
};

enum { UVA__CUTS = 16 };

/* All answers. Zeroes, then the first seven. */
struct uva__answers {
    struct uva_adbc_pool *pool;         /* borrows */
    struct uva__rights *rights;         /* borrows: must be few */
    struct uva__rest *rest;             /* borrows */
    enum uva__kind kind;                /* of the database */
    int64_t most_running, most_waiting; /* limits */
    int64_t batch_bytes;                /* limit of one batch */
    struct uva__answer *first;          /* list of those under way */
    int64_t count;                      /* its length */
    int64_t begun;                      /* in all; the last id */
    int64_t rows;                       /* sent, of all */
    int64_t bytes;                      /* the same of their bodies */
    int64_t complete;                   /* to their last row */
    int64_t failed;                     /* by the query */
    int64_t timed_out;                  /* of these, by its limit of time */
    int64_t cancelled;                  /* because the client left */
    int64_t ended;                      /* by uva__answer_end() */
    int64_t refused;                    /* because too many waited */
    int64_t cut_count;                  /* failed after their begin */
    struct uva__cut cuts[UVA__CUTS];    /* the last of these, in turns */
};

/* Answers a request with the rows of a stream of the pool, which is not started
 * and has one reference: takes it. `limit_ms` is its `busy_ms`, `sql` its text.
 * Thread: loop, as all here. */
void uva__answer_start(struct uva__answers *answers,
                       struct uva__connection *connection,
                       struct uva_stream *stream, int64_t limit_ms,
                       enum uva__rows format, const char *sql,
                       const char *origin);

/* Ends the query with that number, as if its client had left, and answers the
 * client with 409, or cuts its answer. Returns 0; ENOENT: it is not under way.
 */
UVA_MUST_CHECK int uva__answer_end(struct uva__answers *answers, int64_t id);

#endif
