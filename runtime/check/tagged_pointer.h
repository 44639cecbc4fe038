/* SPDX-License-Identifier: Apache-2.0 */
/* Tagged pointers to the check's own objects, for `private_data` fields that
 * foreign code carries: the address and a generation, with two checksums, so
 * that an altered one is recognised without touching memory. Objects are
 * aligned to 64 bytes and lie below 2^48. */
#ifndef UVA_CHECK_TAGGED_POINTER_H
#define UVA_CHECK_TAGGED_POINTER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UVA__TAGGED_POINTER_ALIGN = 64 };

/* A decoded tagged pointer. */
struct uva__tagged_pointer {
    void *object;       /* borrows; NULL: it is not tagged */
    uint8_t generation; /* of the object */
    bool intact;        /* no other bit was altered */
};

/* The exclusive or of all bytes, so that no single change goes unnoticed. Never
 * 0, so that a plain pointer, which has zeroes there, is not a tagged one. */
static inline uint64_t uva__tagged_pointer_sum(uint64_t word)
{
    word ^= word >> 32;
    word ^= word >> 16;
    word = (word ^ word >> 8) & 0xff;
    return word == 0 ? 0xff : word;
}

/* From the low bits on: 5 bits of a sum of all, one zero that stops a carry,
 * the address, 8 bits of a sum of the address, 8 of the generation. */
static inline void *uva__tagged_pointer_make(const void *object,
                                             uint8_t generation)
{
    uint64_t tagged = (uint64_t)(uintptr_t)object, sum;

    assert((tagged & 0xffff00000000003fu) == 0);
    tagged |= uva__tagged_pointer_sum(tagged) << 48 | (uint64_t)generation
                                                          << 56;
    sum = uva__tagged_pointer_sum(tagged);
    tagged |= (sum ^ sum >> 5) & 0x1f;
    return (void *)(uintptr_t)tagged;
}

static inline struct uva__tagged_pointer
uva__tagged_pointer_read(const void *pointer)
{
    const uint64_t tagged = (uint64_t)(uintptr_t)pointer;
    const uint64_t object = tagged & 0x0000ffffffffffc0u;
    struct uva__tagged_pointer read = {.object = NULL};

    if (object == 0 || (tagged >> 48 & 0xff) != uva__tagged_pointer_sum(object))
        return read;
    read.object = (void *)(uintptr_t)object;
    read.generation = (uint8_t)(tagged >> 56);
    read.intact = uva__tagged_pointer_make(read.object, read.generation) ==
                  (void *)pointer;
    return read;
}

#endif
