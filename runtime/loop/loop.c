/* SPDX-License-Identifier: Apache-2.0 */
/* Turns, timers and the close of a runtime, on the loop thread. Opening one and
 * hosting its loop is loop/runtime.c.
 *
 * Happy path:  wake (or check) -> turn: collect the posted wake-ups, run those
 *              in the run queue, and repeat both until the queue is empty or
 *              the budget is spent -> back to the host's loop.
 *
 * Failures: none, once the handles are attached.
 *
 * On close:    aborts open objects when the grace is over; when no object is
 *              left, closes the mailbox and the handles, and calls the user's
 *              callback. */
#include "loop/loop.h"

#include <assert.h>

#include "base/clock.h"
#include "loop/runtime_impl.h"

enum { QUANTUM_MAX = 64, CPU_AGE_NS = 500000 };

/* ---- keeping the loop alive --------------------------------------------- */

/* The attached runtime if it is embedded in the user's loop: other loops live
 * as long as the runtime. */
static struct uva_runtime *loop_embedded(const struct uva__rt *rt)
{
    struct uva_runtime *runtime = rt->loop.runtime;

    return runtime != NULL && runtime->hosting == UVA__HOSTED_BY_LOOP ? runtime
                                                                      : NULL;
}

/* The wake-up handle stands for all reasons; libuv counts a handle once. */
static void loop_weigh(struct uva_runtime *runtime)
{
    const struct uva__rt *rt = runtime->rt;

    if (rt->loop.keepalive > 0 ||
        (rt->loop.streams > 0 && !rt->loop.streams_let_go))
        uv_ref((uv_handle_t *)&runtime->wake);
    else
        uv_unref((uv_handle_t *)&runtime->wake);
}

static void loop_count(struct uva__rt *rt, int64_t *reasons, int change)
{
    struct uva_runtime *runtime = loop_embedded(rt);

    if (runtime == NULL)
        return;
    *reasons += change;
    assert(*reasons >= 0);
    loop_weigh(runtime);
}

void uva__loop_ref(struct uva__rt *rt)
{
    loop_count(rt, &rt->loop.keepalive, 1);
}

void uva__loop_unref(struct uva__rt *rt)
{
    loop_count(rt, &rt->loop.keepalive, -1);
}

void uva__loop_ref_stream(struct uva__rt *rt)
{
    loop_count(rt, &rt->loop.streams, 1);
}

void uva__loop_unref_stream(struct uva__rt *rt)
{
    loop_count(rt, &rt->loop.streams, -1);
}

void uva_runtime_keep_alive(struct uva_runtime *runtime, bool keeps)
{
    if (runtime == NULL || !uva__rt_is_alive(runtime->rt) ||
        loop_embedded(runtime->rt) == NULL)
        return;
    runtime->rt->loop.streams_let_go = !keeps;
    loop_weigh(runtime);
}

/* ---- turns -------------------------------------------------------------- */

/* Runs that follow a long one are shorter, so that slow callbacks do not block
 * the loop for long. */
static void turn_pace(struct uva_runtime *runtime, uint64_t took_ns)
{
    int32_t quantum = runtime->rt->loop.quantum;

    if (took_ns > runtime->turn_ns / 4)
        quantum = quantum / 4;
    else
        quantum = quantum * 2;
    if (quantum > QUANTUM_MAX)
        quantum = QUANTUM_MAX;
    runtime->rt->loop.quantum = quantum < 1 ? 1 : quantum;
}

static void turn_on_wakeup(struct uva__rt *rt, struct uva__wakeup *wakeup)
{
    wakeup->queued = false;
    if (wakeup->ops->on_wakeup(wakeup) && !wakeup->queued) {
        wakeup->queued = true;
        uva__list_push(&rt->loop.queue, &wakeup->link);
    } else {
        uva__wakeup_release(wakeup);
    }
}

/* Runs the wake-ups that are in the queue when it begins. Returns whether
 * budget is left; `*now` is when the clock was last read. */
