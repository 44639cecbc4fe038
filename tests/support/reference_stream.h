/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking stream that keeps to the letter of the interface, and its reader:
 * each step of the reader makes one call. Their mutants are in
 * stream_mutants.c. */
#ifndef UVA_SUPPORT_REFERENCE_STREAM_H
#define UVA_SUPPORT_REFERENCE_STREAM_H

#include "support/reference_data.h"

struct stream_mutant;

/* What the stream does. Zeroes: an empty stream. Copied. */
struct reference_stream_options {
    int64_t batches;
    bool fails;                  /* after the batches, instead of the end */
    bool fails_first;            /* get_schema fails, the first time */
    bool mute;                   /* errors have no text */
    bool metadata;               /* of the schema */
    ArrowDeviceType device_type; /* 0: CPU */
    const struct stream_mutant *mutant; /* borrows; NULL: none */
};

struct reference_stream {
    struct reference_stream_options how;
    struct reference_ledger ledger;
    int64_t next;                   /* ordinal */
    char text[REFERENCE_ROWS * 16]; /* of the last error; "" for none */
    bool failed;                    /* for good */
    int schemas;                    /* times one was given */
    enum reference_block block;     /* metadata of the schema */
    void (*hook)(void *ctx); /* a mutant's: called once, inside get_next */
    void *ctx;               /* borrows: hook's */
    struct ArrowArray stray; /* a mutant's: given by a call that failed */
    int acts;                /* of the mutant */
    atomic_int inside;       /* calls running */
    atomic_long released;    /* times it was */
    atomic_long faults;      /* by the reader */
};

void reference_stream_init(struct reference_stream *stream,
                           const struct reference_stream_options *how);
void reference_stream_fini(struct reference_stream *stream);

/* Gives the stream, which borrows `stream`. */
void reference_stream_give(struct reference_stream *stream,
                           struct ArrowDeviceArrayStream *out);

/* What the reader does. Zeroes: reads all. Copied. */
struct reference_reader_options {
    int64_t stop_at; /* stops after that many chunks; 0: never */
    int64_t again;   /* asks for the schema again after so many; 0: not */
    bool keep;       /* releases chunks only after the stream */
    bool text;       /* asks for the text of an error */
    const struct stream_mutant *mutant; /* borrows; NULL: none */
};

struct reference_chunk {
    struct reference_chunk *next;
    struct ArrowDeviceArray array;
};

struct reference_reader {
    struct reference_reader_options how;
    struct ArrowDeviceArrayStream stream; /* owns */
    struct reference_stream *behind;      /* a mutant's; borrows */
    struct ArrowSchema schema;            /* owns; or released */
    struct reference_chunk *chunks;       /* owns: those kept */
    int64_t had;                          /* chunks */
    int code;                             /* of the last call */
    bool ended;                           /* nothing more is read */
    int acts;                             /* of the mutant */
    long rows, faults;
};

/* Takes `stream`. */
void reference_reader_init(struct reference_reader *reader,
                           const struct reference_reader_options *how,
                           struct ArrowDeviceArrayStream *stream);
void reference_reader_fini(struct reference_reader *reader);

/* Makes the next call; the last one releases the stream. False if all is done.
 * Thread: any, one at a time. */
bool reference_reader_step(struct reference_reader *reader);

/* Releases the chunk that the last call gave, or keeps it: for mutants. */
void reference_reader_drop(struct reference_reader *reader,
                           struct ArrowDeviceArray *array);

/* ---- mutants ------------------------------------------------------------ */

enum stream_point {
    /* of a stream; `at` is */
    STREAM_AT_GIVE,    /* giving the stream; its struct */
    STREAM_AT_SCHEMA,  /* after a schema was made; the struct */
    STREAM_AT_NEXT,    /* get_next; its struct stream_call */
    STREAM_AT_CHUNK,   /* after it gave a chunk; its struct stream_call */
    STREAM_AT_FAIL,    /* after it failed; its struct stream_call */
    STREAM_AT_RELEASE, /* after release; the stream's struct */
    /* of a reader */
    STREAM_AT_READ, /* get_next; its struct stream_call */
    STREAM_AT_FED,  /* after it; the same */
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
    const char *variant; /* "" if there is one */
    bool of_reader;      /* otherwise: of the stream */
    enum stream_point point;
    bool (*act)(void *peer, void *at); /* true: in place of what is named */
    int arg;
    const struct stream_pair *pair; /* in which it shows */
    bool deep;                      /* in a deep check */
};

const struct stream_mutant *stream_mutants(int *count);

#endif
