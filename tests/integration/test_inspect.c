/* SPDX-License-Identifier: Apache-2.0 */
/* Inspectors: their events, in what order, and that they do not change the
 * stream. An inspector writes one word for each event: S, R5 for a request, B,
 * C for a cancel, E0 for the end. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "stage/limit.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "uvarrow/arrow.h"

struct inspector {
    char text[256];
    uint64_t id;     /* of the stream in the first event; 0: none came */
    int64_t ordinal; /* of the last batch */
    struct uva_stream
        *cancels; /* is cancelled at the first batch; may be NULL */
    pthread_t thread;
    bool inside; /* a call of the test is in progress */
    int freed;
};

static struct fixture f;
static struct inspector first, second;

static void inspector_add(struct inspector *i, const char *format, int64_t n)
{
    char word[32];

    (void)snprintf(word, sizeof(word), format, (long long)n);
    ck_assert_uint_lt(strlen(i->text) + strlen(word) + 1, sizeof(i->text));
    if (i->text[0] != '\0')
        (void)strcat(i->text, " ");
    (void)strcat(i->text, word);
}

/* The origin of an event, and the members that its kind leaves alone. */
static void check_event(struct inspector *i,
                        const struct uva_trace_event *event)
{
    ck_assert(pthread_equal(i->thread, pthread_self()));
    ck_assert(!i->inside);
    ck_assert_int_gt(event->at_ns, 0);
    ck_assert_int_eq(event->end_ns, event->at_ns);
    if (i->id == 0)
        i->id = event->stream_id;
    ck_assert_uint_gt(i->id, 0);
    ck_assert_uint_eq(event->stream_id, i->id);
    ck_assert_uint_eq(event->from_id, 0);
    ck_assert_ptr_nonnull(event->stage_name);
    ck_assert_int_ge(event->stage, 0);
    if (event->kind != UVA_TRACE_BATCH)
        ck_assert_int_eq(event->ordinal, -1);
    if (event->kind != UVA_TRACE_REQUEST && event->kind != UVA_TRACE_END)
        ck_assert_int_eq(event->value, 0);
    for (size_t k = 0; k < 4; k++)
        ck_assert_int_eq(event->reserved[k], 0);
}

static void on_event(void *ctx, const struct uva_trace_event *event)
{
    struct inspector *i = ctx;

    check_event(i, event);
    switch (event->kind) {
    case UVA_TRACE_SCHEMA:
        ck_assert_str_eq(event->name, "schema");
        inspector_add(i, "S", 0);
        break;
    case UVA_TRACE_REQUEST:
        ck_assert_str_eq(event->name, "request");
        inspector_add(i, event->value == INT64_MAX ? "Rall" : "R%lld",
                      event->value);
        break;
    case UVA_TRACE_BATCH:
        ck_assert_str_eq(event->name, "batch");
        i->ordinal = event->ordinal;
        inspector_add(i, "B", 0);
        if (i->cancels != NULL)
            uva_stream_cancel(i->cancels, EDOM, "seen");
        break;
    case UVA_TRACE_CANCEL:
        ck_assert_str_eq(event->name, "cancel");
        inspector_add(i, "C", 0);
        break;
    case UVA_TRACE_END:
        ck_assert_str_eq(event->name, "end");
        inspector_add(i, "E%lld", event->value);
        break;
    default:
        ck_abort_msg("an event for a trace alone: %s", event->name);
    }
}

static void on_free(void *ctx)
{
    struct inspector *i = ctx;

    i->freed++;
}

static struct uva_trace options_of(struct inspector *i)
{
    memset(i, 0, sizeof(*i));
    i->thread = pthread_self();
    return (struct uva_trace){.event = on_event, .free_ctx = on_free, .ctx = i};
}

static void inspect(struct uva_stream *stream, struct inspector *i)
{
    const struct uva_trace options = options_of(i);

    ck_assert_int_eq(uva_stream_inspect(stream, &options), 0);
}

static void saw(const struct inspector *i, const char *text)
{
    ck_assert_str_eq(i->text, text);
}

static void close_all(void)
{
    fixture_close(&f);
    ck_assert_int_eq(first.freed, 1);
}

/* ---- events ------------------------------------------------------------- */

START_TEST(an_inspector_sees_everything_in_order)
{
    fixture_open(&f, 2);
    f.stream = fixture_on_loop(&f);
    inspect(f.stream, &first);
    ck_assert_int_eq(fixture_run(&f), 0);
    saw(&first, "S R1 B R1 B R1 E0");
    ck_assert_int_eq(first.ordinal, 1);
    close_all();
}
END_TEST