static bool turn_round(struct uva_runtime *runtime, uint64_t begun,
                       uint64_t *now)
{
    struct uva__rt *rt = runtime->rt;
    struct uva__list round = rt->loop.queue;
    struct uva__link *link;
    uint64_t before;
    bool good = true;

    rt->loop.queue = (struct uva__list){0};
    while (good && (link = uva__list_pop(&round)) != NULL) {
        turn_on_wakeup(rt, uva__container_of(link, struct uva__wakeup, link));
        before = *now;
        *now = uva__clock_ns();
        turn_pace(runtime, *now - before);
        good = rt->loop.spent < runtime->turn_batches &&
               *now - begun < runtime->turn_ns;
    }
    uva__list_append(&round, &rt->loop.queue); /* those not run go first */
    rt->loop.queue = round;
    return good;
}

/* Returns whether no work is left: then the loop may sleep. */
static bool turn_rounds(struct uva_runtime *runtime, uint64_t begun,
                        uint64_t *now)
{
    struct uva__rt *rt = runtime->rt;

    for (;;) {
        uva__rt_collect(rt);
        if (uva__list_is_empty(&rt->loop.queue)) {
            if (uva__mailbox_disarm(&rt->mailbox))
                return true;
        } else if (!turn_round(runtime, begun, now)) {
            return false;
        }
    }
}

static void turn_stop_idle(struct uva_runtime *runtime)
{
    if (!uv_is_active((uv_handle_t *)&runtime->idle))
        return;
    (void)uv_idle_stop(&runtime->idle);
    (void)uv_check_stop(&runtime->check);
    uva__loop_unref_stream(runtime->rt);
}

static void idle_spin(uv_idle_t *idle)
{
    (void)idle;
}

static void check_turn(uv_check_t *check)
{
    uva__loop_turn(uva__container_of(check, struct uva_runtime, check));
}

/* A turn was cut short: the loop must run the next one without sleeping. Its
 * work is of streams, or keeps the loop alive by itself. */
static void turn_go_on(struct uva_runtime *runtime)
{
    if (uv_is_active((uv_handle_t *)&runtime->idle))
        return;
    uva__loop_ref_stream(runtime->rt);
    (void)uv_idle_start(&runtime->idle, idle_spin);
    (void)uv_check_start(&runtime->check, check_turn);
}

static void cpu_read(struct uva_runtime *runtime, uint64_t now)
{
    runtime->cpu.read_ns = now;
    runtime->cpu.used_ns = uva__clock_thread_cpu_ns();
}

/* Reading the CPU time is a system call: at most one for every CPU_AGE_NS, and
 * one for a turn that took longer than any has computed. A turn has used no
 * more CPU time than it took, and no more than the thread has used since the
 * time was read last. */
static void turn_count_cpu(struct uva_runtime *runtime, uint64_t held_ns,
                           uint64_t now)
{
    struct uva__atomic64 *most = &runtime->rt->stats.hold_max_cpu_ns;
    const uint64_t before = runtime->cpu.used_ns;
    uint64_t used_ns;

    if (held_ns <= uva__atomic64_peek(most))
        return;
    cpu_read(runtime, now);
    used_ns = runtime->cpu.used_ns - before;
    if (used_ns > held_ns)
        used_ns = held_ns;
    if (used_ns > uva__atomic64_peek(most))
        uva__atomic64_store(most, used_ns);
}

static void turn_count(struct uva_runtime *runtime, uint64_t held_ns,
                       uint64_t now)
{
    struct uva__stats *stats = &runtime->rt->stats;

    uva__atomic64_store(&stats->turns, uva__atomic64_peek(&stats->turns) + 1);
    if (held_ns > uva__atomic64_peek(&stats->hold_max_ns))
        uva__atomic64_store(&stats->hold_max_ns, held_ns);
    turn_count_cpu(runtime, held_ns, now);
}

static void loop_close_on(struct uva_runtime *runtime);

