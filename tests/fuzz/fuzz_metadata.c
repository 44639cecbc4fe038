/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata blocks of any bytes, compared with a simple reader that knows where
 * they end.
 *
 * A block does not state its size, so the decoder may be led anywhere below its
 * limit. The bytes are therefore followed by others that end it wherever it
 * reads (-1), up to the limit, and then by a page without access. A block that
 * is complete by itself is read a second time without bytes after it. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "arrow/metadata.h"
#include "base/memory.h"
#include "fuzz/fuzz_input.h"
#include "uvarrow/arrow.h"

#define CAP       ((size_t)64 * 1024 * 1024)
#define PAGE      ((size_t)4096)
#define MOST      ((size_t)4096) /* maximum number of bytes used of an input */
#define MAX_PAIRS (1024 * 1024)

/* ---- the simple reader -------------------------------------------------- */

/* The content of the block. */
struct plain {
    int code;       /* expected return code of uva_metadata_size() */
    uint64_t size;  /* expected size */
    uint64_t pairs; /* pairs before the end or the error */
};

static uint32_t plain_number(const uint8_t *block, uint64_t at)
{
    uint32_t number;

    memcpy(&number, block + at, sizeof(number));
    return number;
}

/* Reads a length and its bytes: returns the offset after them, or 0 with the
 * code. */
static uint64_t plain_bytes(const uint8_t *block, uint64_t at, int *code)
{
    uint32_t size;

    if (at + 4 > CAP) {
        *code = EMSGSIZE;
        return 0;
    }
    size = plain_number(block, at);
    if (size > INT32_MAX)
        *code = EINVAL;
    else if (at + 4 + size > CAP)
        *code = EMSGSIZE;
    return *code == 0 ? at + 4 + size : 0;
}

static struct plain plain_read(const uint8_t *block)
{
    const uint32_t count = plain_number(block, 0);
    struct plain plain = {.size = 4};

    if (count > INT32_MAX)
        plain.code = EINVAL;
    else if (count > MAX_PAIRS)
        plain.code = EMSGSIZE;
    while (plain.code == 0 && plain.pairs < count) {
        uint64_t at = plain_bytes(block, plain.size, &plain.code);
        if (plain.code == 0)
            at = plain_bytes(block, at, &plain.code);
        if (plain.code != 0)
            break;
        plain.size = at;
        plain.pairs++;
    }
    return plain;
}

/* ---- checks ------------------------------------------------------------- */

static void check_size(const char *block, const struct plain *plain)
{
    size_t size = 77;

    FUZZ_RULE(uva_metadata_size(block, &size) == plain->code);
    FUZZ_RULE(size == (plain->code == 0 ? plain->size : 77));
}

/* An empty text is "", wherever it lies. */
static bool lies_at(const char *text, size_t size, const char *at)
{
    return size > 0 ? text == at : text[0] == '\0';
}

/* All pairs must come in order, must not overlap, and must lie before the
 * end. */
static void check_pairs(const char *block, const struct plain *plain)
{
    const char *end = block + 4;
    struct uva_metadata_at at = {0};
    struct uva_pair pair;
    uint64_t pairs = 0;
    int code;

    while ((code = uva_metadata_next(block, &at, &pair)) == 0) {
        FUZZ_RULE(lies_at(pair.key, pair.key_size, end + 4));
        end += 4 + pair.key_size;
        FUZZ_RULE(lies_at(pair.value, pair.value_size, end + 4));
        end += 4 + pair.value_size;
        FUZZ_RULE(end <= block + CAP);
        pairs++;
    }
    FUZZ_RULE(code == (plain->code == 0 ? ENOENT : plain->code));
    FUZZ_RULE(pairs == plain->pairs);
    FUZZ_RULE(uva_metadata_next(block, &at, &pair) == code);
}

/* A position that no call returned must be refused or harmless. */
static void check_place(const char *block, struct fuzz_input *in)
{
    struct uva_metadata_at at = {0};
    struct uva_pair pair;

    at.index = fuzz_strange(in) % INT32_MAX;
    FUZZ_RULE(at.index >= 0 || uva_metadata_next(block, &at, &pair) == EINVAL);
}

