/* SPDX-License-Identifier: Apache-2.0 */
/* A batch for other libraries, and for people: as a stream of one batch, as
 * frames, as text. uvarrow/_show.py makes the frames and the text. */
#include <errno.h>
#include <stdlib.h>
#include <uv.h>

#include "core/core.h"
#include "uvarrow/io.h"

/* ---- a stream of one batch ----------------------------------------------- */

struct single {
    struct ArrowSchema schema; /* owns */
    struct ArrowArray array;   /* owns; released: it was given */
};

static int single_get_schema(struct ArrowArrayStream *stream,
                             struct ArrowSchema *out)
{
    struct single *single = stream->private_data;

    return uva_schema_copy(&single->schema, out);
}

static int single_get_next(struct ArrowArrayStream *stream,
                           struct ArrowArray *out)
{
    struct single *single = stream->private_data;

    *out = single->array;
    single->array.release = NULL;
    return 0;
}

static const char *single_get_last_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return NULL;
}

static void single_release(struct ArrowArrayStream *stream)
{
    struct single *single = stream->private_data;

    uva_schema_release(&single->schema);
    if (single->array.release != NULL)
        single->array.release(&single->array);
    free(single);
    stream->release = NULL;
}

PyObject *batch_c_stream(PyObject *object, PyObject *args, PyObject *kwargs)
{
    Batch *self = (Batch *)object;
    struct ArrowArrayStream stream = {.get_schema = single_get_schema,
                                      .get_next = single_get_next,
                                      .get_last_error = single_get_last_error,
                                      .release = single_release};
    struct single *single;

    if (!checked_requested(args, kwargs))
        return NULL;
    single = calloc(1, sizeof(*single));
    if (single == NULL)
        return PyErr_NoMemory();
    if (batch_share_cpu(self, &single->array) != 0) {
        free(single);
        return NULL;
    }
    stream.private_data = single;
    if (uva_schema_copy(&self->schema->schema, &single->schema) == 0)
        return stream_capsule(&stream);
    single_release(&stream);
    return PyErr_NoMemory();
}

/* ---- rows ---------------------------------------------------------------- */

PyObject *batch_select(PyObject *object, PyObject *mask)
{
    Batch *self = (Batch *)object;
    struct ArrowDeviceArray out;
    uint8_t *bits = NULL;
    int found = -1;

    if (batch_is_open(self))
        found = mask_read(mask, "mask", self->data.array.length, &bits);
    if (found == 0 && checked_is_sync(mask, "mask"))
        checked_refuse(mask, "mask", "an array of booleans");
    if (found != 1)
        return NULL;
    found = batch_select_rows(self, bits, &out);
    free(bits);
    return found < 0 ? NULL : batch_new(self->schema, &out, self->ordinal);
}

PyObject *batch_num_columns(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(((Batch *)object)->schema->schema.n_children);
}

PyObject *batch_column_names(PyObject *object, void *unused)
{
    (void)unused;
    return PyObject_GetAttrString((PyObject *)((Batch *)object)->schema,
                                  "names");
}

/* ---- text ---------------------------------------------------------------- */

PyObject *batch_csv(PyObject *module, PyObject *args)
{
    const struct uva_encode how = {.format = UVA_FORMAT_CSV,
                                   .csv = {.null_text = "null"}};
    struct ArrowDeviceArray shared;
    struct uva_error error = {0};
    struct uva_part part;
    PyObject *batch, *bytes = NULL;
    Py_ssize_t rows;
    int code;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!n", batch_type, &batch, &rows) ||
        batch_share((Batch *)batch, &shared) != 0)
        return NULL;
    if (shared.array.length > rows)
        shared.array.length = rows;
    code = uva_array_encode(&((Batch *)batch)->schema->schema, &shared, 1, &how,
                            &part, &error);
    if (code != 0) {
        uva_array_release(&shared);
        return core_raise(code, error.message, NULL);
    }
    bytes = PyBytes_FromStringAndSize("", 0);
    for (size_t i = 0; bytes != NULL && i < part.count; i++) {
        PyObject *more = PyBytes_FromStringAndSize(
            part.buffers[i].base, (Py_ssize_t)part.buffers[i].len);

        PyBytes_ConcatAndDel(&bytes, more);
    }
    uva_part_release(&part);
    return bytes;
}

/* The result of a function of uvarrow/_show.py for the batch. */
static PyObject *shown(PyObject *batch, const char *function)
{
    PyObject *module = PyImport_ImportModule("uvarrow._show");
    PyObject *result = NULL;

    if (module != NULL)
        result = PyObject_CallMethod(module, function, "O", batch);
    Py_XDECREF(module);
    return result;
}

PyObject *batch_repr(PyObject *batch)
{
    return shown(batch, "batch_text");
}

PyObject *batch_repr_html(PyObject *batch, PyObject *unused)
{
    (void)unused;
    return shown(batch, "batch_html");
}

PyObject *batch_to_pandas(PyObject *batch, PyObject *unused)
{
    (void)unused;
    return shown(batch, "to_pandas");
}

PyObject *batch_to_polars(PyObject *batch, PyObject *unused)
{
    (void)unused;
    return shown(batch, "to_polars");
}
