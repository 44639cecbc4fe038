/* SPDX-License-Identifier: Apache-2.0 */
/* merge and concat: the order of batches, fair turns, the fate of the other
 * streams when one fails or is cancelled, how many run at once, and which
 * streams may be merged. A batch of stream i has from 10 * i to 10 * i + 9
 * rows. Pushers feed the streams that end when the test wants it. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "stage/limit.h"
#include "support/asking.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/metadata_source.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

static struct asking asking;

enum { WAYS = 2, MERGE = 0, CONCAT = 1 }; /* the loop index */
enum { STREAMS = 4, MANY = 1000 };

static struct loop_fixture loop;
static struct recording_consumer consumer;
static struct uva_merge options;
static struct uva_stream *streams[STREAMS];
static struct uva_pusher *pushers[STREAMS]; /* NULL once closed */
static bool gone[STREAMS];                  /* on_closed was called */

/* ---- the fixture -------------------------------------------------------- */

/* A turn does not end early on a machine that is busy, so the order of batches
 * does not depend on time. */
static void set_up(void)
{
    const struct uva_runtime_options patient = {.turn_us = 100000000};

    recording_init(&consumer);
    consumer.transcribes = true;
    loop_open_with(&loop, &patient);
    options = (struct uva_merge){0};
    memset(gone, 0, sizeof(gone));
}

static void push_end(int i, int code, const char *text, const char *metadata)
{
    struct uva_error error;

    if (pushers[i] != NULL)
        uva_pusher_close(pushers[i],
                         uva_error_set(&error, code, "%s", text) != 0 ? &error
                                                                      : NULL,
                         metadata);
    pushers[i] = NULL;
}

static void tear_down(void)
{
    for (int i = 0; i < STREAMS; i++)
        push_end(i, 0, "", NULL);
    loop_close(&loop);
    ck_assert_int_eq(plain_live(), 0);
}

/* Makes a stream of batches with the given lengths; the last one is -1. */
static struct uva_stream *stream_of(const int *lengths)
{
    struct ArrowDeviceArray arrays[16];
    struct ArrowSchema schema;
    size_t count = 0;

    batch_schema(&schema);
    for (; lengths[count] >= 0; count++)
        batch_make(&arrays[count], lengths[count]);
    return uva_stream_from_arrays(loop.runtime, &schema, arrays, count);
}

static void on_closed(void *ctx, struct uva_pusher *pusher)
{
    (void)pusher;
    *(bool *)ctx = true;
}

/* Makes the first `count` streams, with pushers. */
static void open_pushers(int count)
{
    for (int i = 0; i < count; i++) {
        const struct uva_push_source source = {.on_closed = on_closed,
                                               .ctx = &gone[i]};
        struct ArrowSchema schema;

        batch_schema(&schema);
        streams[i] = uva_stream_from_pusher(loop.runtime, &source, &pushers[i]);
        ck_assert_int_eq(uva_pusher_set_schema(pushers[i], &schema), 0);
    }
}

static void push(int i, int64_t length)
{
    struct ArrowDeviceArray array;

    batch_make(&array, length);
    ck_assert_int_eq(uva_pusher_push(pushers[i], &array, NULL, 0), 0);
}

/* Joins the first `count` streams into the first one. */
static int join(int way, int count)
{
    return way == MERGE ? uva_stream_merge(streams[0], streams + 1,
                                           (size_t)count - 1, &options)
                        : uva_stream_concat(streams[0], streams + 1,
                                            (size_t)count - 1, NULL);
}

static void start(int way, int count)
{
    ck_assert_int_eq(join(way, count), 0);
    recording_start(&consumer, streams[0]);
}

static void settles(const char *transcript)
{
    loop_settle(&loop);
    ck_assert_str_eq(consumer.transcript, transcript);
}

static void ends(enum uva_end end, int code, const char *text,
                 const char *transcript)
{
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, end, code, text);
    ck_assert_str_eq(consumer.transcript, transcript);
    ck_assert(consumer.in_order);
    uva_stream_release(streams[0]);
}

/* ---- the order ---------------------------------------------------------- */

static const int ZERO[] = {1, 2, 3, -1}, ONE[] = {11, 12, 13, -1},
                 TWO[] = {21, -1}, NONE[] = {-1};

