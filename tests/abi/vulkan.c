/* SPDX-License-Identifier: Apache-2.0 */
/* Checks our declarations of Vulkan's binary interface against vulkan.h: the
 * functions must have the types that we call them with, and handles the same
 * size. Our types are Vulkan's own here. */
#include <vulkan/vulkan.h>

#define UVA_VULKAN_TYPES
typedef VkDevice uva__vk_device;
typedef VkEvent uva__vk_event;
typedef VkResult uva__vk_result;

#include "device/vulkan_abi.h"

#define SAME(ours, theirs)                                                     \
    _Static_assert((int)(ours) == (int)(theirs), #ours " differs")
#define AS_LARGE(ours, theirs)                                                 \
    _Static_assert(sizeof(ours) == sizeof(theirs), #theirs " differs")

SAME(UVA__VK_EVENT_SET, VK_EVENT_SET);
SAME(UVA__VK_EVENT_RESET, VK_EVENT_RESET);

AS_LARGE(int32_t, VkResult);
AS_LARGE(uint64_t, VkEvent);
AS_LARGE(void *, VkDevice);

extern uva__vk_get_fn *const vulkan_get;
uva__vk_get_fn *const vulkan_get = vkGetDeviceProcAddr;

extern uva__vk_status_fn *const vulkan_status;
uva__vk_status_fn *const vulkan_status = vkGetEventStatus;
