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
 * A longer block continues behind the struct. */
struct uva__layout_probe {
    uint64_t magic;
    void *object; /* borrows */
    char room[UVA__LAYOUT_PROBE_SIZE - sizeof(uint64_t) - sizeof(void *)];
};

_Static_assert(sizeof(struct uva__layout_probe) == UVA__LAYOUT_PROBE_SIZE,
               "a probe fills its line");

/* Offset of the place in its line: odd, behind the head, with four bytes behind
 * it. */
static inline uintptr_t uva__layout_probe_offset(uintptr_t line)
{
    const uintptr_t head = offsetof(struct uva__layout_probe, room);
    const uintptr_t places = (UVA__LAYOUT_PROBE_SIZE - head - 4) / 2;
    const uint64_t sum = (uint64_t)(line / UVA__LAYOUT_PROBE_SIZE) *
                         UINT64_C(0x9e3779b97f4a7c15);

    return head + 1 + 2 * (uintptr_t)((sum >> 40) % places);
}

/* Returns the address of its place. Thread: any. */
static inline char *uva__layout_probe_place(struct uva__layout_probe *probe)
{
    return (char *)probe + uva__layout_probe_offset((uintptr_t)probe);
}

/* Makes it point to `object` (borrowed), and returns its place. It is all
 * zeroes before. Thread: any one. */
static inline char *uva__layout_probe_set(struct uva__layout_probe *probe,
                                          void *object)
{
    probe->magic = UVA__LAYOUT_PROBE_MAGIC;
    probe->object = object;
    return uva__layout_probe_place(probe);
}

/* Returns the object of a place; NULL if it is not a place. Thread: any. */
static inline void *uva__layout_probe_read(const void *place)
{
    const uintptr_t low = (uintptr_t)place % UVA__LAYOUT_PROBE_SIZE;
    const uintptr_t line = (uintptr_t)place - low;
    struct uva__layout_probe probe;

    if (place == NULL || low != uva__layout_probe_offset(line))
        return NULL;
    memcpy(&probe, (const void *)line,
           offsetof(struct uva__layout_probe, room));
    return probe.magic == UVA__LAYOUT_PROBE_MAGIC ? probe.object : NULL;
}

#endif
