/* SPDX-License-Identifier: Apache-2.0 */
/* The devices are attached to the worker threads, which do not use them. */
#include "stream/runtime_devices.h"

#include <errno.h>
#include <stdlib.h>

/* Attached to the workers. */
struct fence {
    struct uva__pool_data fixture; /* first */
    struct uva__devices *devices;  /* counts */
};

static void devices_end(struct uva__pool_data *fixture)
{
    struct fence *fence = uva__container_of(fixture, struct fence, fixture);

    uva__devices_leave(fence->devices);
    free(fence);
}

static struct uva__pool_data *devices_make(void)
{
    struct fence *fence = calloc(1, sizeof(*fence));

    if (fence == NULL)
        return NULL;
    fence->fixture.end = devices_end;
    fence->devices = uva__devices_new();
    if (fence->devices != NULL)
        return &fence->fixture;
    free(fence);
    return NULL;
}

/* The job keeps the workers, and so their devices, meanwhile. */
static int devices_get(struct uva__rt *rt, bool use, struct uva__devices **out)
{
    struct uva__pool_data *fixture;

    if (!uva__rt_is_alive(rt))
        return EPERM;
    if (!uva__rt_job_begin(rt))
        return ESHUTDOWN;
    fixture = uva__pool_get_data(rt->jobs.workers, devices_make);
    if (fixture != NULL) {
        *out = uva__container_of(fixture, struct fence, fixture)->devices;
        if (use)
            uva__devices_use(*out);
        else
            uva__devices_acquire(*out);
    }
    uva__rt_job_end(rt);
    return fixture != NULL ? 0 : ENOMEM;
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
