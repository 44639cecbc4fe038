/* SPDX-License-Identifier: Apache-2.0 */
/* Turns, timers and the close of a runtime, on the loop thread. Opening one and
 * hosting its loop is loop/runtime.c.
 *
 * Happy path:  wake (or check) -> turn: collect the posted nodes, visit the run
 *              queue, again, until it is empty or the budget is spent -> back
 *              to the host's loop.
 *
 * What can fail: nothing, once the handles are attached.
 *
 * On close:    aborts open objects when the grace is over; when no object is
 *              left, closes the mailbox and the handles, and calls the user's
 *              callback. */
#include "loop/loop.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/time_limits.h"
#include "loop/runtime_impl.h"

enum { QUANTUM_MAX = 64 };

/* ---- keeping the loop alive --------------------------------------------- */

void uva__loop_hold(struct uva__hub *hub)
{
    struct uva_runtime *rt = hub->loop.shell;

    if (hub->loop.owed++ == 0 && rt != NULL)
        uv_ref((uv_handle_t *)&rt->wake);
}

void uva__loop_unhold(struct uva__hub *hub)
{
    struct uva_runtime *rt = hub->loop.shell;

    assert(hub->loop.owed > 0);
    if (--hub->loop.owed == 0 && rt != NULL &&
        rt->hosting == UVA__HOSTED_BY_LOOP)
        uv_unref((uv_handle_t *)&rt->wake);
}

/* ---- turns -------------------------------------------------------------- */

/* Visits that follow a long one are shorter, so that slow callbacks do not hold
 * the loop for long. */
static void turn_pace(struct uva_runtime *rt, uint64_t took_ns)
{
    int32_t quantum = rt->hub->loop.quantum;

    if (took_ns > rt->turn_ns / 4)
        quantum = quantum / 4;
    else
        quantum = quantum * 2;
    if (quantum > QUANTUM_MAX)
        quantum = QUANTUM_MAX;
    rt->hub->loop.quantum = quantum < 1 ? 1 : quantum;
}

static void turn_visit(struct uva__hub *hub, struct uva__node *node)
{
    node->queued = false;
    if (node->ops->visit(node) && !node->queued) {
        node->queued = true;
        uva__list_push(&hub->loop.queue, &node->link);
    } else {
        uva__node_release(node);
    }
}

/* Visits the nodes that are in the queue when it begins. Returns whether budget
 * is left; `*now` is when the clock was last read. */
static bool turn_round(struct uva_runtime *rt, uint64_t begun, uint64_t *now)
{
    struct uva__hub *hub = rt->hub;
    struct uva__list round = hub->loop.queue;
    struct uva__link *link;
    uint64_t before;
    bool good = true;

    hub->loop.queue = (struct uva__list){0};
    while (good && (link = uva__list_pop(&round)) != NULL) {
        turn_visit(hub, uva__container_of(link, struct uva__node, link));
        before = *now;
        *now = uva__clock_ns();
        turn_pace(rt, *now - before);
        good = hub->loop.spent < rt->turn_batches && *now - begun < rt->turn_ns;
    }
    uva__list_append(&round, &hub->loop.queue); /* unvisited ones go first */
    hub->loop.queue = round;
    return good;
}

/* Returns whether no work is left: then the loop may sleep. */
static bool turn_rounds(struct uva_runtime *rt, uint64_t begun, uint64_t *now)
{
    struct uva__hub *hub = rt->hub;

    for (;;) {
        uva__hub_collect(hub);
        if (uva__list_is_empty(&hub->loop.queue)) {
            if (uva__inbox_rest(&hub->inbox))
                return true;
        } else if (!turn_round(rt, begun, now)) {
            return false;
        }
    }
}

static void turn_rest(struct uva_runtime *rt)
{
    if (!uv_is_active((uv_handle_t *)&rt->idle))
        return;
    (void)uv_idle_stop(&rt->idle);
    (void)uv_check_stop(&rt->check);
    uva__loop_unhold(rt->hub);
}

static void idle_spin(uv_idle_t *idle)
{
    (void)idle;
}

static void check_turn(uv_check_t *check)
{
    uva__loop_turn(uva__container_of(check, struct uva_runtime, check));
}

/* A turn was cut short: the loop must come back without sleeping. */
static void turn_go_on(struct uva_runtime *rt)
{
    if (uv_is_active((uv_handle_t *)&rt->idle))
        return;
    uva__loop_hold(rt->hub);
    (void)uv_idle_start(&rt->idle, idle_spin);
    (void)uv_check_start(&rt->check, check_turn);
}

