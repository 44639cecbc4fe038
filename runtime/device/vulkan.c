/* SPDX-License-Identifier: Apache-2.0 */
/* Vulkan. The host can only query the status of an event, with the VkDevice of
 * it, which the program attaches with uva_device_attach(). A device-only event
 * is pending for ever to the host. sync_event is a VkEvent *. No library is
 * opened: the functions of the program device are used.
 *
 * Clauses: EV-07, G-57. */
#include <errno.h>
#include <string.h>

#include "arrow/vendor_error.h"
#include "device/builtin.h"
#include "device/native_handles.h"
#include "device/shared_library.h"
#include "device/vulkan_abi.h"

static const char VENDOR[] = "vulkan";

static int vulkan_load(void *ctx, const char *path, void **state,
                       struct uva_error *error)
{
    (void)path;
    *state = ctx;
    (void)uva_error_set(error, 0, "what uva_device_attach() brings in");
    return 0;
}

/* Queries with the device's own function. Looking it up is cheap: a search in a
 * table. */
static int vulkan_get_status(const struct uva_vulkan_device *native,
                             void *sync_event, struct uva_error *error)
{
    uva__vk_get_fn *get;
    uva__vk_status_fn *get_status;
    uva__vk_fn *found;
    uva__vk_event event;
    uva__vk_result status;

    memcpy(&get, &native->get_device_proc_addr, sizeof(get));
    found = get(native->device, "vkGetEventStatus");
    if (found == NULL)
        return uva__vendor_error_set(
            error, ENOSYS, VENDOR, 0,
            "vkGetEventStatus failed: the device lacks it");
    memcpy(&get_status, &found, sizeof(get_status));
    memcpy(&event, sync_event, sizeof(event));
    status = get_status(native->device, event);
    if (status == UVA__VK_EVENT_SET)
        return 0;
    if (status != UVA__VK_EVENT_RESET)
        return uva__shared_library_failed(error, EIO, VENDOR,
                                          "vkGetEventStatus", status);
    error->vendor_code = status;
    return EAGAIN;
}

static int vulkan_query(void *state, const struct uva_device_event *event,
                        struct uva_error *error)
{
    struct uva__native_handles *attached = state;
    struct uva__native_handle *native_handle = uva__native_handles_use(
        attached, ARROW_DEVICE_VULKAN, event->device_id);
    int code;

    if (native_handle == NULL)
        return uva__vendor_error_set(
            error, ENODEV, VENDOR, 0,
            "vkGetEventStatus failed: the VkDevice of "
            "device id %lld is not known; bring it in with "
            "uva_device_attach()",
            (long long)event->device_id);
    code = vulkan_get_status(uva__native_handle_native(native_handle),
                             event->sync_event, error);
    uva__native_handles_drop(attached, native_handle);
    return code;
}

const struct uva__vendor_info uva__vulkan_info = {
    .vendor = VENDOR,
    .query_call = "vkGetEventStatus",
};

const struct uva_device_ops uva__vulkan_ops = {
    .version = UVA_DEVICE_OPS_VERSION,
    .query_on_loop = true,
    .name = "VULKAN",
    .load = vulkan_load,
    .query = vulkan_query,
};
