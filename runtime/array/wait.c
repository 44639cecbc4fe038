/* SPDX-License-Identifier: Apache-2.0 */
/* uva_array_wait(): waits for the event of one array, without a stream.
 *
 * Happy path:  the wait begins at once -> it posts the wake-up when it is over
 *              -> the loop calls the callback with the result.
 *
 * Failures: the wait; the callback gets its error.
 *
 * On close:    a wait that is still pending is cancelled, and reported. */
#include <errno.h>

#include "base/memory.h"
#include "base/unreachable.h"
#include "device/wait_error.h"
#include "loop/loop.h"
#include "stream/runtime_devices.h"
#include "uvarrow/device.h"

struct array_wait {
    struct uva__rt *rt;             /* counts */
    struct uva__devices *devices;   /* counts */
    struct ArrowDeviceArray *array; /* borrows, until reported */
    struct uva_watch *watch;        /* counts; may be NULL */
    struct uva_error error;         /* the result, unless the watch has it */
    struct uva__wakeup wakeup;      /* posted at first, and when it is over;
                                       counted by posts and the watch */
    uva_array_wait_fn *fn;          /* the user's */
    void *ctx;                      /* borrows: its argument */
    int64_t timeout_ms;             /* UVA_FOREVER: not limited */

    struct {                            /* the loop thread's alone */
        struct uva__open_object object; /* aborted by a close */
        struct uva__timer timer;        /* of `timeout_ms` */
        bool tracked;                   /* it is among the open objects */
        bool keeps_loop;                /* it keeps the loop alive */
        bool cancelled;                 /* its event is not polled any more */
        bool reported;                  /* the callback was called */
    } loop;
};

static void wait_free(struct uva__wakeup *wakeup)
{
    struct array_wait *wait =
        uva__container_of(wakeup, struct array_wait, wakeup);
    struct uva__rt *rt = wait->rt;

    if (wait->watch != NULL)
        uva__event_wait_release(wait->watch);
    if (wait->devices != NULL)
        uva__devices_release(wait->devices);
    uva__memory_free(&rt->allocator, wait, sizeof(*wait));
    uva__rt_release(rt);
}

/* ---- the end ------------------------------------------------------------ */

/* The callback of the wait; on any thread, also a vendor's. */
static void wait_over(struct uva_watch *watch)
{
    struct array_wait *wait = watch->client;

    struct uva__rt *rt = wait->rt;

    uva__rt_wake(rt, &wait->wakeup);
    uva__wakeup_release(&wait->wakeup);
    uva__rt_job_end(rt); /* a close waits for this */
}

static void wait_report(struct array_wait *wait)
{
    if (wait->watch != NULL && wait->error.code == 0)
        (void)uva__event_wait_outcome(wait->watch, &wait->error);
    wait->loop.reported = true;
    wait->fn(wait->ctx, wait->array, &wait->error);
}

static void wait_leave(struct array_wait *wait)
{
    uva__timer_stop(wait->rt, &wait->loop.timer);
    uva__loop_untrack(wait->rt, &wait->loop.object);
    uva__loop_unref(wait->rt);
    uva__rt_leave(wait->rt);
}

/* ---- time limit, close --------------------------------------------------- */

/* The result is reported once the device thread has stopped polling the event.
 */
static void wait_cancel(struct array_wait *wait)
{
    if (wait->watch != NULL && !wait->loop.cancelled)
        uva__event_wait_cancel(wait->watch);
    wait->loop.cancelled = true;
}

static void wait_expire(struct uva__timer *timer)
{
    struct array_wait *wait =
        uva__container_of(timer, struct array_wait, loop.timer);

    if (!uva__event_wait_is_over(wait->watch))
        (void)uva__wait_error_timeout(wait->watch, wait->timeout_ms,
                                      &wait->error);
    wait_cancel(wait);
}

static void wait_abort(struct uva__open_object *object)
{
    wait_cancel(uva__container_of(object, struct array_wait, loop.object));
}

/* ---- on the loop -------------------------------------------------------- */

static void wait_track(struct array_wait *wait)
{
    wait->loop.tracked = true;
    uva__loop_keep(wait->rt, &wait->loop.keeps_loop);
    wait->loop.object.abort = wait_abort;
    wait->loop.timer.fire = wait_expire;
    if (wait->watch != NULL && wait->timeout_ms != UVA_FOREVER)
        uva__timer_start(wait->rt, &wait->loop.timer, wait->timeout_ms);
    uva__loop_track(wait->rt, &wait->loop.object);
}

static bool wait_on_wakeup(struct uva__wakeup *wakeup)
{
    struct array_wait *wait =
        uva__container_of(wakeup, struct array_wait, wakeup);

    if (!wait->loop.tracked)
        wait_track(wait);
    if (wait->loop.reported ||
        (wait->watch != NULL && !uva__event_wait_is_over(wait->watch)))
        return false;
    wait_report(wait);
    wait_leave(wait);
    return false;
}

/* ---- the beginning ------------------------------------------------------ */

/* Makes a wait, unless it is not needed, or `error` has the reason why it is
 * impossible. */
static int wait_prepare(struct array_wait *wait)
{
    const struct uva_device_event event = {wait->array->device_type,
                                           wait->array->device_id,
                                           wait->array->sync_event};
    int code = uva__rt_devices(wait->rt, &wait->devices);

    if (code != 0)
        return code;
    uva__rt_note_device(wait->rt, NULL, event.device_type);
    if (uva__devices_classify(wait->devices, event.device_type,
                              event.sync_event,
                              &wait->error) != UVA__EVENT_WAIT)
        return 0;
    code = uva__device_thread_start(&wait->devices->device_thread);
    if (code != 0)
        return code;
    return uva__event_wait_new(wait->devices, &event, wait_over, wait,
                               &wait->watch);
}

static void wait_begin(struct array_wait *wait)
{
    uva__wakeup_acquire(&wait->wakeup); /* until wait_over() */
    if (!uva__rt_job_begin(wait->rt)) {
        UVA__UNREACHABLE("the counted call keeps the workers alive");
        uva__wakeup_release(&wait->wakeup);
        return;
    }
    uva__event_wait_begin(wait->watch);
}

int uva_array_wait(struct uva_runtime *runtime, struct ArrowDeviceArray *array,
                   int64_t timeout_ms, uva_array_wait_fn *fn, void *ctx)
{
    static const struct uva__wakeup_ops wakeup_ops = {wait_on_wakeup,
                                                      wait_free};
    struct uva__rt *rt = uva__loop_rt(runtime);
    struct array_wait *wait;
    int code;

    if (rt == NULL || array == NULL || array->array.release == NULL ||
        fn == NULL || timeout_ms < 0)
        return EINVAL;
    if (!uva__rt_is_alive(rt))
        return EPERM;
    wait = uva__memory_new(&rt->allocator, sizeof(*wait));
    if (wait == NULL)
        return ENOMEM;
    wait->rt = uva__rt_acquire(rt);
    wait->array = array;
    wait->fn = fn;
    wait->ctx = ctx;
    wait->timeout_ms = timeout_ms;
    uva__wakeup_init(&wait->wakeup, &wakeup_ops, 1);
    code = wait_prepare(wait);
    if (code == 0 && !uva__rt_enter(rt))
        code = ESHUTDOWN;
    if (code == 0 && uva__rt_on_loop(rt))
        uva__loop_keep(rt, &wait->loop.keeps_loop);
    if (code == 0 && wait->watch != NULL)
        wait_begin(wait);
    if (code == 0)
        uva__rt_wake(rt, &wait->wakeup);
    uva__wakeup_release(&wait->wakeup);
    return code;
}
