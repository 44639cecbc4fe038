/* SPDX-License-Identifier: Apache-2.0 */
/* Sources of which only some may be open at one time, where a stage opens one
 * before earlier ones have ended: the source that is needed first goes first,
 * so that no two streams wait for each other. Batches of source 0 are "a" in
 * the transcript, of source 1 "b"... */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "uvarrow/stages.h"

enum { SOURCES = 5, BATCHES = 2, ROWS = 10 };

static struct fixture f, sources[SOURCES];
static struct uva_permits *permits;
static struct uva_outcome outcome;
static char seen[64];
static int done;

/* ---- the fixture -------------------------------------------------------- */

/* Opens a runtime and sources, which have `count` permits. */
static void open_limited(int32_t count, int64_t wait_ms)
{
    fixture_open(&f, 0);
    ck_assert_int_eq(
        uva_permits_new(f.loop.runtime, count, wait_ms, &permits, NULL), 0);
    for (int i = 0; i < SOURCES; i++) {
        fixture_open_beside(&sources[i], BATCHES, &f);
        sources[i].fake.rows = ROWS + i;
        sources[i].options.permits = permits;
    }
    memset(&outcome, 0, sizeof(outcome));
    seen[0] = '\0';
    done = 0;
}

static void tear_down(void)
{
    fixture_release(&f);
    uva_permits_release(permits);
    permits = NULL;
    for (int i = 0; i < SOURCES; i++)
        fixture_close(&sources[i]);
    fixture_close(&f);
}

static struct uva_stream *source(int i)
{
    return fixture_hook(&sources[i]);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const size_t length = strlen(seen);

    (void)ctx;
    seen[length] = (char)('a' + batch->data.array.length - ROWS);
    seen[length + 1] = '\0';
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *end)
{
    (void)ctx;
    done++;
    outcome = *end;
}

/* Starts the stream, which the fixture keeps. */
static void start(struct uva_stream *stream)
{
    const struct uva_consumer consumer = {.on_batch = on_batch,
                                          .on_done = on_done};

    f.stream = stream;
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
}

static bool is_done(void *ctx)
{
    (void)ctx;
    return done > 0;
}

static void ends(int code, const char *transcript)
{
    loop_until(&f.loop, is_done, NULL);
    ck_assert_int_eq(done, 1);
    ck_assert_int_eq(outcome.error.code, code);
    ck_assert_str_eq(seen, transcript);
}

static bool is_at_gate(void *ctx)
{
    struct fixture *at = ctx;

    loop_nudge(&f.loop);
    return fake_source_is_waiting(&at->fake);
}

/* Turns the loop until source `i` is in the call that its gate holds up. */
static void await_gate(int i)
{
    loop_until(&f.loop, is_at_gate, &sources[i]);
}

static bool opened(int i)
{
    return atomic_load(&sources[i].fake.opened) > 0;
}

static bool is_opened(void *ctx)
{
    struct fixture *at = ctx;

    loop_nudge(&f.loop);
    return atomic_load(&at->fake.opened) > 0;
}

static struct uva_stream *then(struct uva_stream *first,
                               struct uva_stream *second, int32_t ahead)
{
    ck_assert_int_eq(
        uva_stream_concat(first, &second, 1,
                          &(struct uva_merge){.open_at_once = ahead + 1}),
        0);
    return first;
}

/* ---- streams that need several sources ----------------------------------- */

static struct uva_stream *concatenated(int first)
{
    return then(source(first), source(first + 1), 0);
}

static struct uva_stream *merged(int first)
{
    struct uva_stream *stream = source(first), *other = source(first + 1);

    ck_assert_int_eq(uva_stream_merge(stream, &other, 1,
                                      &(struct uva_merge){.open_at_once = 1}),
                     0);
    return stream;
}

static struct uva_stream *again(void *ctx, const struct uva_outcome *failed,
                                int32_t attempt, int64_t passed, int64_t rows)
{
    struct fixture *failing = ctx;

    (void)failed;
    (void)attempt;
    (void)passed;
    (void)rows;
    return fixture_hook(failing + 1);
}

/* The first source fails after its first batch. */
static struct uva_stream *retried(int first)
{
    struct uva_stream *stream = source(first);

