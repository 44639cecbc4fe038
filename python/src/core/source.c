/* SPDX-License-Identifier: Apache-2.0 */
/* A source of Python: an object that is opened on a worker, with the GIL, and
 * then read there. The opener is a function of Python that gives a capsule with
 * a blocking stream, or an iterator over batches (rows.c).
 *
 * Happy path:  open -> (get_next)* -> the stream is released -> freed, which
 *              the waiters of the tap learn.
 *
 * Failures: the opener or the iterator raises: the exception is kept in the
 * tap, and the stream fails with its text.
 *
 * On cancel:   `interrupt` is called on another thread, again and again, until
 *              the call that blocks returns.
 * On the end:  `close` is called, whether or not a call was made last. */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

/* The objects that it holds */
enum { OBJECT, OPENER, INTERRUPT, CLOSE };

struct source {
    struct holder held;
    const char *item; /* the name of an iterable in errors */
    int device_type;  /* of the data; -1: plain arrays */
    bool is_open;     /* it was opened, and counts as live */
    bool is_reported; /* that its interrupt would have to be awaited */
};

/* ---- on workers ---------------------------------------------------------- */

/* The opener's result: a capsule or an iterator; NULL with an exception. */
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

/* Takes the stream of a capsule, and refuses a stream of arrays that are not
 * rows. A schema that cannot be had is for the library to report, which asks
 * for it again. */
static int source_take(PyObject *capsule, bool device, struct given *out)
{
    struct ArrowSchema schema = {0};

    if (given_take(out, capsule, device, "source") != 0)
        return -1;
    if (given_schema(out, &schema) == 0 && !checked_is_rows(&schema, "source"))
        given_close(out);
    uva_schema_release(&schema);
    return out->is_open ? 0 : -1;
}

static int source_open_cpu(void *ctx, struct ArrowArrayStream *out,
                           struct uva_error *error)
{
    struct source *source = ctx;
    struct given given = {0};
    struct gil gil;
    PyObject *opened;
    int code = -1;

    if (!gil_enter(&gil))
        return uva_error_set(error, ECANCELED, "the interpreter is ending");
    opened = source_call(source, false);
    if (opened != NULL && PyCapsule_CheckExact(opened)) {
        code = source_take(opened, false, &given);
        *out = given.plain;
    } else if (opened != NULL) {
        code = rows_open(opened, source->item, source->held.tap, out);
    }
    if (code != 0)
        code = tap_fail(source->held.tap, error);
    Py_XDECREF(opened);
    gil_leave(&gil);
    return code;
}

/* The last use of its object, and the call of `close` after that, once. */
static void source_end(void *ctx)
{
    struct source *source = ctx;
    PyObject *object, *close, *done = NULL;
    struct gil gil;

    if (!source->is_open || !gil_enter(&gil))
        return;
    object = source->held.objects[OBJECT];
    close = source->held.objects[CLOSE];
    source->held.objects[OBJECT] = source->held.objects[CLOSE] = NULL;
    Py_XDECREF(object);
    if (close != NULL)
        done = PyObject_CallFunctionObjArgs(close, NULL);
    if (close != NULL &&
        (done == NULL || !checked_is_sync(done, "the result of close()")))
        PyErr_WriteUnraisable(close);
    Py_XDECREF(done);
    Py_XDECREF(close);
    gil_leave(&gil);
}

static int source_open_owned(void *ctx, struct ArrowArrayStream *out,
                             struct uva_error *error)
{
    return owned_open(source_open_cpu, source_end, ctx, out, error);
}

static int source_open_device(void *ctx, struct ArrowDeviceArrayStream *out,
                              struct uva_error *error)
{
    struct source *source = ctx;
    struct given given = {0};
    struct gil gil;
    PyObject *opened;
    int code = -1;

    if (!gil_enter(&gil))
        return uva_error_set(error, ECANCELED, "the interpreter is ending");
    opened = source_call(source, true);
    if (opened != NULL && PyCapsule_CheckExact(opened)) {
        code = source_take(opened, true, &given);
        *out = given.device;
    } else if (opened != NULL) {
        code = rows_open_device(opened, source->item, source->held.tap,
                                source->device_type, out);
    }
    if (code != 0)
        code = tap_fail(source->held.tap, error);
    Py_XDECREF(opened);
    gil_leave(&gil);
    return code;
}

/* An exception of the interrupt is of no use to the stream, which ends anyway;
 * but a coroutine, which has had no effect, as it would have to be awaited, is
 * reported. */
