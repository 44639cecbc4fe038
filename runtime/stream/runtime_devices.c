/* SPDX-License-Identifier: Apache-2.0 */
/* Attaches the devices to the worker pool: its runtimes share them. */
#include "stream/runtime_devices.h"

#include <errno.h>
#include <stdlib.h>

/* The data attached to the pool. */
struct pool_devices {
    struct uva__pool_data data;   /* first */
    struct uva__devices *devices; /* counts */
};

static void devices_end(struct uva__pool_data *data)
{
    struct pool_devices *attached =
        uva__container_of(data, struct pool_devices, data);

    uva__devices_leave(attached->devices);
    free(attached);
}

static struct uva__pool_data *devices_make(void)
{
    struct pool_devices *attached = calloc(1, sizeof(*attached));

    if (attached == NULL)
        return NULL;
    attached->data.end = devices_end;
    attached->devices = uva__devices_new();
    if (attached->devices != NULL)
        return &attached->data;
    free(attached);
    return NULL;
}

/* The job keeps the workers, and so their devices, meanwhile. */
static int devices_get(struct uva__rt *rt, bool use, struct uva__devices **out)
{
    struct uva__pool_data *data;

    if (!uva__rt_is_alive(rt))
        return EPERM;
    if (!uva__rt_job_begin(rt))
        return ESHUTDOWN;
    data = uva__pool_get_data(rt->jobs.workers, devices_make);
    if (data != NULL) {
        *out = uva__container_of(data, struct pool_devices, data)->devices;
        if (use)
            uva__devices_use(*out);
        else
            uva__devices_acquire(*out);
    }
    uva__rt_job_end(rt);
    return data != NULL ? 0 : ENOMEM;
}

int uva__rt_devices(struct uva__rt *rt, struct uva__devices **out)
{
    return devices_get(rt, false, out);
}

int uva__rt_devices_use(struct uva__rt *rt, struct uva__devices **out)
{
    return devices_get(rt, true, out);
}

int uva__rt_devices_thread(struct uva__rt *rt, struct uva__devices **out)
{
    int code = uva__rt_devices(rt, out);

    if (code != 0)
        return code;
    code = uva__device_thread_start(&(*out)->device_thread);
    if (code != 0)
        uva__devices_release(*out);
    return code;
}

void uva__rt_note_device(struct uva__rt *rt, const char *stream,
                         ArrowDeviceType device_type)
{
    const char *name = uva__device_traits(device_type)->name;
    uint64_t bit;

    if (name == NULL || device_type == ARROW_DEVICE_CPU ||
        !uva__rt_logs(rt, UVA_LOG_INFO))
        return;
    bit = (uint64_t)1 << device_type;
    if (!(uva__atomic64_or(&rt->devices_met, bit) & bit))
        uva__rt_log(rt, UVA_LOG_INFO, stream, NULL,
                    "first use of device type %s", name);
}