void uva__loop_turn(struct uva_runtime *runtime)
{
    struct uva__rt *rt = runtime->rt;
    uint64_t begun = uva__clock_ns(), now = begun, self = uva__thread_self();
    bool done;

    assert(runtime->state <
           UVA__RUNTIME_DETACHED); /* libuv calls no closed handle */
    if (begun - runtime->cpu.read_ns > CPU_AGE_NS)
        cpu_read(runtime, begun);
    uva__turn_begin();
    uva__atomic64_store(&rt->turn, self);
    if (uva__atomic64_peek(&rt->loop_thread) != self)
        uva__atomic64_store(&rt->loop_thread, self);
    rt->loop.spent = 0;
    rt->loop.budget = runtime->turn_batches;
    done = turn_rounds(runtime, begun, &now);
    uva__atomic64_store(&rt->turn, 0);
    uva__turn_end();
    turn_count(runtime, now - begun, now);
    if (done)
        turn_stop_idle(runtime);
    else
        turn_go_on(runtime);
    loop_close_on(runtime);
}

static void wake_turn(uv_poll_t *wake, int status, int events)
{
    struct uva_runtime *runtime =
        uva__container_of(wake, struct uva_runtime, wake);

    (void)status;
    (void)events;
    uva__wake_fd_clear(&runtime->rt->wake_fd);
    uva__loop_turn(runtime);
}

/* ---- timers ------------------------------------------------------------- */

static void timer_turn(uv_timer_t *handle);

static void timer_set(struct uva_runtime *runtime)
{
    uint64_t now = uv_now(runtime->loop);
    uint64_t due;

    if (runtime->timers == NULL) {
        (void)uv_timer_stop(&runtime->timer);
        return;
    }
    due = runtime->timers->due_ms;
    (void)uv_timer_start(&runtime->timer, timer_turn, due > now ? due - now : 0,
                         0);
}

static void timer_unlink(struct uva_runtime *runtime, struct uva__timer *timer)
{
    if (timer->before != NULL)
        timer->before->next = timer->next;
    else
        runtime->timers = timer->next;
    if (timer->next != NULL)
        timer->next->before = timer->before;
    else
        runtime->last_timer = timer->before;
    timer->running = false;
}

/* Timers fire inside a turn, as all callbacks do. */
static void timer_turn(uv_timer_t *handle)
{
    struct uva_runtime *runtime =
        uva__container_of(handle, struct uva_runtime, timer);
    struct uva__timer *timer;

    uva__turn_begin();
    uva__atomic64_store(&runtime->rt->turn, uva__thread_self());
    while ((timer = runtime->timers) != NULL &&
           timer->due_ms <= uv_now(runtime->loop)) {
        timer_unlink(runtime, timer);
        timer->fire(timer);
    }
    uva__atomic64_store(&runtime->rt->turn, 0);
    uva__turn_end();
    timer_set(runtime);
    uva__loop_turn(runtime);
}

/* Searches from the end: most timers are the latest when they start. */
static void timer_link(struct uva_runtime *runtime, struct uva__timer *timer)
{
    struct uva__timer *before = runtime->last_timer;

    while (before != NULL && before->due_ms > timer->due_ms)
        before = before->before;
    timer->before = before;
    timer->next = before != NULL ? before->next : runtime->timers;
    if (before != NULL)
        before->next = timer;
    else
        runtime->timers = timer;
    if (timer->next != NULL)
        timer->next->before = timer;
    else
        runtime->last_timer = timer;
    timer->running = true;
}

void uva__timer_start(struct uva__rt *rt, struct uva__timer *timer,
                      int64_t delay_ms)
{
    struct uva_runtime *runtime = rt->loop.runtime;

    if (timer->running)
        timer_unlink(runtime, timer);
    uv_update_time(runtime->loop);
    timer->due_ms = uv_now(runtime->loop) + (uint64_t)delay_ms;
    timer_link(runtime, timer);
    timer_set(runtime);
}

void uva__timer_stop(struct uva__rt *rt, struct uva__timer *timer)
{
    if (!timer->running)
        return;
    timer_unlink(rt->loop.runtime, timer);
    timer_set(rt->loop.runtime);
}