    sources[first].fake.fail_at = 1;
    ck_assert_int_eq(
        uva_stream_retry(stream, &(struct uva_retry){.again = again,
                                                     .ctx = &sources[first],
                                                     .delay_ms = 1,
                                                     .resume = true}),
        0);
    return stream;
}

/* Its first stream is itself a stream that needs two sources. */
static struct uva_stream *nested(int first)
{
    struct uva_stream *stream = merged(first), *other = source(first + 2);

    ck_assert_int_eq(uva_stream_merge(stream, &other, 1,
                                      &(struct uva_merge){.open_at_once = 1}),
                     0);
    return stream;
}

static const struct {
    struct uva_stream *(*make)(int first);
    int count; /* of sources that it uses */
    const char *seen;
} inner[] = {{concatenated, 2, "aabb"},
             {merged, 2, "aabb"},
             {retried, 2, "abb"},
             {nested, 3, "aabbcc"}};

enum { INNER = sizeof(inner) / sizeof(inner[0]) };

/* Gives the transcript after which source `i` follows. */
static const char *with(const char *before, int i)
{
    static char all[64];

    (void)snprintf(all, sizeof(all), "%s%c%c", before, 'a' + i, 'a' + i);
    return all;
}

START_TEST(what_is_needed_goes_before_what_is_opened_ahead)
{
    const int way = _i, count = inner[way].count;

    open_limited(1, 0);
    start(then(inner[way].make(0), source(count), 1));
    ends(0, with(inner[way].seen, count));
}
END_TEST

/* The stream that is opened ahead needs several sources itself. */
START_TEST(what_was_opened_ahead_goes_on_once_it_is_needed)
{
    const int way = _i;
    char all[64] = "ee";

    if (inner[way].make == nested)
        return; /* it has no source "e" to spare */
    open_limited(1, 0);
    start(then(source(4), inner[way].make(0), 1));
    strcat(all, inner[way].seen);
    ends(0, all);
}
END_TEST

/* ---- stages between ------------------------------------------------------ */

static int keep_all(void *ctx, const struct uva_batch *batch, uint8_t *bits,
                    struct uva_error *error)
{
    (void)ctx;
    (void)error;
    memset(bits, 0xff, (size_t)(batch->data.array.length + 7) / 8);
    return 0;
}

static int begin_same(void *ctx, struct uva_batch *in, struct uva_reply *reply)
{
    struct ArrowDeviceArray taken;

    (void)ctx;
    uva_array_move(&in->data, &taken);
    uva_reply_give(reply, &taken, NULL);
    return 0;
}

static void add_filter(struct uva_stream *s)
{
    (void)uva_stream_filter(s, &(struct uva_filter){.keep = keep_all});
}

static void add_map_async(struct uva_stream *s)
{
    (void)uva_stream_map_async(s, &(struct uva_async_map){.begin = begin_same});
}

static void add_parallel(struct uva_stream *s)
{
    (void)uva_stream_parallel(s, &(struct uva_parallel){.workers = 2});
}

static void add_ready(struct uva_stream *s)
{
    (void)uva_stream_ready(s, NULL);
}

static void add_throttle(struct uva_stream *s)
{
    (void)uva_stream_throttle(s,
                              &(struct uva_throttle){.batches_per_s = 1000000});
}

static void add_merge(struct uva_stream *s)
{
    (void)uva_stream_merge(s, NULL, 0, NULL);
}

static void add_concat(struct uva_stream *s)
{
    (void)uva_stream_concat(s, NULL, 0, &(struct uva_merge){.open_at_once = 4});
}

static void add_retry(struct uva_stream *s)
{
    (void)uva_stream_retry(s, &(struct uva_retry){.again = again});
}

static void add_transfer(struct uva_stream *s)
{
    (void)uva_stream_transfer(s, NULL);
}

static void add_tee(struct uva_stream *s)
{
    uva_stream_release(uva_stream_tee(s, NULL));
}

static void (*const stages[])(struct uva_stream *s) = {
    add_filter, add_map_async, add_parallel, add_ready,    add_throttle,
    add_merge,  add_concat,    add_retry,    add_transfer, add_tee};

enum { STAGES = sizeof(stages) / sizeof(stages[0]) };

