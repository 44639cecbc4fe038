/* SPDX-License-Identifier: Apache-2.0 */
/* Reads bytes as small numbers. Input never runs out: zeroes follow the last
 * byte. Also a check that ends the program when it fails, with or without
 * NDEBUG. */
#ifndef UVA_FUZZ_FUZZ_INPUT_H
#define UVA_FUZZ_FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Defined by every program here: plays one input, from start to end. Returns
 * 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_RULE(truth)                                                       \
    do {                                                                       \
        if (!(truth)) {                                                        \
            (void)fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__,   \
                          #truth);                                             \
            abort();                                                           \
        }                                                                      \
    } while (false)

/* Prints a line about a step of the script, if UVA_FUZZ_TRACE is set. */
static inline void fuzz_trace(const char *who, const char *what, int64_t n)
{
    static int wanted = -1;

    if (wanted < 0)
        wanted = getenv("UVA_FUZZ_TRACE") != NULL;
    if (wanted)
        (void)fprintf(stderr, "%s: %s %lld\n", who, what, (long long)n);
}

struct fuzz_input {
    const uint8_t *data; /* borrows: the remaining bytes */
    size_t size;         /* number of remaining bytes */
};

/* Returns the next byte; 0 after the end. */
static inline uint8_t fuzz_byte(struct fuzz_input *in)
{
    if (in->size == 0)
        return 0;
    in->size--;
    return *in->data++;
}

/* Returns a number below `n`, which is 1 to 256. */
static inline int fuzz_below(struct fuzz_input *in, int n)
{
    return fuzz_byte(in) % n;
}

/* Returns a byte for a word: not its end, not a path. */
static inline char fuzz_letter(struct fuzz_input *in)
{
    const char byte = (char)fuzz_byte(in);

    return byte == '\0' || byte == '/' ? '_' : byte;
}

/* Gives a string in a block of exactly its size. */
static inline char *fuzz_word(const char *text, size_t size)
{
    char *word = malloc(size + 1);

    FUZZ_RULE(word != NULL);
    memcpy(word, text, size);
    word[size] = '\0';
    return word;
}

/* Returns a number that code often handles wrongly: small, or at the edge of a
 * type. */
static inline int64_t fuzz_strange(struct fuzz_input *in)
{
    static const int64_t edges[] = {
        -1,        -2,        INT32_MAX,     INT32_MIN,    INT64_MAX,
        INT64_MIN, 1 << 20,   (1 << 20) + 1, UINT32_MAX,   (int64_t)1 << 31,
        1 << 16,   INT16_MAX, INT64_MAX - 1, INT64_MAX / 2};
    const int edge_count = (int)(sizeof(edges) / sizeof(edges[0]));
    const int byte = fuzz_byte(in);

    return byte >= 256 - edge_count ? edges[255 - byte] : byte;
}

#endif