START_TEST(one_stream_stays_as_it_is)
{
    streams[0] = stream_of(ZERO);
    start(_i, 1);
    ends(UVA_END_COMPLETE, 0, NULL, "schema 1 2 3 complete");
}
END_TEST

START_TEST(streams_take_turns_or_follow_each_other)
{
    static const char *const transcripts[] = {
        "schema 1 11 21 2 12 3 13 complete",
        "schema 1 2 3 11 12 13 21 complete"};

    streams[0] = stream_of(ZERO);
    streams[1] = stream_of(ONE);
    streams[2] = stream_of(TWO);
    start(_i, 3);
    ends(UVA_END_COMPLETE, 0, NULL, transcripts[_i]);
}
END_TEST

START_TEST(empty_streams_add_nothing)
{
    streams[0] = stream_of(NONE);
    streams[1] = stream_of(NONE);
    streams[2] = stream_of(TWO);
    streams[3] = stream_of(NONE);
    start(_i, 4);
    ends(UVA_END_COMPLETE, 0, NULL, "schema 21 complete");
}
END_TEST

START_TEST(merge_waits_for_no_stream_and_concat_for_each)
{
    static const char *const transcripts[] = {"schema 11", "schema"};
    static const char *const rest[] = {"schema 11 1 12 complete",
                                       "schema 1 11 12 complete"};

    open_pushers(2);
    start(_i, 2);
    push(1, 11);
    settles(transcripts[_i]);
    push(0, 1);
    push_end(0, 0, "", NULL);
    loop_settle(&loop);
    push(1, 12);
    push_end(1, 0, "", NULL);
    ends(UVA_END_COMPLETE, 0, NULL, rest[_i]);
}
END_TEST

static int pass(void *ctx, struct uva_batch *in, struct ArrowDeviceArray *out,
                struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    return 0;
}

START_TEST(expensive_streams_are_extracted_by_workers)
{
    streams[0] = stream_of(ZERO);
    streams[1] = stream_of(NONE);
    streams[2] = stream_of(TWO);
    (void)uva_stream_map(streams[0], &(struct uva_map){.batch = pass});
    (void)uva_stream_map(streams[2], &(struct uva_map){.batch = pass});
    start(_i, 3);
    recording_await_done(&consumer, &loop);
    ck_assert_int_eq(consumer.taken, 4);
    ck_assert_int_eq(atomic_load(&consumer.rows), 1 + 2 + 3 + 21);
    uva_stream_release(streams[0]);
}
END_TEST

START_TEST(metadata_of_batches_is_kept)
{
    const struct uva_pair pair[] = {{.key = "k", .value = "v"}, {0}};
    struct ArrowDeviceArray array;
    char metadata[64];
    size_t size = sizeof(metadata);

    ck_assert_int_eq(uva_metadata_encode(pair, metadata, &size), 0);
    open_pushers(2);
    start(_i, 2);
    push_end(0, 0, "", NULL);
    batch_make(&array, 11);
    ck_assert_int_eq(uva_pusher_push(pushers[1], &array, metadata, 0), 0);
    push_end(1, 0, "", NULL);
    ends(UVA_END_COMPLETE, 0, NULL, "schema 11 complete");
    ck_assert_int_eq(consumer.metadata_size, size);
    ck_assert_mem_eq(consumer.metadata, metadata, size);
}
END_TEST

/* ---- fair turns --------------------------------------------------------- */

static long taken[MANY];

static void count_taken(struct recording_consumer *c, struct uva_batch *batch)
{
    (void)c;
    taken[batch->data.array.length]++;
}

static struct uva_stream *stream_of_equal(int64_t length, size_t count)
{
    struct ArrowDeviceArray arrays[64];
    struct ArrowSchema schema;

    batch_schema(&schema);
    for (size_t i = 0; i < count; i++)
        batch_make(&arrays[i], length);
    return uva_stream_from_arrays(loop.runtime, &schema, arrays, count);
}

START_TEST(turns_are_fair)
{
    struct uva_stream *others[MANY];
    long least = 64, most = 0;

    memset(taken, 0, sizeof(taken));
    for (int i = 0; i < MANY; i++)
        others[i] = stream_of_equal(i, 64);
    ck_assert_int_eq(
        uva_stream_merge(others[0], others + 1, MANY - 1, &options), 0);
    (void)uva__stream_limit(others[0], 40 * MANY);
    consumer.quiet = true;
    consumer.on_batch = count_taken;
    recording_consume(&consumer, others[0]);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_COMPLETE, 0, NULL);
    for (int i = 0; i < MANY; i++) {
        least = taken[i] < least ? taken[i] : least;
        most = taken[i] > most ? taken[i] : most;
    }
    ck_assert_int_le(10 * most, 11 * least);
}
END_TEST

