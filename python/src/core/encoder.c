/* SPDX-License-Identifier: Apache-2.0 */
/* Batches as chunks of Arrow IPC, CSV and JSON. A chunk is a memoryview over
 * bytes of a part, which lives as long as one of its chunks: of Arrow IPC these
 * are the bytes of the batch itself. Short buffers, such as headers, are joined
 * to one chunk, and long ones cut, as a server copies what a socket does not
 * take at once. */
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "core/core.h"
#include "uvarrow/io.h"

enum { SHORT_BYTES = 4096, LONG_BYTES = 1 << 20 };

/* Parts that wait for the consumer, whose bytes its window does not know: their
 * arrays have no columns. */
enum { PARTS_AHEAD = 4 };

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

/* Appends memoryviews of the first `size` bytes of an object, which is taken.
 * -1 with an exception. */
static int chunks_add(PyObject *list, PyObject *object, Py_ssize_t size)
{
    PyObject *view = PyMemoryView_FromObject(object);
    int result = view == NULL ? -1 : 0;

    Py_DECREF(object);
    for (Py_ssize_t at = 0; result == 0 && at < size; at += LONG_BYTES) {
        const Py_ssize_t end = size - at > LONG_BYTES ? at + LONG_BYTES : size;
        PyObject *piece = PySequence_GetSlice(view, at, end);

        result = piece == NULL ? -1 : PyList_Append(list, piece);
        Py_XDECREF(piece);
    }
    Py_XDECREF(view);
    return result;
}

/* Appends the views of one buffer. -1 with an exception. */
static int chunks_add_view(PyObject *list, struct part *part,
                           const struct uv_buf_t *buffer)
{
    Chunk *chunk = (Chunk *)core_alloc(chunk_type);

    if (chunk == NULL)
        return -1;
    part->references++;
    chunk->part = part;
    chunk->data = buffer->base;
    chunk->size = (Py_ssize_t)buffer->len;
    return chunks_add(list, (PyObject *)chunk, chunk->size);
}

/* Appends the bytes of `count` short buffers. */
static int chunks_add_bytes(PyObject *list, const struct uv_buf_t *buffers,
                            size_t count)
{
    PyObject *bytes;
    size_t size = 0;
    char *at;

    for (size_t i = 0; i < count; i++)
        size += buffers[i].len;
    bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (bytes == NULL)
        return -1;
    at = PyBytes_AsString(bytes);
    for (size_t i = 0; i < count; at += buffers[i++].len)
        memcpy(at, buffers[i].base, buffers[i].len);
    return chunks_add(list, bytes, (Py_ssize_t)size);
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

/* Puts a comma in front of each line break. Returns the place behind. */
static char *items_add(char *out, const struct uv_buf_t *lines)
{
    const char *at = lines->base, *const end = at + lines->len;

    while (at < end) {
        const char *const found = memchr(at, '\n', (size_t)(end - at));
        const size_t size = (size_t)((found != NULL ? found : end) - at);

        memcpy(out, at, size);
        out += size;
        if (found == NULL)
            break;
        memcpy(out, ",\n", 2);
        out += 2;
        at = found + 1;
    }
    return out;
}

/* The chunks of the lines of a part as items of an array, without a comma after
 * the last one. A line has no other line break: JSON writes these as \n. */
static PyObject *chunks_of_items(const struct uva_part *lines,
                                 const char *before, Py_ssize_t size)
{
    const Py_ssize_t most = size + (Py_ssize_t)(lines->bytes + lines->rows);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, most);
    PyObject *list = bytes == NULL ? NULL : PyList_New(0);
    char *at;

    if (list == NULL) {
        Py_XDECREF(bytes);
        return NULL;
    }
    at = PyBytes_AsString(bytes);
    memcpy(at, before, (size_t)size);
    at += size;
    for (size_t i = 0; i < lines->count; i++)
        at = items_add(at, &lines->buffers[i]);
    if (chunks_add(list, bytes, most - 2) != 0)
        Py_CLEAR(list);
    return list;
}

PyObject *chunks_take(PyObject *module, PyObject *args)
{
    struct uva_part part = {0};
    PyObject *batch, *chunks;
    const char *before;
    Py_ssize_t size;
    int code;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!z#", batch_type, &batch, &before, &size))
        return NULL;
    code = uva_part_take(&((Batch *)batch)->data, &part);
    if (code != 0)
        return core_raise(code, "the batch carries no part", NULL);
    if (before == NULL)
        return chunks_of(&part);
    chunks = chunks_of_items(&part, before, size);
    uva_part_release(&part);
    return chunks;
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

PyObject *stream_encode(PyObject *object, PyObject *args)
{
    Stream *self = (Stream *)object;
    struct uva_encode encode = {0};
    int format, compression, delimiter, header, crlf, as_stored;

    if (!PyArg_ParseTuple(args, "iiippzp", &format, &compression, &delimiter,
                          &header, &crlf, &encode.csv.null_text, &as_stored) ||
        !stream_can_build(self))
        return NULL;
    encode.format = (enum uva_format)format;
    encode.compression = (enum uva_compression)compression;
    encode.csv.delimiter = (char)delimiter;
    encode.csv.rows_only = header == 0;
    encode.csv.crlf = crlf != 0;
    encode.as_stored = as_stored != 0;
    if (uva_stream_encode(self->tap->stream, &encode) == 0 &&
        self->window.batches > PARTS_AHEAD)
        self->window.batches = PARTS_AHEAD;
    return stream_built(self);
}
