/* SPDX-License-Identifier: Apache-2.0 */
/* A foreign producer calls its handler after it has released it: the calls are
 * survived, counted and reported, also once the stream is freed, and no object
 * that they carry is lost. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "loop/loop.h"
#include "source/foreign.h"
#include "support/check_suite.h"
#include "support/fake_source.h"
#include "support/loop_fixture.h"
#include "uvarrow/uvarrow.h"

enum { CALLS = 300, QUARANTINE = 1024 };

static struct loop_fixture loop;
static struct fake_source data;
static char clauses[256]; /* of the log, in its order */
static atomic_int spent;  /* tasks that were extracted */
static atomic_bool done;

/* ---- the producer ------------------------------------------------------- */

static struct ArrowAsyncDeviceStreamHandler *handler;
static void (*release)(struct ArrowAsyncDeviceStreamHandler *self);

static void on_request(struct ArrowAsyncProducer *self, int64_t n)
{
    (void)self;
    (void)n;
}

static void on_cancel(struct ArrowAsyncProducer *self)
{
    (void)self;
}

static struct ArrowAsyncProducer producer = {.device_type = ARROW_DEVICE_CPU,
                                             .request = on_request,
                                             .cancel = on_cancel};

static int call_schema(void)
{
    struct ArrowSchema schema;
    int code;

    fake_source_schema(&data, &schema);
    code = handler->on_schema(handler, &schema);
    ck_assert(schema.release == NULL); /* AH-06 */
    return code;
}

static int extract(struct ArrowAsyncTask *self, struct ArrowDeviceArray *out)
{
    (void)self;
    atomic_fetch_add(&spent, 1);
    if (out != NULL)
        fake_source_batch(&data, 0, out);
    return 0;
}

static int call_task(void)
{
    struct ArrowAsyncTask task = {.extract_data = extract};

    return handler->on_next_task(handler, &task, NULL);
}

static int play(void *ctx, struct ArrowAsyncDeviceStreamHandler *self,
                struct uva_error *error)
{
    (void)ctx;
    (void)error;
    handler = self;
    release = self->release;
    self->producer = &producer;
    ck_assert_int_eq(call_schema(), 0);
    ck_assert_int_eq(self->on_next_task(self, NULL, NULL), 0);
    self->release(self);
    return 0;
}

/* ---- the stream --------------------------------------------------------- */

static void on_log(void *ctx, const struct uva_log_record *record)
{
    const size_t used = strlen(clauses);

    (void)ctx;
    if (record->clause != NULL)
        (void)snprintf(clauses + used, sizeof(clauses) - used, "%s%s",
                       used > 0 ? " " : "", record->clause);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    (void)batch;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    ck_assert_int_eq(outcome->end, UVA_END_COMPLETE);
    atomic_store(&done, true);
}

static void open_stream(const struct uva_runtime_options *options,
                        int (*start)(void *ctx,
                                     struct ArrowAsyncDeviceStreamHandler *self,
                                     struct uva_error *error))
{
    const struct uva_consumer consumer = {.on_batch = on_batch,
                                          .on_done = on_done};
    struct uva_stream *stream;

    clauses[0] = '\0';
    atomic_store(&spent, 0);
    atomic_store(&done, false);
    fake_source_init(&data, 1);
    loop_open_with(&loop, options);
    stream = uva_stream_from_async(loop.runtime,
                                   &(struct uva_async_source){.start = start});
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
    uva_stream_release(stream);
}

/* Turns the loop until the stream is freed, and no thread of ours uses its
 * former source. */
static void turn_to_the_end(void)
{
    const struct uva__rt *rt = uva__loop_rt(loop.runtime);

    while (!atomic_load(&done) ||
           uva__atomic64_load(&rt->jobs_in_flight.word) != 0) {
        (void)uv_run(&loop.uv, UV_RUN_NOWAIT);
        (void)sched_yield();
    }
    loop_settle(&loop);
}

static void close_stream(void)
{
    loop_close(&loop);
    ck_assert_int_eq(atomic_load(&data.live), 0);
    fake_source_fini(&data);
}

static struct uva_runtime_stats stats(void)
{
    struct uva_runtime_stats now;

    uva_runtime_get_stats(loop.runtime, &now);
    return now;
}

/* ---- tests -------------------------------------------------------------- */

