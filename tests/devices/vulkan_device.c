/* SPDX-License-Identifier: Apache-2.0 */
/* Works with any driver, because the tests need only Vulkan 1.0. */
#include "devices/vulkan_device.h"

#include <check.h>
#include <dlfcn.h>
#include <string.h>

struct vulkan_door door;

/* ---- the wrapped functions ---------------------------------------------- */

static VKAPI_ATTR VkResult VKAPI_CALL door_ask(VkDevice device, VkEvent event)
{
    const int fault = atomic_load(&door.fault);

    if (atomic_load(&door.banned))
        atomic_store(&door.misused, true);
    atomic_fetch_add(&door.calls, 1);
    return fault != 0 ? fault : door.ask(device, event);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL door_find(VkDevice device,
                                                          const char *name)
{
    if (atomic_load(&door.banned))
        atomic_store(&door.misused, true);
    if (strcmp(name, "vkGetEventStatus") != 0)
        return vkGetDeviceProcAddr(device, name);
    return door.absent ? NULL : (PFN_vkVoidFunction)door_ask;
}

/* ---- the driver --------------------------------------------------------- */

/* Keeps lavapipe in memory when the loader unloads it with the last instance:
 * otherwise LeakSanitizer finds the driver's memory for each thread. */
static void driver_keep_loaded(void)
{
    void *driver = dlopen("libvulkan_lvp.so", RTLD_NOW | RTLD_NODELETE);

    if (driver != NULL)
        (void)dlclose(driver);
}

VkInstance vulkan_instance_make(VkPhysicalDevice *physical)
{
    const VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                   .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo how = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &app};
    VkInstance instance;
    uint32_t count = 1;
    VkResult code;

    driver_keep_loaded();
    if (vkCreateInstance(&how, NULL, &instance) != VK_SUCCESS)
        return VK_NULL_HANDLE;
    code = vkEnumeratePhysicalDevices(instance, &count, physical);
    if (count == 1 && (code == VK_SUCCESS || code == VK_INCOMPLETE))
        return instance;
    vkDestroyInstance(instance, NULL);
    return VK_NULL_HANDLE;
}

VkDevice vulkan_device_make(VkPhysicalDevice physical)
{
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueCount = 1,
        .pQueuePriorities = &priority};
    const VkDeviceCreateInfo how = {.sType =
                                        VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                    .queueCreateInfoCount = 1,
                                    .pQueueCreateInfos = &queue};
    PFN_vkVoidFunction ask;
    VkDevice device;

    ck_assert_int_eq(vkCreateDevice(physical, &how, NULL, &device), VK_SUCCESS);
    ask = vkGetDeviceProcAddr(device, "vkGetEventStatus");
    door.ask = (PFN_vkGetEventStatus)ask;
    atomic_store(&door.calls, 0);
    atomic_store(&door.banned, false);
    atomic_store(&door.misused, false);
    atomic_store(&door.fault, 0);
    door.absent = false;
    return device;
}

VkEvent vulkan_event_make(VkDevice device, VkEventCreateFlags flags)
{
    const VkEventCreateInfo how = {.sType = VK_STRUCTURE_TYPE_EVENT_CREATE_INFO,
                                   .flags = flags};
    VkEvent event;

    ck_assert_int_eq(vkCreateEvent(device, &how, NULL, &event), VK_SUCCESS);
    return event;
}

int vulkan_device_attach(VkDevice device, struct uva_runtime *runtime,
                         int64_t device_id, struct uva_error *error)
{
    PFN_vkGetDeviceProcAddr find = door_find;
    struct uva_vulkan_device native = {.device = device};

    memcpy(&native.get_device_proc_addr, &find, sizeof(find));
    return uva_device_attach(runtime, ARROW_DEVICE_VULKAN, device_id, &native,
                             error);
}
