/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime shares the loop with handles of the test. */
#include "support/loop_fixture.h"

#include <check.h>

/* The time of a turn does not end it, however slow this machine is: a test that
 * turns the loop once expects all due work. The number of batches does. */
enum { TURN_US = 10000000 };

static void keep_nudged(uv_async_t *keep)
{
    (void)keep; /* the handle only wakes the loop */
}

void loop_open(struct loop_fixture *loop)
{
    loop_open_with(loop, &(struct uva_runtime_options){0});
}

void loop_open_with(struct loop_fixture *loop,
                    const struct uva_runtime_options *options)
{
    struct uva_runtime_options own = *options;

    faulty_allocator_init(&loop->memory, 0);
    own.allocator = faulty_allocator_table(&loop->memory);
    if (own.turn_us == 0)
        own.turn_us = TURN_US;
    ck_assert_int_eq(uv_loop_init(&loop->uv), 0);
    ck_assert_int_eq(uv_async_init(&loop->uv, &loop->keep, keep_nudged), 0);
    ck_assert_int_eq(uv_prepare_init(&loop->uv, &loop->prepare), 0);
    uv_unref((uv_handle_t *)&loop->prepare);
    loop->prepare.data = loop;
    ck_assert_int_eq(uva_runtime_open(&loop->uv, &own, &loop->runtime, NULL),
                     0);
}

void loop_fail(struct loop_fixture *loop, long n)
{
    long asked = faulty_allocator_asked(&loop->memory);

    atomic_store(&loop->memory.fail_at, n == 0 ? 0 : asked + n);
}

static int64_t turns_of(const struct loop_fixture *loop)
{
    struct uva_runtime_stats stats = {0};

    if (loop->runtime != NULL)
        uva_runtime_get_stats(loop->runtime, &stats);
    return stats.turns;
}

/* libuv calls this before it waits. */
static void before_wait(uv_prepare_t *prepare)
{
    struct loop_fixture *loop = prepare->data;

    if (turns_of(loop) != loop->turns)
        uv_stop(&loop->uv);
}

void loop_turn(struct loop_fixture *loop)
{
    loop->turns = turns_of(loop);
    (void)uv_prepare_start(&loop->prepare, before_wait);
    (void)uv_run(&loop->uv, UV_RUN_ONCE);
    (void)uv_prepare_stop(&loop->prepare);
}

void loop_until(struct loop_fixture *loop, bool (*done)(void *ctx), void *ctx)
{
    while (!done(ctx))
        loop_turn(loop);
}

void loop_nudge(struct loop_fixture *loop)
{
    (void)uv_async_send(&loop->keep);
}

static bool is_set(void *ctx)
{
    return *(bool *)ctx;
}

static void set(void *ctx)
{
    *(bool *)ctx = true;
}

/* A turn may leave work to the next one. That work is done before a call that
 * was posted after it has come back twice. */
void loop_settle(struct loop_fixture *loop)
{
    for (int i = 0; i < 2; i++) {
        bool back = false;
        ck_assert_int_eq(uva_runtime_post(loop->runtime, set, &back), 0);
        loop_until(loop, is_set, &back);
    }
    (void)uv_run(&loop->uv, UV_RUN_NOWAIT);
}

static void timer_look(uv_handle_t *handle, void *arg)
{
    if (handle->type == UV_TIMER && uv_is_active(handle))
        *(bool *)arg = true;
}

bool loop_has_timer(struct loop_fixture *loop)
{
    bool has = false;

    uv_walk(&loop->uv, timer_look, &has);
    return has;
}

struct timer_watch {
    uv_check_t check;
    struct loop_fixture *loop;
    void (*fn)(void *ctx);
    void *ctx;
    bool over;
};

static void timer_watched(uv_handle_t *check)
{
    ((struct timer_watch *)check->data)->over = true;
}

static void timer_watch(uv_check_t *check)
{
    struct timer_watch *watch = check->data;

    if (!loop_has_timer(watch->loop))
        return;
    watch->fn(watch->ctx);
    uv_close((uv_handle_t *)check, timer_watched);
}

/* A turn of libuv begins with the timers, and from 1.45 on ends with them. The
 * check handles and the closed ones lie in between. */
void loop_at_timer(struct loop_fixture *loop, void (*fn)(void *ctx), void *ctx)
{
    struct timer_watch watch = {.loop = loop, .fn = fn, .ctx = ctx};

    if (loop_has_timer(loop)) {
        fn(ctx);
        return;
    }
    ck_assert_int_eq(uv_check_init(&loop->uv, &watch.check), 0);
    watch.check.data = &watch;
    ck_assert_int_eq(uv_check_start(&watch.check, timer_watch), 0);
    while (!watch.over)
        (void)uv_run(&loop->uv, UV_RUN_NOWAIT);
}

static void do_nothing(void *ctx)
{
    (void)ctx;
}

void loop_until_timer(struct loop_fixture *loop)
{
    loop_at_timer(loop, do_nothing, NULL);
}

void loop_pass(struct loop_fixture *loop, int64_t ms)
{
    const uint64_t from = uv_now(&loop->uv);

    while (uv_now(&loop->uv) < from + (uint64_t)ms)
        uv_update_time(&loop->uv);
}

struct call {
    uv_timer_t timer;
    void (*fn)(void *ctx);
    void *ctx;
    bool over;
};

static void call_over(uv_handle_t *timer)
{
    ((struct call *)timer->data)->over = true;
}

static void call_run(uv_timer_t *timer)
{
    struct call *call = timer->data;

    call->fn(call->ctx);
    uv_close((uv_handle_t *)timer, call_over);
}

void loop_call(struct loop_fixture *loop, void (*fn)(void *ctx), void *ctx)
{
    struct call call = {.fn = fn, .ctx = ctx};

    ck_assert_int_eq(uv_timer_init(&loop->uv, &call.timer), 0);
    call.timer.data = &call;
    ck_assert_int_eq(uv_timer_start(&call.timer, call_run, 0, 0), 0);
    loop_until(loop, is_set, &call.over);
}

void loop_close_runtime(struct loop_fixture *loop, int64_t grace_ms)
{
    bool gone = false;

    ck_assert_int_eq(uva_runtime_close(loop->runtime, grace_ms, set, &gone), 0);
    loop_until(loop, is_set, &gone);
    loop->runtime = NULL;
}

void loop_close(struct loop_fixture *loop)
{
    if (loop->runtime != NULL)
        loop_close_runtime(loop, 0);
    uv_close((uv_handle_t *)&loop->keep, NULL);
    uv_close((uv_handle_t *)&loop->prepare, NULL);
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop->uv), 0);
    ck_assert_int_eq(faulty_allocator_live(&loop->memory), 0);
}