/* ---- failures ----------------------------------------------------------- */

START_TEST(a_failure_cancels_the_other_streams)
{
    const struct uva_pair pair[] = {{.key = "k", .value = "v"}, {0}};
    char metadata[64];
    size_t size = sizeof(metadata);

    ck_assert_int_eq(uva_metadata_encode(pair, metadata, &size), 0);
    open_pushers(3);
    start(MERGE, 3);
    push(0, 1);
    push(1, 11);
    push_end(1, EDOM, "no good", metadata);
    ends(UVA_END_FAILED, EDOM, "no good", "schema 1 11 failed");
    ck_assert_int_eq(consumer.metadata_size, size);
    ck_assert_mem_eq(consumer.metadata, metadata, size);
    loop_settle(&loop);
    ck_assert(gone[0] && gone[2]);
}
END_TEST

START_TEST(a_failure_waits_for_batches_and_cancels_at_once)
{
    consumer.appetite = 1;
    open_pushers(2);
    start(MERGE, 2);
    push(0, 1);
    push(0, 2);
    push(0, 3);
    loop_settle(&loop);
    push_end(1, EDOM, "no good", NULL);
    loop_settle(&loop);
    ck_assert_int_eq(consumer.taken, 1);
    ck_assert(gone[0]);
    recording_feed(&consumer, 9);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_FAILED, EDOM, "no good");
    ck_assert_int_eq(consumer.taken, 3);
    uva_stream_release(streams[0]);
}
END_TEST

START_TEST(with_keep_going_a_failure_waits_for_the_others)
{
    options.keep_going = true;
    open_pushers(3);
    start(MERGE, 3);
    push(1, 11);
    push_end(1, EDOM, "no good", NULL);
    settles("schema 11");
    push_end(0, ERANGE, "not the first", NULL);
    push(2, 21);
    settles("schema 11 21");
    push_end(2, 0, "", NULL);
    ends(UVA_END_FAILED, EDOM, "no good", "schema 11 21 failed");
}
END_TEST

START_TEST(in_concat_a_failure_follows_the_streams_before_it)
{
    open_pushers(3);
    ck_assert_int_eq(uva_stream_concat(streams[0], streams + 1, 2,
                                       &(struct uva_merge){.open_at_once = 2}),
                     0);
    recording_start(&consumer, streams[0]);
    push_end(1, EDOM, "no good", NULL);
    push(0, 1);
    settles("schema 1");
    push(0, 2);
    push_end(0, 0, "", NULL);
    ends(UVA_END_FAILED, EDOM, "no good", "schema 1 2 failed");
    loop_settle(&loop);
    ck_assert(gone[2]);
}
END_TEST

static int fail_map(void *ctx, struct uva_batch *in,
                    struct ArrowDeviceArray *out, struct uva_error *error)
{
    if (in->ordinal == 2) {
        (void)uva_error_set(error, ERANGE, "lost");
        error->vendor = "db";
        error->vendor_code = 7;
        return ERANGE;
    }
    return pass(ctx, in, out, error);
}

/* On the loop thread, and on a worker. */
START_TEST(an_extraction_may_fail)
{
    streams[0] = stream_of(NONE);
    streams[1] = stream_of(ONE);
    (void)uva_stream_map(
        streams[1],
        &(struct uva_map){.batch = fail_map, .on_loop = _i / WAYS == 0});
    start(_i % WAYS, 2);
    ends(UVA_END_FAILED, ERANGE, "lost", "schema 11 12 failed");
    ck_assert_str_eq(consumer.outcome.error.vendor, "db");
    ck_assert_int_eq(consumer.outcome.error.vendor_code, 7);
}
END_TEST

/* ---- schemas ------------------------------------------------------------ */

static struct uva_stream *stream_with(const char *format, const char *name)
{
    struct ArrowSchema schema;

    plain_schema(&schema, "+s", "root", 2);
    plain_schema(schema.children[0], "c", "a", 0);
    plain_schema(schema.children[1], format, name, 0);
    return uva_stream_from_arrays(loop.runtime, &schema, NULL, 0);
}

