/* SPDX-License-Identifier: Apache-2.0 */
/* A device of a real Vulkan driver, and a wrapper of the function through which
 * the library queries events: it counts calls, or returns an error instead. */
#ifndef UVA_DEVICES_VULKAN_DEVICE_H
#define UVA_DEVICES_VULKAN_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <vulkan/vulkan.h>

#include "uvarrow/device.h"

/* A global, because Vulkan passes no ctx to the function. */
struct vulkan_door {
    PFN_vkGetEventStatus ask; /* the driver's function */
    atomic_long calls;
    atomic_bool banned; /* the library must not call any more */
    atomic_bool misused;
    atomic_int fault; /* a VkResult to return instead; 0: no fault */
    bool absent;      /* the device lacks the function */
};

extern struct vulkan_door door;

/* Gives the first driver's device; VK_NULL_HANDLE: there is no device. */
VkInstance vulkan_instance_make(VkPhysicalDevice *physical);

/* Makes a device with one queue, and resets the wrapper. */
VkDevice vulkan_device_make(VkPhysicalDevice physical);

VkEvent vulkan_event_make(VkDevice device, VkEventCreateFlags flags);

/* Attaches the device with the wrapper, as uva_device_attach(). */
int vulkan_device_attach(VkDevice device, struct uva_runtime *runtime,
                         int64_t device_id, struct uva_error *error);

#endif
