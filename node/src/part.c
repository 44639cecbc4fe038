/* SPDX-License-Identifier: Apache-2.0 */
/* Encoded bytes as Buffers. Those of Arrow IPC are the bytes of the batch
 * itself, which lives as long as one of them; short ones, such as headers, are
 * copied together. */
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "addon.h"

/* What the Buffers of one part have in common. */
struct chunks {
    struct uva_part part;
    struct host *host; /* counts */
    int users;
};

/* ---- options ------------------------------------------------------------- */

void encode_free(struct encode *how)
{
    free(how->null_text);
}

bool encode_read(napi_env env, const napi_value *args, struct encode *out)
{
    int64_t format = 0, compression = 0, delimiter = 0;
    bool has_names = true, crlf = false;

    *out = (struct encode){0};
    if (!value_integer(env, args[0], &format) ||
        !value_integer(env, args[1], &compression) ||
        !value_integer(env, args[2], &delimiter) ||
        !value_boolean(env, args[3], &has_names) ||
        !value_boolean(env, args[4], &crlf) ||
        !value_text(env, args[5], &out->null_text))
        return false;
    out->options.format = (enum uva_format)format;
    out->options.compression = (enum uva_compression)compression;
    out->options.csv = (struct uva_csv){.delimiter = (char)delimiter,
                                        .rows_only = !has_names,
                                        .crlf = crlf,
                                        .null_text = out->null_text};
    return true;
}

/* ---- Buffers ------------------------------------------------------------- */

static void chunks_release(struct chunks *chunks)
{
    if (--chunks->users > 0)
        return;
    uva_part_release(&chunks->part);
    chunks->host->batches--;
    host_release(chunks->host);
    free(chunks);
}

static void chunk_finalize(napi_env env, void *memory, void *chunks)
{
    (void)env;
    (void)memory;
    chunks_release(chunks);
}

static napi_value chunk_copy(napi_env env, const uv_buf_t *buffers,
                             size_t count)
{
    napi_value out = NULL;
    void *memory = NULL;
    size_t size = 0, at = 0;

    for (size_t i = 0; i < count; i++)
        size += buffers[i].len;
    if (!value_ok(env, napi_create_buffer(env, size, &memory, &out)))
        return NULL;
    for (size_t i = 0; i < count; at += buffers[i++].len)
        memcpy((char *)memory + at, buffers[i].base, buffers[i].len);
    return out;
}

static napi_value chunk_borrow(napi_env env, struct chunks *chunks,
                               const uv_buf_t *buffer)
{
    napi_value out = NULL;
    napi_status status;

    chunks->users++;
    status = napi_create_external_buffer(env, buffer->len, buffer->base,
                                         chunk_finalize, chunks, &out);
    if (status == napi_ok)
        return out;
    chunks_release(chunks);
    if (status == napi_no_external_buffers_allowed)
        return chunk_copy(env, buffer, 1);
    (void)value_ok(env, status);
    return NULL;
}

static size_t count_short(const struct uva_part *part, size_t from,
                          int64_t copy_below)
{
    size_t count = 0;

    while (from + count < part->count &&
           (int64_t)part->buffers[from + count].len < copy_below)
        count++;
    return count;
}

static bool chunks_list(napi_env env, struct chunks *chunks, int64_t copy_below,
                        napi_value out)
{
    const struct uva_part *part = &chunks->part;
    uint32_t at = 0;

    for (size_t i = 0; i < part->count;) {
        const size_t count = count_short(part, i, copy_below);
        napi_value chunk = count > 0
                               ? chunk_copy(env, part->buffers + i, count)
                               : chunk_borrow(env, chunks, part->buffers + i);

        if (chunk == NULL ||
            !value_ok(env, napi_set_element(env, out, at++, chunk)))
            return false;
        i += count > 0 ? count : 1;
    }
    return true;
}

napi_value part_value(napi_env env, struct host *host, struct uva_part *part,
                      int64_t copy_below)
{
    struct chunks *chunks = malloc(sizeof(*chunks));
    napi_value out = NULL;
    bool is_listed;

    if (chunks == NULL) {
        uva_part_release(part);
        return value_no_memory(env);
    }
    *chunks = (struct chunks){*part, host_acquire(host), 1};
    host->batches++;
    is_listed = value_ok(env, napi_create_array(env, &out)) &&
                chunks_list(env, chunks, copy_below, out);
    chunks_release(chunks);
    return is_listed ? out : NULL;
}

napi_value part_copy(napi_env env, const struct uva_part *part)
{
    return chunk_copy(env, part->buffers, part->count);
}