START_TEST(a_schema_that_differs_is_an_error)
{
    consumer.transcribes = false;
    streams[0] = stream_with("l", "b");
    streams[1] = stream_with("l", "b");
    streams[2] = stream_with("i", "b");
    start(_i, 3);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_FAILED, EINVAL, "field 'b'");
    text_contains(consumer.outcome.error.message, "input 2");
    uva_stream_release(streams[0]);
}
END_TEST

START_TEST(a_device_type_that_differs_is_an_error)
{
    const struct uva_push_source source = {.device_type = ARROW_DEVICE_CUDA};
    struct ArrowSchema schema;

    batch_schema(&schema);
    streams[0] = stream_of(NONE);
    streams[1] = uva_stream_from_pusher(loop.runtime, &source, &pushers[1]);
    ck_assert_int_eq(uva_pusher_set_schema(pushers[1], &schema), 0);
    start(_i, 2);
    ends(UVA_END_FAILED, EINVAL, "device type is 2, not 1", "schema failed");
}
END_TEST

/* Of data that the host cannot read, each stream must be ready. */
START_TEST(device_data_is_passed_on_if_every_stream_is_ready)
{
    for (int ready = 0; ready < 4; ready++) {
        recording_init(&consumer);
        for (int i = 0; i < 2; i++) {
            struct ArrowDeviceArray array;
            struct ArrowSchema schema;

            batch_schema(&schema);
            batch_make(&array, 10 * i);
            array.device_type = ARROW_DEVICE_CUDA;
            streams[i] =
                uva_stream_from_arrays(loop.runtime, &schema, &array, 1);
            if (ready & (1 << i))
                ck_assert_int_eq(uva_stream_ready(streams[i], NULL), 0);
        }
        start(_i, 2);
        recording_await_done(&consumer, &loop);
        ck_assert_int_eq(consumer.outcome.end,
                         ready == 3 ? UVA_END_COMPLETE : UVA_END_FAILED);
        uva_stream_release(streams[0]);
    }
}
END_TEST

/* The first stream fails before its schema: another one's is used. */
START_TEST(a_stream_without_a_schema_is_a_failure_like_others)
{
    options.keep_going = true;
    streams[0] = uva_stream_from_pusher(loop.runtime, NULL, &pushers[0]);
    streams[1] = stream_of(ONE);
    push_end(0, EDOM, "no schema", NULL);
    start(MERGE, 2);
    ends(UVA_END_FAILED, EDOM, "no schema", "schema 11 12 13 failed");
}
END_TEST

/* The metadata of the first schema is passed on; each allocation may fail. */
START_TEST(metadata_of_the_producer_is_kept)
{
    bool whole = false;

    for (long fail_at = 1; !whole; fail_at++) {
        struct uva_stream *one = stream_of(ONE);
        struct uva_consumer table;

        recording_init(&consumer);
        consumer.on_batch = metadata_source_seen;
        loop_fail(&loop, fail_at);
        streams[0] = metadata_source(loop.runtime, one);
        (void)join(_i, 1);
        table = recording_table(&consumer);
        if (uva_stream_for_each(streams[0], &table, NULL) == 0)
            recording_await_done(&consumer, &loop);
        uva_stream_release(streams[0]);
        whole = !faulty_allocator_has_failed(&loop.memory);
        loop_fail(&loop, 0);
        loop_close(&loop); /* the next one asks for as many blocks again */
        loop_open(&loop);
    }
    recording_ended(&consumer, UVA_END_COMPLETE, 0, NULL);
    ck_assert_int_eq(consumer.taken, 3);
}
END_TEST

/* ---- cancels ------------------------------------------------------------ */

START_TEST(a_cancel_reaches_all_streams)
{
    open_pushers(3);
    start(_i, 3);
    push(0, 1);
    settles("schema 1");
    uva_stream_cancel(streams[0], 0, "no more");
    ends(UVA_END_CANCELLED, ECANCELED, "no more", "schema 1 cancelled");
    loop_settle(&loop);
    ck_assert(gone[0] && gone[1] && gone[2]);
}
END_TEST

START_TEST(a_cancel_may_come_before_any_schema)
{
    for (int i = 0; i < 2; i++)
        streams[i] = uva_stream_from_pusher(loop.runtime, NULL, &pushers[i]);
    start(_i, 2);
    loop_settle(&loop);
    uva_stream_cancel(streams[0], 0, "no more");
    ends(UVA_END_CANCELLED, ECANCELED, "no more", "cancelled");
}
END_TEST

