/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions on devices: registering a type, reading the facts about
 * one, and attaching native handles. */
#include <errno.h>

#include "loop/loop.h"
#include "stream/runtime_devices.h"
#include "uvarrow/device.h"

/* Gives the devices, counted, or an error. */
static int devices_get(struct uva_runtime *runtime, struct uva__devices **out,
                       struct uva_error *error)
{
    struct uva__rt *rt = uva__loop_rt(runtime);
    int code;

    if (rt == NULL)
        return uva_error_set(error, EINVAL, "`runtime` is NULL");
    code = uva__rt_devices(rt, out);
    if (code != 0)
        return uva_error_set(error, code,
                             code == ESHUTDOWN ? "the runtime is closing"
                             : code == EPERM   ? "a forked child has no devices"
                                               : "no memory for devices");
    return 0;
}

int uva_device_register(struct uva_runtime *runtime,
                        ArrowDeviceType device_type,
                        const struct uva_device_ops *ops, void *ctx,
                        struct uva_error *error)
{
    struct uva__devices *devices;
    int code = devices_get(runtime, &devices, error);

    if (code != 0)
        return code;
    code = uva__devices_register(devices, device_type, ops, ctx, error);
    uva__devices_release(devices);
    return code;
}

int uva_device_get_info(struct uva_runtime *runtime,
                        ArrowDeviceType device_type,
                        struct uva_device_info *out)
{
    struct uva__devices *devices;
    int code;

    if (out == NULL)
        return EINVAL;
    code = devices_get(runtime, &devices, NULL);
    if (code != 0)
        return code;
    code = uva__devices_describe(devices, device_type, out);
    uva__devices_release(devices);
    return code;
}

/* Returns the size of a type's struct of native handles; 0 without one. */
static size_t native_size(ArrowDeviceType device_type)
{
    if (device_type == ARROW_DEVICE_VULKAN)
        return sizeof(struct uva_vulkan_device);
    return device_type == ARROW_DEVICE_OPENCL ? sizeof(struct uva_opencl_device)
                                              : 0;
}

int uva_device_attach(struct uva_runtime *runtime, ArrowDeviceType device_type,
                      int64_t device_id, const void *native,
                      struct uva_error *error)
{
    const size_t size = native_size(device_type);
    struct uva__devices *devices;
    int code;

    if (native == NULL)
        return uva_error_set(error, EINVAL,
                             "uva_device_attach: `native` is NULL");
    if (size == 0)
        return uva_error_set(error, ENOTSUP,
                             "uva_device_attach: device type %d needs no "
                             "handles of yours",
                             (int)device_type);
    code = devices_get(runtime, &devices, error);
    if (code != 0)
        return code;
    code = uva__native_handles_add(&devices->attached, device_type, device_id,
                                   native, size);
    uva__devices_release(devices);
    return code == 0 ? 0
                     : uva_error_set(error, code,
                                     code == EBUSY
                                         ? "uva_device_attach: the device has "
                                           "handles; detach it first"
                                         : "no memory for handles");
}

int uva_device_detach(struct uva_runtime *runtime, ArrowDeviceType device_type,
                      int64_t device_id)
{
    struct uva__devices *devices;
    int code = devices_get(runtime, &devices, NULL);

    if (code != 0)
        return code;
    code =
        uva__native_handles_remove(&devices->attached, device_type, device_id)
            ? 0
            : ENOENT;
    uva__devices_release(devices);
    return code;
}
