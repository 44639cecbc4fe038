/* SPDX-License-Identifier: Apache-2.0 */
/* A source of Python: an object that is opened on a worker, with the GIL, and
 * then read there. The opener is a function of Python that gives a capsule with
 * a blocking stream, or an iterator over batches (rows.c).
 *
 * Happy path:  open -> (get_next)* -> the stream is released -> freed, which
 *              the waiters of the tap learn.
 *
 * What can fail: the opener or the iterator raises: the exception is kept in
 * the tap, and the stream fails with its text.
 *
 * On cancel:   `interrupt` is called on another thread, again and again, until
 *              the call that blocks returns. */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

/* The objects that it holds */
enum { OBJECT, OPENER, INTERRUPT };

struct source {
    struct holder held;
    int device_type; /* of the data; -1: plain arrays */
    bool is_open;    /* it was opened, and counts as live */
};

/* ---- on workers -----------------------------------------------------------
 */

int stream_from_capsule(PyObject *capsule, struct ArrowArrayStream *out)
{
    struct ArrowArrayStream *stream =
        PyCapsule_GetPointer(capsule, "arrow_array_stream");

    if (stream == NULL)
        return -1;
    if (stream->release == NULL) {
        PyErr_SetString(PyExc_ValueError, "the stream has been read before");
        return -1;
    }
    *out = *stream;
    stream->release = NULL;
    return 0;
}

static int device_stream_from_capsule(PyObject *capsule,
                                      struct ArrowDeviceArrayStream *out)
{
    struct ArrowDeviceArrayStream *stream =
        PyCapsule_GetPointer(capsule, "arrow_device_array_stream");

    if (stream == NULL)
        return -1;
    if (stream->release == NULL) {
        PyErr_SetString(PyExc_ValueError, "the stream has been read before");
        return -1;
    }
    *out = *stream;
    stream->release = NULL;
    return 0;
}

/* What the opener gives: a capsule or an iterator; NULL with an exception. */
static PyObject *source_call(struct source *source, bool device)
{
    PyObject *opener = Py_NewRef(source->held.objects[OPENER]);
    PyObject *given;

    source->is_open = true;
    live_add(1);
    given = PyObject_CallFunction(opener, "OO", source->held.objects[OBJECT],
                                  device ? Py_True : Py_False);

    Py_DECREF(opener);
    return given;
}

static int source_open_cpu(void *ctx, struct ArrowArrayStream *out,
                           struct uva_error *error)
{
    struct source *source = ctx;
    struct gil gil;
    PyObject *given;
    int code = 0;

    if (!gil_enter(&gil))
        return uva_error_set(error, ECANCELED, "the interpreter is ending");
    given = source_call(source, false);
    if (given == NULL)
        code = -1;
    else if (PyCapsule_CheckExact(given))
        code = stream_from_capsule(given, out);
    else
        code = rows_open(given, source->held.tap, out);
    if (code != 0)
        code = tap_fail(source->held.tap, error);
    Py_XDECREF(given);
    gil_leave(&gil);
    return code;
}

static int source_open_device(void *ctx, struct ArrowDeviceArrayStream *out,
                              struct uva_error *error)
{
    struct source *source = ctx;
    struct gil gil;
    PyObject *given;
    int code = -1;

    if (!gil_enter(&gil))
        return uva_error_set(error, ECANCELED, "the interpreter is ending");
    given = source_call(source, true);
    if (given != NULL)
        code = PyCapsule_CheckExact(given)
                   ? device_stream_from_capsule(given, out)
                   : rows_open_device(given, source->held.tap,
                                      source->device_type, out);
    if (code != 0)
        code = tap_fail(source->held.tap, error);
    Py_XDECREF(given);
    gil_leave(&gil);
    return code;
}

/* What the interrupt raises is of no use to the stream, which ends anyway. */
static void source_interrupt(void *ctx)
{
    struct source *source = ctx;
    PyObject *interrupt;
    struct gil gil;

    if (!gil_enter(&gil))
        return;
    interrupt = Py_NewRef(source->held.objects[INTERRUPT]);
    Py_XDECREF(PyObject_CallFunctionObjArgs(interrupt, NULL));
    PyErr_Clear();
    Py_DECREF(interrupt);
    gil_leave(&gil);
}

static void source_free(void *ctx)
{
    struct source *source = ctx;
    struct tap *tap = tap_acquire(source->held.tap);
    const bool was_open = source->is_open;

    if (holder_drop(&source->held))
        free(source);
    live_add(was_open ? -1 : 0);
    atomic_fetch_sub(&tap->sources, 1);
    tap_post_ready(tap);
    tap_release(tap);
}

/* ---- on the loop thread ---------------------------------------------------
 */

static struct source *source_new(struct tap *tap, PyObject *object,
                                 PyObject *opener, PyObject *interrupt)
{
    struct source *source = calloc(1, sizeof(*source));

    if (source == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    holder_add(&source->held, tap);
    source->held.objects[OBJECT] = Py_NewRef(object);
    source->held.objects[OPENER] = Py_NewRef(opener);
    if (interrupt != Py_None)
        source->held.objects[INTERRUPT] = Py_NewRef(interrupt);
    atomic_fetch_add(&tap->sources, 1);
    return source;
}

/* args: object, opener, interrupt, batches, bytes, device type or -1 */
struct uva_stream *source_open(Host *host, struct tap *tap, PyObject *args)
{
    struct uva_blocking_source how = {.free_ctx = source_free};
    PyObject *object, *opener, *interrupt;
    struct source *source;
    struct uva_stream *stream;
    int batches, device;
    long long bytes;

    if (!PyArg_ParseTuple(args, "OOOiLi", &object, &opener, &interrupt,
                          &batches, &bytes, &device))
        return NULL;
    source = source_new(tap, object, opener, interrupt);
    if (source == NULL)
        return NULL;
    source->device_type = device;
    tap->device = device > ARROW_DEVICE_CPU;
    how.ctx = source;
    how.interrupt = interrupt != Py_None ? source_interrupt : NULL;
    how.window.batches = batches;
    how.window.bytes = bytes;
    if (device < 0) {
        how.open = source_open_cpu;
        return uva_stream_from_blocking_cpu(host->runtime, NULL, &how);
    }
    how.open_device = source_open_device;
    how.device_type = device;
    stream = uva_stream_from_blocking(host->runtime, NULL, &how);
    /* its data may have events */
    (void)uva_stream_ready(stream, &(struct uva_ready){.window = how.window});
    return stream;
}
