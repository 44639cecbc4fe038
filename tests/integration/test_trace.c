/* SPDX-License-Identifier: Apache-2.0 */
/* Trace events: which ones a stream reports, in which order, with which batch,
 * stage and stream; and that spans of one thread nest. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "uvarrow/arrow.h"

enum { EVENTS = 4096 };

struct kept {
    struct uva_trace_event event;
    char stream[16];
    pthread_t thread;
};

static struct fixture f;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept kept[EVENTS]; /* locked */
static size_t count;             /* locked */

static void on_event(void *ctx, const struct uva_trace_event *event)
{
    struct kept *at;

    ck_assert_ptr_eq(ctx, &f);
    ck_assert_int_le(event->at_ns, event->end_ns);
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(event->reserved[i], 0);
    (void)pthread_mutex_lock(&lock);
    ck_assert_uint_lt(count, EVENTS);
    at = &kept[count++];
    at->event = *event;
    (void)snprintf(at->stream, sizeof(at->stream), "%s",
                   event->stream != NULL ? event->stream : "-");
    at->thread = pthread_self();
    (void)pthread_mutex_unlock(&lock);
}

static void open_traced(int64_t batches)
{
    count = 0;
    fixture_open_with(
        &f, batches,
        &(struct uva_runtime_options){.trace = {.event = on_event, .ctx = &f}});
}

/* How many events there are of this kind, name and stage; NULL and -1: any. */
static size_t events_of(enum uva_trace_kind kind, const char *name, int stage)
{
    size_t found = 0;

    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++)
        found += kept[i].event.kind == kind &&
                 (name == NULL || strcmp(kept[i].event.name, name) == 0) &&
                 (stage < 0 || kept[i].event.stage == stage);
    (void)pthread_mutex_unlock(&lock);
    return found;
}

/* The first event of that kind and name with this ordinal. */
static const struct uva_trace_event *event_of(enum uva_trace_kind kind,
                                              const char *name, int64_t ordinal)
{
    const struct uva_trace_event *found = NULL;

    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count && found == NULL; i++)
        if (kept[i].event.kind == kind && kept[i].event.ordinal == ordinal &&
            strcmp(kept[i].event.name, name) == 0)
            found = &kept[i].event;
    (void)pthread_mutex_unlock(&lock);
    if (found == NULL)
        ck_abort_msg("there is no %s of batch %d", name, (int)ordinal);
    return found;
}

/* Two spans of one thread are apart, or one is inside the other. */
static void spans_nest(void)
{
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++) {
            const struct uva_trace_event *a = &kept[i].event,
                                         *b = &kept[k].event;

            if (a->kind != UVA_TRACE_SPAN || b->kind != UVA_TRACE_SPAN ||
                !pthread_equal(kept[i].thread, kept[k].thread))
                continue;
            ck_assert(a->end_ns <= b->at_ns || b->end_ns <= a->at_ns ||
                      (a->at_ns >= b->at_ns && a->end_ns <= b->end_ns) ||
                      (b->at_ns >= a->at_ns && b->end_ns <= a->end_ns));
        }
    (void)pthread_mutex_unlock(&lock);
}

static int map_same(void *ctx, struct uva_batch *in,
                    struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    return 0;
}

static int transform_twice(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                           void *emitter, struct uva_error *error)
{
    struct uva_batch copy = {0};
    int code;

    (void)ctx;
    (void)error;
    fake_source_batch(&f.fake, in->ordinal, &copy.data);
    code = emit(emitter, &copy);
    if (code == 0)
        code = emit(emitter, in);
    return code == EAGAIN ? 0 : code;
}

/* ---- spans -------------------------------------------------------------- */

