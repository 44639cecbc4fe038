/* SPDX-License-Identifier: Apache-2.0 */
/* The devices are attached to the worker threads, which do not use them. */
#include "stream/runtime_devices.h"

#include <errno.h>
#include <stdlib.h>

/* Attached to the workers. */
struct fence {
    struct uva__fixture fixture;  /* first */
    struct uva__devices *devices; /* counts */
};

static void fence_end(struct uva__fixture *fixture)
{
    struct fence *fence = uva__container_of(fixture, struct fence, fixture);

    uva__devices_leave(fence->devices);
    free(fence);
}

static struct uva__fixture *fence_make(void)
{
    struct fence *fence = calloc(1, sizeof(*fence));

    if (fence == NULL)
        return NULL;
    fence->fixture.end = fence_end;
    fence->devices = uva__devices_new();
    if (fence->devices != NULL)
        return &fence->fixture;
    free(fence);
    return NULL;
}

/* The job keeps the workers, and so their devices, meanwhile. */
static int fence_get(struct uva__hub *hub, bool use, struct uva__devices **out)
{
    struct uva__fixture *fixture;

    if (!uva__hub_is_alive(hub))
        return EPERM;
    if (!uva__hub_job_begin(hub))
        return ESHUTDOWN;
    fixture = uva__workers_fixture(hub->jobs.workers, fence_make);
    if (fixture != NULL) {
        *out = uva__container_of(fixture, struct fence, fixture)->devices;
        if (use)
            uva__devices_use(*out);
        else
            uva__devices_acquire(*out);
    }
    uva__hub_job_end(hub);
    return fixture != NULL ? 0 : ENOMEM;
}

int uva__fence_devices(struct uva__hub *hub, struct uva__devices **out)
{
    return fence_get(hub, false, out);
}

int uva__fence_use(struct uva__hub *hub, struct uva__devices **out)
{
    return fence_get(hub, true, out);
}

int uva__fence_service(struct uva__hub *hub, struct uva__devices **out)
{
    int code = uva__fence_devices(hub, out);

    if (code != 0)
        return code;
    code = uva__service_start(&(*out)->service);
    if (code != 0)
        uva__devices_release(*out);
    return code;
}