static int transform_same(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                          void *emitter, struct uva_error *error)
{
    const int code = emit(emitter, in);

    (void)ctx;
    (void)error;
    return code == EAGAIN ? 0 : code;
}

/* Ten inspectors with stages between them: a request for one batch moves one.
 */
START_TEST(ten_inspectors_change_no_request)
{
    static struct inspector more[10];
    const struct uva_transform one = {
        .batch = transform_same, .on_loop = true, .window.batches = 1};

    fixture_open(&f, 3);
    f.got.appetite = 1;
    f.stream = fixture_on_loop(&f);
    inspect(f.stream, &first);
    for (int k = 0; k < 10; k++) {
        ck_assert_int_eq(uva_stream_transform(f.stream, &one), 0);
        inspect(f.stream, &more[k]);
    }
    fixture_start(&f);
    while (atomic_load(&f.got.batches) < 1)
        loop_turn(&f.loop);
    for (int k = 0; k < 10; k++) {
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
        saw(&more[k], "S R1 B");
    }
    saw(&first, "S R1 B");
    recording_feed(&f.got, 10);
    ck_assert_int_eq(fixture_await(&f), 0);
    close_all();
}
END_TEST

START_TEST(each_of_several_is_called)
{
    fixture_open(&f, 1);
    f.stream = fixture_on_loop(&f);
    inspect(f.stream, &first);
    inspect(f.stream, &second);
    ck_assert_int_eq(fixture_run(&f), 0);
    saw(&first, "S R1 B R1 E0");
    saw(&second, "S R1 B R1 E0");
    close_all();
    ck_assert_int_eq(second.freed, 1);
}
END_TEST

START_TEST(a_failure_ends_with_its_code)
{
    fixture_open(&f, 3);
    f.fake.fail_at = 1;
    f.fake.fail_code = EDOM;
    f.stream = fixture_on_loop(&f);
    inspect(f.stream, &first);
    ck_assert_int_eq(fixture_run(&f), EDOM);
    saw(&first, "S R1 B R1 E33");
    close_all();
}
END_TEST

START_TEST(a_cancel_passes_up_and_ends_it)
{
    fixture_open(&f, 3);
    f.stream = fixture_on_loop(&f);
    inspect(f.stream, &first);
    first.cancels = f.stream;
    ck_assert_int_eq(fixture_run(&f), EDOM);
    saw(&first, "S R1 B C E125");
    close_all();
}
END_TEST

START_TEST(a_refusal_of_the_schema_is_an_end)
{
    fixture_open(&f, 3);
    f.got.schema_code = EDOM;
    f.stream = fixture_on_loop(&f);
    inspect(f.stream, &first);
    ck_assert_int_eq(fixture_run(&f), EDOM);
    saw(&first, "S C E33");
    close_all();
}
END_TEST

START_TEST(a_limit_cancels_what_is_above_it)
{
    fixture_open(&f, 3);
    f.stream = fixture_on_loop(&f);
    inspect(f.stream, &first);
    ck_assert_int_eq(uva__stream_limit(f.stream, 1), 0);
    inspect(f.stream, &second);
    ck_assert_int_eq(fixture_run(&f), 0);
    saw(&first, "S R1 B R1 C E125");
    saw(&second, "S R1 B R1 E0");
    close_all();
}
END_TEST

START_TEST(a_limit_that_is_not_reached_cancels_nothing)
{
    fixture_open(&f, 1);
    f.stream = fixture_on_loop(&f);
    inspect(f.stream, &first);
    ck_assert_int_eq(uva__stream_limit(f.stream, 5), 0);
    ck_assert_int_eq(fixture_run(&f), 0);
    saw(&first, "S R1 B R1 E0");
    close_all();
}
END_TEST

/* ---- requests ----------------------------------------------------------- */

static struct ArrowAsyncDeviceStreamHandler handler;
static int64_t asks, asks_again;

static void ask(int64_t n)
{
    first.inside = true;
    handler.producer->request(handler.producer, n);
    first.inside = false;
}

static int handler_on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                             struct ArrowSchema *schema)
{
    (void)self;
    uva_schema_release(schema);
    ask(asks);
    if (asks_again != 0)
        ask(asks_again);
    return 0;
}