/* The first value of a key must be found, and no other. */
static void check_get(const char *block, const struct uva_pair *pairs,
                      size_t count)
{
    const struct uva_pair *const last = &pairs[count - 1];
    char *key = calloc(1, last->key_size + 1);
    struct uva_pair pair;
    size_t first = 0;

    FUZZ_RULE(key != NULL);
    memcpy(key, last->key, last->key_size);
    if (strlen(key) == last->key_size) {
        while (pairs[first].key_size != last->key_size ||
               memcmp(pairs[first].key, key, last->key_size) != 0)
            first++;
        FUZZ_RULE(uva_metadata_get(block, key, &pair) == 0);
        FUZZ_RULE(pair.value == pairs[first].value);
        FUZZ_RULE(pair.value_size == pairs[first].value_size);
    }
    free(key);
}

/* For a block that is complete by itself: no byte after it may be read, a copy
 * must be equal, and writing its pairs again must give the same block. */
static void check_whole(const char *block, size_t size)
{
    static const char absent[] = "no such key";
    struct uva_pair pairs[65] = {{0}}, pair;
    struct uva_allocator memory;
    struct uva_metadata_at at = {0};
    struct uva__metadata copy;
    char again[MOST];
    size_t count = 0, room = sizeof(again);

    FUZZ_RULE(uva__memory_adopt(&(struct uva_allocator){0}, &memory) == 0);
    FUZZ_RULE(uva__metadata_copy(&memory, block, &copy) == 0);
    FUZZ_RULE((copy.block == NULL) == (size == 4));
    FUZZ_RULE(copy.size == (size == 4 ? 0 : size));
    FUZZ_RULE(copy.block == NULL || memcmp(copy.block, block, size) == 0);
    uva__metadata_fini(&copy, &memory, NULL);
    if (memmem(block, size, absent, strlen(absent)) == NULL)
        FUZZ_RULE(uva_metadata_get(block, absent, &pair) == ENOENT);
    while (count < 64 && uva_metadata_next(block, &at, &pairs[count]) == 0)
        count++;
    if (count == 0 || count == 64)
        return;
    pairs[count] = (struct uva_pair){0}; /* if the last one was not complete */
    check_get(block, pairs, count);
    FUZZ_RULE(uva_metadata_encode(pairs, again, &room) == 0);
    FUZZ_RULE(room == size && memcmp(again, block, size) == 0);
    room = size - 1;
    FUZZ_RULE(uva_metadata_encode(pairs, again, &room) == EMSGSIZE);
    FUZZ_RULE(room == size);
}

/* ---- one input ---------------------------------------------------------- */

/* Maps memory up to the limit, filled, followed by a page without access. */
static uint8_t *map_input(void)
{
    static uint8_t *fixture;

    if (fixture != NULL)
        return fixture;
    fixture = mmap(NULL, CAP + 2 * PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    FUZZ_RULE(fixture != MAP_FAILED);
    FUZZ_RULE(mprotect(fixture + PAGE + CAP, PAGE, PROT_NONE) == 0);
    fixture += PAGE;
    memset(fixture, 0xFF, CAP);
    return fixture;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size < MOST ? size : MOST};
    char *const block = (char *)map_input() - fuzz_below(&in, 8); /* MD-04 */
    const size_t used = in.size;
    struct plain plain;

    memcpy(block, in.data, used);
    plain = plain_read((uint8_t *)block);
    check_size(block, &plain);
    check_pairs(block, &plain);
    check_place(block, &in);
    if (plain.code == 0 && plain.size <= used) {
        char *exact = malloc((size_t)plain.size);
        FUZZ_RULE(exact != NULL);
        memcpy(exact, block, (size_t)plain.size);
        check_size(exact, &plain);
        check_pairs(exact, &plain);
        check_whole(exact, (size_t)plain.size);
        free(exact);
    }
    memset(block, 0xFF, used);
    return 0;
}
