/* SPDX-License-Identifier: Apache-2.0 */
/* The tables Message, RecordBatch, DictionaryBatch and Footer. */
#include "io/ipc_write_header.h"

#include <string.h>

#include "io/ipc_compress.h"
#include "io/ipc_write_schema.h"

enum { VERSION_5 = 4 };

/* The union MessageHeader. */
enum { HEADER_SCHEMA = 1, HEADER_DICTIONARY = 2, HEADER_BATCH = 3 };

/* Ends a message: the table around the header, and the size in front. */
static void ipc_message_finish(struct uva__flatbuffer *flat, int kind,
                               size_t header, int64_t body_size)
{
    size_t message;

    uva__flatbuffer_begin_table(flat, 5);
    uva__flatbuffer_set(flat, 3, 8, (uint64_t)body_size);
    uva__flatbuffer_set_place(flat, 2, header);
    uva__flatbuffer_set(flat, 0, 2, VERSION_5);
    uva__flatbuffer_set(flat, 1, 1, (uint64_t)kind);
    message = uva__flatbuffer_end_table(flat);
    uva__flatbuffer_finish(flat, message);
    uva__flatbuffer_put(flat, 4, flat->used);
    uva__flatbuffer_put(flat, 4, UINT32_MAX);
}

void uva__ipc_message_schema(struct uva__flatbuffer *flat,
                             const struct uva__ipc_plan *plan)
{
    size_t schema;

    uva__flatbuffer_clear(flat);
    schema = uva__ipc_schema_write(flat, plan);
    ipc_message_finish(flat, HEADER_SCHEMA, schema, 0);
}

/* ---- batches ------------------------------------------------------------ */

/* The size of a buffer in the body, without padding. */
static int64_t ipc_message_size(const struct uva__ipc_buffer *buffer)
{
    return buffer->size + (buffer->prefix == NULL ? 0 : 8);
}

static int64_t ipc_message_body_size(const struct uva__ipc_body *body)
{
    int64_t size = 0;

    for (size_t i = 0; i < body->n_buffers; i++) {
        const int64_t here = ipc_message_size(&body->buffers[i]);

        size += here + uva__ipc_message_padding(here);
    }
    return size;
}

/* The vector of buffers: their offsets and sizes. */
static size_t ipc_message_buffers(struct uva__flatbuffer *flat,
                                  const struct uva__ipc_body *body)
{
    int64_t offset = 0;
    uint8_t *at;

    uva__flatbuffer_align(flat, 8, 0);
    at = uva__flatbuffer_room(flat, body->n_buffers * 16);
    for (size_t i = 0; i < body->n_buffers && at != NULL; i++, at += 16) {
        const int64_t size = ipc_message_size(&body->buffers[i]);

        uva__flatbuffer_store(at, (uint64_t)offset, 8);
        uva__flatbuffer_store(at + 8, (uint64_t)size, 8);
        offset += size + uva__ipc_message_padding(size);
    }
    return uva__flatbuffer_end_vector(flat, body->n_buffers);
}

static size_t ipc_message_nodes(struct uva__flatbuffer *flat,
                                const struct uva__ipc_body *body)
{
    uint8_t *at;

    uva__flatbuffer_align(flat, 8, 0);
    at = uva__flatbuffer_room(flat, body->n_nodes * 16);
    for (size_t i = 0; i < body->n_nodes && at != NULL; i++, at += 16) {
        uva__flatbuffer_store(at, (uint64_t)body->nodes[i].length, 8);
        uva__flatbuffer_store(at + 8, (uint64_t)body->nodes[i].null_count, 8);
    }
    return uva__flatbuffer_end_vector(flat, body->n_nodes);
}