START_TEST(batches_that_wait_are_released_by_a_cancel)
{
    open_pushers(2);
    consumer.appetite = 1;
    start(MERGE, 2);
    for (int i = 0; i < 4; i++) {
        push(0, i);
        push(1, 10 + i);
    }
    loop_settle(&loop);
    uva_stream_cancel(streams[0], 0, "no more");
    ends(UVA_END_CANCELLED, ECANCELED, "no more", consumer.transcript);
    ck_assert_int_eq(consumer.taken, 1);
}
END_TEST

START_TEST(a_drop_ends_all_streams)
{
    open_pushers(2);
    start(_i, 2);
    push(0, 1);
    settles("schema 1");
    consumer.silent = true;
    uva_stream_drop(streams[0]);
    loop_settle(&loop);
    ck_assert(gone[0] && gone[1]);
}
END_TEST

START_TEST(a_close_of_the_runtime_cancels)
{
    open_pushers(2);
    start(_i, 2);
    settles("schema");
    loop_close_runtime(&loop, 0);
    recording_ended(&consumer, UVA_END_CANCELLED, ECANCELED, "closed");
    uva_stream_release(streams[0]);
}
END_TEST

START_TEST(streams_that_are_not_started_are_released)
{
    open_pushers(3);
    ck_assert_int_eq(join(_i, 3), 0);
    uva_stream_release(streams[0]);
    loop_settle(&loop);
    for (int i = 0; i < 3; i++)
        ck_assert(gone[i]);
}
END_TEST

/* A holder of a merged stream cancels it: before it runs, and while it does. */
START_TEST(a_stream_cancelled_by_itself_has_failed)
{
    static const char *const transcripts[] = {"schema 1 failed",
                                              "schema 1 2 failed"};
    const bool late = _i / WAYS == 1, keep_going = _i % WAYS == 1;
    struct uva_error error;
    struct uva_stream *own;

    options.keep_going = keep_going;
    open_pushers(3);
    push_end(2, 0, "", NULL);
    own = uva_stream_acquire(streams[1]);
    ck_assert_int_eq(join(MERGE, 3), 0);
    if (!late)
        uva_stream_cancel(own, EPERM, "not this one");
    loop_settle(&loop);
    push(0, 1);
    recording_start(&consumer, streams[0]);
    if (late) {
        settles("schema 1");
        uva_stream_cancel(own, EPERM, "not this one");
    }
    if (keep_going) {
        settles("schema 1");
        push(0, 2);
        push_end(0, 0, "", NULL);
    }
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_FAILED, EPERM, "not this one");
    if (late || keep_going)
        ck_assert_str_eq(consumer.transcript, transcripts[keep_going]);
    uva_stream_release(streams[0]);
    loop_settle(&loop);
    ck_assert_int_eq(uva_stream_status(own, &error), EPERM);
    text_contains(error.message, "not this one");
    ck_assert_int_eq(uva_stream_take(own, NULL, NULL), EINVAL);
    uva_stream_drop(own);
    loop_settle(&loop);
    ck_assert(gone[1]);
}
END_TEST

START_TEST(a_stream_may_be_cancelled_after_all_were)
{
    struct uva_stream *own;

    open_pushers(2);
    push_end(0, 0, "", NULL);
    own = uva_stream_acquire(streams[1]);
    start(_i, 2);
    settles("schema");
    uva_stream_cancel(streams[0], 0, "no more");
    uva_stream_cancel(own, EPERM, "not this one");
    ends(UVA_END_CANCELLED, ECANCELED, "no more", "schema cancelled");
    loop_settle(&loop);
    ck_assert_int_eq(uva_stream_status(own, NULL), ECANCELED);
    uva_stream_release(own);
}
END_TEST

/* Another thread cancels a merged stream, asks for its status, and releases it
 * last. */
static void *hold(void *arg)
{
    struct uva_stream *own = arg;

    uva_stream_cancel(own, EPERM, "not this one");
    while (uva_stream_status(own, NULL) == 0)
        ck_assert_int_eq(uva_stream_start_take(own, NULL, NULL, NULL, NULL),
                         EBUSY);
    uva_stream_release(own);
    return NULL;
}

