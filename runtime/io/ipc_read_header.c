/* SPDX-License-Identifier: Apache-2.0 */
/* The tables Message, RecordBatch, DictionaryBatch, Footer and KeyValue. */
#include "io/ipc_read_header.h"

#include <stdlib.h>
#include <string.h>

#include "io/ipc_compress.h"
#include "uvarrow/arrow.h"

enum { VERSION_4 = 3, VERSION_5 = 4 };
enum { PLACE_SIZE = 24 };

/* Limits of the readers of metadata. */
enum { MOST_PAIRS = 1 << 20, MOST_METADATA = 64 << 20 };

static int head_malformed(const char *what, struct uva_error *error)
{
    return uva_error_set(error, EPROTO, "malformed %s", what);
}

static int head_version(uint64_t version, bool *is_old, struct uva_error *error)
{
    *is_old = version == VERSION_4;
    if (version == VERSION_4 || version == VERSION_5)
        return 0;
    return uva_error_set(error, ENOTSUP, "version %u of the metadata",
                         (unsigned)version + 1);
}

/* Reads a string; an empty one if it is not there. */
static bool head_string(const struct uva__table *table, size_t slot,
                        const char **text, size_t *size)
{
    struct uva__vector bytes;

    if (!uva__table_vector(table, slot, 1, &bytes))
        return false;
    *size = bytes.items == NULL ? 0 : bytes.count;
    *text = *size == 0 ? "" : (const char *)bytes.items;
    return true;
}

/* Whether bodies are compressed as Arrow C++ 0.17 did, before the format had a
 * place for that: they would be read as if they were not. */
static bool head_is_experimental(const struct uva__ipc_head *head)
{
    static const char key[] = "ARROW:experimental_compression";

    for (size_t i = 0; i < head->metadata.count; i++) {
        struct uva__table pair;
        const char *text;
        size_t length;

        if (uva__table_item(&head->message, &head->metadata, i, &pair) &&
            head_string(&pair, 0, &text, &length) &&
            length == sizeof(key) - 1 && memcmp(text, key, length) == 0)
            return true;
    }
    return false;
}

int uva__ipc_head_read(const uint8_t *bytes, size_t size,
                       struct uva__ipc_head *out, struct uva_error *error)
{
    uint64_t version = 0, what = 0, body = 0;
    int code;

    *out = (struct uva__ipc_head){0};
    if (!uva__table_root(bytes, size, &out->message) ||
        !uva__table_number(&out->message, 0, 2, &version) ||
        !uva__table_number(&out->message, 1, 1, &what) ||
        !uva__table_child(&out->message, 2, &out->header) ||
        !uva__table_number(&out->message, 3, 8, &body) ||
        !uva__table_vector(&out->message, 4, 4, &out->metadata))
        return head_malformed("header", error);
    if (out->header.at == 0)
        return uva_error_set(error, EPROTO, "an empty header");
    if (body > INT64_MAX)
        return uva_error_set(error, EPROTO, "a body of a negative size");
    out->what = (int)what;
    out->body_size = (int64_t)body;
    code = head_version(version, &out->is_old, error);
    if (code == 0 && out->is_old && head_is_experimental(out))
        code = uva_error_set(error, ENOTSUP,
                             "the experimental compression of Arrow 0.17");
    return code;
}

/* ---- bodies ------------------------------------------------------------- */

/* The codec of a body; without that table uncompressed. */
static int head_codec(const struct uva__table *table, int32_t *out,
                      struct uva_error *error)
{
    uint64_t codec = 0, method = 0;

    *out = UVA__IPC_PLAIN;
    if (table->at == 0)
        return 0;
    if (!uva__table_number(table, 0, 1, &codec) ||
        !uva__table_number(table, 1, 1, &method))
        return head_malformed("compression", error);
    if (codec > 1 || method != 0)
        return uva_error_set(error, ENOTSUP, "compression %u of method %u",
                             (unsigned)codec, (unsigned)method);
    *out = codec == 0 ? UVA__IPC_LZ4 : UVA__IPC_ZSTD;
    return uva__ipc_compress_check(*out, error);
}

int uva__ipc_parts_read(const struct uva__table *batch,
                        struct uva__ipc_parts *out, struct uva_error *error)
{
    struct uva__table compression;
    uint64_t length = 0;

