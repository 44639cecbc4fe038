/* SPDX-License-Identifier: Apache-2.0 */
/* A schema of Arrow as an object of Python, which all batches of a stream
 * share. Its fields are read here, and named in Python. */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

PyObject *schema_new(const struct ArrowSchema *schema)
{
    Schema *self = (Schema *)core_alloc(schema_type);

    if (self == NULL)
        return NULL;
    if (uva_schema_copy(schema, &self->schema) != 0) {
        Py_DECREF((PyObject *)self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static bool text_equals(const char *a, const char *b)
{
    return strcmp(a == NULL ? "" : a, b == NULL ? "" : b) == 0;
}

static bool field_equals(const struct ArrowSchema *a,
                         const struct ArrowSchema *b)
{
    return text_equals(a->name, b->name) && a->flags == b->flags &&
           schema_equals(a, b);
}

bool schema_equals(const struct ArrowSchema *a, const struct ArrowSchema *b)
{
    if (strcmp(a->format, b->format) != 0 || a->n_children != b->n_children ||
        (a->dictionary == NULL) != (b->dictionary == NULL))
        return false;
    for (int64_t i = 0; i < a->n_children; i++)
        if (!field_equals(a->children[i], b->children[i]))
            return false;
    return a->dictionary == NULL || schema_equals(a->dictionary, b->dictionary);
}

static void capsule_drop(PyObject *capsule)
{
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");

    if (schema != NULL)
        uva_schema_release(schema);
    free(schema);
}

PyObject *schema_capsule(const struct ArrowSchema *schema)
{
    struct ArrowSchema *copy = calloc(1, sizeof(*copy));
    PyObject *capsule;

    if (copy == NULL || uva_schema_copy(schema, copy) != 0) {
        free(copy);
        return PyErr_NoMemory();
    }
    capsule = PyCapsule_New(copy, "arrow_schema", capsule_drop);
    if (capsule == NULL) {
        uva_schema_release(copy);
        free(copy);
    }
    return capsule;
}

PyObject *schema_pyarrow(Schema *schema)
{
    struct ArrowSchema copy = {0};
    PyObject *pyarrow, *type = NULL, *made = NULL;

    if (schema->pyarrow != NULL)
        return schema->pyarrow;
    pyarrow = PyImport_ImportModule("pyarrow");
    if (pyarrow != NULL)
        type = PyObject_GetAttrString(pyarrow, "Schema");
    if (type != NULL && uva_schema_copy(&schema->schema, &copy) != 0)
        PyErr_NoMemory();
    else if (type != NULL)
        made = PyObject_CallMethod(type, "_import_from_c", "N",
                                   PyLong_FromVoidPtr(&copy));
    if (schema->pyarrow == NULL) /* no other thread has made it meanwhile */
        schema->pyarrow = Py_XNewRef(made);
    Py_XDECREF(made);
    uva_schema_release(&copy);
    Py_XDECREF(type);
    Py_XDECREF(pyarrow);
    return schema->pyarrow;
}

static PyObject *schema_to_pyarrow(PyObject *object, PyObject *unused)
{
    (void)unused;
    return Py_XNewRef(schema_pyarrow((Schema *)object));
}

static PyObject *schema_c_schema(PyObject *object, PyObject *unused)
{
    (void)unused;
    return schema_capsule(&((Schema *)object)->schema);
}

/* (name, format, nullable, [children], dictionary or None) */
static PyObject *field_tuple(const struct ArrowSchema *field)
{
    PyObject *children = PyList_New(0);
    PyObject *dictionary = Py_NewRef(Py_None);

    for (int64_t i = 0; children != NULL && i < field->n_children; i++) {
        PyObject *child = field_tuple(field->children[i]);

        if (child == NULL || PyList_Append(children, child) != 0)
            Py_CLEAR(children);
        Py_XDECREF(child);
    }
    if (children != NULL && field->dictionary != NULL) {
        Py_DECREF(dictionary);
        dictionary = field_tuple(field->dictionary);
    }
    if (children == NULL || dictionary == NULL) {
        Py_XDECREF(children);
        Py_XDECREF(dictionary);
        return NULL;
    }
    return Py_BuildValue("NNNNN",
                         core_text(field->name != NULL ? field->name : ""),
                         core_text(field->format),
                         PyBool_FromLong(field->flags & ARROW_FLAG_NULLABLE),
                         children, dictionary);
}

static PyObject *schema_fields(PyObject *object, void *unused)
{
    (void)unused;
    return field_tuple(&((Schema *)object)->schema);
}

static PyObject *schema_names(PyObject *object, void *unused)
{
    const struct ArrowSchema *schema = &((Schema *)object)->schema;
    PyObject *names = PyList_New(0);

    (void)unused;
    for (int64_t i = 0; names != NULL && i < schema->n_children; i++) {
        const char *text = schema->children[i]->name;
        PyObject *name = core_text(text != NULL ? text : "");

        if (name == NULL || PyList_Append(names, name) != 0)
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

/* The text is made in Python: uvarrow._text.schema_text(). */
static PyObject *schema_repr(PyObject *object)
{
    PyObject *module = PyImport_ImportModule("uvarrow._text");
    PyObject *text = NULL;

    if (module != NULL)
        text = PyObject_CallMethod(module, "schema_text", "O", object);
    Py_XDECREF(module);
    return text;
}

static Py_ssize_t schema_length(PyObject *object)
{
    return (Py_ssize_t)((Schema *)object)->schema.n_children;
}

static void schema_dealloc(PyObject *object)
{
    Schema *self = (Schema *)object;

    uva_schema_release(&self->schema);
    Py_CLEAR(self->pyarrow);
    core_free(object);
}

static PyMethodDef schema_methods[] = {
    {"__arrow_c_schema__", schema_c_schema, METH_NOARGS,
     PyDoc_STR("__arrow_c_schema__($self)\n--\n\nThe schema as a capsule of "
               "Arrow's PyCapsule interface.")},
    {"to_pyarrow", schema_to_pyarrow, METH_NOARGS,
     PyDoc_STR("to_pyarrow($self)\n--\n\nThe schema as a pyarrow.Schema; needs "
               "pyarrow.")},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef schema_getset[] = {
    {"names", schema_names, NULL, PyDoc_STR("The names of the columns."), NULL},
    {"_fields", schema_fields, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot schema_slots[] = {
    {Py_tp_doc,
     (void *)PyDoc_STR("The columns of a stream: their names and types. Any "
                       "library with Arrow's PyCapsule interface takes it.")},
    {Py_tp_dealloc, schema_dealloc},
    {Py_tp_methods, schema_methods},
    {Py_tp_getset, schema_getset},
    {Py_tp_repr, schema_repr},
    {Py_mp_length, schema_length},
    {0, NULL}};

PyType_Spec schema_spec = {.name = "uvarrow.Schema",
                           .basicsize = sizeof(Schema),
                           .flags = Py_TPFLAGS_DEFAULT |
                                    Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           .slots = schema_slots};
