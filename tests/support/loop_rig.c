/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime as a guest on a loop of the test's own. */
#include "support/loop_rig.h"

#include <check.h>

static void keep_nudged(uv_async_t *keep)
{
    (void)keep; /* the loop has come round, which is all */
}

void loop_rig_open(struct loop_rig *rig)
{
    loop_rig_open_with(rig, &(struct uva_runtime_options){0});
}

void loop_rig_open_with(struct loop_rig *rig,
                        const struct uva_runtime_options *how)
{
    struct uva_runtime_options options = *how;

    faulty_allocator_init(&rig->memory, 0);
    options.allocator = faulty_allocator_table(&rig->memory);
    ck_assert_int_eq(uv_loop_init(&rig->loop), 0);
    ck_assert_int_eq(uv_async_init(&rig->loop, &rig->keep, keep_nudged), 0);
    ck_assert_int_eq(
        uva_runtime_open(&rig->loop, &options, &rig->runtime, NULL), 0);
}

void loop_rig_fail(struct loop_rig *rig, long n)
{
    long asked = faulty_allocator_asked(&rig->memory);

    atomic_store(&rig->memory.fail_at, n == 0 ? 0 : asked + n);
}

void loop_rig_until(struct loop_rig *rig, bool (*done)(void *ctx), void *ctx)
{
    while (!done(ctx))
        (void)uv_run(&rig->loop, UV_RUN_ONCE);
}

void loop_rig_nudge(struct loop_rig *rig)
{
    (void)uv_async_send(&rig->keep);
}

static bool is_set(void *ctx)
{
    return *(bool *)ctx;
}

static void set(void *ctx)
{
    *(bool *)ctx = true;
}

/* What one turn leaves to the next is done before a call that was posted
 * behind it comes back twice. */
void loop_rig_settle(struct loop_rig *rig)
{
    for (int i = 0; i < 2; i++) {
        bool back = false;
        ck_assert_int_eq(uva_runtime_post(rig->runtime, set, &back), 0);
        loop_rig_until(rig, is_set, &back);
    }
    (void)uv_run(&rig->loop, UV_RUN_NOWAIT);
}

static void timer_look(uv_handle_t *handle, void *arg)
{
    if (handle->type == UV_TIMER && uv_is_active(handle))
        *(bool *)arg = true;
}

bool loop_rig_has_timer(struct loop_rig *rig)
{
    bool has = false;

    uv_walk(&rig->loop, timer_look, &has);
    return has;
}

/* Such a turn begins with the timers. */
void loop_rig_until_timer(struct loop_rig *rig)
{
    while (!loop_rig_has_timer(rig))
        (void)uv_run(&rig->loop, UV_RUN_NOWAIT);
}

void loop_rig_pass(struct loop_rig *rig, int64_t ms)
{
    const uint64_t from = uv_now(&rig->loop);

    while (uv_now(&rig->loop) < from + (uint64_t)ms)
        uv_update_time(&rig->loop);
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

void loop_rig_call(struct loop_rig *rig, void (*fn)(void *ctx), void *ctx)
{
    struct call call = {.fn = fn, .ctx = ctx};

    ck_assert_int_eq(uv_timer_init(&rig->loop, &call.timer), 0);
    call.timer.data = &call;
    ck_assert_int_eq(uv_timer_start(&call.timer, call_run, 0, 0), 0);
    loop_rig_until(rig, is_set, &call.over);
}

void loop_rig_close_runtime(struct loop_rig *rig, int64_t grace_ms)
{
    bool gone = false;

    ck_assert_int_eq(uva_runtime_close(rig->runtime, grace_ms, set, &gone), 0);
    loop_rig_until(rig, is_set, &gone);
    rig->runtime = NULL;
}

void loop_rig_close(struct loop_rig *rig)
{
    if (rig->runtime != NULL)
        loop_rig_close_runtime(rig, 0);
    uv_close((uv_handle_t *)&rig->keep, NULL);
    (void)uv_run(&rig->loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&rig->loop), 0);
    ck_assert_int_eq(faulty_allocator_live(&rig->memory), 0);
}