START_TEST(a_merged_stream_may_be_held_by_another_thread)
{
    pthread_t thread;
    void *own;

    open_pushers(2);
    own = uva_stream_acquire(streams[1]);
    start(_i, 2);
    ck_assert_int_eq(pthread_create(&thread, NULL, hold, own), 0);
    if (_i == CONCAT)
        push_end(0, 0, "", NULL);
    ends(UVA_END_FAILED, EPERM, "not this one", consumer.transcript);
    loop_settle(&loop);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

START_TEST(a_merged_stream_cannot_be_used)
{
    struct uva_stream *own;

    open_pushers(2);
    own = uva_stream_acquire(streams[1]);
    start(_i, 2);
    for (int i = 0; i < 2; i++) {
        if (_i == MERGE)
            loop_settle(&loop);
        ck_assert_int_eq(uva__stream_limit(own, 1), EBUSY);
        ck_assert_int_eq(uva_stream_start_take(own, NULL, NULL, NULL, NULL),
                         EBUSY);
        ck_assert_int_eq(uva_stream_take(own, NULL, NULL), EINVAL);
        uva_stream_resume(own);
        loop_settle(&loop);
    }
    ck_assert_int_eq(uva_stream_status(own, NULL), 0);
    uva_stream_drop(own); /* cancels it */
    if (_i == CONCAT)
        push_end(0, 0, "", NULL);
    ends(UVA_END_FAILED, ECANCELED, "dropped", "schema failed");
}
END_TEST

/* ---- how many run, and how far ahead ------------------------------------ */

static struct {
    int schemas, passed, finished; /* calls */
    int most;                      /* streams that ran at once */
} count;

static int count_schema(void *ctx, const struct ArrowSchema *in,
                        struct ArrowSchema *out, struct uva_error *error)
{
    (void)ctx;
    (void)in;
    (void)error;
    batch_schema(out);
    count.schemas++;
    if (count.schemas - count.finished > count.most)
        count.most = count.schemas - count.finished;
    return 0;
}

static int count_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                       void *emitter, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    count.passed++;
    (void)emit(emitter, in);
    return 0;
}

static int count_finish(void *ctx, uva_emit_fn *emit, void *emitter,
                        struct uva_error *error)
{
    (void)ctx;
    (void)emit;
    (void)emitter;
    (void)error;
    count.finished++;
    return 0;
}

/* Makes the streams, each of four batches that are counted. */
static void open_counted(void)
{
    const struct uva_transform transform = {.batch = count_batch,
                                            .schema = count_schema,
                                            .finish = count_finish,
                                            .on_loop = true,
                                            .window.batches = 1};

    memset(&count, 0, sizeof(count));
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = stream_of_equal(i, 4);
        ck_assert_int_eq(uva_stream_transform(streams[i], &transform), 0);
    }
}

START_TEST(no_more_than_open_at_once_run)
{
    static const int expected[] = {STREAMS, 1, 2, 3};

    options.open_at_once = _i;
    open_counted();
    start(MERGE, STREAMS);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_COMPLETE, 0, NULL);
    ck_assert_int_eq(consumer.taken, 4 * STREAMS);
    ck_assert_int_eq(count.most, expected[_i]);
    uva_stream_release(streams[0]);
}
END_TEST

static void on_next(void *ctx, struct uva_batch *batch,
                    const struct uva_outcome *outcome)
{
    ck_assert_ptr_nonnull(batch);
    ck_assert_ptr_null(outcome);
    *(bool *)ctx = true;
}

static bool is_set(void *ctx)
{
    return *(bool *)ctx;
}

static void next_one(void)
{
    bool answered = false;

    ck_assert_int_eq(asking_next(&asking, streams[0], on_next, &answered), 0);
    loop_until(&loop, is_set, &answered);
    loop_settle(&loop);
}

/* Of ten concats in a row, each moves one batch for a demand of one. */
START_TEST(concat_requests_what_is_requested_of_it)
{
    open_counted();
    ck_assert_int_eq(
        uva_stream_concat(streams[0], streams + 1, STREAMS - 1,
                          &(struct uva_merge){.open_at_once = _i + 1}),
        0);
    for (int i = 0; i < 9; i++)
        ck_assert_int_eq(uva_stream_concat(streams[0], NULL, 0, NULL), 0);
    for (int n = 1; n <= 5; n++) {
        next_one();
        ck_assert_int_eq(count.passed, n);
        ck_assert_int_eq(count.schemas, (n < 4 ? 1 : 2) + _i);
    }
    uva_stream_drop(streams[0]);
}
END_TEST