START_TEST(every_stage_has_what_is_above_it_know)
{
    struct uva_stream *later;

    open_limited(1, 0);
    later = source(2);
    stages[_i](later);
    start(then(then(source(0), source(1), 0), later, 1));
    ends(0, "aabbcc");
}
END_TEST

START_TEST(a_branch_that_needs_the_source_counts_for_all)
{
    struct recording_consumer other;
    struct uva_stream *branch;

    recording_init(&other);
    open_limited(1, 0);
    f.stream = source(2);
    branch = uva_stream_tee(f.stream, NULL);
    start(then(then(source(0), source(1), 0), f.stream, 1));
    recording_consume(&other, branch);
    ends(0, "aabbcc");
    recording_await_done(&other, &f.loop);
    ck_assert_int_eq(other.batches, BATCHES);
}
END_TEST

/* ---- the order of permits ------------------------------------------------ */

/* Starts the first `count` sources as one stream, all but the first one opened
 * ahead, and awaits that the first stays in a call. */
static void start_ahead(int count)
{
    struct uva_stream *others[SOURCES], *stream;

    sources[0].fake.gate_at = 1;
    stream = source(0);
    for (int i = 1; i < count; i++)
        others[i - 1] = source(i);
    ck_assert_int_eq(
        uva_stream_concat(stream, others, (size_t)count - 1,
                          &(struct uva_merge){.open_at_once = SOURCES + 1}),
        0);
    start(stream);
    await_gate(0);
    loop_settle(&f.loop);
}

/* Starts source `i` as a separate stream, to stay in a call. */
static void start_beside(int i)
{
    sources[i].fake.gate_at = 0;
    sources[i].stream = source(i);
    fixture_start(&sources[i]);
}

static void open_gate(int i)
{
    fake_source_open_gate(&sources[i].fake);
}

static void await_beside(int i)
{
    recording_await_done(&sources[i].got, &f.loop);
    ck_assert_int_eq(sources[i].got.outcome.end, UVA_END_COMPLETE);
}

START_TEST(a_permit_to_spare_is_taken_ahead)
{
    open_limited(2, 0);
    sources[1].fake.gate_at = 0;
    start_ahead(2);
    loop_until(&f.loop, is_opened, &sources[1]);
    open_gate(1);
    open_gate(0);
    ends(0, "aabb");
}
END_TEST

START_TEST(the_last_permit_is_not_taken_ahead)
{
    open_limited(1, 0);
    start_ahead(2);
    ck_assert(!opened(1));
    open_gate(0);
    ends(0, "aabb");
}
END_TEST

START_TEST(a_source_that_is_needed_goes_before_one_that_waits_ahead)
{
    open_limited(2, 0);
    sources[1].fake.gate_at = 0;
    start_ahead(3);
    start_beside(3);
    open_gate(0);
    await_gate(3);
    await_gate(1);
    ck_assert(!opened(2));
    open_gate(1);
    ends(0, "aabbcc");
    open_gate(3);
    await_beside(3);
}
END_TEST

START_TEST(a_source_that_becomes_needed_makes_room_for_one_ahead)
{
    open_limited(3, 0);
    sources[1].fake.gate_at = 0;
    start_ahead(4);
    ck_assert(!opened(3));
    open_gate(0);
    await_gate(1);
    loop_until(&f.loop, is_opened, &sources[3]);
    open_gate(1);
    ends(0, "aabbccdd");
}
END_TEST

/* ---- the end of a wait --------------------------------------------------- */

START_TEST(the_time_of_a_wait_ahead_does_not_count)
{
    open_limited(1, 1);
    start_ahead(2);
    ck_assert(!loop_has_timer(&f.loop));
    loop_pass(&f.loop, 2);
    loop_settle(&f.loop);
    open_gate(0);
    ends(0, "aabb");
}
END_TEST

/* In the case 0 there is a place for it, so that it is open while it waits. */
START_TEST(limits_of_time_count_once_the_stream_is_needed)
{
    const struct uva_timeout hours = {.open_ms = _i == 1 ? 3600000 : 0,
                                      .first_ms = 3600000,
                                      .total_ms = 7200000};
    struct uva_stream *second;

    open_limited(2 - _i, 0);
    sources[0].fake.gate_at = sources[1].fake.gate_at = 1;
    second = source(1);
    ck_assert_int_eq(uva_stream_timeout(second, &hours), 0);
    start(then(source(0), second, 1));
    await_gate(0);
    loop_settle(&f.loop);
    ck_assert(!loop_has_timer(&f.loop));
    open_gate(0);
    await_gate(1);
    ck_assert(loop_has_timer(&f.loop));
    open_gate(1);
    ends(0, "aabb");
    ck_assert(!loop_has_timer(&f.loop));
}
END_TEST

