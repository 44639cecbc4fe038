/* SPDX-License-Identifier: Apache-2.0 */
/* Results of a user's code, checked before they are relied on: methods,
 * capsules, results of functions, numbers and texts. Each is named as the
 * caller knows it ("source", "the result of map()"), and so is each error.
 * Where arrays are taken out of objects is in batch.c, and arguments that need
 * only Python are checked in uvarrow/_check.py. */
#include <stdarg.h>
#include <string.h>

#include "core/core.h"

/* ---- errors ---------------------------------------------------------------
 */

/* Takes the exception that is set; NULL: not set. */
static PyObject *exception_take(void)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value != NULL && traceback != NULL)
        (void)PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
}

/* Raises `kind` with a text; the exception that was set becomes its cause. */
static void raise_from(PyObject *kind, const char *format, ...)
{
    PyObject *cause = exception_take();
    PyObject *raised;
    va_list values;

    va_start(values, format);
    (void)PyErr_FormatV(kind, format, values);
    va_end(values);
    raised = exception_take();
    if (raised == NULL) {
        Py_XDECREF(cause);
        return;
    }
    PyException_SetCause(raised, cause);
    PyErr_SetObject((PyObject *)Py_TYPE(raised), raised);
    Py_DECREF(raised);
}

void checked_refuse(PyObject *object, const char *name, const char *expected)
{
    PyObject *type = PyType_GetName(Py_TYPE(object));

    if (type != NULL)
        raise_from(PyExc_TypeError, "uvarrow: %s must be %s, not %U", name,
                   expected, type);
    Py_XDECREF(type);
}

/* ---- methods and results --------------------------------------------------
 */

int checked_method(PyObject *object, const char *method, const char *name,
                   PyObject **out)
{
    *out = PyObject_GetAttrString(object, method);
    if (*out != NULL)
        return 1;
    if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        return 0;
    }
    if (PyErr_ExceptionMatches(PyExc_Exception) &&
        !PyErr_ExceptionMatches(PyExc_MemoryError))
        raise_from(PyExc_TypeError, "uvarrow: %s has a %s that raises", name,
                   method);
    return -1;
}

/* Closes a coroutine, so that it is not reported as never awaited. */
static void coroutine_close(PyObject *object)
{
    PyObject *done;

    if (!PyObject_HasAttrString(object, "send"))
        return; /* a task, a future */
    done = PyObject_CallMethod(object, "close", NULL);
    Py_XDECREF(done);
    PyErr_Clear();
}

static void refuse_async(PyObject *result, const char *name)
{
    PyObject *type = PyType_GetName(Py_TYPE(result));

    if (type != NULL)
        PyErr_Format(PyExc_TypeError,
                     "uvarrow: %s is of the type %U: it would have to be "
                     "awaited, and no function that is `async` is run here",
                     name, type);
    Py_XDECREF(type);
}

bool checked_is_sync(PyObject *result, const char *name)
{
    PyTypeObject *type = Py_TYPE(result);
    const bool is_awaited = PyType_GetSlot(type, Py_am_await) != NULL;

    if (!is_awaited && PyType_GetSlot(type, Py_am_anext) == NULL)
        return true;
    if (is_awaited)
        coroutine_close(result);
    refuse_async(result, name);
    return false;
}

int checked_truth(PyObject *result, const char *name)
{
    if (!checked_is_sync(result, name))
        return -1;
    if (Py_IS_TYPE(result, batch_type) ||
        (result != Py_None &&
         PyType_GetSlot(Py_TYPE(result), Py_nb_bool) != NULL))
        return PyObject_IsTrue(result);
    checked_refuse(result, name, "a bool, a number, a Batch or a mask");
    return -1;
}

/* ---- capsules -------------------------------------------------------------
 */

/* Whether the content of a capsule of this name was not moved out. */
static bool content_is_live(const char *name, const void *content)
{
    if (strcmp(name, "arrow_schema") == 0)
        return uva_schema_is_live(content);
    if (strcmp(name, "arrow_array_stream") == 0)
        return ((const struct ArrowArrayStream *)content)->release != NULL;
    if (strcmp(name, "arrow_device_array_stream") == 0)
        return ((const struct ArrowDeviceArrayStream *)content)->release !=
               NULL;
    /* of a device array, too, which begins with an array */
    return ((const struct ArrowArray *)content)->release != NULL;
}

