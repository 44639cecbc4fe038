/* SPDX-License-Identifier: Apache-2.0 */
/* A compressed buffer begins with its size before, in 8 bytes; -1 there means
 * that the rest is not compressed. */
#include "io/ipc_compress.h"

#include <string.h>

#if UVA_HAS_LZ4
#include <lz4frame.h>
#endif
#if UVA_HAS_ZSTD
#include <zstd.h>
#endif

enum { PREFIX = 8, ZSTD_LEVEL = 1 }; /* as in Arrow C++ */

static const uint8_t not_compressed[PREFIX] = {255, 255, 255, 255,
                                               255, 255, 255, 255};

/* ---- codecs ------------------------------------------------------------- */

/* `bound` gives the most that `size` bytes become; `compress` returns the size,
 * or 0 with `*why`; `decompress` returns 0, EPROTO with `*why`, or ENOMEM.
 * Members of a codec that was not built in are NULL. */
struct ipc_codec {
    const char *name;
    size_t (*bound)(size_t size);
    size_t (*compress)(void *to, size_t room, const void *from, size_t size,
                       const char **why);
    int (*decompress)(void *to, size_t room, const void *from, size_t size,
                      const char **why);
};

#if UVA_HAS_LZ4
static size_t lz4_bound(size_t size)
{
    return LZ4F_compressFrameBound(size, NULL);
}

static size_t lz4_compress(void *to, size_t room, const void *from, size_t size,
                           const char **why)
{
    const size_t used = LZ4F_compressFrame(to, room, from, size, NULL);

    if (!LZ4F_isError(used))
        return used;
    *why = LZ4F_getErrorName(used);
    return 0;
}

/* Frames may be cut into blocks of any size. */
static int lz4_decompress(void *to, size_t room, const void *from, size_t size,
                          const char **why)
{
    LZ4F_dctx *context = NULL;
    size_t done = 0, read = 0, left = 1;

    if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)))
        return ENOMEM;
    while (left > 0) {
        size_t here = room - done, taken = size - read;

        left = LZ4F_decompress(context, (char *)to + done, &here,
                               (const char *)from + read, &taken, NULL);
        if (LZ4F_isError(left) || (here == 0 && taken == 0))
            break;
        done += here;
        read += taken;
    }
    (void)LZ4F_freeDecompressionContext(context);
    if (left == 0 && done == room && read == size)
        return 0;
    *why = LZ4F_isError(left) ? LZ4F_getErrorName(left) : "another size";
    return EPROTO;
}
#endif

#if UVA_HAS_ZSTD
static size_t zstd_bound(size_t size)
{
    return ZSTD_compressBound(size);
}

static size_t zstd_compress(void *to, size_t room, const void *from,
                            size_t size, const char **why)
{
    const size_t used = ZSTD_compress(to, room, from, size, ZSTD_LEVEL);

    if (!ZSTD_isError(used))
        return used;
    *why = ZSTD_getErrorName(used);
    return 0;
}

static int zstd_decompress(void *to, size_t room, const void *from, size_t size,
                           const char **why)
{
    const size_t used = ZSTD_decompress(to, room, from, size);

    if (used == room)
        return 0;
    *why = ZSTD_isError(used) ? ZSTD_getErrorName(used) : "another size";
    return EPROTO;
}
#endif

static const struct ipc_codec codecs[] = {
    [UVA__IPC_LZ4] = {.name = "LZ4",
#if UVA_HAS_LZ4
                      .bound = lz4_bound,
                      .compress = lz4_compress,
                      .decompress = lz4_decompress
#endif
    },
    [UVA__IPC_ZSTD] = {.name = "ZSTD",
#if UVA_HAS_ZSTD
                       .bound = zstd_bound,
                       .compress = zstd_compress,
                       .decompress = zstd_decompress
#endif
    },
};

int uva__ipc_compress_check(int32_t codec, struct uva_error *error)
{
    if (codec == UVA__IPC_PLAIN)
        return 0;
    if (codec < 0 || codec > UVA__IPC_ZSTD)
        return uva_error_set(error, EINVAL, "uva_encode: compression is %d",
                             (int)codec);
    if (codecs[codec].compress == NULL)
        return uva_error_set(error, ENOTSUP,
                             "uva_encode: compression %s: built without its "
                             "library",
                             codecs[codec].name);
    return 0;
}

/* ---- a body ------------------------------------------------------------- */

static void ipc_compress_write_size(uint8_t *to, int64_t size)
{
    for (int i = 0; i < PREFIX; i++)
        to[i] = (uint8_t)((uint64_t)size >> (8 * i));
}

static int ipc_compress_buffer(struct uva__ipc_body *body,
                               struct uva__ipc_buffer *buffer,
                               const struct ipc_codec *codec,
                               struct uva_error *error)
{
    const size_t size = (size_t)buffer->size;
    const size_t room = codec->bound(size);
    const char *why = NULL;
    uint8_t *to = uva__ipc_block_new(&body->blocks, PREFIX + room);
    size_t used;

    if (to == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    used = codec->compress(to + PREFIX, room, buffer->data, size, &why);
    if (why != NULL)
        return uva_error_set(error, EIO, "Arrow IPC: %s: %s", codec->name, why);
    if (used >= size) {
        buffer->prefix = not_compressed;
        return 0;
    }
    ipc_compress_write_size(to, buffer->size);
    buffer->data = to;
    buffer->size = (int64_t)(PREFIX + used);
    return 0;
}

int uva__ipc_compress_body(struct uva__ipc_body *body, int32_t codec,
                           struct uva_error *error)
{
    int code = 0;

    if (codec == UVA__IPC_PLAIN)
        return 0;
    for (size_t i = 0; i < body->n_buffers && code == 0; i++)
        if (body->buffers[i].size > 0)
            code = ipc_compress_buffer(body, &body->buffers[i], &codecs[codec],
                                       error);
    return code;
}

int uva__ipc_decompress(int32_t codec, void *to, size_t room, const void *from,
                        size_t size, struct uva_error *error)
{
    const char *why = "out of memory";
    const int code = codecs[codec].decompress(to, room, from, size, &why);

    if (code == 0)
        return 0;
    return uva_error_set(error, code, "%s: %s", codecs[codec].name, why);
}
