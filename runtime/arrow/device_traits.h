/* SPDX-License-Identifier: Apache-2.0 */
/* The device types of the Arrow document: where their memory is, and the events
 * of their arrays. How a back end works with them is in device/. */
#ifndef UVA_ARROW_DEVICE_TRAITS_H
#define UVA_ARROW_DEVICE_TRAITS_H

#include <stdbool.h>

#include "uvarrow/arrow_abi.h"

enum { UVA__DEVICE_TYPES = 17 }; /* the highest of the document, and one more */

/* Where the buffers of a type are. */
enum uva__device_memory {
    UVA__MEMORY_DEVICE, /* on the device; also of a type that is unknown here */
    UVA__MEMORY_MANAGED, /* its pages move to where they are accessed */
    UVA__MEMORY_PINNED,  /* on the host, from the vendor's allocator for it */
    UVA__MEMORY_PLAIN    /* on the host, from any allocator */
};

/* The object behind `sync_event` of a type. Types with events of one kind can
 * wait for each other's. */
enum uva__device_events {
    UVA__EVENTS_UNKNOWN, /* the producer defines it, or the type is unknown */
    UVA__EVENTS_NONE,    /* it is always NULL, and ignored if it is not */
    UVA__EVENTS_CUDA,
    UVA__EVENTS_HIP,
    UVA__EVENTS_OPENCL,
    UVA__EVENTS_VULKAN,
    UVA__EVENTS_METAL,
    UVA__EVENTS_ONEAPI
};

/* One device type. */
struct uva__device_traits {
    const char *name; /* static: without ARROW_DEVICE_; NULL: not a type */
    enum uva__device_memory memory;
    enum uva__device_events events;
    ArrowDeviceType pinned_type; /* of the pinned memory that copies between the
                                    type and the host use; 0: without pinned
                                    memory */
};

extern const struct uva__device_traits uva__device_types[UVA__DEVICE_TYPES];

/* Gives the row of a type, never NULL: for an unknown type all zeroes.
 * Thread: any. */
static inline const struct uva__device_traits *
uva__device_traits(ArrowDeviceType type)
{
    return &uva__device_types[type > 0 && type < UVA__DEVICE_TYPES ? type : 0];
}

/* The three questions below have different answers for pinned and for managed
 * memory; each user has to choose the right one. */

/* Whether the memory is the host's: the library reads offsets from it, and a
 * copy to the CPU is empty. Not managed memory: our read would move its pages
 * away from the device, and older devices let the host read only while they are
 * idle, so the driver copies it. Thread: any. */
static inline bool uva__device_is_host(ArrowDeviceType type)
{
    const enum uva__device_memory memory = uva__device_traits(type)->memory;

    return memory == UVA__MEMORY_PINNED || memory == UVA__MEMORY_PLAIN;
}

/* Whether the memory is from the vendor's allocator of pinned memory, and has
 * to be returned to that. Not managed memory, which has its own allocator.
 * Thread: any. */
static inline bool uva__device_is_pinned(ArrowDeviceType type)
{
    return uva__device_traits(type)->memory == UVA__MEMORY_PINNED;
}

/* Whether a program on the host may read the memory once the array's event, if
 * any, is complete. Managed memory too: a program that gets such a batch has
 * chosen to read it. Thread: any. */
static inline bool uva__device_is_readable(ArrowDeviceType type)
{
    return uva__device_traits(type)->memory != UVA__MEMORY_DEVICE;
}

/* Whether the event of an array, if not NULL, has to be waited for.
 * Thread: any. */
static inline bool uva__device_has_events(ArrowDeviceType type)
{
    return uva__device_traits(type)->events != UVA__EVENTS_NONE;
}

#endif