void *checked_capsule(PyObject *object, const char *capsule, const char *name)
{
    char expected[64];
    void *content;

    if (!checked_is_sync(object, name))
        return NULL;
    if (!PyCapsule_IsValid(object, capsule)) {
        PyOS_snprintf(expected, sizeof(expected), "a capsule `%s`", capsule);
        checked_refuse(object, name, expected);
        return NULL;
    }
    content = PyCapsule_GetPointer(object, capsule);
    if (content_is_live(capsule, content))
        return content;
    PyErr_Format(PyExc_ValueError, "uvarrow: %s has been used before", name);
    return NULL;
}

/* capsule(object, name of the capsule, name) -> object */
PyObject *core_capsule(PyObject *module, PyObject *args)
{
    const char *capsule, *name;
    PyObject *object;

    (void)module;
    if (!PyArg_ParseTuple(args, "Oss", &object, &capsule, &name) ||
        checked_capsule(object, capsule, name) == NULL)
        return NULL;
    return Py_NewRef(object);
}

/* sync(result, name) -> result */
PyObject *core_sync(PyObject *module, PyObject *args)
{
    const char *name;
    PyObject *object;

    (void)module;
    if (!PyArg_ParseTuple(args, "Os", &object, &name) ||
        !checked_is_sync(object, name))
        return NULL;
    return Py_NewRef(object);
}

bool checked_requested(PyObject *args, PyObject *kwargs)
{
    PyObject *schema = Py_None, *key, *value;
    Py_ssize_t at = 0;

    if (!PyArg_ParseTuple(args, "|O", &schema))
        return false;
    while (kwargs != NULL && PyDict_Next(kwargs, &at, &key, &value)) {
        if (PyUnicode_CompareWithASCIIString(key, "requested_schema") == 0) {
            schema = value;
        } else if (value != Py_None) {
            PyErr_Format(PyExc_NotImplementedError, "uvarrow: %U is not known",
                         key);
            return false;
        }
    }
    return schema == Py_None ||
           checked_capsule(schema, "arrow_schema", "requested_schema") != NULL;
}

/* ---- schemas, numbers, texts ----------------------------------------------
 */

/* Whether a schema was filled in, and its children. */
static bool schema_is_whole(const struct ArrowSchema *schema)
{
    if (schema == NULL || !uva_schema_is_live(schema) ||
        schema->format == NULL || schema->n_children < 0 ||
        (schema->n_children > 0 && schema->children == NULL))
        return false;
    for (int64_t i = 0; i < schema->n_children; i++)
        if (!schema_is_whole(schema->children[i]))
            return false;
    return schema->dictionary == NULL || schema_is_whole(schema->dictionary);
}

bool checked_schema(const struct ArrowSchema *schema, const char *name)
{
    if (schema_is_whole(schema))
        return true;
    PyErr_Format(
        PyExc_ValueError,
        "uvarrow: the schema of %s was not filled in, or a field of it "
        "was not",
        name);
    return false;
}

bool checked_is_rows(const struct ArrowSchema *schema, const char *name)
{
    if (!checked_schema(schema, name))
        return false;
    if (strcmp(schema->format, "+s") == 0)
        return true;
    PyErr_Format(PyExc_TypeError,
                 "uvarrow: %s must have rows of columns, not one array of the "
                 "format '%s': put it into a table, such as "
                 "pyarrow.table({'name': array})",
                 name, schema->format);
    return false;
}

bool checked_integer(PyObject *object, const char *name, long long *out)
{
    PyObject *number = PyIndex_Check(object) ? PyNumber_Index(object) : NULL;

    if (number == NULL) { /* it has no such method, or that has refused */
        checked_refuse(object, name, "an integer");
        return false;
    }
    *out = PyLong_AsLongLong(number);
    Py_DECREF(number);
    if (*out != -1 || !PyErr_Occurred())
        return true;
    raise_from(PyExc_ValueError, "uvarrow: %s is out of range", name);
    return false;
}

const char *checked_text(PyObject *object, const char *name)
{
    Py_ssize_t size;
    const char *text;

    if (!PyUnicode_Check(object)) {
        checked_refuse(object, name, "a str");
        return NULL;
    }
    text = PyUnicode_AsUTF8AndSize(object, &size);
    if (text == NULL)
        raise_from(PyExc_ValueError, "uvarrow: %s is not Unicode text", name);
    if (text == NULL || strlen(text) == (size_t)size)
        return text;
    PyErr_Format(PyExc_ValueError, "uvarrow: %s has a NUL character", name);
    return NULL;
}
