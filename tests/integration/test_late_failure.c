/* SPDX-License-Identifier: Apache-2.0 */
/* A stage whose consumer pauses for so long after the end of the stream above
 * that the producer there has released the stage. An extraction that fails
 * after that is reported by the stage itself, as no one else can. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#include "stage/stage.h"
#include "stream/stream_impl.h"
#include "support/check_suite.h"
#include "support/fixture.h"

enum { BATCHES = 5, BAD = 4 };

static struct fixture f;
static atomic_bool may_fail; /* the map may return from the bad batch */

/* Runs on a worker. */
static int map_batch(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    while (in->ordinal == BAD && !atomic_load(&may_fail))
        (void)sched_yield();
    if (in->ordinal == BAD)
        return uva_error_set(error, EDOM, "a bad batch");
    uva_array_move(&in->data, out);
    return 0;
}

/* ---- the stages --------------------------------------------------------- */

static const struct uva_window window = {.batches = 2 * BATCHES};

static void add_parallel(void)
{
    (void)uva_stream_parallel(
        f.stream, &(struct uva_parallel){.workers = 2, .window = window});
}

static int emit_all(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                    void *emitter, struct uva_error *error)
{
    const int code = emit(emitter, in);

    (void)ctx;
    (void)error;
    return code == EAGAIN ? 0 : code;
}

static void add_transform(void)
{
    (void)uva_stream_transform(
        f.stream, &(struct uva_transform){.batch = emit_all, .window = window});
}

static void (*const stages[])(void) = {add_parallel, add_transform};

/* ---- the consumer ------------------------------------------------------- */

static void on_batch(struct recording_consumer *c, struct uva_batch *batch)
{
    c->answer = batch->ordinal == 0 ? EAGAIN : 0;
}

static struct uva__inlet *inlet(void)
{
    return &uva__stage_of(f.stream->tail->source)->inlet;
}

/* ... and the consumer has paused. */
static bool above_has_ended(void *ctx)
{
    (void)ctx;
    return inlet()->state == UVA__INLET_ENDED && f.got.taken == 1;
}

static bool above_is_gone(void *ctx)
{
    (void)ctx;
    return inlet()->above == NULL;
}

/* Its limit has passed. */
static void end_drain(void *ctx)
{
    (void)ctx;
    ck_assert_ptr_nonnull(inlet()->above); /* it waits for extractions */
    uva__producer_end_drain(inlet()->above);
}

START_TEST(it_is_reported_after_the_batches_before_it)
{
    fixture_open(&f, BATCHES);
    f.got.on_batch = on_batch;
    atomic_store(&may_fail, false);
    f.stream = fixture_tasks(&f);
    (void)uva_stream_map(f.stream, &(struct uva_map){.batch = map_batch});
    stages[_i]();
    fixture_start(&f);
    loop_until(&f.loop, above_has_ended, NULL);
    ck_assert_int_eq(uva_runtime_post(f.loop.runtime, end_drain, NULL), 0);
    loop_until(&f.loop, above_is_gone, NULL);
    uva_stream_resume(f.stream);
    atomic_store(&may_fail, true);
    ck_assert_int_eq(fixture_await(&f), EDOM);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_FAILED);
    ck_assert_int_eq(f.got.taken, BAD);
    fixture_close(&f);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("late failures");

    tcase_add_loop_test(tc, it_is_reported_after_the_batches_before_it, 0,
                        (int)(sizeof(stages) / sizeof(stages[0])));
    return suite_main("late_failure", NULL, NULL, tc, NULL);
}