START_TEST(the_time_counts_once_the_source_is_needed)
{
    struct uva_pusher *pusher;
    struct uva_stream *first;
    struct ArrowSchema schema;

    open_limited(1, 1);
    start_beside(1);
    await_gate(1);
    first = uva_stream_from_pusher(f.loop.runtime, NULL, &pusher);
    fake_source_schema(&sources[0].fake, &schema);
    ck_assert_int_eq(uva_pusher_set_schema(pusher, &schema), 0);
    start(then(first, source(0), 1));
    loop_settle(&f.loop);
    ck_assert(!loop_has_timer(&f.loop));
    uva_pusher_close(pusher, NULL, NULL);
    ends(ETIMEDOUT, "");
    ck_assert(!opened(0));
    open_gate(1);
    await_beside(1);
}
END_TEST

START_TEST(a_wait_ahead_ends_with_a_cancel)
{
    open_limited(1, 0);
    start_ahead(2);
    uva_stream_cancel(f.stream, 0, NULL);
    ends(ECANCELED, "a");
    ck_assert(!opened(1));
}
END_TEST

START_TEST(a_wait_ahead_ends_with_the_failure_of_what_is_needed)
{
    open_limited(1, 0);
    sources[0].fake.fail_at = 1;
    sources[0].fake.fail_code = EIO;
    start_ahead(2);
    open_gate(0);
    ends(EIO, "a");
    ck_assert(!opened(1));
}
END_TEST

START_TEST(a_wait_ahead_ends_with_the_close)
{
    open_limited(1, 0);
    start_ahead(2);
    loop_close_runtime(&f.loop, 0);
    ends(ECANCELED, "a");
    ck_assert(!opened(1));
}
END_TEST

/* Another source that waits ahead keeps its place. */
START_TEST(one_of_those_that_wait_ahead_can_be_cancelled)
{
    struct uva_stream *others[2], *second;

    open_limited(1, 0);
    sources[0].fake.gate_at = 1;
    others[0] = source(1);
    others[1] = source(2);
    second = uva_stream_acquire(others[0]);
    f.stream = source(0);
    ck_assert_int_eq(uva_stream_concat(f.stream, others, 2,
                                       &(struct uva_merge){.open_at_once = 3}),
                     0);
    start(f.stream);
    await_gate(0);
    loop_settle(&f.loop);
    uva_stream_cancel(second, EIO, "no more");
    uva_stream_release(second);
    loop_settle(&f.loop);
    open_gate(0);
    ends(EIO, "aa");
    ck_assert(!opened(1) && !opened(2));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("opened ahead");

    suite_add_loops(tc, 0, INNER,
                    what_is_needed_goes_before_what_is_opened_ahead,
                    what_was_opened_ahead_goes_on_once_it_is_needed, NULL);
    suite_add_loops(tc, 0, STAGES, every_stage_has_what_is_above_it_know, NULL);
    suite_add(tc, a_branch_that_needs_the_source_counts_for_all,
              a_permit_to_spare_is_taken_ahead,
              the_last_permit_is_not_taken_ahead,
              a_source_that_is_needed_goes_before_one_that_waits_ahead,
              a_source_that_becomes_needed_makes_room_for_one_ahead,
              a_wait_ahead_ends_with_a_cancel,
              a_wait_ahead_ends_with_the_failure_of_what_is_needed,
              a_wait_ahead_ends_with_the_close,
              one_of_those_that_wait_ahead_can_be_cancelled, NULL);
    suite_add_loops(tc, 0, 2, limits_of_time_count_once_the_stream_is_needed,
                    NULL);
    suite_add(tc, the_time_of_a_wait_ahead_does_not_count,
              the_time_counts_once_the_source_is_needed, NULL);
    return suite_main("opened ahead", NULL, tear_down, tc, NULL);
}
