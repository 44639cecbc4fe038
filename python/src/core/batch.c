/* SPDX-License-Identifier: Apache-2.0 */
/* A batch as an object of Python. Its data can be exported any number of times:
 * each export shares it. */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

PyObject *batch_new(Schema *schema, struct ArrowDeviceArray *data,
                    int64_t ordinal)
{
    Batch *self = PyObject_New(Batch, batch_type); /* not cleared */

    if (self == NULL) {
        uva_array_release(data);
        return NULL;
    }
    self->schema = (Schema *)Py_NewRef((PyObject *)schema);
    uva_array_move(data, &self->data);
    self->ordinal = ordinal;
    return (PyObject *)self;
}

static void batch_dealloc(PyObject *object)
{
    Batch *self = (Batch *)object;

    uva_array_release(&self->data);
    Py_DECREF((PyObject *)self->schema);
    PyObject_Free(self);
    Py_DECREF((PyObject *)batch_type); /* which is never extended */
}

/* ---- out ------------------------------------------------------------------
 */

/* Counts on the host the numbers that the batch does not state. */
bool batch_has_null_rows(const struct ArrowDeviceArray *batch)
{
    const struct ArrowArray *rows = &batch->array;
    const uint8_t *bits = rows->n_buffers > 0 ? rows->buffers[0] : NULL;

    if (rows->null_count == 0 || bits == NULL)
        return false;
    if (rows->null_count > 0 || batch->device_type != ARROW_DEVICE_CPU)
        return true;
    for (int64_t i = rows->offset; i < rows->offset + rows->length; i++)
        if ((bits[i / 8] >> i % 8 & 1) == 0)
            return true;
    return false;
}

/* Leaves out a bitmap by which no row is null: it would begin elsewhere, and
 * some consumers read it nevertheless. */
static void rows_drop_bitmap(struct ArrowArray *rows)
{
    static const void *const no_bitmap[1] = {NULL};

    rows->null_count = 0;
    if (rows->n_buffers > 0 && rows->buffers[0] != NULL)
        rows->buffers = (const void **)no_bitmap;
}

/* Reduces the columns of a share, which has its own structs, to the rows of the
 * batch: some consumers refuse a batch with an offset, or give all rows of
 * longer columns. Null rows need the offset where it is. */
static void rows_flatten(struct ArrowDeviceArray *batch)
{
    struct ArrowArray *rows = &batch->array;
    const bool has_nulls = batch_has_null_rows(batch);
    const int64_t from = has_nulls ? 0 : rows->offset;
    const int64_t count = rows->offset + rows->length - from;

    if (!has_nulls)
        rows_drop_bitmap(rows);
    for (int64_t i = 0; i < rows->n_children; i++) {
        struct ArrowArray *column = rows->children[i];

        if (from == 0 && column->length == count)
            continue;
        column->offset = count == 0 ? 0 : column->offset + from;
        column->length = count;
        if (column->null_count != 0)
            column->null_count = -1;
    }
    rows->offset -= from;
}

bool batch_is_open(const Batch *self)
{
    if (!uva_array_is_live(&self->data))
        PyErr_SetString(PyExc_ValueError, "uvarrow: the batch is closed");
    return uva_array_is_live(&self->data);
}

int batch_share(Batch *self, struct ArrowDeviceArray *out)
{
    if (!batch_is_open(self))
        return -1;
    if (uva_array_share(&self->data, out) != 0) {
        PyErr_NoMemory();
        return -1;
    }
    rows_flatten(out);
    return 0;
}

int batch_share_cpu(Batch *self, struct ArrowArray *out)
{
    struct ArrowDeviceArray shared;

    if (batch_share(self, &shared) != 0)
        return -1;
    if (uva_array_to_cpu(&shared, out) == 0)
        return 0;
    uva_array_release(&shared);
    PyErr_SetString(PyExc_ValueError, "uvarrow: the data is on a device; use "
                                      "__arrow_c_device_array__");
    return -1;
}

static void array_free(void *memory)
{
    struct ArrowArray *array = memory;

    if (array != NULL && array->release != NULL)
        array->release(array);
    free(array);
}

static void array_capsule_drop(PyObject *capsule)
{
    array_free(PyCapsule_GetPointer(capsule, "arrow_array"));
}

static void device_array_free(void *memory)
{
    if (memory != NULL)
        uva_array_release(memory);
    free(memory);
}

