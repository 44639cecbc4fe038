/* SPDX-License-Identifier: Apache-2.0 */
/* Several streams: merged or concatenated into one, and one stream that is read
 * by several readers. */
#include <errno.h>
#include <stdlib.h>

#include "core/core.h"

/* ---- merge and concat ---------------------------------------------------- */

/* Whether stream `i` may become a part of `self`; otherwise with an exception.
 */
static bool others_can_join(Stream *self, PyObject *others, Py_ssize_t i)
{
    PyObject *other = PyTuple_GetItem(others, i);
    bool is_twice = (PyObject *)self == other;

    if (!PyObject_TypeCheck(other, stream_type)) {
        PyErr_SetString(PyExc_TypeError, "uvarrow: only streams are merged");
        return false;
    }
    if (!stream_can_build((Stream *)other))
        return false;
    for (Py_ssize_t k = 0; k < i; k++)
        is_twice |= PyTuple_GetItem(others, k) == other;
    if (is_twice) {
        (void)core_raise(EINVAL, "a stream is not merged with itself", NULL);
        return false;
    }
    if (self->host == ((Stream *)other)->host)
        return true;
    PyErr_SetString(PyExc_RuntimeError,
                    "uvarrow: streams of two event loops are not merged");
    return false;
}

/* It comes first among the streams that are merged into this one, so that a
 * thousand of them are joined in as many steps. */
void stream_join(struct tap *tap, Stream *other)
{
    struct tap *last = other->tap;

    other->exported = other->tap->is_part = true;
    tap->device |= other->tap->device;
    while (last->merged != NULL)
        last = last->merged;
    last->merged = tap->merged;
    tap->merged = tap_acquire(other->tap); /* for its exceptions */
    other->tap->whole = tap;
}

/* Casts the first stream, if a schema is given. -1 with an exception. */
static int first_cast(Stream *self, PyObject *capsule)
{
    struct ArrowSchema *schema;

    if (capsule == Py_None)
        return 0;
    schema = checked_capsule(capsule, "arrow_schema", "schema");
    if (schema == NULL || !checked_is_rows(schema, "schema"))
        return -1;
    (void)uva_stream_cast(self->tap->stream, schema);
    return 0;
}

/* Gives the streams of a tuple, to be freed, with a reference to each: from now
 * on they are a part of `self`. NULL with an exception. */
static struct uva_stream **others_join(Stream *self, PyObject *others,
                                       PyObject *schema)
{
    const Py_ssize_t n = PyTuple_Size(others);
    struct uva_stream **streams;

    for (Py_ssize_t i = 0; i < n; i++)
        if (!others_can_join(self, others, i))
            return NULL;
    if (first_cast(self, schema) != 0)
        return NULL;
    streams = calloc((size_t)n + 1, sizeof(struct uva_stream *));
    if (streams == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t i = n; streams != NULL && i-- > 0;) {
        Stream *other = (Stream *)PyTuple_GetItem(others, i);

        streams[i] = uva_stream_acquire(other->tap->stream);
        stream_join(self->tap, other);
    }
    return streams;
}

/* How several streams are put together. */
typedef int together_fn(struct uva_stream *stream,
                        struct uva_stream *const *others, size_t count,
                        const struct uva_merge *options);

/* Puts the streams of a tuple, each of them once, and this one together. */
static PyObject *stream_put(Stream *self, PyObject *others, PyObject *schema,
                            struct uva_merge *options, together_fn *put)
{
    const Py_ssize_t n = PyTuple_Size(others);
    struct uva_stream **streams;

    if (!stream_can_build(self))
        return NULL;
    options->cast |= schema != Py_None;
    streams = others_join(self, others, schema);
    if (streams == NULL)
        return NULL;
    if (n > 0)
        (void)put(self->tap->stream, streams, (size_t)n, options);
    free(streams);
    return stream_built(self);
}

/* _merge(streams, schema or None, keep_going, cast, open_at_once, batches,
 * bytes) */
PyObject *stream_merge(PyObject *object, PyObject *args)
{
    struct uva_merge options = {0};
    PyObject *others, *schema;
    int keep_going, cast;
    long long bytes;

    if (!PyArg_ParseTuple(args, "O!OppiiL", &PyTuple_Type, &others, &schema,
                          &keep_going, &cast, &options.open_at_once,
                          &options.window.batches, &bytes))
        return NULL;
    options.keep_going = keep_going != 0;
    options.cast = cast != 0;
    options.window.bytes = bytes;
    return stream_put((Stream *)object, others, schema, &options,
                      uva_stream_merge);
}

/* _concat(streams, schema or None, cast, open_at_once) */
PyObject *stream_concat(PyObject *object, PyObject *args)
{
    struct uva_merge options = {0};
    PyObject *others, *schema;
    int cast;

    if (!PyArg_ParseTuple(args, "O!Opi", &PyTuple_Type, &others, &schema, &cast,
                          &options.open_at_once))
        return NULL;
    options.cast = cast != 0;
    return stream_put((Stream *)object, others, schema, &options,
                      uva_stream_concat);
}

/* ---- tee ----------------------------------------------------------------- */

/* Makes the tap of a branch: the exceptions of functions above it are kept in
 * the tap of the stream that it is taken from. */
static struct tap *branch_tap(Host *host, struct tap *origin)
{
    struct tap *tap = tap_new(host);

    if (tap == NULL)
        return NULL;
    tap->device = origin->device;
    tap->origin = tap_acquire(origin);
    origin->branches++;
    origin->users++;
    return tap;
}

/* _tee(stream, slow, batches, bytes, batches of the stream, its bytes): makes
 * this a branch of that stream */
PyObject *stream_tee(PyObject *object, PyObject *args)
{
    Stream *self = (Stream *)object, *of;
    struct uva_tee options = {0};
    PyObject *other, *result;
    long long bytes, first_bytes;
    int slow;

    if (self->tap != NULL ||
        !PyArg_ParseTuple(args, "O!iiLiL", stream_type, &other, &slow,
                          &options.window.batches, &bytes,
                          &options.first.batches, &first_bytes))
        return self->tap != NULL ? core_raise(EBUSY, "opened twice", NULL)
                                 : NULL;
    of = (Stream *)other;
    if (!stream_can_build(of))
        return NULL;
    options.slow = (enum uva_slow)slow;
    options.window.bytes = bytes;
    options.first.bytes = first_bytes;
    self->host = (Host *)Py_NewRef((PyObject *)of->host);
    self->window = of->window;
    self->tap = branch_tap(of->host, of->tap);
    if (self->tap == NULL)
        return NULL;
    result = stream_opened(self, uva_stream_tee(of->tap->stream, &options));
    if (result == NULL)
        return NULL;
    Py_DECREF(result);
    return stream_built(self);
}