/* One batch can be followed from the source to the consumer. */
START_TEST(spans_of_a_batch_have_its_ordinal)
{
    open_traced(3);
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(uva_stream_set_name(f.stream, "flights"), 0);
    (void)uva_stream_map(
        f.stream, &(struct uva_map){.batch = map_same, .on_loop = _i == 0});
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_uint_eq(events_of(UVA_TRACE_SPAN, "open", 0), 1);
    ck_assert_uint_eq(events_of(UVA_TRACE_SPAN, "get_next", 0), 4);
    ck_assert_uint_eq(events_of(UVA_TRACE_SPAN, "map", 1), 3);
    ck_assert_uint_eq(events_of(UVA_TRACE_SPAN, "on_schema", -1), 1);
    ck_assert_uint_eq(events_of(UVA_TRACE_SPAN, "on_batch", 2 + _i), 3);
    ck_assert_uint_eq(events_of(UVA_TRACE_SPAN, "on_done", -1), 1);
    for (int64_t k = 0; k < 3; k++) {
        const struct uva_trace_event *next = event_of(UVA_TRACE_SPAN,
                                                      "get_next", k),
                                     *map = event_of(UVA_TRACE_SPAN, "map", k),
                                     *end = event_of(UVA_TRACE_SPAN, "on_batch",
                                                     k);

        ck_assert_str_eq(next->stage_name, "arrow_stream");
        ck_assert_str_eq(map->stage_name, "map");
        ck_assert_str_eq(end->stage_name, "for_each");
        ck_assert_int_le(next->end_ns, map->at_ns);
        ck_assert_int_le(map->end_ns, end->at_ns);
    }
    (void)event_of(UVA_TRACE_SPAN, "get_next", -1); /* it finds the end */
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++) {
        ck_assert_str_eq(kept[i].stream, "flights");
        ck_assert_uint_eq(kept[i].event.stream_id, 1);
    }
    (void)pthread_mutex_unlock(&lock);
    spans_nest();
    fixture_close(&f);
}
END_TEST

static struct ArrowArray left; /* an array that a map has left to be released */
static int64_t released_ns;    /* when it was */

static void release_left(struct ArrowArray *array)
{
    array->release = NULL;
    left.release(&left);
    released_ns = (int64_t)uv_hrtime();
}

/* Makes another batch, and leaves its input. */
static int map_leaves(void *ctx, struct uva_batch *in,
                      struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    fake_source_batch(&f.fake, in->ordinal, out);
    left = in->data.array;
    in->data.array.release = release_left;
    return 0;
}

/* Spans of maps that run one after the other have one time in common, unless a
 * batch is released between them. */
START_TEST(a_map_begins_when_the_one_before_it_ends)
{
    const struct uva_trace_event *first = NULL, *second = NULL;

    open_traced(1);
    f.stream = fixture_blocking(&f);
    (void)uva_stream_map(
        f.stream, &(struct uva_map){.batch = _i == 0 ? map_same : map_leaves,
                                    .on_loop = true});
    (void)uva_stream_map(f.stream,
                         &(struct uva_map){.batch = map_same, .on_loop = true});
    ck_assert_int_eq(fixture_run(&f), 0);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(kept[i].event.name, "map") != 0)
            continue;
        first = first == NULL ? &kept[i].event : first;
        second = &kept[i].event;
    }
    ck_assert_ptr_nonnull(first);
    ck_assert_int_eq(second->stage, 2);
    ck_assert_int_ge(second->at_ns, _i == 0 ? first->end_ns : released_ns);
    if (_i == 0)
        ck_assert_int_eq(second->at_ns, first->end_ns);
    fixture_close(&f);
}
END_TEST

START_TEST(extraction_has_a_span)
{
    open_traced(2);
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_uint_eq(events_of(UVA_TRACE_SPAN, "next", 0), 3);
    ck_assert_uint_eq(events_of(UVA_TRACE_SPAN, "extract", 0), 2);
    ck_assert_str_eq(kept[0].stream, "-");
    ck_assert_uint_ge(events_of(UVA_TRACE_WAIT, "worker", 0), 1);
    ck_assert_uint_ge(events_of(UVA_TRACE_WAIT, "worker", 1), 1);
    spans_nest();
    fixture_close(&f);
}
END_TEST

START_TEST(a_function_of_a_stage_has_its_name)
{
    const struct uva_transform options = {.batch = transform_twice,
                                          .on_loop = _i == 0};

    open_traced(2);
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(uva_stream_transform(f.stream, &options), 0);
    fixture_start(&f);
    recording_await_done(&f.got, &f.loop);
    f.got.wrong = 0;
    ck_assert_uint_eq(events_of(UVA_TRACE_SPAN, "transform", 1), 3);
    ck_assert_ptr_nonnull(event_of(UVA_TRACE_SPAN, "transform", 1));
    ck_assert_ptr_nonnull(event_of(UVA_TRACE_SPAN, "transform", -1));
    ck_assert_uint_eq(events_of(UVA_TRACE_LINK, "from", 1), 4);
    for (int64_t k = 0; k < 4; k++) {
        ck_assert_int_eq(event_of(UVA_TRACE_LINK, "from", k)->value, k / 2);
        ck_assert_uint_eq(event_of(UVA_TRACE_LINK, "from", k)->from_id, 1);
    }
    fixture_close(&f);
}
END_TEST

