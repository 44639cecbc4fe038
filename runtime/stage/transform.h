/* SPDX-License-Identifier: Apache-2.0 */
/* The stage of uva_stream_transform(), and of the stages that are made of it:
 * filter, limit_rows, rebatch. */
#ifndef UVA_STAGE_TRANSFORM_H
#define UVA_STAGE_TRANSFORM_H

#include "uvarrow/stages.h"

/* The rows of a function that keeps and joins batches. */
struct uva__transform_rows {
    uint64_t since_ns; /* since when the oldest one is kept, by
                          uva__clock_ns(); 0: empty, or not timed */
    int64_t next;      /* needed for the next batch that it emits */
    int64_t whole;     /* for each batch after that one */
    int64_t input;     /* in the largest batch so far; 0: not known */
};

/* How many inputs `batches` results take, at least, if none is larger than the
 * largest one so far, which is known. Thread: any. */
static inline int64_t
uva__transform_inputs(const struct uva__transform_rows *need, int64_t batches)
{
    int64_t rows;

    if (__builtin_mul_overflow(batches - 1, need->whole, &rows) ||
        __builtin_add_overflow(rows, need->next, &rows))
        return INT64_MAX;
    return rows > need->input ? (rows - 1) / need->input + 1 : 1;
}

/* The kind of a stage that is made of a transform. */
struct uva__transform_kind {
    const char *name;   /* static; for errors and logs */
    size_t state_size;  /* of the struct that its ctx points to, which becomes a
                           part of the stage; 0: the ctx is the caller's */
    int64_t slice_rows; /* a batch of more rows is passed on in slices of so
                           many; each is made then, on the loop thread, so the
                           runs need no wake-up for it. 0: as it is */
    /* for a function that keeps rows; otherwise zeroes */
    int64_t wait_ms; /* how long, while a batch is wanted; 0: until the function
                        emits them by itself */
    /* emits the rows that are kept; returns as uva_transform.finish */
    int (*flush)(void *ctx, uva_emit_fn *emit, void *emitter,
                 struct uva_error *error);
    /* so that batches that will be joined are requested together */
    struct uva__transform_rows (*rows)(const void *ctx);
};

/* Adds a transform to a stream that takes stages; the options are checked.
 * Without a number of batches in their window it requests what is requested of
 * it. Copies `kind`, and the state that the ctx points to. Takes the ctx,
 * for `free_ctx`, also on failure. Returns as uva_stream_transform().
 * Thread: builder. */
int uva__transform_add(struct uva_stream *stream,
                       const struct uva__transform_kind *kind,
                       const struct uva_transform *options);

/* The size of the input of this call of `batch`, if that was measured and the
 * schema of the results is the same; otherwise -1. Thread: the caller's. */
int64_t uva__transform_input_size(const void *emitter);

/* As `emit`, for an input that its caller has passed on unchanged: `bytes` is
 * its size, as above; -1: it is measured. Thread: the caller's. */
int uva__transform_emit(void *emitter, struct uva_batch *out, int64_t bytes);

/* Has the call of `batch` or `finish` that got `emitter` fail with `code`,
 * which is not 0, also if that means something else to a transform. Returns the
 * positive code, to be returned. Thread: the caller's. */
int uva__transform_fail(void *emitter, int code);

#endif
