/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of a database besides those of its queries: the catalog, the schema
 * of a table; and the partitions of a result. */
#include <errno.h>
#include <stdlib.h>

#include "core/core.h"
#include "uvarrow/adbc.h"

bool pool_begin(PyObject *owner, PyObject *pool, Host **host, struct tap **tap)
{
    *host = (Host *)owner;
    if (!host_check(*host) || (*tap = tap_new(*host)) == NULL)
        return false;
    if (((Pool *)pool)->pool == NULL)
        PyErr_SetString(PyExc_RuntimeError, "uvarrow: the pool is closed");
    return ((Pool *)pool)->pool != NULL;
}

/* Gives the texts of a list, to be freed, which borrow from it; NULL with an
 * exception. */
static const char **texts_of(PyObject *list, const char *name)
{
    const Py_ssize_t n = PyList_Size(list);
    const char **texts = calloc((size_t)n + 1, sizeof(*texts));

    if (texts == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        texts[i] = checked_text(PyList_GetItem(list, i), name);
        if (texts[i] == NULL) {
            free(texts);
            return NULL;
        }
    }
    return texts;
}

/* args: host, pool, depth, catalog, schema, table, column (None: any), a list
 * of types (empty: all), busy_ms, batches, bytes */
struct uva_stream *pool_objects(PyObject *args, Host **host, struct tap **tap)
{
    struct uva_adbc_objects which = {0};
    PyObject *owner, *pool, *list;
    struct uva_stream *stream;
    const char **types;
    long long busy_ms, bytes;

    if (!PyArg_ParseTuple(args, "O!O!izzzzO!LiL", host_type, &owner, pool_type,
                          &pool, &which.depth, &which.catalog, &which.db_schema,
                          &which.table, &which.column, &PyList_Type, &list,
                          &busy_ms, &which.window.batches, &bytes) ||
        !pool_begin(owner, pool, host, tap))
        return NULL;
    types = texts_of(list, "types");
    if (types == NULL)
        return NULL;
    which.table_types = PyList_Size(list) > 0 ? types : NULL;
    which.busy_ms = busy_ms;
    which.window.bytes = bytes;
    stream = uva_stream_from_objects(((Pool *)pool)->pool, &which);
    free(types);
    return stream;
}

/* args: host, pool, catalog, schema (each may be None), table */
struct uva_stream *pool_table_schema(PyObject *args, Host **host,
                                     struct tap **tap)
{
    const char *catalog, *db_schema, *table;
    PyObject *owner, *pool;

    if (!PyArg_ParseTuple(args, "O!O!zzs", host_type, &owner, pool_type, &pool,
                          &catalog, &db_schema, &table) ||
        !pool_begin(owner, pool, host, tap))
        return NULL;
    return uva_stream_from_table_schema(((Pool *)pool)->pool, catalog,
                                        db_schema, table);
}

/* ---- partitions ---------------------------------------------------------- */

/* Whether a batch is what a query gives for its partitions: one column of
 * bytes. */
static bool has_partitions(const Batch *batch)
{
    const struct ArrowSchema *schema = &batch->schema->schema;

    return schema->n_children == 1 && schema->children[0]->format[0] == 'z' &&
           schema->children[0]->format[1] == '\0' &&
           batch->data.array.n_children == 1;
}

PyObject *pool_partitions(PyObject *module, PyObject *object)
{
    Batch *batch = (Batch *)object;
    const struct ArrowArray *rows, *column;
    PyObject *list;

    (void)module;
    if (!Py_IS_TYPE(object, batch_type) || !batch_is_open(batch) ||
        !has_partitions(batch))
        return PyErr_Occurred()
                   ? NULL
                   : core_raise(EINVAL, "these are no partitions", NULL);
    rows = &batch->data.array;
    column = rows->children[0];
    list = PyList_New(0);
    for (int64_t i = 0; list != NULL && i < rows->length; i++) {
        const int32_t *at =
            (const int32_t *)column->buffers[1] + rows->offset + column->offset;
        PyObject *bytes = PyBytes_FromStringAndSize(
            (const char *)column->buffers[2] + at[i], at[i + 1] - at[i]);

        if (bytes == NULL || PyList_Append(list, bytes) != 0)
            Py_CLEAR(list);
        Py_XDECREF(bytes);
    }
    return list;
}
