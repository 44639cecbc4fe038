/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of Python as a blocking stream of device arrays, in a capsule. It
 * lends the GIL while it waits, as the stream of plain arrays in rows.c does.
 */
#include <stdlib.h>

#include "core/core.h"

struct device_reader {
    struct ArrowDeviceArrayStream inner; /* owns */
};

static struct ArrowDeviceArrayStream *
inner_of(struct ArrowDeviceArrayStream *stream)
{
    return &((struct device_reader *)stream->private_data)->inner;
}

static int reader_get_schema(struct ArrowDeviceArrayStream *stream,
                             struct ArrowSchema *out)
{
    struct ArrowDeviceArrayStream *inner = inner_of(stream);
    PyThreadState *lent = gil_lend();
    const int code = inner->get_schema(inner, out);

    gil_take_back(lent);
    return code;
}

static int reader_get_next(struct ArrowDeviceArrayStream *stream,
                           struct ArrowDeviceArray *out)
{
    struct ArrowDeviceArrayStream *inner = inner_of(stream);
    PyThreadState *lent = gil_lend();
    const int code = inner->get_next(inner, out);

    gil_take_back(lent);
    return code;
}

static const char *reader_get_last_error(struct ArrowDeviceArrayStream *stream)
{
    struct ArrowDeviceArrayStream *inner = inner_of(stream);

    return inner->get_last_error(inner);
}

static void reader_release(struct ArrowDeviceArrayStream *stream)
{
    struct ArrowDeviceArrayStream *inner = inner_of(stream);
    PyThreadState *lent = gil_lend();

    inner->release(inner);
    free(stream->private_data);
    stream->release = NULL;
    gil_take_back(lent);
}

static void capsule_drop(PyObject *capsule)
{
    struct ArrowDeviceArrayStream *stream =
        PyCapsule_GetPointer(capsule, "arrow_device_array_stream");

    if (stream != NULL && stream->release != NULL)
        stream->release(stream);
    free(stream);
}

/* Makes the capsule around an empty stream, which has no memory. */
static PyObject *capsule_new(struct ArrowDeviceArrayStream **out)
{
    struct device_reader *reader = calloc(1, sizeof(*reader));
    struct ArrowDeviceArrayStream *stream = calloc(1, sizeof(*stream));
    PyObject *capsule = NULL;

    if (reader != NULL && stream != NULL)
        capsule =
            PyCapsule_New(stream, "arrow_device_array_stream", capsule_drop);
    else
        PyErr_NoMemory();
    if (capsule == NULL) {
        free(reader);
        free(stream);
        return NULL;
    }
    stream->private_data = reader;
    *out = stream;
    return capsule;
}

PyObject *device_stream_capsule(struct uva_stream *stream,
                                const struct uva_window *window)
{
    struct ArrowDeviceArrayStream *out = NULL;
    PyObject *capsule = capsule_new(&out);
    struct uva_error error = {0};
    int code;

    if (capsule == NULL)
        return NULL;
    code = uva_stream_to_device_stream(stream, window, inner_of(out), &error);
    if (code != 0) {
        free(out->private_data);
        Py_DECREF(capsule);
        return core_raise(code, error.message, NULL);
    }
    out->device_type = inner_of(out)->device_type;
    out->get_schema = reader_get_schema;
    out->get_next = reader_get_next;
    out->get_last_error = reader_get_last_error;
    out->release = reader_release;
    return capsule;
}