    *out = (struct uva__ipc_parts){0};
    if (!uva__table_number(batch, 0, 8, &length) ||
        !uva__table_vector(batch, 1, 16, &out->nodes) ||
        !uva__table_vector(batch, 2, 16, &out->buffers) ||
        !uva__table_child(batch, 3, &compression) ||
        !uva__table_vector(batch, 4, 8, &out->variadic))
        return head_malformed("table of a batch", error);
    if (length > INT64_MAX)
        return uva_error_set(error, EPROTO, "a negative number of rows");
    out->length = (int64_t)length;
    return head_codec(&compression, &out->codec, error);
}

int uva__ipc_values_read(const struct uva__table *values, int64_t *id,
                         bool *is_delta, struct uva__table *batch,
                         struct uva_error *error)
{
    uint64_t number = 0, delta = 0;

    if (!uva__table_number(values, 0, 8, &number) ||
        !uva__table_child(values, 1, batch) || batch->at == 0 ||
        !uva__table_number(values, 2, 1, &delta))
        return head_malformed("table of a dictionary", error);
    *id = (int64_t)number;
    *is_delta = delta != 0;
    return 0;
}

/* ---- files -------------------------------------------------------------- */

int uva__ipc_footer_read(const uint8_t *bytes, size_t size,
                         struct uva__ipc_footer *out, struct uva_error *error)
{
    struct uva__table footer;
    uint64_t version = 0; /* the messages' version counts, if it is no later */
    bool is_old;

    if (!uva__table_root(bytes, size, &footer) ||
        !uva__table_number(&footer, 0, 2, &version) ||
        !uva__table_child(&footer, 1, &out->schema) || out->schema.at == 0 ||
        !uva__table_vector(&footer, 2, PLACE_SIZE, &out->dictionaries) ||
        !uva__table_vector(&footer, 3, PLACE_SIZE, &out->batches))
        return head_malformed("footer", error);
    return version <= VERSION_5 ? 0 : head_version(version, &is_old, error);
}

struct uva__ipc_place uva__ipc_place_read(const struct uva__vector *places,
                                          size_t i)
{
    const uint8_t *at = places->items + i * PLACE_SIZE;

    return (struct uva__ipc_place){
        .offset = (int64_t)uva__table_load(at, 8),
        .head_size = (int32_t)uva__table_load(at + 8, 4),
        .body_size = (int64_t)uva__table_load(at + 16, 8)};
}

/* ---- metadata ----------------------------------------------------------- */

/* Reads the pairs, and adds up their size. */
static int head_pairs(const struct uva__table *table,
                      const struct uva__vector *vector, struct uva_pair *pairs,
                      int64_t *left, struct uva_error *error)
{
    const int64_t before = *left;

    *left -= 4;
    for (size_t i = 0; i < vector->count && *left >= 0; i++) {
        struct uva__table pair;

        if (!uva__table_item(table, vector, i, &pair) ||
            !head_string(&pair, 0, &pairs[i].key, &pairs[i].key_size) ||
            !head_string(&pair, 1, &pairs[i].value, &pairs[i].value_size))
            return head_malformed("metadata", error);
        *left -= (int64_t)(8 + pairs[i].key_size + pairs[i].value_size);
    }
    if (*left < 0 || before - *left > MOST_METADATA)
        return uva_error_set(error, EMSGSIZE, "too much metadata");
    return 0;
}

int uva__ipc_metadata_read(const struct uva__table *table,
                           const struct uva__vector *vector, int64_t *left,
                           char **out, size_t *size, struct uva_error *error)
{
    const int64_t before = *left;
    struct uva_pair *pairs;
    int code;

    *out = NULL;
    if (vector->count == 0)
        return 0;
    if (vector->count > MOST_PAIRS)
        return uva_error_set(error, EMSGSIZE, "too much metadata");
    pairs = calloc(vector->count + 1, sizeof(*pairs)); /* and their end */
    if (pairs == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    code = head_pairs(table, vector, pairs, left, error);
    *size = code == 0 ? (size_t)(before - *left) : 0;
    if (code == 0 && (*out = malloc(*size)) == NULL)
        code = uva_error_set(error, ENOMEM, "out of memory");
    if (code == 0)
        code = uva_metadata_encode(pairs, *out, size);
    free(pairs);
    return code;
}
