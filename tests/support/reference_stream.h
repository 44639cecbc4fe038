/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking stream that follows the interface exactly, and its reader: each
 * step of the reader makes one call. Their mutants are in stream_mutants.c. */
#ifndef UVA_SUPPORT_REFERENCE_STREAM_H
#define UVA_SUPPORT_REFERENCE_STREAM_H

#include "support/reference_data.h"

struct stream_mutant;

/* The plan of the stream. All zeroes: an empty stream. Copied. */
struct reference_stream_options {
    int64_t batches;
    bool fails;       /* fails after the batches, instead of ending */
    bool fails_first; /* get_schema fails the first time */
    bool mute;        /* errors have no text */
    bool metadata;    /* the schema has metadata */
    ArrowDeviceType device_type;        /* 0: CPU */
    const struct stream_mutant *mutant; /* borrows; may be NULL */
};

struct reference_stream {
    struct reference_stream_options how;
    struct reference_counts live_structs;
    int64_t next;                   /* ordinal of the next batch */
    char text[REFERENCE_ROWS * 16]; /* text of the last error; "" without an
                                       error */
    bool failed;                    /* get_next fails from now on */
    int schemas;                    /* how often it gave a schema */
    enum reference_block block;     /* metadata of the schema */
    void (*hook)(void *ctx); /* used by a mutant, once, inside get_next */
    void *ctx;               /* borrows: argument of hook */
    struct ArrowArray stray; /* used by a mutant: given by a failing call */
    int acts;                /* how often the mutant has acted */
    atomic_int inside;       /* calls in progress */
    atomic_long released;    /* how often it was released */
    atomic_long faults;      /* faults of the reader */
};

void reference_stream_init(struct reference_stream *stream,
                           const struct reference_stream_options *how);
void reference_stream_fini(struct reference_stream *stream);

/* Gives the stream, which borrows `stream`. */
void reference_stream_give(struct reference_stream *stream,
                           struct ArrowDeviceArrayStream *out);

/* The plan of the reader. All zeroes: reads everything. Copied. */
struct reference_reader_options {
    int64_t stop_at; /* stops after this many chunks; 0: never */
    int64_t again;   /* gets the schema again after this many; 0: never */
    bool keep;       /* releases chunks only after the stream */
    bool text;       /* gets the text of an error */
    const struct stream_mutant *mutant; /* borrows; may be NULL */
};

struct reference_chunk {
    struct reference_chunk *next;
    struct ArrowDeviceArray array;
};

struct reference_reader {
    struct reference_reader_options how;
    struct ArrowDeviceArrayStream stream; /* owns */
    struct reference_stream *behind;      /* used by a mutant; borrows */
    struct ArrowSchema schema;            /* owns; or released */
    struct reference_chunk *chunks;       /* owns: chunks that are kept */
    int64_t had;                          /* chunks received */
    int code;                             /* return code of the last call */
    bool ended;                           /* the reader reads no more */
    int acts;                             /* how often the mutant has acted */
    long rows, faults;
};

/* Takes `stream`. */
void reference_reader_init(struct reference_reader *reader,
                           const struct reference_reader_options *how,
                           struct ArrowDeviceArrayStream *stream);
void reference_reader_fini(struct reference_reader *reader);

/* Makes the next call; the last one releases the stream. Returns false if no
 * call is left. Thread: any, one at a time. */
bool reference_reader_step(struct reference_reader *reader);

/* Releases the chunk that the last call gave, or keeps it: for mutants. */
void reference_reader_drop(struct reference_reader *reader,
                           struct ArrowDeviceArray *array);

/* ---- mutants ------------------------------------------------------------ */

enum stream_point {
    /* in a stream; the operation, then the object of `at` */
    STREAM_AT_GIVE,    /* giving the stream; its struct */
    STREAM_AT_SCHEMA,  /* after a schema was made; the struct */
    STREAM_AT_NEXT,    /* get_next; its struct stream_call */
    STREAM_AT_CHUNK,   /* after it gave a chunk; its struct stream_call */
    STREAM_AT_FAIL,    /* after it failed; its struct stream_call */
    STREAM_AT_RELEASE, /* after release; the stream's struct */
    /* in a reader; the operation, then the object of `at` */
    STREAM_AT_READ, /* get_next; its struct stream_call */
    STREAM_AT_FED,  /* after it; the same struct */
    STREAM_AT_DROP, /* releasing a chunk; struct ArrowArray */
    STREAM_AT_SHUT  /* releasing the stream; its struct */
};

struct stream_call {
    struct ArrowDeviceArrayStream *self;
    struct ArrowDeviceArray *out;
    int code;
};

struct stream_pair {
    struct reference_stream_options stream;
    struct reference_reader_options reader;
};

struct stream_mutant {
    const char *clause;
    const char *variant; /* "" if there is only one */
    bool of_reader;      /* mutant of the reader; otherwise of the stream */
    enum stream_point point;
    bool (*act)(void *peer, void *at); /* true: replaces the operation */
    int arg;
    const struct stream_pair *pair; /* peers for which it shows */
    bool deep;                      /* shows only in a deep check */
};

const struct stream_mutant *stream_mutants(int *count);

#endif