static void count_up(struct recording_consumer *c, struct uva_batch *batch)
{
    ck_assert_int_eq(batch->data.array.length, c->taken);
}

/* As many batches are requested as the window downstream has room for, and they
 * stay in order. */
START_TEST(concat_passes_a_large_demand_on_in_parts)
{
    for (int i = 0; i < 3; i++) {
        struct ArrowDeviceArray arrays[200];
        struct ArrowSchema schema;

        batch_schema(&schema);
        for (int k = 0; k < 200; k++)
            batch_make(&arrays[k], 200 * i + k);
        streams[i] = uva_stream_from_arrays(loop.runtime, &schema, arrays, 200);
    }
    ck_assert_int_eq(join(CONCAT, 3), 0);
    (void)uva_stream_parallel(streams[0],
                              &(struct uva_parallel){.window.batches = 390});
    consumer.quiet = true;
    consumer.on_batch = count_up;
    recording_start(&consumer, streams[0]);
    ends(UVA_END_COMPLETE, 0, NULL, "schema complete");
    ck_assert_int_eq(consumer.taken, 600);
}
END_TEST

/* A window of one: no stream has more than one batch under way, and with one
 * stream alone no batch is moved that was not requested. */
START_TEST(merge_requests_no_more_than_its_window)
{
    options.window.batches = 1;
    open_counted();
    for (int i = 1; i < STREAMS; i++)
        uva_stream_release(streams[i]);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(uva_stream_merge(streams[0], NULL, 0, &options), 0);
    next_one();
    ck_assert_int_eq(count.passed, 1);
    uva_stream_release(streams[0]);
}
END_TEST

START_TEST(each_stream_has_a_window_of_its_own)
{
    options.window.batches = _i;
    open_counted();
    ck_assert_int_eq(join(MERGE, STREAMS), 0);
    next_one();
    ck_assert_int_le(count.passed, _i * STREAMS);
    ck_assert_int_ge(count.passed, STREAMS);
    uva_stream_release(streams[0]);
}
END_TEST

/* Two batches of 30 bytes fill a window of 40. */
START_TEST(a_window_is_filled_by_bytes_too)
{
    streams[0] = stream_of_equal(30, 20);
    options.window = (struct uva_window){.batches = 4, .bytes = 40};
    (void)uva_stream_transform(streams[0],
                               &(struct uva_transform){.batch = count_batch,
                                                       .on_loop = true,
                                                       .window.batches = 1});
    memset(&count, 0, sizeof(count));
    ck_assert_int_eq(join(MERGE, 1), 0);
    for (int n = 1; n <= 3; n++) {
        next_one();
        ck_assert_int_le(count.passed, 4 + n);
    }
    uva_stream_release(streams[0]);
}
END_TEST

/* ---- streams that may be merged ----------------------------------------- */

static void refused(int code, const char *text)
{
    struct uva_error error = {0};

    ck_assert_int_eq(uva_stream_status(streams[0], &error), code);
    text_contains(error.message, text);
    uva_stream_release(streams[0]);
}

static void refuses(int way, struct uva_stream *other, int code,
                    const char *text)
{
    streams[0] = stream_of(ZERO);
    streams[1] = stream_of(ONE);
    streams[2] = other;
    streams[3] = stream_of(TWO);
    ck_assert_int_eq(join(way, 4), code);
    refused(code, text);
}

START_TEST(others_are_checked)
{
    struct recording_consumer second;
    struct loop_fixture elsewhere;
    struct uva_stream *other;

    refuses(_i, NULL, EINVAL, "others[1] is NULL");
    other = stream_of(ONE);
    (void)uva__stream_limit(other, -1);
    refuses(_i, other, EINVAL, "others[1]: limit");
    streams[0] = stream_of(ZERO);
    (void)uva__stream_limit(streams[0], -1);
    streams[1] = stream_of(ONE);
    ck_assert_int_eq(join(_i, 2), EINVAL);
    refused(EINVAL, "limit");
    streams[0] = stream_of(ZERO);
    streams[1] = uva_stream_acquire(streams[0]);
    ck_assert_int_eq(join(_i, 2), EINVAL);
    refused(EINVAL, "the stream itself");
    streams[0] = stream_of(ZERO);
    streams[1] = stream_of(ONE);
    streams[2] = uva_stream_acquire(streams[1]);
    ck_assert_int_eq(join(_i, 3), EBUSY);
    refused(EBUSY, "others[1]");
    recording_init(&second);
    other = stream_of(ONE);
    recording_start(&second, uva_stream_acquire(other));
    refuses(_i, other, EBUSY, "others[1] was started");
    uva_stream_release(second.stream);
    recording_await_done(&second, &loop);
    loop_open(&elsewhere);
    refuses(_i, uva_stream_from_pusher(elsewhere.runtime, NULL, &pushers[0]),
            EINVAL, "another runtime");
    push_end(0, 0, "", NULL);
    loop_close(&elsewhere);
}
END_TEST