static void device_capsule_drop(PyObject *capsule)
{
    device_array_free(PyCapsule_GetPointer(capsule, "arrow_device_array"));
}

/* (capsule of the schema, `data`); takes `data`, a capsule. */
static PyObject *batch_pair(Batch *self, PyObject *data)
{
    PyObject *schema =
        data == NULL ? NULL : schema_capsule(&self->schema->schema);

    if (schema == NULL) {
        Py_XDECREF(data);
        return NULL;
    }
    return Py_BuildValue("NN", schema, data);
}

static PyObject *batch_c_array(PyObject *object, PyObject *args,
                               PyObject *kwargs)
{
    Batch *self = (Batch *)object;
    struct ArrowArray *out;
    PyObject *data;

    if (!checked_requested(args, kwargs))
        return NULL;
    out = calloc(1, sizeof(*out));
    if (out == NULL)
        return PyErr_NoMemory();
    if (batch_share_cpu(self, out) != 0) {
        free(out);
        return NULL;
    }
    data = PyCapsule_New(out, "arrow_array", array_capsule_drop);
    if (data == NULL)
        array_free(out);
    return batch_pair(self, data);
}

static PyObject *batch_c_device_array(PyObject *object, PyObject *args,
                                      PyObject *kwargs)
{
    Batch *self = (Batch *)object;
    struct ArrowDeviceArray *out;
    PyObject *data;

    if (!checked_requested(args, kwargs))
        return NULL;
    out = calloc(1, sizeof(*out));
    if (out == NULL)
        return PyErr_NoMemory();
    if (batch_share(self, out) != 0) {
        free(out);
        return NULL;
    }
    data = PyCapsule_New(out, "arrow_device_array", device_capsule_drop);
    if (data == NULL)
        device_array_free(out);
    return batch_pair(self, data);
}

static PyObject *batch_c_schema(PyObject *object, PyObject *unused)
{
    (void)unused;
    return schema_capsule(&((Batch *)object)->schema->schema);
}

/* pyarrow's class, looked up once: the look-up would count for each batch. */
static PyObject *record_batch_type(void)
{
    static PyObject *type;
    PyObject *pyarrow;

    if (type == NULL) {
        pyarrow = PyImport_ImportModule("pyarrow");
        if (pyarrow != NULL)
            type = PyObject_GetAttrString(pyarrow, "RecordBatch");
        Py_XDECREF(pyarrow);
    }
    return type;
}

static PyObject *batch_to_pyarrow(PyObject *object, PyObject *unused)
{
    Batch *self = (Batch *)object;
    PyObject *type = record_batch_type();
    PyObject *schema = type == NULL ? NULL : schema_pyarrow(self->schema);
    struct ArrowArray array;
    PyObject *batch;

    (void)unused;
    if (schema == NULL || batch_share_cpu(self, &array) != 0)
        return NULL;
    batch = PyObject_CallMethod(type, "_import_from_c", "NO",
                                PyLong_FromVoidPtr(&array), schema);
    if (array.release != NULL)
        array.release(&array);
    return batch;
}

/* Finds the first column with this name. -1: there is no such column. */
static int64_t column_find(const Batch *self, const char *name)
{
    const struct ArrowSchema *schema = &self->schema->schema;

    for (int64_t i = 0; i < schema->n_children; i++)
        if (schema->children[i]->name != NULL &&
            strcmp(schema->children[i]->name, name) == 0)
            return i;
    return -1;
}

static PyObject *batch_column(PyObject *object, PyObject *which)
{
    Batch *self = (Batch *)object;
    const char *name = NULL;
    long long i;

    if (PyUnicode_Check(which)) {
        name = checked_text(which, "which");
        if (name == NULL)
            return NULL;
        i = column_find(self, name);
    } else if (!checked_integer(which, "which", &i)) {
        return NULL;
    }
    if (i >= 0 && i < self->schema->schema.n_children)
        return column_new(self, i);
    PyErr_SetObject(name != NULL ? PyExc_KeyError : PyExc_IndexError, which);
    return NULL;
}

static PyObject *batch_close(PyObject *object, PyObject *unused)
{
    struct ArrowDeviceArray data;

    (void)unused;
    uva_array_move(&((Batch *)object)->data, &data);
    uva_array_release(&data); /* which may call this again */
    Py_RETURN_NONE;
}

