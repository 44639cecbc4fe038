/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of this package that are made of objects of other libraries, as when
 * they are unpickled. */
#include "core/core.h"

/* schema_of(object with __arrow_c_schema__'s capsule) -> Schema */
PyObject *made_schema(PyObject *module, PyObject *capsule)
{
    struct ArrowSchema *schema =
        checked_capsule(capsule, "arrow_schema", "schema");

    (void)module;
    return schema != NULL && checked_schema(schema, "schema")
               ? schema_new(schema)
               : NULL;
}

/* batch_of(object with __arrow_c_array__, ordinal) -> Batch, which shares the
 * data */
PyObject *made_batch(PyObject *module, PyObject *args)
{
    struct ArrowDeviceArray data = {0};
    struct ArrowSchema schema = {0};
    PyObject *object, *own, *made = NULL;
    long long ordinal;

    (void)module;
    if (!PyArg_ParseTuple(args, "OL", &object, &ordinal) ||
        batch_export(object, false, "batch", NULL, &schema, &data) != 0)
        return NULL;
    own = checked_is_rows(&schema, "batch") ? schema_new(&schema) : NULL;
    uva_schema_release(&schema);
    if (own != NULL)
        made = batch_new((Schema *)own, &data, ordinal);
    else
        uva_array_release(&data);
    Py_XDECREF(own);
    return made;
}