static void source_interrupt(void *ctx)
{
    struct source *source = ctx;
    PyObject *interrupt, *done;
    struct gil gil;

    if (!gil_enter(&gil))
        return;
    interrupt = Py_NewRef(source->held.objects[INTERRUPT]);
    done = PyObject_CallFunctionObjArgs(interrupt, NULL);
    if (done != NULL && !checked_is_sync(done, "the result of interrupt()") &&
        !source->is_reported) {
        source->is_reported = true;
        PyErr_WriteUnraisable(interrupt);
    }
    PyErr_Clear();
    Py_XDECREF(done);
    Py_DECREF(interrupt);
    gil_leave(&gil);
}

static void source_free(void *ctx)
{
    struct source *source = ctx;
    struct tap *tap = tap_acquire(source->held.tap);
    const bool was_open = source->is_open;

    source_end(source);
    if (holder_drop(&source->held))
        free(source);
    live_add(was_open ? -1 : 0);
    atomic_fetch_sub(&tap->sources, 1);
    tap_post_ready(tap);
    tap_release(tap);
}

/* ---- a stream that its first call opens ---------------------------------- */

struct deferred {
    struct source *source;         /* owns */
    struct ArrowArrayStream inner; /* owns; released before it is opened */
    struct uva_error error;        /* why it could not be opened */
};

static int deferred_open(struct deferred *d)
{
    if (d->inner.release == NULL && d->error.code == 0)
        (void)source_open_cpu(d->source, &d->inner, &d->error);
    return d->error.code;
}

static int deferred_get_schema(struct ArrowArrayStream *stream,
                               struct ArrowSchema *out)
{
    struct deferred *d = stream->private_data;
    const int code = deferred_open(d);

    return code != 0 ? code : d->inner.get_schema(&d->inner, out);
}

static int deferred_get_next(struct ArrowArrayStream *stream,
                             struct ArrowArray *out)
{
    struct deferred *d = stream->private_data;
    const int code = deferred_open(d);

    return code != 0 ? code : d->inner.get_next(&d->inner, out);
}

static const char *deferred_get_last_error(struct ArrowArrayStream *stream)
{
    struct deferred *d = stream->private_data;

    if (d->error.code != 0)
        return d->error.message;
    return d->inner.release != NULL ? d->inner.get_last_error(&d->inner) : NULL;
}

static void deferred_release(struct ArrowArrayStream *stream)
{
    struct deferred *d = stream->private_data;

    if (d->inner.release != NULL)
        d->inner.release(&d->inner);
    source_free(d->source);
    free(d);
    stream->release = NULL;
}

/* ---- on the loop thread -------------------------------------------------- */

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

/* args: object, opener, interrupt, batches, bytes, device type or -1, whether
 * it has its own thread, close */
struct uva_stream *source_open(Host *host, struct tap *tap, PyObject *args)
{
    struct uva_arrow_source how = {.free_ctx = source_free};
    PyObject *object, *opener, *interrupt, *close;
    int batches, device, has_thread;
    struct uva_stream *stream;
    struct source *source;
    long long bytes;

    if (!PyArg_ParseTuple(args, "OOOiLipO", &object, &opener, &interrupt,
                          &batches, &bytes, &device, &has_thread, &close))
        return NULL;
    source = source_new(tap, object, opener, interrupt);
    if (source == NULL)
        return NULL;
    source->item = "an item of source";
    source->device_type = device;
    if (close != Py_None)
        source->held.objects[CLOSE] = Py_NewRef(close);
    tap->device = device > ARROW_DEVICE_CPU;
    how.ctx = source;
    how.interrupt = interrupt != Py_None ? source_interrupt : NULL;
    how.window.batches = batches;
    how.window.bytes = bytes;
    if (device < 0) {
        how.open = has_thread ? source_open_owned : source_open_cpu;
        return uva_stream_from_arrow_stream(host->runtime, NULL, &how);
    }
    how.open_device = source_open_device;
    how.device_type = device;
    stream = uva_stream_from_device_stream(host->runtime, NULL, &how);
    /* its data may have events */
    (void)uva_stream_ready(stream, &(struct uva_ready){.window = how.window});
    return stream;
}

int source_defer(struct tap *tap, PyObject *object, PyObject *opener,
                 const char *item, struct ArrowArrayStream *out)
{
    struct deferred *d = calloc(1, sizeof(*d));

    if (d == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    d->source = source_new(tap, object, opener, Py_None);
    if (d->source == NULL) {
        free(d);
        return -1;
    }
    d->source->item = item;
    *out = (struct ArrowArrayStream){.get_schema = deferred_get_schema,
                                     .get_next = deferred_get_next,
                                     .get_last_error = deferred_get_last_error,
                                     .release = deferred_release,
                                     .private_data = d};
    return 0;
}
