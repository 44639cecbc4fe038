/* SPDX-License-Identifier: Apache-2.0 */
/* A batch is taken with EAGAIN, which pauses the stream, and the next question
 * resumes it. */
#include "support/asking.h"

#include <check.h>
#include <errno.h>
#include <stddef.h>

static void answer(struct asking *a, struct uva_batch *batch,
                   const struct uva_outcome *outcome)
{
    ck_assert(a->waits);
    a->waits = false;
    a->fn(a->ctx, batch, outcome); /* which may ask again */
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    answer(ctx, batch, NULL);
    return EAGAIN;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct asking *a = ctx;

    a->over = true;
    a->outcome = *outcome;
    a->outcome.metadata = NULL; /* borrowed for this call */
    if (a->waits)
        answer(a, NULL, outcome);
}

static void answer_again(void *ctx)
{
    struct asking *a = ctx;

    answer(a, NULL, &a->outcome);
}

static int asking_start(struct asking *a, struct uva_stream *stream)
{
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = a};
    const int code = uva_stream_for_each(stream, &consumer, NULL);

    if (code != 0) {
        a->waits = false;
        return code;
    }
    a->stream = stream;
    a->runtime = uva_stream_get_runtime(stream);
    return 0;
}

int asking_next(struct asking *a, struct uva_stream *stream, asking_fn *fn,
                void *ctx)
{
    ck_assert(!a->waits);
    a->fn = fn;
    a->ctx = ctx;
    a->waits = true;
    if (a->stream == NULL)
        return asking_start(a, stream);
    ck_assert_ptr_eq(a->stream, stream);
    if (a->over)
        return uva_runtime_post(a->runtime, answer_again, a);
    uva_stream_resume(stream);
    return 0;
}
