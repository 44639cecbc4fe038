/* SPDX-License-Identifier: Apache-2.0 */
/* Exports a stream as an Arrow blocking stream, for other threads to read: the
 * two C structs, on top of sink/task_ring, which is their private_data. So they
 * may be moved.
 *
 * Happy path:  started -> get_schema -> (get_next)* -> end -> release.
 *
 * Failures:
 * - the start: no stream is given;
 * - the stream: every get_next returns the code, with the stream's text;
 * - reading on a thread that must not block: EDEADLK, and no state has changed;
 * - a plain stream, at data that the host cannot read: ENOTSUP, which ends the
 *   stream too.
 *
 * On cancel and close: get_next returns the code. Release cancels, and does not
 *              wait for that.
 *
 * Clauses: DS-18. */
#include <errno.h>
#include <string.h>

#include "arrow/buffer.h"
#include "sink/task_ring.h"
#include "stream/check_hop.h"
#include "uvarrow/arrow.h"
#include "uvarrow/sources.h"

/* ---- a device stream ---------------------------------------------------- */

static int device_get_schema(struct ArrowDeviceArrayStream *self,
                             struct ArrowSchema *out)
{
    return uva__task_ring_schema(self->private_data, out);
}

static int device_get_next(struct ArrowDeviceArrayStream *self,
                           struct ArrowDeviceArray *out)
{
    return uva__task_ring_next(self->private_data, out);
}

static const char *device_get_last_error(struct ArrowDeviceArrayStream *self)
{
    return ((const struct uva__task_ring *)self->private_data)->reader.text;
}

static void device_release(struct ArrowDeviceArrayStream *self)
{
    struct uva__task_ring *task_ring = self->private_data;

    self->release = NULL;
    self->private_data = NULL;
    uva__task_ring_release(task_ring);
}

int uva_stream_to_device_stream(struct uva_stream *stream,
                                const struct uva_window *window,
                                struct ArrowDeviceArrayStream *out,
                                struct uva_error *error)
{
    struct uva__task_ring *task_ring;
    int code;

    if (out == NULL)
        return uva_error_set(error, EINVAL, "to_device_stream: out is NULL");
    memset(out, 0, sizeof(*out));
    code = uva__task_ring_start(stream, window, &task_ring, error);
    if (code != 0)
        return code;
    *out = (struct ArrowDeviceArrayStream){
        .device_type = task_ring->device_type,
        .get_schema = device_get_schema,
        .get_next = device_get_next,
        .get_last_error = device_get_last_error,
        .release = device_release,
        .private_data = task_ring,
    };
    uva__check_hop_stream(stream->label, "to_blocking", out);
    return 0;
}

/* ---- a plain stream ----------------------------------------------------- */

static int plain_get_schema(struct ArrowArrayStream *self,
                            struct ArrowSchema *out)
{
    return uva__task_ring_schema(self->private_data, out);
}

/* The pages of managed memory move to the host when it reads them. */
static int plain_get_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    struct ArrowDeviceArray batch;
    int code = uva__task_ring_next(self->private_data, &batch);

    if (uva_array_is_live(&batch) && !uva__buffer_is_readable(&batch)) {
        uva_array_release(&batch);
        memset(&batch, 0, sizeof(batch));
        code = uva__task_ring_refuse(
            self->private_data, ENOTSUP,
            "a batch is on a device, or behind an event of one: a plain stream "
            "cannot state that; read it through uva_stream_to_device_stream()");
    }
    *out = batch.array;
    return code;
}

static const char *plain_get_last_error(struct ArrowArrayStream *self)
{
    return ((const struct uva__task_ring *)self->private_data)->reader.text;
}

static void plain_release(struct ArrowArrayStream *self)
{
    struct uva__task_ring *task_ring = self->private_data;

    self->release = NULL;
    self->private_data = NULL;
    uva__task_ring_release(task_ring);
}

int uva_stream_to_arrow_stream(struct uva_stream *stream,
                               const struct uva_window *window,
                               struct ArrowArrayStream *out,
                               struct uva_error *error)
{
    struct uva__task_ring *task_ring;
    int code;

    if (out == NULL)
        return uva_error_set(error, EINVAL, "to_arrow_stream: out is NULL");
    memset(out, 0, sizeof(*out));
    code = uva__task_ring_start(stream, window, &task_ring, error);
    if (code != 0)
        return code;
    *out = (struct ArrowArrayStream){
        .get_schema = plain_get_schema,
        .get_next = plain_get_next,
        .get_last_error = plain_get_last_error,
        .release = plain_release,
        .private_data = task_ring,
    };
    return 0;
}

struct uva_stream *uva_stream_of_reader(const struct ArrowArrayStream *reader)
{
    const struct uva__task_ring *task_ring;

    if (reader == NULL || reader->release != plain_release)
        return NULL;
    task_ring = reader->private_data;
    return uva_stream_acquire(task_ring->stream);
}