/* ---- links -------------------------------------------------------------- */

static struct uva_stream *arrays_of(int n)
{
    struct ArrowDeviceArray arrays[4];

    for (int i = 0; i < n; i++)
        fake_source_batch(&f.fake, i, &arrays[i]);
    return fixture_arrays(&f, arrays, n);
}

START_TEST(a_merge_links_batches_of_its_inputs)
{
    struct uva_stream *other;

    open_traced(0);
    f.stream = arrays_of(1);
    other = arrays_of(2);
    ck_assert_int_eq(uva_stream_concat(f.stream, &other, 1, NULL), 0);
    fixture_start(&f);
    recording_await_done(&f.got, &f.loop);
    f.got.wrong = 0;
    ck_assert_uint_eq(events_of(UVA_TRACE_LINK, NULL, 1), 3);
    ck_assert_uint_eq(event_of(UVA_TRACE_LINK, "from", 0)->from_id, 1);
    ck_assert_uint_eq(event_of(UVA_TRACE_LINK, "from", 1)->from_id, 2);
    ck_assert_int_eq(event_of(UVA_TRACE_LINK, "from", 1)->value, 0);
    ck_assert_int_eq(event_of(UVA_TRACE_LINK, "from", 2)->value, 1);
    ck_assert_str_eq(event_of(UVA_TRACE_LINK, "from", 2)->stage_name, "concat");
    fixture_close(&f);
}
END_TEST

/* ---- instants, counters, waits ------------------------------------------ */

START_TEST(requests_a_resume_a_cancel_and_the_end_are_instants)
{
    open_traced(20);
    f.got.appetite = 2;
    f.fake.gate_at = 0;
    f.stream = fixture_blocking(&f);
    fixture_start(&f);
    fixture_await_gate(&f);
    loop_settle(&f.loop); /* the next event has to wake it */
    fake_source_open_gate(&f.fake);
    while (atomic_load(&f.got.batches) < 2)
        loop_turn(&f.loop);
    ck_assert_uint_ge(events_of(UVA_TRACE_REQUEST, "request", 0), 2);
    recording_feed(&f.got, 1);
    uva_stream_cancel(f.stream, EDOM, "enough");
    uva_stream_cancel(f.stream, EIO, "again");
    recording_await_done(&f.got, &f.loop);
    ck_assert_uint_eq(events_of(UVA_TRACE_RESUME, "resume", -1), 1);
    ck_assert_uint_eq(events_of(UVA_TRACE_CANCEL, "cancel", 1), 1);
    ck_assert_uint_eq(events_of(UVA_TRACE_CANCEL, "cancel", 0), 1);
    ck_assert_uint_eq(events_of(UVA_TRACE_END, "end", 1), 1);
    ck_assert_int_eq(event_of(UVA_TRACE_END, "end", -1)->value, EDOM);
    ck_assert_uint_ge(events_of(UVA_TRACE_COUNTER, "batches", 0), 2);
    ck_assert_uint_ge(events_of(UVA_TRACE_COUNTER, "bytes", 0), 2);
    fixture_close(&f);
    /* A worker reports a wake-up when it has made it: by then the loop may have
     * seen the end. */
    ck_assert_uint_ge(events_of(UVA_TRACE_WAKEUP, "wake-up", 0), 1);
}
END_TEST

START_TEST(a_wait_for_a_device_is_reported)
{
    open_traced(2);
    fixture_device(&f, SOFT_POLLS);
    fixture_ready(&f, fixture_device_stream(&f), NULL);
    fixture_start(&f);
    soft_event_end(&f.device, 1, 0);
    while (atomic_load(&f.device.queries) == 0)
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    soft_event_end(&f.device, 0, 0);
    ck_assert_int_eq(fixture_await(&f), 0);
    ck_assert_ptr_nonnull(event_of(UVA_TRACE_WAIT, "device", 0));
    ck_assert_uint_ge(events_of(UVA_TRACE_WAIT, "device", 1), 1);
    fixture_close(&f);
}
END_TEST

