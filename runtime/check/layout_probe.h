/* SPDX-License-Identifier: Apache-2.0 */
/* A `private_data` that identifies its object and at the same time points to a
 * metadata block. The Arrow document prints an older producer struct, with
 * additional_metadata at the offset of our private_data, so one pointer must
 * serve both readings. Such an address is odd, which no pointer to a struct is,
 * and its low bits are a checksum of the rest: a foreign pointer is recognised
 * without touching memory. */
#ifndef UVA_CHECK_LAYOUT_PROBE_H
#define UVA_CHECK_LAYOUT_PROBE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { UVA__LAYOUT_PROBE_SIZE = 64 }; /* and its alignment */

#define UVA__LAYOUT_PROBE_MAGIC UINT64_C(0x7561736967706f73)

/* A header, then zeroes: any address in them reads as an empty metadata block.
 * A longer block continues after the struct. */
struct uva__layout_probe {
    uint64_t magic;
    void *object; /* borrows */
    char room[UVA__LAYOUT_PROBE_SIZE - sizeof(uint64_t) - sizeof(void *)];
};

_Static_assert(sizeof(struct uva__layout_probe) == UVA__LAYOUT_PROBE_SIZE,
               "a probe fills its block");

/* Offset of the probe's address in its block of UVA__LAYOUT_PROBE_SIZE bytes:
 * odd, after the header, with at least four bytes after it. */
static inline uintptr_t uva__layout_probe_offset(uintptr_t block)
{
    const uintptr_t header = offsetof(struct uva__layout_probe, room);
    const uintptr_t choices = (UVA__LAYOUT_PROBE_SIZE - header - 4) / 2;
    const uint64_t sum = (uint64_t)(block / UVA__LAYOUT_PROBE_SIZE) *
                         UINT64_C(0x9e3779b97f4a7c15);

    return header + 1 + 2 * (uintptr_t)((sum >> 40) % choices);
}

/* Returns the address that stands for the probe. Thread: any. */
static inline char *uva__layout_probe_address(struct uva__layout_probe *probe)
{
    return (char *)probe + uva__layout_probe_offset((uintptr_t)probe);
}

/* Makes the probe, all zeroes so far, identify `object` (borrowed), and returns
 * the probe's address. Thread: any one. */
static inline char *uva__layout_probe_set(struct uva__layout_probe *probe,
                                          void *object)
{
    probe->magic = UVA__LAYOUT_PROBE_MAGIC;
    probe->object = object;
    return uva__layout_probe_address(probe);
}

/* Returns the object that `address` identifies; NULL if it is not the address
 * of a probe. Thread: any. */
static inline void *uva__layout_probe_read(const void *address)
{
    const uintptr_t low = (uintptr_t)address % UVA__LAYOUT_PROBE_SIZE;
    const uintptr_t block = (uintptr_t)address - low;
    struct uva__layout_probe probe;

    if (address == NULL || low != uva__layout_probe_offset(block))
        return NULL;
    memcpy(&probe, (const void *)block,
           offsetof(struct uva__layout_probe, room));
    return probe.magic == UVA__LAYOUT_PROBE_MAGIC ? probe.object : NULL;
}

#endif
