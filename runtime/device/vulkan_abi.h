/* SPDX-License-Identifier: Apache-2.0 */
/* The part of Vulkan's binary interface that we use. Where its headers are
 * installed, tests/abi compares them with this file. */
#ifndef UVA_DEVICE_VULKAN_ABI_H
#define UVA_DEVICE_VULKAN_ABI_H

#include <stdint.h>

#ifndef UVA_VULKAN_TYPES /* tests/abi has the vendor's own */
typedef void *uva__vk_device;
typedef uint64_t uva__vk_event; /* on machines of 32 and of 64 bits */
typedef int32_t uva__vk_result;
#endif

typedef void uva__vk_fn(void);
typedef uva__vk_fn *uva__vk_get_fn(uva__vk_device device, const char *name);
typedef uva__vk_result uva__vk_status_fn(uva__vk_device device,
                                         uva__vk_event event);

enum {
    UVA__VK_EVENT_SET = 3,  /* VK_EVENT_SET */
    UVA__VK_EVENT_RESET = 4 /* VK_EVENT_RESET */
};

#endif
