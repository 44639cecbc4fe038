/* SPDX-License-Identifier: Apache-2.0 */
/* Functions with results that come later: in which order results are passed on,
 * how many are under way, and their fate when one fails, or the stream is
 * stopped before they come. A result has ten times as many rows as its batch.
 * Each test runs ordered and unordered, if that makes a difference. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "stage/limit.h"
#include "support/asking.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/made_schema.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

static struct asking asking;

enum { BOTH = 2, UNORDERED = 1, MANY = 200, THREADS = 4 }; /* the loop index */

/* The function's treatment of a batch. */
enum way {
    WAY_KEEP,   /* the test gives the result */
    WAY_INSIDE, /* gives it before it returns */
    WAY_QUEUE   /* a thread gives it */
};

struct script {
    enum way way;
    int64_t fail_at; /* at this batch it returns `code`; negative: never */
    int code;
    bool gives;      /* that batch gets a result nevertheless */
    bool gives_text; /* ... or an error */
    bool drops;      /* batches with an odd length get no result */
    bool answers;    /* the cancel gives the kept batch */
};

/* A batch that was begun. */
struct begun {
    struct uva_reply *reply; /* NULL: it was given */
    int64_t length;
    int cancels; /* calls of cancel */
};

static struct loop_fixture loop;
static struct recording_consumer consumer;
static struct script script;
static struct uva_async_map options;
static struct begun begun[MANY];
static struct {
    int64_t count; /* batches begun; on the loop thread */
    int64_t next;  /* of the queue, to be given */
    int64_t most;  /* under way at once */
    int64_t given;
    atomic_long freed;
    bool shut; /* threads end when the queue is empty */
    pthread_mutex_t lock;
    pthread_cond_t changed;
} did = {.lock = PTHREAD_MUTEX_INITIALIZER,
         .changed = PTHREAD_COND_INITIALIZER};

/* ---- the function ------------------------------------------------------- */

/* Takes the reply of a batch that was begun. */
static struct uva_reply *reply_of(int64_t index)
{
    struct uva_reply *reply;

    ck_assert_int_lt(index, did.count);
    reply = begun[index].reply;
    ck_assert_ptr_nonnull(reply);
    begun[index].reply = NULL;
    did.given++;
    return reply;
}

static void give(int64_t index)
{
    struct ArrowDeviceArray out;

    if (script.drops && begun[index].length % 2 == 1) {
        uva_reply_give(reply_of(index), NULL, NULL);
        return;
    }
    batch_make(&out, 10 * begun[index].length);
    uva_reply_give(reply_of(index), &out, NULL);
    ck_assert(!uva_array_is_live(&out));
}

static void give_error(int64_t index, int code)
{
    struct uva_error error = {.code = code};

    (void)strcpy(error.message, "no answer");
    uva_reply_give(reply_of(index), NULL, &error);
}

static void note_begun(const struct uva_batch *in, struct uva_reply *reply)
{
    ck_assert_int_lt(did.count, MANY);
    begun[did.count++] =
        (struct begun){.reply = reply, .length = in->data.array.length};
    if (did.count - did.given > did.most)
        did.most = did.count - did.given;
}

static int script_begin(void *ctx, struct uva_batch *in,
                        struct uva_reply *reply)
{
    int64_t index;

    ck_assert_ptr_eq(ctx, &script);
    ck_assert(uva_array_is_live(&in->data));
    ck_assert_ptr_nonnull(in->schema);
    (void)pthread_mutex_lock(&did.lock);
    index = did.count;
    ck_assert_int_eq(in->ordinal, index);
    note_begun(in, reply);
    (void)pthread_cond_signal(&did.changed);
    (void)pthread_mutex_unlock(&did.lock);
    if (index == script.fail_at) {
        if (script.gives)
            give(index);
        else if (script.gives_text)
            give_error(index, EDOM);
        return script.code;
    }
    if (script.way == WAY_INSIDE)
        give(index);
    return 0;
}

static void script_cancel(void *ctx, struct uva_reply *reply)
{
    int64_t i = 0;

    ck_assert_ptr_eq(ctx, &script);
    while (begun[i].reply != reply)
        ck_assert_int_lt(i++, did.count);
    begun[i].cancels++;
    if (script.answers)
        give(i);
}

static void script_free(void *ctx)
{
    ck_assert_ptr_eq(ctx, &script);
    atomic_fetch_add(&did.freed, 1);
}

/* ---- threads that give -------------------------------------------------- */

