/* SPDX-License-Identifier: Apache-2.0 */
/* Encoded parts, from a stream to a destination.
 *
 * Happy path:  on_begin -> part -> op -> written -> (part...) -> the end: the
 *              last chunk -> written -> on_done.
 *
 * What can fail: a write, which cancels the stream with its code; the stream,
 *              which is reported at once, without a last chunk.
 *
 * On cancel:   on_done at once. Ops under way keep their parts until the
 *              destination has answered.
 * On drop:     as for a cancel, without on_done. */
#include "io/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/encode_stage.h"
#include "io/encoder.h"
#include "io/reserved.h"
#include "uvarrow/arrow.h"

enum { HIGH_BYTES = 1 << 20 };

struct uva__writer *uva__writer_acquire(struct uva__writer *w)
{
    w->users++;
    return w;
}

void uva__writer_release(struct uva__writer *w)
{
    if (--w->users == 0)
        w->ops->free(w);
}

/* ---- ops ---------------------------------------------------------------- */

static struct uva__write_op *writer_op_new(struct uva__writer *w, size_t count)
{
    struct uva__write_op *op =
        calloc(1, sizeof(*op) + count * sizeof(*op->buffers));

    if (op != NULL)
        op->writer = uva__writer_acquire(w);
    return op;
}

static void writer_op_free(struct uva__write_op *op)
{
    struct uva__writer *w = op->writer;

    uva_part_release(&op->part);
    free(op);
    uva__writer_release(w);
}

static void writer_op_add(struct uva__write_op *op, const char *data,
                          size_t size)
{
    op->buffers[op->count++] =
        uv_buf_init((char *)(uintptr_t)data, (unsigned)size);
    op->bytes += (int64_t)size;
}

/* Adds the buffers of a part, framed as a chunk where that is wanted. */
static void writer_op_fill(struct uva__write_op *op,
                           const struct uva_part *part)
{
    const bool is_chunk = op->writer->options.http_chunked;
    const unsigned first = is_chunk ? 1 : 0;

    if (is_chunk) {
        const int size = snprintf(op->head, sizeof(op->head), "%llx\r\n",
                                  (unsigned long long)part->bytes);

        writer_op_add(op, op->head, (size_t)size);
    }
    memcpy(&op->buffers[first], part->buffers,
           part->count * sizeof(*op->buffers));
    op->count += (unsigned)part->count;
    op->bytes += part->bytes;
    if (is_chunk)
        writer_op_add(op, "\r\n", 2);
}

/* Passes the op, which it takes, to the destination. */
static int writer_send(struct uva__writer *w, struct uva__write_op *op)
{
    const int code = w->ops->write(w, op);

    if (code != 0) {
        writer_op_free(op);
        return code;
    }
    w->in_flight++;
    w->queued += op->bytes;
    return 0;
}

/* ---- the end ------------------------------------------------------------ */

/* Stops once there is no end to report, and no write that is wanted. */
static void writer_settle(struct uva__writer *w)
{
    if (w->ops->stop != NULL && w->stream == NULL &&
        (w->is_unwanted || w->in_flight == 0))
        w->ops->stop(w);
}

/* Reports the end, unless the stream was dropped: then there is nothing to call
 * back to. */
static void writer_report(struct uva__writer *w,
                          const struct uva_outcome *outcome)
{
    struct uva_stream *stream = w->stream;

    w->has_ended = false;
    w->stream = NULL;
    writer_settle(w);
    if (!uva_stream_is_dropped(stream))
        w->options.on_done(w->options.ctx, outcome, w->bytes);
    uva_stream_release(stream);
}

/* Reports the end of a stream that was complete, once all is written. */
static void writer_report_complete(struct uva__writer *w)
{
    struct uva_outcome outcome = {
        .stream = w->stream, .batches = w->batches, .rows = w->rows};

    if (w->why.code != 0) {
        outcome.end = UVA_END_CANCELLED;
        outcome.error = w->why;
    }
    writer_report(w, &outcome);
}

/* A write failed: the first failure counts. */
static void writer_fail(struct uva__writer *w, int code)
{
    if (w->why.code != 0)
        return;
    (void)uva_error_set(&w->why, code, "cannot write: %s", uv_strerror(-code));
    if (w->stream != NULL)
        uva_stream_cancel(w->stream, code, w->why.message);
}

void uva__writer_written(struct uva__write_op *op, int code)
{
    struct uva__writer *w = uva__writer_acquire(op->writer);

    w->in_flight--;
    w->queued -= op->bytes;
    if (code == 0)
        w->bytes += op->bytes;
    else
        writer_fail(w, code);
    writer_op_free(op);
    if (w->has_ended && w->in_flight == 0) {
        writer_report_complete(w);
    } else if (w->is_paused && w->stream != NULL &&
               w->queued <= w->options.low_bytes) {
        w->is_paused = false;
        uva_stream_resume(w->stream);
    }
    writer_settle(w);
    uva__writer_release(w);
}

void uva__writer_give_up(struct uva__writer *w, const struct uva_error *error)
{
    w->is_unwanted = true;
    if (w->why.code == 0)
        w->why = *error;
    if (w->has_ended)
        writer_report_complete(w);
    else if (w->stream != NULL) /* its end may be on the way */
        uva_stream_cancel(w->stream, error->code, error->message);
    else
        writer_settle(w);
}

/* ---- the consumer ------------------------------------------------------- */

/* Writes a part, and takes it. Returns 0, also if a write fails, since its
 * cancel ends the stream; or ENOMEM. */
static int writer_write(struct uva__writer *w, struct uva_part *part)
{
    struct uva__write_op *op;
    int code;

    op = writer_op_new(w, part->count + 2);
    if (op == NULL) {
        uva_part_release(part);
        return ENOMEM;
    }
    writer_op_fill(op, part);
    op->part = *part;
    code = writer_send(w, op);
    if (code != 0)
        writer_fail(w, code);
    return 0;
}