static void turn_count(struct uva__hub *hub, uint64_t held_ns)
{
    uva__word_store(&hub->counts.turns, uva__word_peek(&hub->counts.turns) + 1);
    if (held_ns > uva__word_peek(&hub->counts.hold_max_ns))
        uva__word_store(&hub->counts.hold_max_ns, held_ns);
}

void uva__loop_turn(struct uva_runtime *rt)
{
    struct uva__hub *hub = rt->hub;
    uint64_t begun = uva__clock_ns(), now = begun, self = uva__thread_self();
    bool done;

    assert(rt->phase < UVA__DETACHED); /* libuv calls no closed handle */
    uva__turn_begin();
    uva__word_store(&hub->turn, self);
    if (uva__word_peek(&hub->home) != self)
        uva__word_store(&hub->home, self);
    hub->loop.spent = 0;
    hub->loop.budget = rt->turn_batches;
    done = turn_rounds(rt, begun, &now);
    uva__word_store(&hub->turn, 0);
    uva__turn_end();
    turn_count(hub, now - begun);
    if (done)
        turn_rest(rt);
    else
        turn_go_on(rt);
    uva__loop_close_on(rt);
}

static void wake_turn(uv_poll_t *wake, int status, int events)
{
    struct uva_runtime *rt = uva__container_of(wake, struct uva_runtime, wake);
    uint64_t count;

    (void)status;
    (void)events;
    if (read(rt->hub->wake_fd, &count, sizeof(count)) < 0)
        assert(errno == EAGAIN || errno == EINTR);
    uva__loop_turn(rt);
}

/* ---- timers ------------------------------------------------------------- */

static void timer_turn(uv_timer_t *handle);

static void timer_set(struct uva_runtime *rt)
{
    uint64_t now = uv_now(rt->loop);
    uint64_t due;

    if (rt->timers == NULL) {
        (void)uv_timer_stop(&rt->timer);
        return;
    }
    due = rt->timers->due_ms;
    (void)uv_timer_start(&rt->timer, timer_turn, due > now ? due - now : 0, 0);
}

static void timer_unlink(struct uva_runtime *rt, struct uva__timer *timer)
{
    if (timer->before != NULL)
        timer->before->next = timer->next;
    else
        rt->timers = timer->next;
    if (timer->next != NULL)
        timer->next->before = timer->before;
    else
        rt->last_timer = timer->before;
    timer->running = false;
}

/* Timers fire inside a turn, as all callbacks do. */
static void timer_turn(uv_timer_t *handle)
{
    struct uva_runtime *rt =
        uva__container_of(handle, struct uva_runtime, timer);
    struct uva__timer *timer;

    uva__turn_begin();
    uva__word_store(&rt->hub->turn, uva__thread_self());
    while ((timer = rt->timers) != NULL && timer->due_ms <= uv_now(rt->loop)) {
        timer_unlink(rt, timer);
        timer->fire(timer);
    }
    uva__word_store(&rt->hub->turn, 0);
    uva__turn_end();
    timer_set(rt);
    uva__loop_turn(rt);
}

/* Searches from the end: most timers are the latest when they start. */
static void timer_link(struct uva_runtime *rt, struct uva__timer *timer)
{
    struct uva__timer *before = rt->last_timer;

    while (before != NULL && before->due_ms > timer->due_ms)
        before = before->before;
    timer->before = before;
    timer->next = before != NULL ? before->next : rt->timers;
    if (before != NULL)
        before->next = timer;
    else
        rt->timers = timer;
    if (timer->next != NULL)
        timer->next->before = timer;
    else
        rt->last_timer = timer;
    timer->running = true;
}

void uva__timer_start(struct uva__hub *hub, struct uva__timer *timer,
                      int64_t delay_ms)
{
    struct uva_runtime *rt = hub->loop.shell;

    if (timer->running)
        timer_unlink(rt, timer);
    uv_update_time(rt->loop);
    timer->due_ms = uv_now(rt->loop) + (uint64_t)delay_ms;
    timer_link(rt, timer);
    timer_set(rt);
}

void uva__timer_stop(struct uva__hub *hub, struct uva__timer *timer)
{
    if (!timer->running)
        return;
    timer_unlink(hub->loop.shell, timer);
    timer_set(hub->loop.shell);
}

/* ---- open objects ------------------------------------------------------- */

static void tenant_evict(struct uva__tenant *tenant)
{
    const bool before = tenant->evicted;

    tenant->evicted = true;
    if (!before)
        tenant->evict(tenant);
}

void uva__loop_move_in(struct uva__hub *hub, struct uva__tenant *tenant)
{
    struct uva_runtime *rt = hub->loop.shell;

    tenant->before = NULL;
    tenant->next = rt->tenants;
    if (rt->tenants != NULL)
        rt->tenants->before = tenant;
    rt->tenants = tenant;
    if (rt->evicting)
        tenant_evict(tenant);
}