/* Each callback once: (1) after the checker. */
START_TEST(AH22_calls_on_a_freed_handler_are_survived_and_counted)
{
    const struct uva_runtime_options options = {.check = _i == 1,
                                                .log = {.write = on_log}};

    open_stream(&options, play);
    turn_to_the_end();
    ck_assert_int_ne(call_schema(), 0);
    ck_assert_int_eq(call_task(), 0);
    ck_assert_int_eq(handler->on_next_task(handler, NULL, NULL), 0);
    handler->on_error(handler, EIO, "late", NULL);
    release(handler);
    ck_assert_int_eq(atomic_load(&spent), 1);
    if (_i == 0) { /* the checker reports each rule once */
        ck_assert_str_eq(clauses, "AH-22 AH-22 AH-22 AH-22 AH-21");
        ck_assert_int_eq(stats().late_calls, 5);
        ck_assert_int_eq(stats().peer_breaches, 5);
    } else {
        ck_assert_int_ge(stats().peer_breaches, 2);
    }
    close_stream();
}
END_TEST

START_TEST(AT01_a_late_task_that_cannot_be_extracted_is_left_alone)
{
    const struct uva_runtime_options options = {.log = {.write = on_log}};
    struct ArrowAsyncTask hollow = {.extract_data = NULL};

    open_stream(&options, play);
    turn_to_the_end();
    ck_assert_int_eq(handler->on_next_task(handler, &hollow, NULL), 0);
    ck_assert_int_eq(handler->on_schema(handler, NULL), EINVAL);
    ck_assert_str_eq(clauses, "AH-22 AH-22");
    close_stream();
}
END_TEST

static pthread_t thread;

static void *call_late(void *ctx)
{
    (void)ctx;
    for (int i = 0; i < CALLS; i++) {
        ck_assert_int_eq(call_task(), 0);
        handler->on_error(handler, EIO, "late", NULL);
    }
    return NULL;
}

static int play_and_call(void *ctx, struct ArrowAsyncDeviceStreamHandler *self,
                         struct uva_error *error)
{
    const int code = play(ctx, self, error);

    ck_assert_int_eq(pthread_create(&thread, NULL, call_late, NULL), 0);
    return code;
}

/* The calls are made while the stream ends and is freed. */
START_TEST(AH22_calls_beside_the_end_are_survived_and_counted)
{
    open_stream(&(struct uva_runtime_options){0}, play_and_call);
    turn_to_the_end();
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(atomic_load(&spent), CALLS);
    ck_assert_int_eq(stats().late_calls, 2 * CALLS);
    close_stream();
}
END_TEST

static struct uva__foreign *make_and_free(void)
{
    struct uva__rt *rt = uva__loop_rt(loop.runtime);
    struct uva__foreign *f = uva__foreign_alloc(rt);

    ck_assert_ptr_nonnull(f);
    uva__slots_put_handler(rt, &f->slot);
    return f;
}

START_TEST(a_handlers_memory_is_used_again_after_a_second_and_1024_others)
{
    struct uva__foreign *first;

    loop_open(&loop);
    ck_assert_int_eq(uva__slots_ensure(uva__loop_rt(loop.runtime)), 0);
    first = make_and_free();
    for (int i = 0; i < QUARANTINE; i++) {
        first->slot.retired_ns = 0; /* long ago */
        ck_assert_ptr_ne(make_and_free(), first);
    }
    first->slot.retired_ns = uva__clock_ns();
    ck_assert_ptr_ne(make_and_free(), first);
    first->slot.retired_ns = 0;
    first->locked.state.heard = UVA__HEARD_RELEASE;
    ck_assert_ptr_eq(make_and_free(), first);
    ck_assert_int_eq(first->locked.state.heard, UVA__HEARD_NOTHING);
    loop_close(&loop);
}
END_TEST

int main(void)
{
    TCase *c = suite_tests(
        "late callbacks",
        AT01_a_late_task_that_cannot_be_extracted_is_left_alone,
        AH22_calls_beside_the_end_are_survived_and_counted,
        a_handlers_memory_is_used_again_after_a_second_and_1024_others, NULL);

    suite_add_loops(
        c, 0, 2, AH22_calls_on_a_freed_handler_are_survived_and_counted, NULL);
    if (setenv("UVA_CHECK", "0", 1) != 0) /* the options decide */
        return 1;
    return suite_main("late_callbacks", NULL, NULL, c, NULL);
}