/* ---- in -------------------------------------------------------------------
 */

static const char *name_of(const struct ArrowSchema *field)
{
    return field->name != NULL ? field->name : "";
}

static bool column_equals(const struct ArrowSchema *a,
                          const struct ArrowSchema *b)
{
    return strcmp(name_of(a), name_of(b)) == 0 &&
           (a->flags & ARROW_FLAG_NULLABLE) ==
               (b->flags & ARROW_FLAG_NULLABLE) &&
           schema_equals(a, b);
}

/* Raises which column differs. */
static void refuse_schema(const struct ArrowSchema *expected,
                          const struct ArrowSchema *of, const char *name)
{
    static const char text[] = "uvarrow: %s has another schema than its stream";
    int64_t i = 0;

    while (i < expected->n_children && i < of->n_children &&
           column_equals(expected->children[i], of->children[i]))
        i++;
    if (i < expected->n_children && i < of->n_children)
        PyErr_Format(PyExc_ValueError,
                     "uvarrow: %s has another schema than its stream: the "
                     "column '%s' is not as '%s' there",
                     name, name_of(of->children[i]),
                     name_of(expected->children[i]));
    else if (expected->n_children != of->n_children)
        PyErr_Format(PyExc_ValueError,
                     "uvarrow: %s has another schema than its stream: %zd "
                     "columns, not %zd",
                     name, (Py_ssize_t)of->n_children,
                     (Py_ssize_t)expected->n_children);
    else
        PyErr_Format(PyExc_ValueError, text, name);
}

bool batch_schema_fits(const struct ArrowSchema *expected,
                       const struct ArrowSchema *of, const char *name)
{
    if (expected == NULL)
        return true;
    if (!checked_schema(of, name))
        return false;
    if (schema_equals(expected, of))
        return true;
    refuse_schema(expected, of, name);
    return false;
}

/* A Batch needs no capsules. */
static int own_export(Batch *batch, bool device, const char *name,
                      const struct ArrowSchema *expected,
                      struct ArrowSchema *schema, struct ArrowDeviceArray *out)
{
    struct ArrowArray array;

    if (!batch_schema_fits(expected, &batch->schema->schema, name))
        return -1;
    if (device && batch_share(batch, out) != 0)
        return -1;
    if (!device) {
        if (batch_share_cpu(batch, &array) != 0)
            return -1;
        uva_array_from_cpu(&array, out);
    }
    if (schema == NULL || uva_schema_copy(&batch->schema->schema, schema) == 0)
        return 0;
    uva_array_release(out);
    PyErr_NoMemory();
    return -1;
}

/* The results of each of the two methods */
static const struct protocol {
    const char *method, *capsule;
    bool device;
} protocols[] = {{"__arrow_c_array__", "arrow_array", false},
                 {"__arrow_c_device_array__", "arrow_device_array", true}};

/* Finds schema and array in the method's result; the latter is an ArrowArray,
 * or an ArrowDeviceArray, which begins with one. -1 with an exception. */
static int pair_read(PyObject *pair, const struct protocol *protocol,
                     const char *name, struct ArrowSchema **schema,
                     struct ArrowArray **array)
{
    char what[96];

    PyOS_snprintf(what, sizeof(what), "the result of %s() of %s",
                  protocol->method, name);
    if (!checked_is_sync(pair, what))
        return -1;
    if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2) {
        checked_refuse(pair, what, "a schema and an array, as capsules");
        return -1;
    }
    *schema = checked_capsule(PyTuple_GetItem(pair, 0), "arrow_schema", what);
    *array = *schema == NULL ? NULL
                             : checked_capsule(PyTuple_GetItem(pair, 1),
                                               protocol->capsule, what);
    return *array == NULL ? -1 : 0;
}

static int pair_export(PyObject *pair, const struct protocol *protocol,
                       const char *name, const struct ArrowSchema *expected,
                       struct ArrowSchema *schema, struct ArrowDeviceArray *out)
{
    struct ArrowSchema *of;
    struct ArrowArray *array;

    if (pair_read(pair, protocol, name, &of, &array) != 0 ||
        !batch_schema_fits(expected, of, name))
        return -1;
    if (protocol->device)
        uva_array_move((struct ArrowDeviceArray *)array, out);
    else
        uva_array_from_cpu(array, out);
    if (schema != NULL)
        uva_schema_move(of, schema);
    return 0;
}

