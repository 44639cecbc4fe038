/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow's key-value metadata: read, measured, copied and written.
 *
 * A block is an int32 count, then per pair the key and the value, each an int32
 * length and that many bytes. The size of a block is not known beforehand, so
 * each length is checked against the caps before its bytes are read. Numbers
 * lie at any address. Clauses: MD-01, MD-04, MD-09. */
#include "arrow/metadata.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "uvarrow/arrow.h"

#define METADATA_MAX_PAIRS (1024 * 1024)
#define METADATA_MAX_BYTES ((size_t)64 * 1024 * 1024)
#define METADATA_NUMBER    sizeof(int32_t)

/* ---- reading ------------------------------------------------------------ */

static int32_t metadata_number(const char *at)
{
    int32_t number;

    memcpy(&number, at, sizeof(number));
    return number;
}

/* Reads one length and its bytes at `*offset`, and moves `*offset` past them.
 * No bytes are "", as whoever writes the pair again takes size 0 for a C
 * string. */
static int metadata_bytes(const char *block, size_t *offset, const char **text,
                          size_t *text_size)
{
    int32_t size;

    if (*offset > METADATA_MAX_BYTES - METADATA_NUMBER)
        return EMSGSIZE;
    size = metadata_number(block + *offset);
    if (size < 0)
        return EINVAL;
    *offset += METADATA_NUMBER;
    if ((size_t)size > METADATA_MAX_BYTES - *offset)
        return EMSGSIZE;
    *text = size == 0 ? "" : block + *offset;
    *text_size = (size_t)size;
    *offset += (size_t)size;
    return 0;
}

/* Checks for a pair at `at`: 0, ENOENT at the end, or the code for a malformed
 * block. */
static int metadata_inspect(const char *block, const struct uva_metadata_at *at)
{
    int32_t count;

    if (block == NULL)
        return ENOENT;
    count = metadata_number(block);
    if (count < 0 || at->index < 0)
        return EINVAL;
    if (count > METADATA_MAX_PAIRS)
        return EMSGSIZE;
    return at->index < count ? 0 : ENOENT;
}

int uva_metadata_next(const char *block, struct uva_metadata_at *at,
                      struct uva_pair *pair)
{
    size_t offset = at->offset == 0 ? METADATA_NUMBER : at->offset;
    int code = metadata_inspect(block, at);

    if (code == 0)
        code = metadata_bytes(block, &offset, &pair->key, &pair->key_size);
    if (code == 0)
        code = metadata_bytes(block, &offset, &pair->value, &pair->value_size);
    if (code != 0)
        return code;
    at->offset = offset;
    at->index++;
    return 0;
}

int uva_metadata_get(const char *block, const char *key, struct uva_pair *pair)
{
    const size_t size = strlen(key);
    struct uva_metadata_at at = {0};
    struct uva_pair found;
    int code;

    while ((code = uva_metadata_next(block, &at, &found)) == 0) {
        if (found.key_size != size || memcmp(found.key, key, size) != 0)
            continue;
        *pair = found;
        return 0;
    }
    return code;
}

int uva_metadata_size(const char *block, size_t *size)
{
    struct uva_metadata_at at = {.offset = block == NULL ? 0 : METADATA_NUMBER};
    struct uva_pair pair;
    int code;

    do
        code = uva_metadata_next(block, &at, &pair);
    while (code == 0);
    if (code != ENOENT)
        return code;
    *size = at.offset;
    return 0;
}

/* ---- keeping ------------------------------------------------------------ */

int uva__metadata_copy_block(const struct uva_allocator *allocator,
                             const char *block, struct uva__metadata *out)
{
    size_t size;
    const int code = uva_metadata_size(block, &size);

    assert(allocator != NULL);
    *out = (struct uva__metadata){0};
    if (code != 0 || size <= METADATA_NUMBER)
        return code;
    out->block = uva__memory_new(allocator, size);
    if (out->block == NULL)
        return ENOMEM;
    memcpy(out->block, block, size);
    out->size = size;
    return 0;
}

void uva__metadata_fini(struct uva__metadata *metadata,
                        const struct uva_allocator *allocator, const char *room)
{
    if (metadata->block != room)
        uva__memory_free(allocator, metadata->block, metadata->size);
    *metadata = (struct uva__metadata){0};
}

/* ---- writing ------------------------------------------------------------ */

/* The size of a key or a value that somebody gave. */
static size_t metadata_size(const char *text, size_t size)
{
    return size > 0 || text == NULL ? size : strlen(text);
}

/* Adds the encoded size of a text to `*size`; EOVERFLOW if an int32 is too
 * small for the sum. */
static int metadata_add(size_t text_size, size_t *size)
{
    const uint64_t sum = (uint64_t)*size + METADATA_NUMBER + text_size;

    if (text_size > INT32_MAX || sum > INT32_MAX)
        return EOVERFLOW;
    *size = (size_t)sum;
    return 0;
}

static int metadata_measure(const struct uva_pair *pairs, size_t *count,
                            size_t *size)
{
    int code = 0;

    *size = METADATA_NUMBER;
    for (*count = 0; pairs->key != NULL && code == 0; pairs++, ++*count) {
        code = metadata_add(metadata_size(pairs->key, pairs->key_size), size);
        if (code == 0)
            code = metadata_add(metadata_size(pairs->value, pairs->value_size),
                                size);
    }
    return code;
}

static char *metadata_write_number(char *to, size_t number)
{
    const int32_t written = (int32_t)number;

    memcpy(to, &written, sizeof(written));
    return to + sizeof(written);
}

static char *metadata_write(char *to, const char *text, size_t given_size)
{
    const size_t size = metadata_size(text, given_size);

    to = metadata_write_number(to, size);
    if (size != 0)
        memcpy(to, text, size);
    return to + size;
}

int uva_metadata_encode(const struct uva_pair *pairs, char *buffer,
                        size_t *size)
{
    const size_t room = buffer == NULL ? 0 : *size;
    size_t needed, count;

    if (pairs == NULL || pairs->key == NULL) {
        *size = 0;
        return 0;
    }
    if (metadata_measure(pairs, &count, &needed) != 0)
        return EOVERFLOW;
    *size = needed;
    if (needed > room)
        return EMSGSIZE;
    buffer = metadata_write_number(buffer, count);
    for (; pairs->key != NULL; pairs++) {
        buffer = metadata_write(buffer, pairs->key, pairs->key_size);
        buffer = metadata_write(buffer, pairs->value, pairs->value_size);
    }
    return 0;
}
