/* SPDX-License-Identifier: Apache-2.0 */
/* Drains a runtime: no stream starts any more, and a callback reports that no
 * stream is open. The runtime itself stays open; loop/runtime.c closes it.
 *
 * Happy path:  the request -> the last stream ends -> foreign handlers have
 *              extracted their tasks -> the user's callback is called. Each
 *              step wakes the drainer.
 *
 * Failures: streams may outlast the deadline; they are cancelled. Tasks may
 * too; they stay as they are.
 *
 * On close:    the close waits for the callback. It aborts the streams when its
 *              grace is over, as always. */
#include <errno.h>

#include "loop/runtime_impl.h"

static void drain_time_out(struct uva_runtime *runtime)
{
    struct uva__open_object *object, *next;

    runtime->drain.timed_out = true;
    for (object = runtime->objects; object != NULL; object = next) {
        next = object->next;
        if (object->time_out != NULL)
            object->time_out(object);
    }
}

static void deadline_over(struct uva__timer *timer)
{
    struct uva_runtime *runtime =
        uva__container_of(timer, struct uva_runtime, drain.timer);

    drain_time_out(runtime);
    uva__rt_drain_on(runtime->rt);
}

/* Reads the deadline; again when a second drain shortens it. */
static void drain_limit(struct uva_runtime *runtime)
{
    const int64_t deadline_ms =
        uva__close_request_grace_ms(&runtime->drain.request);

    if (runtime->drain.timed_out)
        return;
    if (deadline_ms == 0)
        drain_time_out(runtime);
    else if (deadline_ms != UVA_FOREVER)
        uva__timer_start_sooner(runtime->rt, &runtime->drain.timer,
                                deadline_ms);
}

/* The callback may close the runtime, which goes on after this turn. */
static void drain_end(struct uva_runtime *runtime)
{
    const struct uva__close_request *request = &runtime->drain.request;
    struct uva__rt *rt = runtime->rt;

    uva__timer_stop(rt, &runtime->drain.timer);
    runtime->drain.over = true;
    if (request->fn != NULL)
        request->fn(request->ctx);
    uva__loop_unref(rt);
    uva__rt_leave(rt);
}

/* Objects that would start streams must not wait for their time to do so. */
static void drain_notify(struct uva_runtime *runtime)
{
    struct uva__open_object *object, *next;

    if (runtime->drain.begun)
        return;
    runtime->drain.begun = true;
    for (object = runtime->objects; object != NULL; object = next) {
        next = object->next;
        if (object->drain != NULL)
            object->drain(object);
    }
}

static bool drain_is_done(const struct uva_runtime *runtime)
{
    const struct uva__rt *rt = runtime->rt;

    return uva__inflight_is_drained(&rt->streams) &&
           (runtime->drain.timed_out || runtime->aborting ||
            uva__stats_tasks_held(&rt->stats) == 0);
}

static bool drainer_on_wakeup(struct uva__wakeup *wakeup)
{
    struct uva__rt *rt = uva__container_of(wakeup, struct uva__rt, drainer);
    struct uva_runtime *runtime = rt->loop.runtime;

    if (runtime->drain.over)
        return false;
    uva__loop_keep(runtime->rt, &runtime->drain.keeps_loop);
    drain_notify(runtime);
    if (!drain_is_done(runtime))
        drain_limit(runtime);
    if (drain_is_done(runtime))
        drain_end(runtime);
    return false;
}

void uva__drain_init(struct uva_runtime *runtime)
{
    static const struct uva__wakeup_ops drainer_ops = {drainer_on_wakeup, NULL};

    runtime->rt->drainer.ops = &drainer_ops;
    runtime->drain.timer.fire = deadline_over;
}

/* A second request only leaves again. The wake-up has the loop go on with a
 * close that has begun meanwhile. */
int uva_runtime_drain(struct uva_runtime *runtime, int64_t deadline_ms,
                      uva_call_fn *fn, void *ctx)
{
    struct uva__rt *rt;
    int code;

    if (runtime == NULL || deadline_ms < 0)
        return EINVAL;
    rt = runtime->rt;
    if (!uva__rt_is_alive(rt))
        return EPERM;
    if (!uva__rt_enter(rt))
        return ESHUTDOWN;
    uva__rt_hold(rt); /* the runtime may be freed while this posts */
    code =
        uva__close_request_set(&runtime->drain.request, deadline_ms, fn, ctx);
    if (code == 0 && uva__rt_on_loop(rt))
        uva__loop_keep(runtime->rt, &runtime->drain.keeps_loop);
    if (code == 0)
        (void)uva__inflight_close(&rt->streams);
    else
        uva__rt_leave(rt);
    uva__rt_wake(rt, &rt->drainer);
    uva__rt_unhold(rt);
    return code;
}