/* Waits for the next reply of the queue; -1: there will be no more. */
static int64_t queue_take(void)
{
    int64_t index = -1;

    (void)pthread_mutex_lock(&did.lock);
    while (did.next == did.count && !did.shut)
        (void)pthread_cond_wait(&did.changed, &did.lock);
    if (did.next < did.count)
        index = did.next++;
    (void)pthread_mutex_unlock(&did.lock);
    return index;
}

static void *thread_give(void *arg)
{
    struct ArrowDeviceArray out;
    struct uva_reply *reply;
    int64_t index;

    (void)arg;
    while ((index = queue_take()) >= 0) {
        batch_make(&out, 10 * begun[index].length);
        (void)pthread_mutex_lock(&did.lock);
        reply = reply_of(index);
        (void)pthread_mutex_unlock(&did.lock);
        uva_reply_give(reply, &out, NULL);
    }
    return NULL;
}

static void threads_start(pthread_t threads[THREADS])
{
    script.way = WAY_QUEUE;
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, thread_give, NULL),
                         0);
}

static void threads_join(const pthread_t threads[THREADS])
{
    (void)pthread_mutex_lock(&did.lock);
    did.shut = true;
    (void)pthread_cond_broadcast(&did.changed);
    (void)pthread_mutex_unlock(&did.lock);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}

/* ---- the fixture -------------------------------------------------------- */

static void set_up_with(const struct uva_runtime_options *given)
{
    recording_init(&consumer);
    consumer.transcribes = true;
    loop_open_with(&loop, given);
    script = (struct script){.fail_at = -1};
    did.count = did.next = did.most = did.given = 0;
    atomic_store(&did.freed, 0);
    did.shut = false;
    options = (struct uva_async_map){.begin = script_begin,
                                     .cancel = script_cancel,
                                     .free_ctx = script_free,
                                     .ctx = &script,
                                     .at_once = MANY};
}

static atomic_long quiet; /* calls of set_quiet() */

static void set_quiet(void *ctx)
{
    atomic_fetch_add((atomic_long *)ctx, 1);
}

static void set_up(void)
{
    atomic_store(&quiet, 0);
    set_up_with(&(struct uva_runtime_options){.on_quiet = set_quiet,
                                              .quiet_ctx = &quiet});
}

static void tear_down(void)
{
    const long expected = options.free_ctx != NULL;

    loop_close(&loop);
    ck_assert_int_eq(plain_live(), 0);
    ck_assert_int_eq(atomic_load(&did.freed), expected);
}

/* Makes a stream of batches with 1 to `count` rows. */
static struct uva_stream *stream_of(int count)
{
    struct ArrowDeviceArray arrays[MANY];
    struct ArrowSchema schema;

    batch_schema(&schema);
    for (int i = 0; i < count; i++)
        batch_make(&arrays[i], i + 1);
    return uva_stream_from_arrays(loop.runtime, &schema, arrays, (size_t)count);
}

static struct uva_stream *async_of(int index, int count)
{
    struct uva_stream *stream = stream_of(count);

    options.unordered = index == UNORDERED;
    ck_assert_int_eq(uva_stream_map_async(stream, &options), 0);
    return stream;
}

static void start(int index, int count)
{
    recording_consume(&consumer, async_of(index, count));
}

static bool has_begun(void *ctx)
{
    return did.count >= *(int64_t *)ctx;
}

/* Turns the loop until `n` batches were begun, and no more are. */
static void await_begun(int64_t n)
{
    loop_until(&loop, has_begun, &n);
    loop_settle(&loop);
    ck_assert_int_eq(did.count, n);
}

static void run(int index, int count)
{
    start(index, count);
    recording_await_done(&consumer, &loop);
}

static void transcript_is(const char *ordered, const char *unordered)
{
    ck_assert_str_eq(consumer.transcript,
                     options.unordered ? unordered : ordered);
}

static void failed_with(int code, const char *text)
{
    recording_ended(&consumer, UVA_END_FAILED, code, text);
}

/* ---- results ------------------------------------------------------------ */

START_TEST(results_that_are_given_at_once_are_in_order)
{
    script.way = WAY_INSIDE;
    options.at_once = 0;
    run(_i, 5);
    ck_assert_str_eq(consumer.transcript, "schema 10 20 30 40 50 complete");
    ck_assert(consumer.in_order);
    ck_assert_int_eq(did.most, 1);
}
END_TEST

