/* SPDX-License-Identifier: Apache-2.0 */
/* A device of a real Vulkan driver, and the door through which the library asks
 * after its events: the driver's function, with a count, or a fault in its
 * place. */
#ifndef UVA_DEVICES_VULKAN_DEVICE_H
#define UVA_DEVICES_VULKAN_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <vulkan/vulkan.h>

#include "uvarrow/device.h"

/* Vulkan gives a function no ctx, so there is one. */
struct vulkan_door {
    PFN_vkGetEventStatus ask; /* the driver's */
    atomic_long calls;
    atomic_bool banned; /* no call may come any more */
    atomic_bool misused;
    atomic_int fault; /* a VkResult to give instead; 0: none */
    bool absent;      /* the device has no such function */
};

extern struct vulkan_door door;

/* Gives the first driver's device; VK_NULL_HANDLE: there is none. */
VkInstance vulkan_instance_make(VkPhysicalDevice *physical);

/* Makes a device with one queue; the door is as new. */
VkDevice vulkan_device_make(VkPhysicalDevice physical);

VkEvent vulkan_event_make(VkDevice device, VkEventCreateFlags flags);

/* Attaches it with the door; as uva_device_attach(). */
int vulkan_device_attach(VkDevice device, struct uva_runtime *runtime,
                         int64_t device_id, struct uva_error *error);

#endif