void uva__timer_start_sooner(struct uva__rt *rt, struct uva__timer *timer,
                             int64_t delay_ms)
{
    const uint64_t due_ms = uv_now(rt->loop.runtime->loop) + (uint64_t)delay_ms;

    if (!timer->running || due_ms < timer->due_ms)
        uva__timer_start(rt, timer, delay_ms);
}

void uva__timer_start_at(struct uva__rt *rt, struct uva__timer *timer,
                         uint64_t due_ns)
{
    const uint64_t now_ns = uva__clock_ns();

    uva__timer_start_sooner(
        rt, timer,
        due_ns > now_ns ? (int64_t)((due_ns - now_ns) / 1000000) + 1 : 0);
}

/* ---- open objects ------------------------------------------------------- */

static void object_abort(struct uva__open_object *object)
{
    const bool before = object->aborted;

    object->aborted = true;
    if (!before)
        object->abort(object);
}

void uva__loop_track(struct uva__rt *rt, struct uva__open_object *object)
{
    struct uva_runtime *runtime = rt->loop.runtime;

    object->before = NULL;
    object->next = runtime->objects;
    if (runtime->objects != NULL)
        runtime->objects->before = object;
    runtime->objects = object;
    if (runtime->drain.timed_out && object->time_out != NULL)
        object->time_out(object);
    if (runtime->aborting)
        object_abort(object);
}

void uva__loop_untrack(struct uva__rt *rt, struct uva__open_object *object)
{
    if (object->before != NULL)
        object->before->next = object->next;
    else
        rt->loop.runtime->objects = object->next;
    if (object->next != NULL)
        object->next->before = object->before;
    object->next = object->before = NULL;
}

/* ---- closing ------------------------------------------------------------ */

int uva__close_request_set(struct uva__close_request *request, int64_t grace_ms,
                           uva_call_fn *fn, void *ctx)
{
    int code = 0;

    uva__lock_take(&request->lock);
    if (request->requested) {
        if (request->grace_ms > grace_ms)
            request->grace_ms = grace_ms;
        code = EALREADY;
    } else {
        request->requested = true;
        request->grace_ms = grace_ms;
        request->fn = fn;
        request->ctx = ctx;
    }
    uva__lock_drop(&request->lock);
    return code;
}

int64_t uva__close_request_grace_ms(struct uva__close_request *request)
{
    int64_t grace_ms;

    uva__lock_take(&request->lock);
    grace_ms = request->grace_ms;
    uva__lock_drop(&request->lock);
    return grace_ms;
}

void uva__loop_begin_close(struct uva_runtime *runtime)
{
    if (runtime->state != UVA__RUNTIME_OPEN)
        return;
    runtime->state = UVA__RUNTIME_CLOSING;
    uva__loop_ref(runtime->rt);
}

static void close_abort(struct uva_runtime *runtime)
{
    struct uva__open_object *object, *next;

    runtime->aborting = true;
    for (object = runtime->objects; object != NULL; object = next) {
        next = object->next;
        object_abort(object);
    }
    uva__rt_drain_on(runtime->rt);
}

static void grace_over(struct uva__timer *timer)
{
    close_abort(uva__container_of(timer, struct uva_runtime, grace));
}

/* Reads the request to close; again when a second close shortens the grace. */
static bool closer_on_wakeup(struct uva__wakeup *wakeup)
{
    struct uva_runtime *runtime =
        uva__container_of(wakeup, struct uva__rt, closer)->loop.runtime;
    const int64_t grace_ms =
        uva__close_request_grace_ms(&runtime->close_request);

    uva__loop_begin_close(runtime);
    if (runtime->aborting)
        return false;
    if (grace_ms == 0)
        close_abort(runtime);
    else if (grace_ms != UVA_FOREVER)
        uva__timer_start_sooner(runtime->rt, &runtime->grace, grace_ms);
    return false;
}

/* Whether the grace of the close has no use any more. */
static bool loop_is_done(struct uva_runtime *runtime)
{
    struct uva__rt *rt = runtime->rt;

    return uva__inflight_is_drained(&rt->user_refs) &&
           uva__list_is_empty(&rt->loop.queue) &&
           (runtime->aborting || uva__stats_tasks_held(&rt->stats) == 0);
}