START_TEST(a_stream_that_has_started_takes_no_others)
{
    streams[0] = stream_of(ZERO);
    streams[1] = stream_of(ONE);
    recording_start(&consumer, streams[0]);
    ck_assert_int_eq(join(_i, 2), EBUSY);
    ends(UVA_END_COMPLETE, 0, NULL, "schema 1 2 3 complete");
    streams[0] = NULL;
    streams[1] = stream_of(ONE);
    ck_assert_int_eq(join(_i, 2), EINVAL);
}
END_TEST

static void refuses_options(const char *text)
{
    streams[0] = stream_of(ZERO);
    streams[1] = stream_of(ONE);
    ck_assert_int_eq(join(MERGE, 2), EINVAL);
    refused(EINVAL, text);
    options = (struct uva_merge){0};
}

START_TEST(options_are_checked)
{
    options.open_at_once = -1;
    refuses_options("open_at_once");
    options.window.bytes = -1;
    refuses_options("window");
    options.window.reserved[0] = &options;
    refuses_options("window");
    options.reserved[3] = &options;
    refuses_options("reserved");
    streams[0] = stream_of(ZERO);
    streams[1] = stream_of(ONE);
    ck_assert_int_eq(uva_stream_concat(streams[0], streams + 1, 1,
                                       &(struct uva_merge){.open_at_once = -1}),
                     EINVAL);
    refused(EINVAL, "open_at_once");
    streams[0] = stream_of(ZERO);
    ck_assert_int_eq(uva_stream_merge(streams[0], NULL, 1, NULL), EINVAL);
    refused(EINVAL, "others is NULL");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("merges");

    suite_add_loops(
        tests, 0, WAYS, one_stream_stays_as_it_is,
        streams_take_turns_or_follow_each_other, empty_streams_add_nothing,
        merge_waits_for_no_stream_and_concat_for_each,
        expensive_streams_are_extracted_by_workers, metadata_of_batches_is_kept,
        metadata_of_the_producer_is_kept, a_schema_that_differs_is_an_error,
        a_device_type_that_differs_is_an_error,
        device_data_is_passed_on_if_every_stream_is_ready,
        a_cancel_reaches_all_streams, a_cancel_may_come_before_any_schema,
        a_drop_ends_all_streams, a_close_of_the_runtime_cancels,
        streams_that_are_not_started_are_released,
        a_merged_stream_cannot_be_used,
        a_stream_may_be_cancelled_after_all_were,
        a_merged_stream_may_be_held_by_another_thread, others_are_checked,
        a_stream_that_has_started_takes_no_others, NULL);
    suite_add_loops(tests, 0, 2 * WAYS, an_extraction_may_fail,
                    a_stream_cancelled_by_itself_has_failed, NULL);
    suite_add_loops(tests, 0, 4, no_more_than_open_at_once_run, NULL);
    suite_add_loops(tests, 0, 3, concat_requests_what_is_requested_of_it, NULL);
    suite_add_loops(tests, 1, 4, each_stream_has_a_window_of_its_own, NULL);
    suite_add(tests, turns_are_fair, a_failure_cancels_the_other_streams,
              a_failure_waits_for_batches_and_cancels_at_once,
              with_keep_going_a_failure_waits_for_the_others,
              in_concat_a_failure_follows_the_streams_before_it,
              a_stream_without_a_schema_is_a_failure_like_others,
              batches_that_wait_are_released_by_a_cancel,
              concat_passes_a_large_demand_on_in_parts,
              merge_requests_no_more_than_its_window,
              a_window_is_filled_by_bytes_too, options_are_checked, NULL);
    return suite_main("merge", set_up, tear_down, tests, NULL);
}