static int handler_on_task(struct ArrowAsyncDeviceStreamHandler *self,
                           struct ArrowAsyncTask *task, const char *metadata)
{
    struct ArrowDeviceArray array;

    (void)self;
    (void)metadata;
    if (task != NULL && uva_task_extract(task, &array) == 0)
        uva_array_release(&array);
    return 0;
}

static void handler_on_error(struct ArrowAsyncDeviceStreamHandler *self,
                             int code, const char *message,
                             const char *metadata)
{
    (void)self;
    (void)code;
    (void)message;
    (void)metadata;
}

static void handler_on_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    self->release = NULL;
}

static bool is_released(void *ctx)
{
    (void)ctx;
    return handler.release == NULL;
}

static void drive(int64_t n, int64_t again)
{
    handler =
        (struct ArrowAsyncDeviceStreamHandler){.on_schema = handler_on_schema,
                                               .on_next_task = handler_on_task,
                                               .on_error = handler_on_error,
                                               .release = handler_on_release};
    asks = n;
    asks_again = again;
    fixture_open(&f, 2);
    f.stream = fixture_on_loop(&f);
    inspect(f.stream, &first);
    ck_assert_int_eq(uva_stream_drive(f.stream, &handler, NULL, NULL), 0);
    loop_until(&f.loop, is_released, NULL);
}

/* on_event() checks that it is not called inside the request. */
START_TEST(a_request_is_reported_after_the_call)
{
    drive(2, 3);
    saw(&first, "S R5 B B E0");
    close_all();
}
END_TEST

START_TEST(a_request_without_a_limit_is_reported_as_such)
{
    drive(INT64_MAX, 3);
    saw(&first, "S Rall B B E0");
    close_all();
}
END_TEST

START_TEST(a_bad_request_is_an_end)
{
    drive(-1, 0);
    saw(&first, "S E22");
    close_all();
}
END_TEST

static void *ask_elsewhere(void *ctx)
{
    const int64_t *n = ctx;

    handler.producer->request(handler.producer, *n);
    return NULL;
}

static int handler_keeps(struct ArrowAsyncDeviceStreamHandler *self,
                         struct ArrowSchema *schema)
{
    (void)self;
    uva_schema_release(schema);
    asks = 0;
    return 0;
}

static bool has_schema(void *ctx)
{
    (void)ctx;
    return asks == 0;
}