START_TEST(results_are_passed_on_in_order_or_as_they_come)
{
    static const int64_t order[] = {4, 1, 0, 3, 2};

    start(_i, 5);
    await_begun(5);
    for (int i = 0; i < 5; i++) {
        give(order[i]);
        loop_settle(&loop);
        if (i < 2 && _i != UNORDERED)
            ck_assert_str_eq(consumer.transcript, "schema");
    }
    recording_await_done(&consumer, &loop);
    transcript_is("schema 10 20 30 40 50 complete",
                  "schema 50 20 10 40 30 complete");
    ck_assert(consumer.in_order == !options.unordered); /* they keep ordinals */
}
END_TEST

/* Several results that come in one turn. */
START_TEST(results_may_come_together)
{
    start(_i, 5);
    await_begun(5);
    for (int i = 4; i >= 0; i--)
        give(i);
    recording_await_done(&consumer, &loop);
    transcript_is("schema 10 20 30 40 50 complete",
                  "schema 50 40 30 20 10 complete");
}
END_TEST

START_TEST(threads_give_results)
{
    pthread_t threads[THREADS];

    consumer.quiet = true;
    options.at_once = _i / BOTH == 0 ? 3 : 50;
    threads_start(threads);
    run(_i % BOTH, MANY);
    threads_join(threads);
    recording_ended(&consumer, UVA_END_COMPLETE, 0, NULL);
    ck_assert_int_eq(consumer.taken, MANY);
    ck_assert_int_eq(consumer.sum, MANY * (MANY - 1) / 2);
    ck_assert_int_eq(atomic_load(&consumer.rows), 10 * MANY * (MANY + 1) / 2);
    ck_assert(consumer.in_order || options.unordered);
    ck_assert_int_le(did.most, options.at_once);
}
END_TEST

START_TEST(batches_may_have_no_result)
{
    script.drops = true;
    script.way = _i / BOTH == 0 ? WAY_INSIDE : WAY_KEEP;
    start(_i % BOTH, 5);
    if (script.way == WAY_KEEP) {
        await_begun(5);
        for (int i = 4; i >= 0; i--)
            give(i);
    }
    recording_await_done(&consumer, &loop);
    transcript_is("schema 20 40 complete", _i / BOTH == 0
                                               ? "schema 20 40 complete"
                                               : "schema 40 20 complete");
}
END_TEST

START_TEST(an_empty_stream_is_complete)
{
    run(_i, 0);
    ck_assert_str_eq(consumer.transcript, "schema complete");
}
END_TEST

static int take_begin(void *ctx, struct uva_batch *in, struct uva_reply *reply)
{
    struct ArrowDeviceArray taken;

    (void)ctx;
    uva_array_move(&in->data, &taken);
    uva_reply_give(reply, &taken, NULL);
    return 0;
}

/* Extraction on a worker, as the map may be expensive. */
START_TEST(results_keep_ordinals_and_metadata)
{
    char metadata[64];
    size_t size = sizeof(metadata);
    const struct uva_pair pair[] = {{.key = "k", .value = "v"}, {0}};
    struct fixture f;

    fixture_open(&f, 9);
    ck_assert_int_eq(uva_metadata_encode(pair, metadata, &size), 0);
    f.fake.metadata = metadata;
    f.stream = fixture_tasks(&f);
    options = (struct uva_async_map){.begin = take_begin, .at_once = 2};
    options.unordered = _i == UNORDERED;
    ck_assert_int_eq(uva_stream_map_async(f.stream, &options), 0);
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_int_eq(f.got.taken, 9);
    ck_assert_int_eq(atomic_load(&f.got.tagged), 9);
    ck_assert_int_eq(atomic_load(&f.fake.extracted_here), 0);
    ck_assert_int_eq(f.got.sum, 36);
    ck_assert_int_eq(f.got.wrong, 0);
    fixture_close(&f);
}
END_TEST

/* ---- how many are under way --------------------------------------------- */

START_TEST(no_more_than_at_once_are_under_way)
{
    options.at_once = 3;
    start(_i, 7);
    await_begun(3);
    give(1);
    await_begun(4);
    give(0);
    give(2);
    await_begun(6);
    give(5);
    give(4);
    give(3);
    await_begun(7);
    give(6);
    recording_await_done(&consumer, &loop);
    ck_assert_int_eq(did.most, 3);
    transcript_is("schema 10 20 30 40 50 60 70 complete",
                  "schema 20 10 30 60 50 40 70 complete");
}
END_TEST

START_TEST(the_window_limits_what_is_under_way)
{
    options.window.batches = 2;
    start(_i, 4);
    await_begun(2);
    give(1);
    await_begun(_i == UNORDERED ? 3 : 2);
    give(0);
    await_begun(4);
    give(3);
    give(2);
    recording_await_done(&consumer, &loop);
    transcript_is("schema 10 20 30 40 complete", "schema 20 10 40 30 complete");
}
END_TEST