/* How many data buffers each field of views has. 0: no field has views. */
static size_t ipc_message_variadic(struct uva__flatbuffer *flat,
                                   const struct uva__ipc_body *body)
{
    if (body->n_variadic == 0)
        return 0;
    uva__flatbuffer_align(flat, 8, 0);
    for (size_t i = body->n_variadic; i > 0; i--)
        uva__flatbuffer_put(flat, 8, (uint64_t)body->variadic[i - 1]);
    return uva__flatbuffer_end_vector(flat, body->n_variadic);
}

static size_t ipc_message_codec(struct uva__flatbuffer *flat, int32_t codec)
{
    if (codec == UVA__IPC_PLAIN)
        return 0;
    uva__flatbuffer_begin_table(flat, 2);
    uva__flatbuffer_set(flat, 0, 1, codec == UVA__IPC_ZSTD);
    return uva__flatbuffer_end_table(flat);
}

int64_t uva__ipc_message_body(struct uva__flatbuffer *flat,
                              const struct uva__ipc_message *message,
                              const struct uva__ipc_body *body)
{
    const int64_t size = ipc_message_body_size(body);
    size_t codec, variadic, buffers, nodes, batch;
    int kind = HEADER_BATCH;

    uva__flatbuffer_clear(flat);
    codec = ipc_message_codec(flat, message->codec);
    variadic = ipc_message_variadic(flat, body);
    buffers = ipc_message_buffers(flat, body);
    nodes = ipc_message_nodes(flat, body);
    uva__flatbuffer_begin_table(flat, 5);
    uva__flatbuffer_set(flat, 0, 8, (uint64_t)body->length);
    uva__flatbuffer_set_place(flat, 1, nodes);
    uva__flatbuffer_set_place(flat, 2, buffers);
    uva__flatbuffer_set_place(flat, 3, codec);
    uva__flatbuffer_set_place(flat, 4, variadic);
    batch = uva__flatbuffer_end_table(flat);
    if (message->dictionary >= 0) {
        kind = HEADER_DICTIONARY;
        uva__flatbuffer_begin_table(flat, 3);
        uva__flatbuffer_set(flat, 0, 8, (uint64_t)message->dictionary);
        uva__flatbuffer_set_place(flat, 1, batch);
        uva__flatbuffer_set(flat, 2, 1, message->is_delta);
        batch = uva__flatbuffer_end_table(flat);
    }
    ipc_message_finish(flat, kind, batch, size);
    return size;
}

/* ---- files -------------------------------------------------------------- */

static size_t ipc_message_places(struct uva__flatbuffer *flat,
                                 const struct uva__ipc_place *places,
                                 size_t count)
{
    uva__flatbuffer_align(flat, 8, 0);
    for (size_t i = count; i > 0; i--) {
        uva__flatbuffer_put(flat, 8, (uint64_t)places[i - 1].body_size);
        uva__flatbuffer_put(flat, 8, (uint64_t)places[i - 1].head_size);
        uva__flatbuffer_put(flat, 8, (uint64_t)places[i - 1].offset);
    }
    return uva__flatbuffer_end_vector(flat, count);
}

void uva__ipc_message_footer(struct uva__flatbuffer *flat,
                             const struct uva__ipc_plan *plan,
                             const struct uva__ipc_place *dictionaries,
                             size_t n_dictionaries,
                             const struct uva__ipc_place *batches,
                             size_t n_batches)
{
    size_t footer, schema, first, second;

    uva__flatbuffer_clear(flat);
    schema = uva__ipc_schema_write(flat, plan);
    first = ipc_message_places(flat, dictionaries, n_dictionaries);
    second = ipc_message_places(flat, batches, n_batches);
    uva__flatbuffer_begin_table(flat, 4);
    uva__flatbuffer_set(flat, 0, 2, VERSION_5);
    uva__flatbuffer_set_place(flat, 1, schema);
    uva__flatbuffer_set_place(flat, 2, first);
    uva__flatbuffer_set_place(flat, 3, second);
    footer = uva__flatbuffer_end_table(flat);
    uva__flatbuffer_finish(flat, footer);
}
