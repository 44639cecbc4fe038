/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer that gets a batch when the test asks for one, and requests no
 * other: between two questions its stream is paused. */
#ifndef UVA_SUPPORT_ASKING_H
#define UVA_SUPPORT_ASKING_H

#include <stdbool.h>

#include "uvarrow/stream.h"

/* Called once for each question: with a batch and no outcome, or, at the end,
 * with the outcome and no batch. */
typedef void asking_fn(void *ctx, struct uva_batch *batch,
                       const struct uva_outcome *outcome);

/* Begins as zeroes, and lives as long as the stream runs. */
struct asking {
    struct uva_stream *stream;   /* borrows */
    struct uva_runtime *runtime; /* borrows */
    asking_fn *fn;               /* the question */
    void *ctx;                   /* borrows: of that */
    bool waits;                  /* for an answer */
    bool over;                   /* `outcome` has come */
    struct uva_outcome outcome;  /* without its metadata */
};

/* Asks for a batch of `stream`; the first question starts that, and returns
 * what the start returns. `fn` is called later, on the loop thread. The answer
 * to each question after the end is the outcome. Thread: loop. */
int asking_next(struct asking *a, struct uva_stream *stream, asking_fn *fn,
                void *ctx);

#endif