/* The default window would be 64. */
START_TEST(a_large_at_once_makes_the_default_window_larger)
{
    options.at_once = 150;
    consumer.quiet = true;
    start(_i, MANY);
    await_begun(150);
    for (int64_t i = 0; i < MANY; i++) {
        give(i);
        loop_settle(&loop);
    }
    recording_await_done(&consumer, &loop);
    ck_assert_int_eq(consumer.taken, MANY);
    ck_assert_int_eq(did.most, 150);
}
END_TEST

/* Before any result has come, with a batch requested. */
static void pause_consumer(void)
{
    consumer.appetite = 0;
    uva_stream_pause(consumer.stream);
}

/* A consumer that takes one batch. Results have 10, 20, 30... bytes: after the
 * first result, each is expected to be as large as the largest. */
START_TEST(a_window_is_filled_by_bytes_too)
{
    script.way = WAY_INSIDE;
    options.at_once = 1;
    options.window.bytes = 60;
    consumer.appetite = 1;
    start(_i, 9);
    loop_until(&loop, has_begun, &(int64_t){2});
    loop_settle(&loop);
    ck_assert_int_le(did.count, 4);
    recording_feed(&consumer, -1);
    recording_await_done(&consumer, &loop);
    ck_assert_int_eq(consumer.taken, 9);
}
END_TEST

START_TEST(a_window_smaller_than_a_batch_takes_one_at_a_time)
{
    options.window.bytes = 1;
    start(_i, 3);
    for (int64_t i = 0; i < 3; i++) {
        await_begun(i + 1);
        give(i);
    }
    recording_await_done(&consumer, &loop);
    ck_assert_str_eq(consumer.transcript, "schema 10 20 30 complete");
    ck_assert_int_eq(did.most, 1);
}
END_TEST

/* The other tests' runtime is closed, for one with a budget of one byte. */
START_TEST(a_full_budget_has_one_at_a_time_under_way)
{
    loop_close(&loop);
    set_up_with(&(struct uva_runtime_options){.memory_bytes = 1});
    start(_i, 3);
    for (int64_t i = 0; i < 3; i++) {
        await_begun(i + 1);
        give(i);
    }
    recording_await_done(&consumer, &loop);
    ck_assert_str_eq(consumer.transcript, "schema 10 20 30 complete");
    ck_assert_int_eq(did.most, 1);
}
END_TEST

static void on_next(void *ctx, struct uva_batch *batch,
                    const struct uva_outcome *outcome)
{
    ck_assert_ptr_nonnull(batch);
    ck_assert_ptr_null(outcome);
    *(int64_t *)ctx = batch->data.array.length;
}

static bool is_set(void *ctx)
{
    return *(int64_t *)ctx != 0;
}

static int pass_begin(void *ctx, struct uva_batch *in, struct uva_reply *reply)
{
    ++*(int64_t *)ctx;
    return take_begin(NULL, in, reply);
}

START_TEST(ten_stages_move_one_batch_for_a_demand_of_one)
{
    struct uva_stream *stream = stream_of(5);
    int64_t passed[10] = {0}, length = 0;

    options = (struct uva_async_map){.begin = pass_begin,
                                     .unordered = _i == UNORDERED,
                                     .at_once = 4,
                                     .window.batches = 1};
    for (int i = 0; i < 10; i++) {
        options.ctx = &passed[i];
        ck_assert_int_eq(uva_stream_map_async(stream, &options), 0);
    }
    ck_assert_int_eq(asking_next(&asking, stream, on_next, &length), 0);
    loop_until(&loop, is_set, &length);
    loop_settle(&loop);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(passed[i], 1);
    uva_stream_drop(stream);
}
END_TEST

/* The first batch has no result. */
START_TEST(a_batch_without_a_result_requests_one_more)
{
    struct uva_stream *stream;
    int64_t length = 0;

    script.way = WAY_INSIDE;
    script.drops = true;
    options.window.batches = 1;
    stream = async_of(_i, 5);
    ck_assert_int_eq(asking_next(&asking, stream, on_next, &length), 0);
    loop_until(&loop, is_set, &length);
    loop_settle(&loop);
    ck_assert_int_eq(length, 20);
    ck_assert_int_eq(did.count, 2);
    uva_stream_drop(stream);
}
END_TEST

/* ---- failures ----------------------------------------------------------- */