/* Finds the method that fits, or the other one if the object lacks that. 1; 0:
 * no such method; -1 with an exception. */
static int method_find(PyObject *object, bool device, const char *name,
                       const struct protocol **protocol, PyObject **method)
{
    int found = 0;

    for (int i = 0; i < 2 && found == 0; i++) {
        *protocol = &protocols[device ? 1 - i : i];
        found = checked_method(object, (*protocol)->method, name, method);
    }
    return found;
}

static int method_export(PyObject *object, bool device, const char *name,
                         const struct ArrowSchema *expected,
                         struct ArrowSchema *schema,
                         struct ArrowDeviceArray *out)
{
    const struct protocol *protocol;
    PyObject *method = NULL, *pair = NULL;
    const int found = method_find(object, device, name, &protocol, &method);
    int result = -1;

    if (found == 0 && checked_is_sync(object, name))
        checked_refuse(object, name,
                       "a Batch, or an object with __arrow_c_array__");
    if (found > 0)
        pair = PyObject_CallFunctionObjArgs(method, NULL);
    if (pair != NULL)
        result = pair_export(pair, protocol, name, expected, schema, out);
    Py_XDECREF(pair);
    Py_XDECREF(method);
    return result;
}

bool batch_is_on(struct ArrowDeviceArray *array, int device_type)
{
    const int found = (int)array->device_type;

    if (found == device_type)
        return true;
    uva_array_release(array);
    PyErr_Format(PyExc_ValueError,
                 "a batch is on a device of type %d, where type %d is expected "
                 "(device_type of the stream)",
                 found, device_type);
    return false;
}

int batch_export(PyObject *object, bool device, const char *name,
                 const struct ArrowSchema *expected, struct ArrowSchema *schema,
                 struct ArrowDeviceArray *out)
{
    if (Py_IS_TYPE(object, batch_type))
        return own_export((Batch *)object, device, name, expected, schema, out);
    if (method_export(object, device, name, expected, schema, out) != 0)
        return -1;
    if (out->device_type == ARROW_DEVICE_CPU)
        out->sync_event = NULL; /* it has no meaning there (EV-04) */
    if (device || batch_is_on(out, ARROW_DEVICE_CPU))
        return 0;
    if (schema != NULL)
        uva_schema_release(schema);
    return -1;
}

/* ---- the type -------------------------------------------------------------
 */

static Py_ssize_t batch_length(PyObject *object)
{
    return (Py_ssize_t)((Batch *)object)->data.array.length;
}

/* A measure of a batch. */
typedef int batch_measure_fn(const struct ArrowSchema *schema,
                             const struct ArrowDeviceArray *array,
                             int64_t *size_bytes);

static PyObject *batch_measured(PyObject *object, batch_measure_fn *measure)
{
    Batch *self = (Batch *)object;
    int64_t bytes = 0;
    int code = EINVAL;

    if (uva_array_is_live(&self->data))
        code = measure(&self->schema->schema, &self->data, &bytes);
    if (code != 0)
        return core_raise(code, "the size of this batch is not known", NULL);
    return PyLong_FromLongLong(bytes);
}

static PyObject *batch_nbytes(PyObject *object, void *unused)
{
    (void)unused;
    return batch_measured(object, uva_array_size);
}

static PyObject *batch_get_total_buffer_size(PyObject *object, PyObject *unused)
{
    (void)unused;
    return batch_measured(object, uva_array_memory);
}

static PyObject *batch_schema(PyObject *object, void *unused)
{
    (void)unused;
    return Py_NewRef((PyObject *)((Batch *)object)->schema);
}

static PyObject *batch_ordinal(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(((Batch *)object)->ordinal);
}

static PyObject *batch_device(PyObject *object, void *unused)
{
    const Batch *self = (Batch *)object;

    (void)unused;
    return Py_BuildValue("iL", (int)self->data.device_type,
                         (long long)self->data.device_id);
}

static PyObject *batch_num_rows(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(batch_length(object));
}