/* ---- other consumers ---------------------------------------------------- */

static int readies;

static void on_ready(void *ctx)
{
    struct uva_batch batch;

    (void)ctx;
    readies++;
    while (uva_stream_take(f.stream, &batch, NULL) == 0)
        uva_array_release(&batch.data);
    if (uva_stream_take(f.stream, &batch, NULL) == ENOENT)
        readies = 100;
}

static bool take_is_over(void *ctx)
{
    (void)ctx;
    return readies >= 100;
}

START_TEST(take_reports_its_ready_function)
{
    struct uva_batch batch;

    readies = 0;
    open_traced(2);
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(
        uva_stream_start_take(f.stream, NULL, on_ready, NULL, NULL), 0);
    ck_assert_int_eq(uva_stream_take(f.stream, &batch, NULL), EAGAIN);
    loop_until(&f.loop, take_is_over, NULL);
    ck_assert_uint_ge(events_of(UVA_TRACE_SPAN, "on_ready", 1), 1);
    fixture_close(&f);
}
END_TEST

static bool collected;

static void on_collected(void *ctx, const struct uva_stream_info *info,
                         struct ArrowDeviceArray *batches, size_t n,
                         const struct uva_outcome *outcome)
{
    (void)ctx;
    (void)info;
    (void)batches;
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(outcome->end, UVA_END_COMPLETE);
    collected = true;
}

static bool is_collected(void *ctx)
{
    (void)ctx;
    return collected;
}

START_TEST(collect_reports_its_callback)
{
    collected = false;
    open_traced(2);
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(uva_stream_collect(f.stream, 0, on_collected, NULL, NULL),
                     0);
    loop_until(&f.loop, is_collected, NULL);
    ck_assert_uint_eq(events_of(UVA_TRACE_SPAN, "on_done", 1), 1);
    fixture_close(&f);
}
END_TEST

static int handler_on_schema(struct ArrowAsyncDeviceStreamHandler *handler,
                             struct ArrowSchema *schema)
{
    uva_schema_release(schema);
    handler->producer->request(handler->producer, 5);
    return 0;
}

static int handler_on_task(struct ArrowAsyncDeviceStreamHandler *handler,
                           struct ArrowAsyncTask *task, const char *metadata)
{
    struct ArrowDeviceArray array;

    (void)handler;
    (void)metadata;
    if (task != NULL && uva_task_extract(task, &array) == 0)
        uva_array_release(&array);
    return 0;
}

static void handler_on_error(struct ArrowAsyncDeviceStreamHandler *handler,
                             int code, const char *message,
                             const char *metadata)
{
    (void)handler;
    (void)metadata;
    ck_abort_msg("on_error: %d, %s", code, message);
}

static void handler_on_release(struct ArrowAsyncDeviceStreamHandler *handler)
{
    handler->release = NULL;
}

static bool is_released(void *ctx)
{
    return ((struct ArrowAsyncDeviceStreamHandler *)ctx)->release == NULL;
}

START_TEST(calls_of_a_foreign_handler_are_reported)
{
    struct ArrowAsyncDeviceStreamHandler handler = {
        .on_schema = handler_on_schema,
        .on_next_task = handler_on_task,
        .on_error = handler_on_error,
        .release = handler_on_release};

    open_traced(2);
    f.stream = fixture_on_loop(&f);
    ck_assert_int_eq(uva_stream_drive(f.stream, &handler, NULL, NULL), 0);
    loop_until(&f.loop, is_released, &handler);
    ck_assert_uint_eq(events_of(UVA_TRACE_SPAN, "on_next_task", 1), 2);
    ck_assert_str_eq(event_of(UVA_TRACE_SPAN, "on_next_task", 1)->stage_name,
                     "drive");
    fixture_close(&f);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("trace");

    suite_add(tests, extraction_has_a_span, a_merge_links_batches_of_its_inputs,
              requests_a_resume_a_cancel_and_the_end_are_instants,
              a_wait_for_a_device_is_reported, take_reports_its_ready_function,
              collect_reports_its_callback,
              calls_of_a_foreign_handler_are_reported, NULL);
    suite_add_loops(tests, 0, 2, spans_of_a_batch_have_its_ordinal,
                    a_map_begins_when_the_one_before_it_ends,
                    a_function_of_a_stage_has_its_name, NULL);
    return suite_main("trace", NULL, NULL, tests, NULL);
}