/* The third of five; the results before it are waited for, but not the later
 * ones. */
START_TEST(an_error_takes_the_place_of_a_result)
{
    static const int codes[] = {EDOM, -EDOM, 0};
    const int code = codes[_i / BOTH];

    start(_i % BOTH, 5);
    await_begun(5);
    give(1);
    give_error(2, code);
    loop_settle(&loop);
    if (!options.unordered) {
        give(3);
        ck_assert_int_eq(atomic_load(&consumer.done), 0);
        give(0);
    }
    recording_await_done(&consumer, &loop);
    failed_with(code != 0 ? EDOM : EIO, "no answer");
    transcript_is("schema 10 20 failed", "schema 20 failed");
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(begun[i].cancels, begun[i].reply != NULL);
    for (int i = 0; i < 5; i++)
        if (begun[i].reply != NULL)
            give(i);
}
END_TEST

/* The consumer pauses, so the stage runs again before the error is delivered.
 */
START_TEST(results_behind_an_error_are_not_passed_on)
{
    start(_i, 5);
    await_begun(5);
    pause_consumer();
    for (int i = 0; i < 5; i++)
        if (i != 2)
            give(i);
    give_error(2, EDOM);
    loop_settle(&loop);
    recording_feed(&consumer, 1);
    loop_settle(&loop);
    recording_feed(&consumer, -1);
    recording_await_done(&consumer, &loop);
    failed_with(EDOM, "no answer");
    transcript_is("schema 10 20 failed", "schema 10 20 40 50 failed");
}
END_TEST

START_TEST(of_two_errors_the_first_counts)
{
    start(_i, 5);
    await_begun(5);
    give_error(1, EDOM);
    give_error(0, ERANGE);
    recording_await_done(&consumer, &loop);
    failed_with(options.unordered ? EDOM : ERANGE, "no answer");
    transcript_is("schema failed", "schema failed");
    for (int i = 2; i < 5; i++)
        give(i);
}
END_TEST

/* No other batch is begun, and the source is cancelled. */
START_TEST(begin_may_fail)
{
    static const int codes[] = {EDOM, -EDOM};

    script.way = WAY_INSIDE;
    script.fail_at = 2;
    script.code = codes[_i / BOTH];
    run(_i % BOTH, 5);
    failed_with(EDOM, "begin failed with EDOM");
    ck_assert_str_eq(consumer.transcript, "schema 10 20 failed");
    ck_assert_int_eq(did.count, 3);
}
END_TEST

START_TEST(begin_that_fails_waits_for_results_before_it)
{
    script.fail_at = 2;
    script.code = EDOM;
    start(_i, 5);
    await_begun(3);
    ck_assert_int_eq(atomic_load(&consumer.done), _i == UNORDERED);
    give(1);
    give(0);
    recording_await_done(&consumer, &loop);
    failed_with(EDOM, "begin failed");
    transcript_is("schema 10 20 failed", "schema failed");
}
END_TEST

/* Both a result, or an error, and a code that is returned. */
START_TEST(what_a_failed_begin_has_given_is_released)
{
    script.way = WAY_INSIDE;
    script.fail_at = 1;
    script.code = ERANGE;
    script.gives = _i / BOTH == 0;
    script.gives_text = _i / BOTH == 1;
    run(_i % BOTH, 3);
    if (script.gives)
        failed_with(ERANGE, "begin failed");
    else
        failed_with(EDOM, "no answer");
    ck_assert_str_eq(consumer.transcript, "schema 10 failed");
}
END_TEST

START_TEST(a_result_that_does_not_fit_is_an_error)
{
    static const char *const texts[] = {"n_buffers", "released"};
    const struct uva_error error = {.code = EDOM, .message = "no"};
    struct ArrowDeviceArray out;

    start(_i % BOTH, 3);
    await_begun(3);
    batch_make(&out, 7);
    if (_i / BOTH == 0)
        out.array.n_buffers = 1;
    else
        uva_array_release(&out);
    uva_reply_give(reply_of(0), &out, NULL);
    ck_assert(!uva_array_is_live(&out));
    recording_await_done(&consumer, &loop);
    failed_with(EPROTO, texts[_i / BOTH]);
    batch_make(&out, 7);
    uva_reply_give(reply_of(1), &out, &error); /* takes both */
    ck_assert(!uva_array_is_live(&out));
    give(2);
}
END_TEST

/* The fifth batch is lost: its extraction fails, or the source does. The first
 * four have been begun. */