/* Continues a close as far as possible now. */
static void loop_close_on(struct uva_runtime *runtime)
{
    struct uva__rt *rt = runtime->rt;

    if (runtime->state != UVA__RUNTIME_CLOSING || !loop_is_done(runtime))
        return;
    uva__timer_stop(rt, &runtime->grace);
    if ((uva__rt_is_held_up(rt) ||
         !uva__inflight_is_idle(&rt->jobs_in_flight)) &&
        !runtime->close_forced) { /* they still use the user's objects */
        if (!runtime->close_timer.running)
            uva__timer_start(rt, &runtime->close_timer, rt->close_limit_ms);
        return; /* each of them wakes the loop when it ends */
    }
    uva__timer_stop(rt, &runtime->close_timer);
    uva__loop_detach(runtime);
}

/* A job that does not return is left on its worker. */
static void limit_over(struct uva__timer *timer)
{
    uva__container_of(timer, struct uva_runtime, close_timer)->close_forced =
        true;
}

/* ---- handles ------------------------------------------------------------ */

static const struct uva__wakeup_ops closer_ops = {closer_on_wakeup, NULL};

int uva__loop_attach(struct uva_runtime *runtime)
{
    int code = uv_poll_init_socket(runtime->loop, &runtime->wake,
                                   (uv_os_sock_t)runtime->rt->wake_fd.reader);

    if (code != 0)
        return -code;
    runtime->handles = 4;
    runtime->rt->closer.ops = &closer_ops;
    runtime->grace.fire = grace_over;
    runtime->close_timer.fire = limit_over;
    (void)uv_timer_init(runtime->loop, &runtime->timer);
    (void)uv_idle_init(runtime->loop, &runtime->idle);
    (void)uv_check_init(runtime->loop, &runtime->check);
    (void)uv_poll_start(&runtime->wake, UV_READABLE, wake_turn);
    uv_unref((uv_handle_t *)&runtime->timer);
    uv_unref((uv_handle_t *)&runtime->idle);
    uv_unref((uv_handle_t *)&runtime->check);
    if (runtime->hosting == UVA__HOSTED_BY_LOOP)
        uv_unref((uv_handle_t *)&runtime->wake);
    runtime->rt->loop.runtime = runtime;
    runtime->rt->loop.turned = runtime->hosting == UVA__HOSTED_BY_TURNS ||
                               runtime->hosting == UVA__HOSTED_BY_POSTS;
    return 0;
}

static void closed_one(struct uva_runtime *runtime)
{
    if (--runtime->handles == 0)
        runtime->on_detached(runtime);
}

static void closed_wake(uv_handle_t *handle)
{
    closed_one(uva__container_of(handle, struct uva_runtime, wake));
}

static void closed_timer(uv_handle_t *handle)
{
    closed_one(uva__container_of(handle, struct uva_runtime, timer));
}

static void closed_idle(uv_handle_t *handle)
{
    closed_one(uva__container_of(handle, struct uva_runtime, idle));
}

static void closed_check(uv_handle_t *handle)
{
    closed_one(uva__container_of(handle, struct uva_runtime, check));
}

static void closed_clock(uv_handle_t *handle)
{
    closed_one(uva__container_of(handle, struct uva_runtime, clock));
}

void uva__loop_detach(struct uva_runtime *runtime)
{
    runtime->state = UVA__RUNTIME_DETACHED;
    runtime->rt->loop.runtime = NULL;
    uva__rt_close(runtime->rt);
    uv_close((uv_handle_t *)&runtime->wake, closed_wake);
    uv_close((uv_handle_t *)&runtime->timer, closed_timer);
    uv_close((uv_handle_t *)&runtime->idle, closed_idle);
    uv_close((uv_handle_t *)&runtime->check, closed_check);
    if (runtime->clock_fd.fd >= 0)
        uv_close((uv_handle_t *)&runtime->clock, closed_clock);
}
