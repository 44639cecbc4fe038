/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of all partitions of a result, which are a list of bytes. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "uvarrow/adbc.h"

/* A column of bytes, as a query gives partitions. */
struct parts {
    int32_t *offsets; /* owns */
    char *data;       /* owns */
    Py_ssize_t count;
};

static void parts_free(struct parts *parts)
{
    free(parts->offsets);
    free(parts->data);
}

/* How many bytes they have together; -1 with an exception. */
static Py_ssize_t parts_size(PyObject *list)
{
    Py_ssize_t size = 0;

    for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
        const Py_ssize_t one = PyBytes_Size(PyList_GetItem(list, i));

        if (one < 0)
            return -1;
        size += one;
    }
    if (size > INT32_MAX)
        PyErr_SetString(PyExc_ValueError, "uvarrow: partitions have 2 GiB");
    return size > INT32_MAX ? -1 : size;
}

/* -1 with an exception; to be freed in any case. */
static int parts_fill(struct parts *parts, PyObject *list)
{
    const Py_ssize_t size = parts_size(list);

    if (size < 0)
        return -1;
    parts->count = PyList_Size(list);
    parts->offsets = calloc((size_t)parts->count + 1, sizeof(int32_t));
    parts->data = malloc((size_t)size + 1);
    if (parts->offsets == NULL || parts->data == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < parts->count; i++) {
        PyObject *one = PyList_GetItem(list, i);
        const int32_t n = (int32_t)PyBytes_Size(one);

        memcpy(parts->data + parts->offsets[i], PyBytes_AsString(one),
               (size_t)n);
        parts->offsets[i + 1] = parts->offsets[i] + n;
    }
    return 0;
}

/* A live array has a release. */
static void array_keep(struct ArrowArray *array)
{
    (void)array; /* it is on the stack */
}

static struct uva_stream *
parts_stream(struct uva_adbc_pool *pool, const struct parts *parts,
             const struct uva_adbc_partitions *options)
{
    const void *buffers[] = {NULL, parts->offsets, parts->data},
               *nothing[] = {NULL};
    struct ArrowArray column = {.length = parts->count,
                                .n_buffers = 3,
                                .buffers = buffers,
                                .release = array_keep};
    struct ArrowArray *children[] = {&column};
    const struct ArrowArray batch = {.length = parts->count,
                                     .n_buffers = 1,
                                     .n_children = 1,
                                     .buffers = nothing,
                                     .children = children,
                                     .release = array_keep};

    return uva_stream_from_partitions(pool, &batch, options);
}

/* args: host, pool, a list of bytes, how many at one time, retries, keep_going,
 * four limits in ms, batches, bytes */
struct uva_stream *pool_parts(PyObject *args, Host **host, struct tap **tap)
{
    struct uva_adbc_partitions options = {0};
    struct uva_stream *stream = NULL;
    struct parts parts = {0};
    PyObject *owner, *pool, *list;
    long long ms[4], bytes;
    int keep_going;

    if (!PyArg_ParseTuple(args, "O!O!O!iipLLLLiL", host_type, &owner, pool_type,
                          &pool, &PyList_Type, &list, &options.open_at_once,
                          &options.retries, &keep_going, &ms[0], &ms[1], &ms[2],
                          &ms[3], &options.window.batches, &bytes) ||
        !pool_begin(owner, pool, host, tap))
        return NULL;
    options.keep_going = keep_going != 0;
    options.timeout = (struct uva_timeout){.open_ms = ms[0],
                                           .first_ms = ms[1],
                                           .between_ms = ms[2],
                                           .total_ms = ms[3]};
    options.window.bytes = bytes;
    if (parts_fill(&parts, list) == 0)
        stream = parts_stream(((Pool *)pool)->pool, &parts, &options);
    parts_free(&parts);
    return stream;
}
