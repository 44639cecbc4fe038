/* SPDX-License-Identifier: Apache-2.0 */
/* Batches as chunks of Arrow IPC. A chunk is a buffer of Python over bytes of
 * the batch itself, which lives as long as one of its chunks. Short buffers,
 * such as headers, are joined to one chunk. */
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "core/core.h"
#include "uvarrow/io.h"

enum { SHORT_BYTES = 4096 };

/* The common part of the chunks of one message. */
struct part {
    int references; /* under the GIL */
    struct uva_part encoded;
};

typedef struct {
    PyObject_HEAD struct part *part; /* counts */
    char *data;                      /* borrows from the part */
    Py_ssize_t size;
} Chunk;

/* ---- chunks -------------------------------------------------------------- */

static void part_drop(struct part *part)
{
    if (--part->references > 0)
        return;
    uva_part_release(&part->encoded);
    free(part);
}

static int chunk_get_buffer(PyObject *object, Py_buffer *view, int flags)
{
    Chunk *self = (Chunk *)object;

    return PyBuffer_FillInfo(view, object, self->data, self->size, 1, flags);
}

static void chunk_dealloc(PyObject *object)
{
    part_drop(((Chunk *)object)->part);
    core_free(object);
}

static PyType_Slot chunk_slots[] = {{Py_tp_dealloc, chunk_dealloc},
                                    {Py_bf_getbuffer, chunk_get_buffer},
                                    {0, NULL}};

PyType_Spec chunk_spec = {.name = "uvarrow._core.Chunk",
                          .basicsize = sizeof(Chunk),
                          .flags = Py_TPFLAGS_DEFAULT |
                                   Py_TPFLAGS_DISALLOW_INSTANTIATION,
                          .slots = chunk_slots};

/* Appends a memoryview of one buffer. -1 with an exception. */
static int chunks_add_view(PyObject *list, struct part *part,
                           const struct uv_buf_t *buffer)
{
    Chunk *chunk = (Chunk *)core_alloc(chunk_type);
    PyObject *view;
    int result;

    if (chunk == NULL)
        return -1;
    part->references++;
    chunk->part = part;
    chunk->data = buffer->base;
    chunk->size = (Py_ssize_t)buffer->len;
    view = PyMemoryView_FromObject((PyObject *)chunk);
    Py_DECREF((PyObject *)chunk);
    result = view == NULL ? -1 : PyList_Append(list, view);
    Py_XDECREF(view);
    return result;
}

/* Appends the bytes of `count` short buffers. */
static int chunks_add_bytes(PyObject *list, const struct uv_buf_t *buffers,
                            size_t count)
{
    PyObject *bytes, *view;
    size_t size = 0;
    int result;
    char *at;

    for (size_t i = 0; i < count; i++)
        size += buffers[i].len;
    bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (bytes == NULL)
        return -1;
    at = PyBytes_AsString(bytes);
    for (size_t i = 0; i < count; at += buffers[i++].len)
        memcpy(at, buffers[i].base, buffers[i].len);
    view = PyMemoryView_FromObject(bytes);
    Py_DECREF(bytes);
    result = view == NULL ? -1 : PyList_Append(list, view);
    Py_XDECREF(view);
    return result;
}

/* The list of chunks of a part, which is taken. */
static PyObject *chunks_of(struct uva_part *encoded)
{
    struct part *part = malloc(sizeof(*part));
    PyObject *list = part == NULL ? PyErr_NoMemory() : PyList_New(0);
    size_t i = 0;

    if (list == NULL) {
        uva_part_release(encoded);
        free(part);
        return NULL;
    }
    part->references = 1;
    part->encoded = *encoded;
    while (list != NULL && i < encoded->count) {
        const struct uv_buf_t *first = &encoded->buffers[i];
        size_t n = 0;

        while (i + n < encoded->count && first[n].len < SHORT_BYTES)
            n++;
        if (n > 0 ? chunks_add_bytes(list, first, n) != 0
                  : chunks_add_view(list, part, first) != 0)
            Py_CLEAR(list);
        i += n > 0 ? n : 1;
    }
    part_drop(part);
    return list;
}

/* ---- parts ----------------------------------------------------------------
 */

/* chunks(Batch) -> the chunks of the part that it carries, which is taken */
PyObject *chunks_take(PyObject *module, PyObject *batch)
{
    struct uva_part part = {0};
    int code = EINVAL;

    (void)module;
    if (Py_IS_TYPE(batch, batch_type))
        code = uva_part_take(&((Batch *)batch)->data, &part);
    return code != 0 ? core_raise(code, "the batch carries no part", NULL)
                     : chunks_of(&part);
}

/* ---- a batch ------------------------------------------------------------- */

/* The codec of Batch.ipc(); -1 with an exception. */
static int codec_find(PyObject *compression)
{
    static const char *const names[] = {"lz4", "zstd"};

    if (compression == Py_None)
        return UVA_COMPRESSION_NONE;
    if (!PyUnicode_Check(compression)) {
        checked_refuse(compression, "compression", "'lz4' or 'zstd'");
        return -1;
    }
    for (int i = 0; i < 2; i++)
        if (PyUnicode_CompareWithASCIIString(compression, names[i]) == 0)
            return UVA_COMPRESSION_LZ4 + i;
    PyErr_Format(PyExc_ValueError,
                 "uvarrow: compression must be 'lz4' or 'zstd', not %R",
                 compression);
    return -1;
}

/* The bytes of a part, which is taken. */
static PyObject *part_bytes(struct uva_part *part)
{
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)part->bytes);
    char *at = bytes == NULL ? NULL : PyBytes_AsString(bytes);

    for (size_t i = 0; at != NULL && i < part->count; i++) {
        memcpy(at, part->buffers[i].base, part->buffers[i].len);
        at += part->buffers[i].len;
    }
    uva_part_release(part);
    return bytes;
}

PyObject *batch_ipc(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"compression", NULL};
    Batch *self = (Batch *)object;
    PyObject *compression = Py_None;
    struct uva_encode encode = {0};
    struct ArrowDeviceArray shared;
    struct uva_error error = {0};
    struct uva_part part;
    int code;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$O:ipc", names,
                                     &compression))
        return NULL;
    code = codec_find(compression);
    if (code < 0 || batch_share(self, &shared) != 0)
        return NULL;
    encode.compression = (enum uva_compression)code;
    Py_BEGIN_ALLOW_THREADS code = uva_array_encode(
        &self->schema->schema, &shared, 1, &encode, &part, &error);
    Py_END_ALLOW_THREADS if (code == 0) return part_bytes(&part);
    uva_array_release(&shared);
    return core_raise(code, error.message, NULL);
}

/* ---- the stage ----------------------------------------------------------- */

int chunks_add_stage(struct uva_stream *stream, int compression)
{
    return uva_stream_encode(
        stream,
        &(struct uva_encode){.compression = (enum uva_compression)compression});
}