START_TEST(errors_of_the_source_wait_for_results)
{
    struct fixture f;
    int64_t n = 4;

    fixture_open(&f, 9);
    if (_i / BOTH == 0)
        f.fake.extract_at = 4;
    else
        f.fake.fail_at = 4;
    f.fake.fail_code = EIO;
    f.fake.fail_text = "broken";
    f.stream = _i / BOTH == 0 ? fixture_tasks(&f) : fixture_blocking(&f);
    options.unordered = _i % BOTH == UNORDERED;
    ck_assert_int_eq(uva_stream_map_async(f.stream, &options), 0);
    fixture_start(&f);
    loop_until(&f.loop, has_begun, &n);
    loop_settle(&f.loop);
    ck_assert_int_eq(did.count, 4);
    ck_assert_int_eq(atomic_load(&f.got.done), 0);
    for (int i = 3; i >= 0; i--)
        uva_reply_give(reply_of(i), NULL, NULL);
    ck_assert_int_eq(fixture_await(&f), EIO);
    recording_ended(&f.got, UVA_END_FAILED, EIO, "broken");
    ck_assert_int_eq(f.got.taken, 0);
    fixture_close(&f);
}
END_TEST

/* The first result is waited for meanwhile. */
START_TEST(an_error_cancels_the_source_at_once)
{
    struct fixture f;
    int64_t n = 3;

    fixture_open(&f, 1000);
    f.stream = fixture_blocking(&f);
    options.at_once = 3;
    ck_assert_int_eq(uva_stream_map_async(f.stream, &options), 0);
    fixture_start(&f);
    loop_until(&f.loop, has_begun, &n);
    give_error(2, EDOM);
    while (atomic_load(&f.fake.released) == 0)
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    ck_assert_int_eq(atomic_load(&f.got.done), 0);
    ck_assert_int_eq(did.count, 3);
    for (int i = 0; i < 2; i++)
        uva_reply_give(reply_of(i), NULL, NULL);
    ck_assert_int_eq(fixture_await(&f), EDOM);
    fixture_close(&f);
}
END_TEST

static int map_until_third(void *ctx, struct uva_batch *in,
                           struct ArrowDeviceArray *out,
                           struct uva_error *error)
{
    (void)ctx;
    if (in->data.array.length == 3)
        return uva_error_set(error, ERANGE, "no third");
    uva_array_move(&in->data, out);
    return 0;
}

/* The stage extracts, on the loop thread. */
START_TEST(a_map_before_the_stage_may_fail)
{
    struct uva_stream *stream = stream_of(5);

    options.unordered = _i == UNORDERED;
    (void)uva_stream_map(
        stream, &(struct uva_map){.batch = map_until_third, .on_loop = true});
    ck_assert_int_eq(uva_stream_map_async(stream, &options), 0);
    recording_consume(&consumer, stream);
    await_begun(2);
    ck_assert_int_eq(atomic_load(&consumer.done), 0);
    give(1);
    give(0);
    recording_await_done(&consumer, &loop);
    failed_with(ERANGE, "no third");
    transcript_is("schema 10 20 failed", "schema 20 10 failed");
}
END_TEST

/* They cannot be measured. */
START_TEST(batches_of_an_unknown_format_are_passed_on)
{
    struct ArrowDeviceArray arrays[3];
    struct ArrowSchema schema;
    struct uva_stream *stream;

    consumer.transcribes = false;
    script.way = WAY_INSIDE;
    options.unordered = _i == UNORDERED;
    plain_schema(&schema, "?", "", 0);
    for (int i = 0; i < 3; i++)
        batch_make(&arrays[i], 1);
    stream = uva_stream_from_arrays(loop.runtime, &schema, arrays, 3);
    ck_assert_int_eq(uva_stream_map_async(stream, &options), 0);
    recording_consume(&consumer, stream);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_COMPLETE, 0, NULL);
    ck_assert_int_eq(consumer.taken, 3);
}
END_TEST

/* ---- stopping ----------------------------------------------------------- */

static void check_cancelled(int from, int to, int expected)
{
    for (int i = from; i < to; i++)
        ck_assert_int_eq(begun[i].cancels, expected);
}

