/* SPDX-License-Identifier: Apache-2.0 */
/* The module uvarrow._core: its types, which are the files of ../core, and
 * their common parts. uvarrow/__init__.py is built on it. */
#include <errno.h>
#include <string.h>

#include "core/core.h"

PyObject *core_error_type;

PyTypeObject *host_type;
PyTypeObject *schema_type;
PyTypeObject *batch_type;
PyTypeObject *column_type;
PyTypeObject *stream_type;
PyTypeObject *next_type;
PyTypeObject *writer_type;
PyTypeObject *pool_type;
PyTypeObject *chunk_type;

PyObject *core_alloc(PyTypeObject *type)
{
    return PyType_GenericAlloc(type, 0);
}

void core_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

PyObject *core_metadata(const char *metadata)
{
    PyObject *list = PyList_New(0);
    struct uva_metadata_at at = {0};
    struct uva_pair pair;

    while (list != NULL && metadata != NULL &&
           uva_metadata_next(metadata, &at, &pair) == 0) {
        PyObject *row =
            Py_BuildValue("y#y#", pair.key, (Py_ssize_t)pair.key_size,
                          pair.value, (Py_ssize_t)pair.value_size);

        if (row == NULL || PyList_Append(list, row) != 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

PyObject *core_text(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *core_raise(int code, const char *text, const char *metadata)
{
    PyObject *pairs = core_metadata(metadata);
    PyObject *message = core_text(text != NULL ? text : strerror(code));
    PyObject *error = NULL;

    if (pairs != NULL && message != NULL)
        error = PyObject_CallMethod(core_error_type, "_of", "iOO", code,
                                    message, pairs);
    if (error != NULL)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    Py_XDECREF(message);
    Py_XDECREF(pairs);
    return NULL;
}

void core_throw(PyObject *args)
{
    PyObject *type = NULL, *value = NULL, *traceback = NULL;

    if (!PyArg_UnpackTuple(args, "throw", 1, 3, &type, &value, &traceback))
        return;
    if (PyExceptionInstance_Check(type))
        PyErr_SetObject((PyObject *)Py_TYPE(type), type);
    else
        PyErr_SetObject(type, value);
}

/* _set_error(type): uvarrow.Error */
static PyObject *core_set_error(PyObject *module, PyObject *type)
{
    (void)module;
    Py_XDECREF(core_error_type);
    core_error_type = Py_NewRef(type);
    Py_RETURN_NONE;
}

/* The types are of the process, so there is one interpreter that has them. */
static int core_check_interpreter(void)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0)
        return 0;
    PyErr_SetString(PyExc_ImportError,
                    "uvarrow cannot be imported in a sub-interpreter; use "
                    "threads or processes");
    return -1;
}

static int core_exec(PyObject *module)
{
    const struct {
        PyTypeObject **type;
        PyType_Spec *spec;
        const char *name;
    } types[] = {
        {&host_type, &host_spec, "Host"},
        {&schema_type, &schema_spec, "Schema"},
        {&batch_type, &batch_spec, "Batch"},
        {&column_type, &column_spec, "Column"},
        {&stream_type, &stream_spec, "Stream"},
        {&next_type, &next_spec, "Next"},
        {&writer_type, &writer_spec, "Writer"},
        {&pool_type, &pool_spec, "Pool"},
        {&chunk_type, &chunk_spec, "Chunk"},
        {&call_type, &call_spec, "Call"},
    };

    if (core_check_interpreter() != 0 || exit_init() != 0)
        return -1;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (*types[i].type == NULL)
            *types[i].type = (PyTypeObject *)PyType_FromSpec(types[i].spec);
        if (*types[i].type == NULL ||
            PyModule_AddObjectRef(module, types[i].name,
                                  (PyObject *)*types[i].type) != 0)
            return -1;
    }
    if (PyModule_AddIntConstant(module, "EXIT_STUCK", EXIT_STUCK) != 0)
        return -1;
    return PyModule_AddObject(
        module, "version",
        PyUnicode_FromFormat("%d.%d.%d", UVA_VERSION_MAJOR, UVA_VERSION_MINOR,
                             UVA_VERSION_PATCH));
}

static PyMethodDef core_methods[] = {
    {"_set_error", core_set_error, METH_O, NULL},
    {"_set_clock", stream_set_clock, METH_O, NULL},
    {"_set_log", log_set, METH_O, NULL},
    {"_choose", host_choose, METH_VARARGS, NULL},
    {"batch_of", made_batch, METH_VARARGS, NULL},
    {"schema_of", made_schema, METH_O, NULL},
    {"wait_out", exit_wait_out, METH_O, NULL},
    {"leave", exit_leave, METH_O, NULL},
    {"capsule", core_capsule, METH_VARARGS, NULL},
    {"sync", core_sync, METH_VARARGS, NULL},
    {"from_dlpack", column_from_dlpack, METH_VARARGS, NULL},
    {"stream_schema", stream_capsule_schema, METH_O, NULL},
    {"chunks", chunks_take, METH_VARARGS, NULL},
    {"csv", batch_csv, METH_VARARGS, NULL},
    {"partitions", pool_partitions, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot core_slots[] = {{Py_mod_exec, (void *)core_exec},
                                        {0, NULL}};

static struct PyModuleDef core_def = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "uvarrow._core",
    .m_doc = PyDoc_STR("What uvarrow is built on; use uvarrow."),
    .m_methods = core_methods,
    .m_slots = core_slots};

PyMODINIT_FUNC PyInit__core(void); /* found by its name */

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&core_def);
}
