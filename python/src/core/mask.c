/* SPDX-License-Identifier: Apache-2.0 */
/* Masks: the rows that a function of filter() selects, as an array of booleans
 * of Arrow, or as a buffer of them, as numpy's. They become the bits that the
 * library takes. */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

static bool bit_is_set(const uint8_t *bits, int64_t i)
{
    return (bits[i / 8] >> i % 8 & 1) != 0;
}

/* Makes `rows` bits, all 0. False with an exception: a mask has one value for
 * each row. */
static bool mask_new(int64_t rows, int64_t values, const char *name,
                     uint8_t **bits)
{
    if (values != rows) {
        PyErr_Format(PyExc_ValueError,
                     "uvarrow: %s has %lld values, and the batch %lld rows",
                     name, (long long)values, (long long)rows);
        return false;
    }
    *bits = calloc((size_t)rows / 8 + 1, 1);
    if (*bits == NULL)
        PyErr_NoMemory();
    return *bits != NULL;
}

/* ---- of Arrow ------------------------------------------------------------ */

/* A null selects no row. */
static void array_read(const struct ArrowArray *array, uint8_t *bits)
{
    const uint8_t *valid = array->null_count == 0 ? NULL : array->buffers[0];
    const uint8_t *values = array->buffers[1];

    for (int64_t i = 0; i < array->length; i++) {
        const int64_t at = array->offset + i;

        if (bit_is_set(values, at) && (valid == NULL || bit_is_set(valid, at)))
            bits[i / 8] |= (uint8_t)(1u << i % 8);
    }
}

static bool array_check(const struct ArrowSchema *schema,
                        const struct ArrowArray *array, const char *name)
{
    if (strcmp(schema->format, "b") != 0 || schema->dictionary != NULL) {
        PyErr_Format(PyExc_TypeError,
                     "uvarrow: %s must be an array of booleans, not of the "
                     "format '%s'",
                     name, schema->format);
        return false;
    }
    if (array->n_buffers == 2 && array->offset >= 0 &&
        (array->length <= 0 || array->buffers[1] != NULL))
        return true;
    PyErr_Format(PyExc_ValueError, "uvarrow: %s is a malformed array", name);
    return false;
}

static int array_mask(PyObject *object, const char *name, int64_t rows,
                      uint8_t **bits)
{
    struct ArrowDeviceArray array;
    struct ArrowSchema schema;
    int result = -1;

    if (batch_export(object, false, name, NULL, &schema, &array) != 0)
        return -1;
    if (checked_schema(&schema, name) &&
        array_check(&schema, &array.array, name) &&
        mask_new(rows, array.array.length, name, bits)) {
        array_read(&array.array, *bits);
        result = 1;
    }
    uva_array_release(&array);
    uva_schema_release(&schema);
    return result;
}

/* ---- buffers ------------------------------------------------------------- */

static int view_mask(const Py_buffer *view, const char *name, int64_t rows,
                     uint8_t **bits)
{
    const char *from = view->buf;

    if (view->ndim == 0) /* a number of numpy */
        return 0;
    if (view->ndim != 1 || view->format == NULL ||
        strcmp(view->format, "?") != 0) {
        PyErr_Format(PyExc_TypeError,
                     "uvarrow: %s must have one dimension, of booleans", name);
        return -1;
    }
    if (!mask_new(rows, view->shape[0], name, bits))
        return -1;
    for (int64_t i = 0; i < rows; i++)
        if (from[i * view->strides[0]] != 0)
            (*bits)[i / 8] |= (uint8_t)(1u << i % 8);
    return 1;
}

static int buffer_mask(PyObject *object, const char *name, int64_t rows,
                       uint8_t **bits)
{
    Py_buffer view;
    int result;

    if (PyObject_GetBuffer(object, &view, PyBUF_RECORDS_RO) != 0)
        return -1;
    result = view_mask(&view, name, rows, bits);
    PyBuffer_Release(&view);
    return result;
}

/* ---- any ----------------------------------------------------------------- */

int mask_read(PyObject *object, const char *name, int64_t rows, uint8_t **bits)
{
    PyObject *method = NULL;
    int found;

    if (PyBool_Check(object) || object == Py_None ||
        Py_IS_TYPE(object, batch_type))
        return 0;
    if (!checked_is_sync(object, name))
        return -1;
    found = checked_method(object, "__arrow_c_array__", name, &method);
    Py_XDECREF(method);
    if (found != 0)
        return found > 0 ? array_mask(object, name, rows, bits) : -1;
    return PyObject_CheckBuffer(object) ? buffer_mask(object, name, rows, bits)
                                        : 0;
}