/* With 1 the function has no cancel, with 2 its cancel gives the result. */
START_TEST(a_cancel_does_not_wait_for_results)
{
    struct uva_stream *stream = async_of(_i % BOTH, 0);

    uva_stream_release(stream);
    atomic_store(&did.freed, 0);
    options.cancel = _i / BOTH == 1 ? NULL : script_cancel;
    script.answers = _i / BOTH == 2;
    stream = async_of(_i % BOTH, 5);
    recording_start(&consumer, stream);
    await_begun(5);
    give(1);
    uva_stream_cancel(stream, ECANCELED, "no more");
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_CANCELLED, ECANCELED, "no more");
    uva_stream_release(stream);
    check_cancelled(0, 1, _i / BOTH != 1);
    check_cancelled(1, 2, 0);
    check_cancelled(2, 5, _i / BOTH != 1);
    loop_settle(&loop);
    ck_assert_int_eq(atomic_load(&did.freed), script.answers);
    for (int i = 0; i < 5; i++)
        if (begun[i].reply != NULL)
            give(i);
    loop_settle(&loop);
    ck_assert_int_eq(atomic_load(&did.freed), 1);
}
END_TEST

/* The results that have come wait for the first one. */
START_TEST(results_that_wait_for_their_turn_are_released)
{
    struct uva_stream *stream = async_of(_i, 5);

    recording_start(&consumer, stream);
    await_begun(5);
    pause_consumer();
    for (int i = 4; i > 0; i--)
        give(i);
    loop_settle(&loop);
    uva_stream_drop(stream);
    consumer.silent = true;
    loop_settle(&loop);
    check_cancelled(0, 1, 1);
    check_cancelled(1, 5, 0);
    give_error(0, EDOM);
}
END_TEST

START_TEST(batches_that_were_not_begun_are_released)
{
    struct uva_stream *stream;

    options.at_once = 2;
    stream = async_of(_i, 9);
    recording_start(&consumer, stream);
    await_begun(2);
    uva_stream_cancel(stream, 0, NULL);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_CANCELLED, ECANCELED, "");
    uva_stream_release(stream);
    give(0);
    give(1);
    loop_settle(&loop);
    ck_assert_int_eq(did.count, 2);
}
END_TEST

START_TEST(a_limit_behind_the_stage_cancels)
{
    struct uva_stream *stream = async_of(_i, 5);

    (void)uva__stream_limit(stream, 1);
    recording_consume(&consumer, stream);
    await_begun(5);
    give(0);
    recording_await_done(&consumer, &loop);
    ck_assert_str_eq(consumer.transcript, "schema 10 complete");
    check_cancelled(0, 1, 0);
    check_cancelled(1, 5, 1);
    for (int i = 1; i < 5; i++)
        give(i);
}
END_TEST

/* The last reply frees the rest of the stream, on this thread. */
START_TEST(results_may_come_after_the_runtime_has_closed)
{
    start(_i, 5);
    await_begun(5);
    loop_close_runtime(&loop, 0);
    recording_ended(&consumer, UVA_END_CANCELLED, ECANCELED, "");
    check_cancelled(0, 5, 1);
    give(3);
    give_error(1, EDOM);
    uva_reply_give(reply_of(4), NULL, NULL);
    give(0);
    ck_assert_int_eq(atomic_load(&did.freed), 0);
    give(2);
    ck_assert_int_eq(atomic_load(&did.freed), 1);
    ck_assert_int_eq(plain_live(), 0);
}
END_TEST

/* Threads give while the stream is cancelled and the runtime closes. */
START_TEST(threads_may_give_while_the_runtime_closes)
{
    pthread_t threads[THREADS];

    consumer.quiet = true;
    options.at_once = 8;
    options.cancel = NULL;
    start(_i % BOTH, MANY);
    threads_start(threads);
    for (int i = _i / BOTH; i > 0; i--)
        (void)uv_run(&loop.uv, UV_RUN_NOWAIT);
    loop_close_runtime(&loop, 0);
    threads_join(threads);
    await_count(&quiet, 1);
    ck_assert_int_eq(did.given, did.count);
    ck_assert_int_eq(atomic_load(&did.freed), 1);
    ck_assert_int_eq(plain_live(), 0);
}
END_TEST

/* ---- schemas ------------------------------------------------------------ */

static int make_schema(void *ctx, const struct ArrowSchema *in,
                       struct ArrowSchema *out, struct uva_error *error)
{
    ck_assert_ptr_eq(ctx, &script);
    return made_schema_give(script.code, script.drops, in, out, error);
}

START_TEST(a_schema_that_is_made_is_that_of_the_results)
{
    static const int codes[] = {0, -EDOM, 0};
    static const char *const ends[] = {"schema 10 20 complete", "failed",
                                       "failed"};
    static const char *const texts[] = {"", "no schema", "no valid schema"};

    script.way = WAY_INSIDE;
    script.code = codes[_i];
    script.drops = _i == 2;
    options.schema = make_schema;
    made_schema_run(async_of(0, 2), &consumer, &loop, ends[_i], texts[_i]);
}
END_TEST

