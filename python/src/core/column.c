/* SPDX-License-Identifier: Apache-2.0 */
/* A column of a batch as an object of Python, which is a tensor of DLPack for
 * other libraries; and a batch of one column, made of a tensor of theirs.
 *
 * Consumers that do not state a version of DLPack get the struct without flags,
 * as pyarrow gives it: such a tensor cannot be marked as read-only. */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "uvarrow/dlpack.h"

typedef struct {
    PyObject_HEAD struct ArrowSchema schema; /* owns */
    struct ArrowDeviceArray data;            /* owns */
    bool has_null_rows; /* some of the batch are null, or that is not known */
} Column;

static void column_dealloc(PyObject *object)
{
    Column *self = (Column *)object;

    uva_array_release(&self->data);
    uva_schema_release(&self->schema);
    core_free(object);
}

/* Moves child `i` out of a shared batch, which is released. */
static void column_move(struct ArrowDeviceArray *batch, int64_t i,
                        struct ArrowDeviceArray *out)
{
    const struct ArrowArray *rows = &batch->array;
    struct ArrowArray *child = rows->children[i];

    *out = *batch;
    out->array = *child;
    child->release = NULL;
    if (rows->offset != 0) { /* of a batch that may have null rows */
        out->array.offset += rows->offset;
        out->array.length = rows->length;
        if (out->array.null_count != 0)
            out->array.null_count = -1;
    }
    uva_array_release(batch);
}

PyObject *column_new(Batch *batch, int64_t i)
{
    Column *self = (Column *)core_alloc(column_type);
    struct ArrowDeviceArray shared;

    if (self == NULL)
        return NULL;
    if (uva_schema_copy(batch->schema->schema.children[i], &self->schema) !=
        0) {
        PyErr_NoMemory();
    } else if (batch_share(batch, &shared) == 0) {
        self->has_null_rows = batch_has_null_rows(&shared);
        column_move(&shared, i, &self->data);
        return (PyObject *)self;
    }
    Py_DECREF((PyObject *)self);
    return NULL;
}

/* ---- out ----------------------------------------------------------------- */

/* A tensor without a version, around one with a version. */
struct older {
    DLManagedTensor abi;              /* first */
    DLManagedTensorVersioned *tensor; /* owns */
};

static void older_delete(DLManagedTensor *self)
{
    struct older *older = (struct older *)self;

    older->tensor->deleter(older->tensor);
    free(older);
}

static void tensor_capsule_drop(PyObject *capsule)
{
    DLManagedTensorVersioned *tensor;

    if (!PyCapsule_IsValid(capsule, "dltensor_versioned"))
        return; /* it was taken, and renamed */
    tensor = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    tensor->deleter(tensor);
}

static void older_capsule_drop(PyObject *capsule)
{
    DLManagedTensor *tensor;

    if (!PyCapsule_IsValid(capsule, "dltensor"))
        return;
    tensor = PyCapsule_GetPointer(capsule, "dltensor");
    tensor->deleter(tensor);
}

/* Gives a capsule; takes the tensor, also on failure. */
static PyObject *tensor_capsule(DLManagedTensorVersioned *tensor)
{
    PyObject *capsule =
        PyCapsule_New(tensor, "dltensor_versioned", tensor_capsule_drop);

    if (capsule == NULL)
        tensor->deleter(tensor);
    return capsule;
}

static PyObject *older_capsule(DLManagedTensorVersioned *tensor)
{
    struct older *older = calloc(1, sizeof(*older));
    PyObject *capsule;

    if (older == NULL) {
        tensor->deleter(tensor);
        return PyErr_NoMemory();
    }
    older->tensor = tensor;
    older->abi.dl_tensor = tensor->dl_tensor;
    older->abi.deleter = older_delete;
    capsule = PyCapsule_New(older, "dltensor", older_capsule_drop);
    if (capsule == NULL)
        older_delete(&older->abi);
    return capsule;
}