static PyMethodDef batch_methods[] = {
    {"__arrow_c_array__", (PyCFunction)(void *)batch_c_array,
     METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("__arrow_c_array__($self, requested_schema=None)\n--\n\nSchema "
               "and array as capsules of Arrow's PyCapsule interface. "
               "The data is shared, not copied.")},
    {"__arrow_c_device_array__", (PyCFunction)(void *)batch_c_device_array,
     METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("__arrow_c_device_array__($self, requested_schema=None, "
               "**kwargs)\n--\n\nSchema and device array as capsules. The data "
               "is shared.")},
    {"__arrow_c_schema__", batch_c_schema, METH_NOARGS,
     PyDoc_STR("__arrow_c_schema__($self)\n--\n\nThe schema as a capsule.")},
    {"get_total_buffer_size", batch_get_total_buffer_size, METH_NOARGS,
     PyDoc_STR("get_total_buffer_size($self)\n--\n\nBytes of memory that the "
               "batch keeps alive, of a slice also its parent's, as far as "
               "known. Error with ENOTSUP if unknown.")},
    {"__arrow_c_stream__", (PyCFunction)(void *)batch_c_stream,
     METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("__arrow_c_stream__($self, requested_schema=None)\n--\n\nThe "
               "batch as a stream of one batch, in a capsule, for libraries "
               "that make frames and tables.")},
    {"select", batch_select, METH_O,
     PyDoc_STR("select($self, mask, /)\n--\n\nThe rows that a mask selects, as "
               "a Batch: an array of booleans of Arrow or numpy.")},
    {"to_pandas", batch_to_pandas, METH_NOARGS,
     PyDoc_STR("to_pandas($self)\n--\n\nThe batch as a pandas.DataFrame; needs "
               "pandas and pyarrow.")},
    {"to_polars", batch_to_polars, METH_NOARGS,
     PyDoc_STR("to_polars($self)\n--\n\nThe batch as a polars.DataFrame; needs "
               "polars.")},
    {"_repr_html_", batch_repr_html, METH_NOARGS,
     PyDoc_STR("_repr_html_($self)\n--\n\nThe first rows as a table, for "
               "notebooks.")},
    {"to_pyarrow", batch_to_pyarrow, METH_NOARGS,
     PyDoc_STR("to_pyarrow($self)\n--\n\nThe batch as a pyarrow.RecordBatch; "
               "needs pyarrow.")},
    {"ipc", (PyCFunction)(void *)batch_ipc, METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("ipc($self, *, compression=None)\n--\n\nThe batch as a stream "
               "of Arrow IPC, in bytes: its schema, its rows, and the end. "
               "`compression` is None, \"lz4\" or \"zstd\".")},
    {"column", batch_column, METH_O,
     PyDoc_STR("column($self, which, /)\n--\n\nThe column of that name or "
               "number as a Column, for from_dlpack() of other libraries.")},
    {"close", batch_close, METH_NOARGS,
     PyDoc_STR("close($self)\n--\n\nReleases the data now, instead of with the "
               "object.")},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef batch_getset[] = {
    {"nbytes", batch_nbytes, NULL,
     PyDoc_STR("Bytes that the rows take: slices of one batch add up to it. "
               "Error with ENOTSUP if unknown."),
     NULL},
    {"num_rows", batch_num_rows, NULL,
     PyDoc_STR("The number of rows, as len() gives it."), NULL},
    {"num_columns", batch_num_columns, NULL,
     PyDoc_STR("The number of columns."), NULL},
    {"column_names", batch_column_names, NULL,
     PyDoc_STR("The names of the columns."), NULL},
    {"schema", batch_schema, NULL, PyDoc_STR("The Schema of the stream."),
     NULL},
    {"ordinal", batch_ordinal, NULL,
     PyDoc_STR("The number of the batch in its stream, from 0."), NULL},
    {"device", batch_device, NULL,
     PyDoc_STR("Where the data is: (device type, device id); (1, -1) is the "
               "CPU."),
     NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot batch_slots[] = {
    {Py_tp_doc,
     (void *)PyDoc_STR("Rows of a stream. Any library with Arrow's PyCapsule "
                       "interface takes it, without a copy. len() gives the "
                       "number of rows.")},
    {Py_tp_dealloc, batch_dealloc},
    {Py_tp_methods, batch_methods},
    {Py_tp_getset, batch_getset},
    {Py_tp_repr, batch_repr},
    {Py_mp_length, batch_length},
    {0, NULL}};

PyType_Spec batch_spec = {.name = "uvarrow.Batch",
                          .basicsize = sizeof(Batch),
                          .flags = Py_TPFLAGS_DEFAULT |
                                   Py_TPFLAGS_DISALLOW_INSTANTIATION,
                          .slots = batch_slots};