/* ---- bad options -------------------------------------------------------- */

static void refused(struct uva_async_map *bad, const char *text)
{
    struct uva_stream *stream = stream_of(2);
    struct uva_error error = {0};

    ck_assert_int_eq(uva_stream_map_async(stream, bad), EINVAL);
    ck_assert_int_eq(uva_stream_status(stream, &error), EINVAL);
    text_contains(error.message, text);
    uva_stream_release(stream);
}

START_TEST(options_are_checked)
{
    struct uva_async_map bad = options;

    bad.begin = NULL;
    refused(&bad, "begin");
    bad = options;
    bad.at_once = -1;
    refused(&bad, "at_once");
    bad.at_once = (1 << 19) + 1;
    refused(&bad, "at_once");
    bad = options;
    bad.window.batches = -1;
    refused(&bad, "window");
    ck_assert_int_eq(atomic_load(&did.freed), 4);
    bad = options;
    bad.reserved[1] = &bad;
    refused(&bad, "reserved");
    refused(NULL, "begin");
    ck_assert_int_eq(atomic_load(&did.freed), 4); /* not of that one */
    bad = (struct uva_async_map){0};              /* without free_ctx */
    refused(&bad, "begin");
    atomic_store(&did.freed, 1);
}
END_TEST

START_TEST(a_stream_that_is_not_started_frees_the_ctx)
{
    options.at_once = 1 << 19; /* the most */
    uva_stream_release(async_of(_i, 3));
    ck_assert_int_eq(atomic_load(&did.freed), 1);
}
END_TEST

START_TEST(a_stream_that_has_started_takes_no_stage)
{
    struct uva_stream *stream = stream_of(2);
    struct uva_async_map other = {.begin = script_begin};

    recording_start(&consumer, stream);
    ck_assert_int_eq(uva_stream_map_async(stream, &options), EBUSY);
    ck_assert_int_eq(uva_stream_map_async(stream, &other), EBUSY);
    other.reserved[0] = &other;
    ck_assert_int_eq(uva_stream_map_async(stream, &other), EBUSY);
    ck_assert_int_eq(uva_stream_map_async(stream, NULL), EBUSY);
    uva_stream_release(stream);
    recording_await_done(&consumer, &loop);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("replies");

    suite_add_loops(tests, 0, BOTH, results_that_are_given_at_once_are_in_order,
                    results_are_passed_on_in_order_or_as_they_come,
                    results_may_come_together, an_empty_stream_is_complete,
                    results_keep_ordinals_and_metadata,
                    no_more_than_at_once_are_under_way,
                    the_window_limits_what_is_under_way,
                    a_large_at_once_makes_the_default_window_larger,
                    a_window_is_filled_by_bytes_too,
                    a_window_smaller_than_a_batch_takes_one_at_a_time,
                    a_full_budget_has_one_at_a_time_under_way,
                    ten_stages_move_one_batch_for_a_demand_of_one,
                    a_batch_without_a_result_requests_one_more,
                    a_map_before_the_stage_may_fail,
                    batches_of_an_unknown_format_are_passed_on,
                    results_behind_an_error_are_not_passed_on,
                    of_two_errors_the_first_counts,
                    begin_that_fails_waits_for_results_before_it,
                    results_that_wait_for_their_turn_are_released,
                    batches_that_were_not_begun_are_released,
                    a_limit_behind_the_stage_cancels,
                    results_may_come_after_the_runtime_has_closed,
                    a_stream_that_is_not_started_frees_the_ctx, NULL);
    suite_add_loops(tests, 0, 2 * BOTH, threads_give_results,
                    batches_may_have_no_result, begin_may_fail,
                    what_a_failed_begin_has_given_is_released,
                    a_result_that_does_not_fit_is_an_error,
                    errors_of_the_source_wait_for_results, NULL);
    suite_add_loops(tests, 0, 3 * BOTH, an_error_takes_the_place_of_a_result,
                    a_cancel_does_not_wait_for_results, NULL);
    suite_add_loops(tests, 0, 20 * BOTH,
                    threads_may_give_while_the_runtime_closes, NULL);
    suite_add_loops(tests, 0, 3, a_schema_that_is_made_is_that_of_the_results,
                    NULL);
    suite_add(tests, an_error_cancels_the_source_at_once, options_are_checked,
              a_stream_that_has_started_takes_no_stage, NULL);
    return suite_main("map_async", set_up, tear_down, tests, NULL);
}