/* The tensor shares the column, which can be exported again. */
static PyObject *column_tensor(Column *self, long long stream, int is_older)
{
    DLManagedTensorVersioned *tensor;
    struct ArrowDeviceArray shared;
    struct uva_error error;
    int code;

    if (self->has_null_rows) {
        PyErr_SetString(PyExc_BufferError,
                        "uvarrow: a tensor has no nulls, and rows of the batch "
                        "are null, or it is not known how many");
        return NULL;
    }
    if (uva_array_share(&self->data, &shared) != 0)
        return PyErr_NoMemory();
    code = uva_array_to_dlpack(NULL, &self->schema, &shared, stream, &tensor,
                               &error);
    if (code != 0) {
        uva_array_release(&shared);
        PyErr_SetString(PyExc_BufferError, error.message);
        return NULL;
    }
    return is_older ? older_capsule(tensor) : tensor_capsule(tensor);
}

static PyObject *column_device(const Column *self)
{
    const int64_t device_id = self->data.device_id;

    return Py_BuildValue("iL", (int)self->data.device_type,
                         (long long)(device_id > 0 ? device_id : 0));
}

static PyObject *column_dlpack_device(PyObject *object, PyObject *unused)
{
    (void)unused;
    return column_device((Column *)object);
}

/* Finds two integers in a tuple. False with an exception. */
static bool pair_of(PyObject *tuple, const char *name, long long pair[2])
{
    if (PyTuple_Check(tuple) && PyTuple_Size(tuple) == 2)
        return checked_integer(PyTuple_GetItem(tuple, 0), name, &pair[0]) &&
               checked_integer(PyTuple_GetItem(tuple, 1), name, &pair[1]);
    checked_refuse(tuple, name, "a tuple of two integers");
    return false;
}

/* Whether the tensor can be where it is requested, as it is never copied. */
static bool column_stays(const Column *self, PyObject *device, PyObject *copy)
{
    const int64_t id = self->data.device_id > 0 ? self->data.device_id : 0;
    long long wanted[2] = {self->data.device_type, id};

    if (device != Py_None && !pair_of(device, "dl_device", wanted))
        return false;
    if (copy != Py_None && !PyBool_Check(copy)) {
        checked_refuse(copy, "copy", "a bool");
        return false;
    }
    if (wanted[0] == self->data.device_type && wanted[1] == id &&
        copy != Py_True)
        return true;
    PyErr_SetString(PyExc_BufferError,
                    "uvarrow: a column is not copied, and stays on its device");
    return false;
}

/* Without a stream, the consumer uses the legacy default one. */
static bool stream_of(const Column *self, PyObject *stream, long long *out)
{
    *out = self->data.device_type == ARROW_DEVICE_ROCM ? 0 : 1;
    return stream == Py_None || checked_integer(stream, "stream", out);
}

static PyObject *column_dlpack(PyObject *object, PyObject *args,
                               PyObject *kwargs)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None;
    long long number, newest[2] = {0, 0};
    PyObject *copy = Py_None;
    Column *self = (Column *)object;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO", names, &stream,
                                     &version, &device, &copy) ||
        (version != Py_None && !pair_of(version, "max_version", newest)) ||
        !stream_of(self, stream, &number) || !column_stays(self, device, copy))
        return NULL;
    return column_tensor(self, number, newest[0] < 1);
}

/* ---- in ------------------------------------------------------------------ */

/* A tensor with a version, around one without. */
struct newer {
    DLManagedTensorVersioned abi; /* first */
    DLManagedTensor *tensor;      /* owns */
};

static void newer_delete(DLManagedTensorVersioned *self)
{
    struct newer *newer = (struct newer *)self;

    if (newer->tensor->deleter != NULL)
        newer->tensor->deleter(newer->tensor);
    free(newer);
}

/* Gives the tensor of a capsule, which lends it; NULL with an exception: the
 * capsule is another one, or was renamed as its tensor was taken. */
static DLManagedTensorVersioned *versioned_of(PyObject *capsule)
{
    const char *name = "the result of __dlpack__() of tensor";

    if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        return PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (PyCapsule_IsValid(capsule, "used_dltensor") ||
        PyCapsule_IsValid(capsule, "used_dltensor_versioned"))
        PyErr_Format(PyExc_ValueError, "uvarrow: %s has been used before",
                     name);
    else if (checked_is_sync(capsule, name))
        checked_refuse(capsule, name, "a capsule `dltensor`");
    return NULL;
}

/* Takes the tensor of a capsule, and renames that. */
static int tensor_import(PyObject *capsule, struct ArrowSchema *schema,
                         struct ArrowDeviceArray *array)
{
    struct newer *newer = NULL;
    DLManagedTensorVersioned *tensor;
    struct uva_error error;