START_TEST(requests_of_other_threads_are_reported_on_the_loop)
{
    int64_t n = _i == 0 ? 7 : INT64_MAX;
    pthread_t thread;

    handler =
        (struct ArrowAsyncDeviceStreamHandler){.on_schema = handler_keeps,
                                               .on_next_task = handler_on_task,
                                               .on_error = handler_on_error,
                                               .release = handler_on_release};
    asks = 1;
    fixture_open(&f, 2);
    f.stream = fixture_on_loop(&f);
    inspect(f.stream, &first);
    ck_assert_int_eq(uva_stream_drive(f.stream, &handler, NULL, NULL), 0);
    loop_until(&f.loop, has_schema, NULL);
    ck_assert_int_eq(pthread_create(&thread, NULL, ask_elsewhere, &n), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    loop_until(&f.loop, is_released, NULL);
    saw(&first, _i == 0 ? "S R7 B B E0" : "S Rall B B E0");
    close_all();
}
END_TEST

/* ---- life --------------------------------------------------------------- */

START_TEST(without_a_start_there_is_no_event)
{
    fixture_open(&f, 1);
    f.stream = fixture_on_loop(&f);
    inspect(f.stream, &first);
    fixture_release(&f);
    saw(&first, "");
    close_all();
}
END_TEST

/* The place is above a transform, which ends after the stream was released. */
START_TEST(an_end_may_come_after_that_of_the_stream)
{
    fixture_open(&f, 3);
    f.fake.gate_at = 1;
    f.stream = fixture_blocking(&f);
    inspect(f.stream, &first);
    ck_assert_int_eq(
        uva_stream_rebatch(f.stream, &(struct uva_rebatch){.rows = 1000}), 0);
    fixture_start(&f);
    fixture_await_gate(&f);
    fixture_drop(&f);
    while (strchr(first.text, 'E') == NULL)
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    text_contains(first.text, "C E125");
    fake_source_open_gate(&f.fake);
    close_all();
}
END_TEST

START_TEST(the_inspector_of_a_merged_stream_is_called)
{
    struct uva_stream *other;

    fixture_open(&f, 1);
    other = fixture_on_loop(&f);
    inspect(other, &first);
    f.stream = fixture_arrays(&f, NULL, 0);
    ck_assert_int_eq(uva_stream_merge(f.stream, &other, 1, NULL), 0);
    ck_assert_int_eq(fixture_run(&f), 0);
    text_contains(first.text, "B E0");
    close_all();
}
END_TEST

START_TEST(a_runtime_that_closes_ends_it)
{
    fixture_open(&f, 3);
    f.fake.gate_at = 1;
    f.stream = fixture_blocking(&f);
    inspect(f.stream, &first);
    fixture_start(&f);
    fixture_await_gate(&f);
    loop_close_runtime(&f.loop, 0);
    text_contains(first.text, "C E125");
    fixture_release(&f);
    close_all();
}
END_TEST

/* ---- calls -------------------------------------------------------------- */

START_TEST(options_are_checked)
{
    struct uva_trace options;

    fixture_open(&f, 0);
    options = options_of(&first);
    options.event = NULL;
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(uva_stream_inspect(f.stream, &options), EINVAL);
    ck_assert_int_eq(first.freed, 1);
    fixture_refused(&f, f.stream, EINVAL, "event");
    f.stream = fixture_blocking(&f);
    options = options_of(&second);
    options.reserved[1] = &options;
    ck_assert_int_eq(uva_stream_inspect(f.stream, &options), EINVAL);
    ck_assert_int_eq(uva_stream_inspect(f.stream, &options), EINVAL);
    ck_assert_int_eq(second.freed, 0); /* no member can be trusted */
    fixture_refused(&f, f.stream, EINVAL, "reserved");
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(uva_stream_inspect(f.stream, NULL), EINVAL);
    fixture_refused(&f, f.stream, EINVAL, "event");
    f.stream = fixture_blocking(&f);
    options = (struct uva_trace){0};
    ck_assert_int_eq(uva_stream_inspect(f.stream, &options), EINVAL);
    ck_assert_int_eq(uva_stream_inspect(NULL, &options), EINVAL);
    fixture_refused(&f, f.stream, EINVAL, "event");
    f.stream = NULL;
    close_all();
}
END_TEST

START_TEST(a_started_stream_takes_no_inspector)
{
    struct uva_trace options = options_of(&first);

    fixture_open(&f, 1);
    f.stream = fixture_on_loop(&f);
    fixture_start(&f);
    ck_assert_int_eq(uva_stream_inspect(f.stream, &options), EBUSY);
    ck_assert_int_eq(fixture_await(&f), 0);
    close_all();
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    const struct uva_trace options = options_of(&first);
    struct uva_trace plain = options;
    int freed = 0, code = ENOMEM;

    plain.free_ctx = NULL;
    for (long k = 1; code != 0; k++) {
        fixture_open(&f, 1);
        f.stream = fixture_on_loop(&f);
        loop_fail(&f.loop, k);
        (void)uva_stream_inspect(f.stream, &options);
        (void)uva_stream_inspect(f.stream, &plain);
        code = fixture_try(&f, NULL);
        loop_fail(&f.loop, 0);
        if (code == 0)
            (void)fixture_await(&f);
        else
            ck_assert_int_eq(code, ENOMEM);
        fixture_release(&f);
        fixture_close(&f);
        ck_assert_int_eq(first.freed, ++freed);
    }
    ck_assert_int_ge(freed, 3);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("inspect");

    suite_add(
        tests, an_inspector_sees_everything_in_order,
        ten_inspectors_change_no_request, each_of_several_is_called,
        a_failure_ends_with_its_code, a_cancel_passes_up_and_ends_it,
        a_refusal_of_the_schema_is_an_end, a_limit_cancels_what_is_above_it,
        a_limit_that_is_not_reached_cancels_nothing,
        a_request_is_reported_after_the_call,
        a_request_without_a_limit_is_reported_as_such, a_bad_request_is_an_end,
        without_a_start_there_is_no_event,
        an_end_may_come_after_that_of_the_stream,
        the_inspector_of_a_merged_stream_is_called,
        a_runtime_that_closes_ends_it, options_are_checked,
        a_started_stream_takes_no_inspector, each_allocation_may_fail, NULL);
    suite_add_loops(tests, 0, 2,
                    requests_of_other_threads_are_reported_on_the_loop, NULL);
    return suite_main("inspect", NULL, NULL, tests, NULL);
}