void uva__loop_move_out(struct uva__hub *hub, struct uva__tenant *tenant)
{
    if (tenant->before != NULL)
        tenant->before->next = tenant->next;
    else
        hub->loop.shell->tenants = tenant->next;
    if (tenant->next != NULL)
        tenant->next->before = tenant->before;
    tenant->next = tenant->before = NULL;
}

/* ---- closing ------------------------------------------------------------ */

static void close_evict(struct uva_runtime *rt)
{
    struct uva__tenant *tenant, *next;

    rt->evicting = true;
    for (tenant = rt->tenants; tenant != NULL; tenant = next) {
        next = tenant->next;
        tenant_evict(tenant);
    }
}

static void grace_over(struct uva__timer *timer)
{
    close_evict(uva__container_of(timer, struct uva_runtime, grace));
}

static bool close_is_sooner(const struct uva_runtime *rt, int64_t grace_ms)
{
    return !rt->grace.running ||
           uv_now(rt->loop) + (uint64_t)grace_ms < rt->grace.due_ms;
}

/* Reads the request to close; again when a second close shortens the grace. */
static bool closer_visit(struct uva__node *node)
{
    struct uva_runtime *rt =
        uva__container_of(node, struct uva__hub, closer)->loop.shell;
    int64_t grace_ms;

    uva__lock_take(&rt->wish.lock);
    grace_ms = rt->wish.grace_ms;
    uva__lock_drop(&rt->wish.lock);
    if (!rt->closer_held) {
        rt->closer_held = true;
        rt->phase = UVA__CLOSING;
        uva__loop_hold(rt->hub);
    }
    if (rt->evicting)
        return false;
    if (grace_ms == 0)
        close_evict(rt);
    else if (grace_ms > 0 && close_is_sooner(rt, grace_ms))
        uva__timer_start(rt->hub, &rt->grace, grace_ms);
    return false;
}

void uva__loop_close_on(struct uva_runtime *rt)
{
    struct uva__hub *hub = rt->hub;

    if (rt->phase != UVA__CLOSING || !uva__gate_is_over(&hub->owed) ||
        !uva__list_is_empty(&hub->loop.queue))
        return;
    uva__timer_stop(hub, &rt->grace);
    if ((hub->loop.homing > 0 || !uva__gate_is_empty(&hub->abroad)) &&
        !rt->impatient) { /* they still use what the user gave us */
        if (!rt->patience.running)
            uva__timer_start(hub, &rt->patience, UVA__LIMIT_CLOSE_MS);
        return; /* each of them wakes the loop when it ends */
    }
    uva__timer_stop(hub, &rt->patience);
    uva__loop_detach(rt);
}

/* A job that does not return is left behind on its worker. */
static void patience_over(struct uva__timer *timer)
{
    uva__container_of(timer, struct uva_runtime, patience)->impatient = true;
}

/* ---- handles ------------------------------------------------------------ */

static const struct uva__node_ops closer_ops = {closer_visit, NULL};

int uva__loop_attach(struct uva_runtime *rt)
{
    int code = uv_poll_init(rt->loop, &rt->wake, rt->hub->wake_fd);

    if (code != 0)
        return -code;
    rt->handles = 4;
    rt->hub->closer.ops = &closer_ops;
    rt->grace.fire = grace_over;
    rt->patience.fire = patience_over;
    (void)uv_timer_init(rt->loop, &rt->timer);
    (void)uv_idle_init(rt->loop, &rt->idle);
    (void)uv_check_init(rt->loop, &rt->check);
    (void)uv_poll_start(&rt->wake, UV_READABLE, wake_turn);
    uv_unref((uv_handle_t *)&rt->timer);
    uv_unref((uv_handle_t *)&rt->idle);
    uv_unref((uv_handle_t *)&rt->check);
    if (rt->hosting == UVA__HOSTED_BY_LOOP)
        uv_unref((uv_handle_t *)&rt->wake);
    rt->hub->loop.shell = rt;
    return 0;
}

static void closed_one(struct uva_runtime *rt)
{
    if (--rt->handles == 0)
        rt->gone(rt);
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

void uva__loop_detach(struct uva_runtime *rt)
{
    rt->phase = UVA__DETACHED;
    rt->hub->loop.shell = NULL;
    uva__hub_shut(rt->hub);
    uv_close((uv_handle_t *)&rt->wake, closed_wake);
    uv_close((uv_handle_t *)&rt->timer, closed_timer);
    uv_close((uv_handle_t *)&rt->idle, closed_idle);
    uv_close((uv_handle_t *)&rt->check, closed_check);
    if (rt->clock_fd >= 0)
        uv_close((uv_handle_t *)&rt->clock, closed_clock);
}
