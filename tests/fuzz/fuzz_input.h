/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that are read as small numbers, for the programs here: whatever they
 * say, they never run out, as there are zeroes behind the last. And the rule
 * that ends a program when it is broken, whatever NDEBUG says. */
#ifndef UVA_FUZZ_FUZZ_INPUT_H
#define UVA_FUZZ_FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* What every program here defines: one input, from begin to end. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_RULE(truth)                                                       \
    do {                                                                       \
        if (!(truth)) {                                                        \
            (void)fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__,   \
                          #truth);                                             \
            abort();                                                           \
        }                                                                      \
    } while (false)

/* Writes a line of what a script does, if UVA_FUZZ_TRACE is set. */
static inline void fuzz_trace(const char *who, const char *what, int64_t n)
{
    static int wanted = -1;

    if (wanted < 0)
        wanted = getenv("UVA_FUZZ_TRACE") != NULL;
    if (wanted)
        (void)fprintf(stderr, "%s: %s %lld\n", who, what, (long long)n);
}

struct fuzz_input {
    const uint8_t *data; /* borrows: what is left */
    size_t size;         /* of that */
};

/* The next byte; 0 behind the end. */
static inline uint8_t fuzz_byte(struct fuzz_input *in)
{
    if (in->size == 0)
        return 0;
    in->size--;
    return *in->data++;
}

/* A number below `n`, which is 1 to 256. */
static inline int fuzz_below(struct fuzz_input *in, int n)
{
    return fuzz_byte(in) % n;
}

/* A number as others get wrong: small, or at the edge of a type. */
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