static int writer_on_schema(void *ctx, const struct uva_stream_info *info)
{
    ((struct uva__writer *)ctx)->info = *info;
    return 0;
}

/* Calls on_begin, once. Returns 0; ECANCELED, also if it has dropped the
 * stream; or another errno of its own. */
static int writer_begin(struct uva__writer *w)
{
    int code = 0;

    if (w->has_begun)
        return 0;
    w->has_begun = true;
    if (w->options.on_begin != NULL)
        code = w->options.on_begin(w->options.ctx, &w->info);
    if (code < 0) /* libuv's */
        code = -code;
    if (code == EAGAIN) /* for a batch it is a pause */
        code = EPROTO;
    return code == 0 && uva_stream_is_dropped(w->stream) ? ECANCELED : code;
}

static int writer_on_batch(void *ctx, struct uva_batch *batch)
{
    struct uva__writer *w = ctx;
    struct uva_part part;
    int64_t rows;
    const bool is_batch = uva__part_is_batch(&batch->data);
    int code = writer_begin(w);

    if (code == 0)
        code = uva_part_take(&batch->data, &part);
    if (code != 0)
        return code;
    rows = part.rows;
    code = writer_write(w, &part);
    if (code == 0) {
        w->batches += is_batch;
        w->rows = rows > INT64_MAX - w->rows ? INT64_MAX : w->rows + rows;
    }
    if (code != 0 || w->why.code != 0)
        return code;
    w->is_paused = w->queued > w->options.high_bytes;
    return w->is_paused ? EAGAIN : 0;
}

/* Writes the last chunk. */
static int writer_send_last(struct uva__writer *w)
{
    static const char last[] = "0\r\n\r\n";
    struct uva__write_op *op;

    if (!w->options.http_chunked)
        return 0;
    op = writer_op_new(w, 1);
    if (op == NULL)
        return ENOMEM;
    writer_op_add(op, last, sizeof(last) - 1);
    return writer_send(w, op);
}

/* Reports the end of a stream that was not complete. */
static void writer_report_other(struct uva__writer *w,
                                const struct uva_outcome *outcome)
{
    struct uva_outcome final = *outcome;

    final.batches = w->batches;
    final.rows = w->rows;
    if (w->why.code != 0) {
        final.end = UVA_END_CANCELLED;
        final.error = w->why;
    }
    writer_report(w, &final);
}

/* Reports a stream without bytes that on_begin has refused. */
static void writer_report_refused(struct uva__writer *w,
                                  const struct uva_outcome *outcome, int code)
{
    struct uva_outcome final = {.stream = outcome->stream};

    final.end = code == ECANCELED ? UVA_END_CANCELLED : UVA_END_REJECTED;
    (void)uva_error_set(&final.error, code, "on_begin: %s", uv_strerror(-code));
    writer_report(w, &final);
}

static void writer_on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct uva__writer *w = ctx;
    int code;

    if (outcome->end == UVA_END_CANCELLED)
        w->is_unwanted = true;
    if (outcome->end != UVA_END_COMPLETE || w->why.code != 0) {
        writer_report_other(w, outcome);
        return;
    }
    code = writer_begin(w);
    if (code != 0) {
        writer_report_refused(w, outcome, code);
        return;
    }
    code = writer_send_last(w);
    if (code != 0)
        writer_fail(w, code);
    w->has_ended = true;
    if (w->in_flight == 0)
        writer_report_complete(w);
}

/* The stream has ended. It was dropped if that was neither reported nor waits
 * for writes. */
static void writer_on_free(void *ctx)
{
    struct uva__writer *w = ctx;

    if (w->stream != NULL && !w->has_ended) {
        uva_stream_release(w->stream);
        w->stream = NULL;
        w->is_unwanted = true;
        writer_settle(w);
    }
    uva__writer_release(w);
}

/* ---- the start ---------------------------------------------------------- */

int uva__writer_check(const struct uva_write *options, struct uva_error *error)
{
    if (options->on_done == NULL)
        return uva_error_set(error, EINVAL, "uva_write: on_done is mandatory");
    if (options->high_bytes < 0 || options->low_bytes < 0)
        return uva_error_set(error, EINVAL, "uva_write: %s is negative",
                             options->high_bytes < 0 ? "high_bytes"
                                                     : "low_bytes");
    if (options->low_bytes >
        (options->high_bytes == 0 ? HIGH_BYTES : options->high_bytes))
        return uva_error_set(error, EINVAL,
                             "uva_write: low_bytes is above high_bytes");
    if (uva__reserved_check("uva_write", options->reserved, 4, error) != 0)
        return EINVAL;
    return uva__encoder_check(&options->encode, error);
}

int uva__writer_start(struct uva__writer *w, struct uva_stream *stream,
                      const struct uva_write *options, struct uva_error *error)
{
    const struct uva_consumer consumer = {.on_schema = writer_on_schema,
                                          .on_batch = writer_on_batch,
                                          .on_done = writer_on_done,
                                          .free_ctx = writer_on_free,
                                          .ctx = w};
    int code;

    w->options = *options;
    if (w->options.high_bytes == 0)
        w->options.high_bytes = HIGH_BYTES;
    if (w->options.low_bytes == 0)
        w->options.low_bytes = w->options.high_bytes / 4;
    w->users = 1;
    (void)uva_stream_encode(stream, &options->encode);
    w->stream = uva_stream_acquire(stream);
    code = uva_stream_for_each(stream, &consumer, error);
    if (code != 0) {
        uva_stream_release(stream);
        uva__writer_release(w);
    }
    return code;
}