    if (PyCapsule_IsValid(capsule, "dltensor")) {
        newer = calloc(1, sizeof(*newer));
        if (newer == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        newer->tensor = PyCapsule_GetPointer(capsule, "dltensor");
        newer->abi.version.major = 1;
        newer->abi.deleter = newer_delete;
        newer->abi.dl_tensor = newer->tensor->dl_tensor;
        tensor = &newer->abi;
    } else {
        tensor = versioned_of(capsule);
        if (tensor == NULL)
            return -1;
    }
    if (uva_array_from_dlpack(NULL, tensor, UVA_DLPACK_NO_SYNC, schema, array,
                              &error) != 0) {
        free(newer);
        PyErr_SetString(PyExc_BufferError, error.message);
        return -1;
    }
    return PyCapsule_SetName(
        capsule, newer != NULL ? "used_dltensor" : "used_dltensor_versioned");
}

/* A batch around one column. */
struct rows {
    struct ArrowArray column, *children[1];
    const void *buffers[1];
};

static void rows_release(struct ArrowArray *array)
{
    struct rows *rows = array->private_data;

    if (rows->column.release != NULL)
        rows->column.release(&rows->column);
    free(rows);
    array->release = NULL;
}

/* Puts the array into a batch in place. */
static int rows_wrap(struct ArrowDeviceArray *array)
{
    struct rows *rows = calloc(1, sizeof(*rows));

    if (rows == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    rows->column = array->array;
    rows->children[0] = &rows->column;
    array->array = (struct ArrowArray){.length = rows->column.length,
                                       .n_buffers = 1,
                                       .n_children = 1,
                                       .buffers = rows->buffers,
                                       .children = rows->children,
                                       .release = rows_release,
                                       .private_data = rows};
    return 0;
}

static PyObject *rows_schema(const struct ArrowSchema *column, const char *name)
{
    struct ArrowSchema named = *column, *children[1] = {&named};
    const struct ArrowSchema whole = {.format = "+s",
                                      .name = "",
                                      .n_children = 1,
                                      .children = children,
                                      .release = column->release};

    named.name = name;
    return schema_new(&whole);
}

PyObject *column_from_dlpack(PyObject *module, PyObject *args)
{
    struct ArrowDeviceArray array = {0};
    struct ArrowSchema column = {0};
    PyObject *capsule, *schema = NULL, *batch = NULL;
    const char *name;

    (void)module;
    if (!PyArg_ParseTuple(args, "Os", &capsule, &name) ||
        tensor_import(capsule, &column, &array) != 0)
        goto out;
    schema = rows_schema(&column, name);
    if (schema != NULL && rows_wrap(&array) == 0)
        batch = batch_new((Schema *)schema, &array, 0);
out:
    Py_XDECREF(schema);
    uva_schema_release(&column);
    uva_array_release(&array);
    return batch;
}

/* ---- the type ------------------------------------------------------------ */

static Py_ssize_t column_length(PyObject *object)
{
    return (Py_ssize_t)((Column *)object)->data.array.length;
}

static PyMethodDef column_methods[] = {
    {"__dlpack__", (PyCFunction)(void *)column_dlpack,
     METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR(
         "__dlpack__($self, *, stream=None, max_version=None, "
         "dl_device=None, copy=None)\n--\n\nThe column as a tensor of "
         "DLPack, which shares its data. BufferError if it cannot be one: "
         "nulls, another type than numbers, or an event to wait for.")},
    {"__dlpack_device__", column_dlpack_device, METH_NOARGS,
     PyDoc_STR("__dlpack_device__($self)\n--\n\nWhere the data is: (device "
               "type, device id); (1, 0) is the CPU.")},
    {NULL, NULL, 0, NULL}};

static PyType_Slot column_slots[] = {
    {Py_tp_doc,
     (void *)PyDoc_STR("A column of a batch: numpy, JAX, PyTorch and CuPy take "
                       "it by their from_dlpack(), without a copy.")},
    {Py_tp_dealloc, column_dealloc},
    {Py_tp_methods, column_methods},
    {Py_mp_length, column_length},
    {0, NULL}};

PyType_Spec column_spec = {.name = "uvarrow.Column",
                           .basicsize = sizeof(Column),
                           .flags = Py_TPFLAGS_DEFAULT |
                                    Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           .slots = column_slots};
