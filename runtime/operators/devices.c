/* SPDX-License-Identifier: Apache-2.0 */
/* What a program says and asks of devices, on the workers of a runtime. */
#include <errno.h>

#include "stream/fence.h"
#include "uv/loop.h"
#include "uvarrow/device.h"

/* Gives the devices with a count, or says why there are none. */
static int devices_get(struct uva_runtime *runtime, struct uva__devices **out,
                       struct uva_error *error)
{
    struct uva__hub *hub = uva__loop_hub(runtime);
    int code;

    if (hub == NULL)
        return uva_error_set(error, EINVAL, "`runtime` is NULL");
    code = uva__fence_devices(hub, out);
    if (code != 0)
        return uva_error_set(error, code,
                             code == ESHUTDOWN ? "the runtime is closing"
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
