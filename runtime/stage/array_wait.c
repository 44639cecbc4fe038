/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for one array, without a stream.
 *
 * Happy path:  a watch is begun at once -> it posts when it is over -> the
 *              answer on the loop.
 *
 * What can fail: the wait, which is the answer.
 *
 * On close:    what waits is cancelled once the grace is over, and answered. */
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "device/wait_error.h"
#include "stream/runtime_devices.h"
#include "loop/loop.h"
#include "uvarrow/device.h"

struct array_wait {
    struct uva__hub *hub;           /* counts */
    struct uva__devices *devices;   /* counts */
    struct ArrowDeviceArray *array; /* borrows, until answered */
    struct uva_watch *watch;        /* counts; NULL: there is none */
    struct uva_error error;         /* the answer, unless the watch has it */
    struct uva__node node;          /* posted at first, and when it is over;
                                       counted by posts and the watch */
    uva_array_wait_fn *fn;          /* the user's */
    void *ctx;                      /* borrows, likewise */
    int64_t timeout_ms;             /* UVA_FOREVER: none */

    struct {                       /* the loop thread's alone */
        struct uva__tenant tenant; /* what a close ends */
        struct uva__timer timer;   /* of `timeout_ms` */
        bool here;                 /* the loop knows of it */
        bool cut;                  /* it is not waited for any more */
        bool answered;             /* the user has been told */
    } loop;
};

static void wait_free(struct uva__node *node)
{
    struct array_wait *wait = uva__container_of(node, struct array_wait, node);
    struct uva__hub *hub = wait->hub;

    if (wait->watch != NULL)
        uva__watch_release(wait->watch);
    if (wait->devices != NULL)
        uva__devices_release(wait->devices);
    uva__memory_free(&hub->allocator, wait, sizeof(*wait));
    uva__hub_release(hub);
}

/* ---- the end ------------------------------------------------------------ */

/* Any thread, a vendor's too. */
static void wait_over(struct uva_watch *watch)
{
    struct array_wait *wait = watch->client;

    struct uva__hub *hub = wait->hub;

    uva__hub_post(hub, &wait->node);
    uva__node_release(&wait->node);
    uva__hub_job_end(hub); /* a close waits for this */
}

static void wait_answer(struct array_wait *wait)
{
    if (wait->watch != NULL && wait->error.code == 0)
        (void)uva__watch_outcome(wait->watch, &wait->error);
    wait->loop.answered = true;
    wait->fn(wait->ctx, wait->array, &wait->error);
}

static void wait_leave(struct array_wait *wait)
{
    uva__timer_stop(wait->hub, &wait->loop.timer);
    uva__loop_move_out(wait->hub, &wait->loop.tenant);
    uva__loop_unhold(wait->hub);
    uva__hub_leave(wait->hub);
}

/* ---- too late ----------------------------------------------------------- */

/* The answer comes when nobody looks at the event any more. */
static void wait_cut(struct array_wait *wait)
{
    if (wait->watch != NULL && !wait->loop.cut)
        uva__watch_cancel(wait->watch);
    wait->loop.cut = true;
}

static void wait_expire(struct uva__timer *timer)
{
    struct array_wait *wait =
        uva__container_of(timer, struct array_wait, loop.timer);

    if (!uva__watch_is_over(wait->watch))
        (void)uva__notice_late(wait->watch, wait->timeout_ms, &wait->error);
    wait_cut(wait);
}

static void wait_evict(struct uva__tenant *tenant)
{
    wait_cut(uva__container_of(tenant, struct array_wait, loop.tenant));
}

/* ---- on the loop -------------------------------------------------------- */

static void wait_arrive(struct array_wait *wait)
{
    wait->loop.here = true;
    uva__loop_hold(wait->hub);
    wait->loop.tenant.evict = wait_evict;
    wait->loop.timer.fire = wait_expire;
    if (wait->watch != NULL && wait->timeout_ms >= 0)
        uva__timer_start(wait->hub, &wait->loop.timer, wait->timeout_ms);
    uva__loop_move_in(wait->hub, &wait->loop.tenant);
}

static bool wait_visit(struct uva__node *node)
{
    struct array_wait *wait = uva__container_of(node, struct array_wait, node);

    if (!wait->loop.here)
        wait_arrive(wait);
    if (wait->loop.answered ||
        (wait->watch != NULL && !uva__watch_is_over(wait->watch)))
        return false;
    wait_answer(wait);
    wait_leave(wait);
    return false;
}

/* ---- the beginning ------------------------------------------------------ */

/* Without a watch if there is nothing to wait for, or no way to. */
static int wait_prepare(struct array_wait *wait)
{
    const struct uva_device_event event = {wait->array->device_type,
                                           wait->array->device_id,
                                           wait->array->sync_event};
    int code = uva__fence_devices(wait->hub, &wait->devices);

    if (code != 0)
        return code;
    if (uva__devices_judge(wait->devices, event.device_type, event.sync_event,
                           &wait->error) != UVA__EVENT_WAIT)
        return 0;
    code = uva__service_start(&wait->devices->service);
    if (code != 0)
        return code;
    return uva__watch_new(wait->devices, &event, wait_over, wait, &wait->watch);
}

static void wait_begin(struct array_wait *wait)
{
    uva__node_acquire(&wait->node); /* until it says that it is over */
    if (!uva__hub_job_begin(wait->hub))
        abort();
    uva__watch_begin(wait->watch);
}

int uva_array_wait(struct uva_runtime *runtime, struct ArrowDeviceArray *array,
                   int64_t timeout_ms, uva_array_wait_fn *fn, void *ctx)
{
    static const struct uva__node_ops node_ops = {wait_visit, wait_free};
    struct uva__hub *hub = uva__loop_hub(runtime);
    struct array_wait *wait;
    int code;

    if (hub == NULL || array == NULL || array->array.release == NULL ||
        fn == NULL || timeout_ms < UVA_FOREVER)
        return EINVAL;
    if (!uva__hub_is_alive(hub))
        return EPERM;
    wait = uva__memory_new(&hub->allocator, sizeof(*wait));
    if (wait == NULL)
        return ENOMEM;
    wait->hub = uva__hub_acquire(hub);
    wait->array = array;
    wait->fn = fn;
    wait->ctx = ctx;
    wait->timeout_ms = timeout_ms;
    uva__node_init(&wait->node, &node_ops, 1);
    code = wait_prepare(wait);
    if (code == 0 && !uva__hub_enter(hub))
        code = ESHUTDOWN;
    if (code == 0 && wait->watch != NULL)
        wait_begin(wait);
    if (code == 0)
        uva__hub_post(hub, &wait->node);
    uva__node_release(&wait->node);
    return code;
}
