/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_from_async() where threads meet: extraction and release, request
 * and the end, our own producers as peers, and peers that act at random. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "source/foreign.h"
#include "stage/limit.h"
#include "stream/stream_impl.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/hostile_fixture.h"
#include "support/lane_fixture.h"
#include "support/recording_handler.h"
#include "uvarrow/uvarrow.h"

static struct hostile_fixture h;

/* Gives other threads time to do something that they must not do. */
static void give_it_a_chance(void)
{
    for (int i = 0; i < 1000; i++)
        (void)sched_yield();
}

/* ---- release, and tasks that are held ----------------------------------- */

static void drive_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)outcome;
    atomic_fetch_add((atomic_long *)ctx, 1);
}

/* A peer at one end, and at the other a handler that keeps its tasks. */
static struct driven {
    struct hostile_fixture s;
    struct recording_handler h;
    atomic_long done;
} d;

static void driven_open(const char *script)
{
    hostile_open(&d.s, script);
    recording_handler_init(&d.h, 64, 0);
    d.h.hold = true;
    atomic_init(&d.done, 0);
}

static void driven_start(void)
{
    const struct uva_drive options = {.on_done = drive_done, .ctx = &d.done};
    struct uva_error error = {0};
    int code;

    hostile_make(&d.s);
    code = uva_stream_drive(d.s.stream, &d.h.handler, &options, &error);
    ck_assert_msg(code == 0, "%s", error.message);
}

static void driven_extract(void)
{
    for (int64_t i = 0; i < d.h.held_count; i++)
        (void)recording_handler_extract(&d.h, &d.h.held[i]);
}

static void driven_close(void)
{
    if (!d.s.open)
        return;
    hostile_turn_until(&d.s, &d.done, 1);
    ck_assert(d.h.released);
    hostile_close(&d.s);
}

static void tear_down(void)
{
    driven_close();
    hostile_close(&h);
}

static void driven_await_tasks(int64_t n)
{
    while (d.h.held_count < n)
        hostile_turn(&d.s);
}

START_TEST(G13_tasks_held_by_others_are_extracted_inside_release)
{
    driven_open("thread schema task*5 gate end release");
    driven_start();
    driven_await_tasks(5);
    ck_assert_int_eq(atomic_load(&d.s.peer.spent), 0);
    hostile_producer_open_gate(&d.s.peer);
    hostile_turn_until(&d.s, &d.s.peer.played, 1);
    ck_assert_int_eq(atomic_load(&d.s.peer.spent), 5);
    driven_extract();
    ck_assert_int_eq(d.h.rows, 15);
    ck_assert_int_eq(d.h.sum, 0 + 10 + 20 + 30 + 40);
    driven_close();
    ck_assert_str_eq(d.h.transcript,
                     "schema task task task task task end release");
}
END_TEST

START_TEST(G13_tasks_still_queued_are_extracted_inside_release)
{
    driven_open("schema task*5 end release");
    d.h.request_first = 2;
    driven_start();
    hostile_turn(&d.s);
    hostile_await(&d.s.peer.played, 1); /* the loop does not turn */
    ck_assert_int_eq(atomic_load(&d.s.peer.spent), 5);
    driven_await_tasks(2);
    recording_handler_request(&d.h, 5);
    driven_await_tasks(5);
    driven_extract();
    ck_assert_int_eq(d.h.sum, 0 + 10 + 20 + 30 + 40);
}
END_TEST

START_TEST(ER12_a_failure_inside_release_is_told_to_who_extracts)
{
    driven_open("thread schema task broken crooked gate end release");
    driven_start();
    driven_await_tasks(3);
    hostile_producer_open_gate(&d.s.peer);
    hostile_turn_until(&d.s, &d.s.peer.played, 1);
    ck_assert_int_eq(recording_handler_extract(&d.h, &d.h.held[0]), 0);
    ck_assert_int_eq(recording_handler_extract(&d.h, &d.h.held[1]), EIO);
    ck_assert_int_eq(recording_handler_extract(&d.h, &d.h.held[2]), EPROTO);
    driven_close();
    ck_assert_int_eq(d.h.error_code, EIO);
}
END_TEST

START_TEST(G16_tasks_nobody_extracts_are_spent_when_the_stream_is_dropped)
{
    driven_open(_i == 0 ? "thread schema task*3 cancelled release"
                        : "thread schema task*3 gate end release");
    driven_start();
    driven_await_tasks(3);
    hostile_producer_open_gate(&d.s.peer);
    if (_i == 1)
        hostile_turn_until(&d.s, &d.s.peer.played, 1);
    uva_stream_drop(d.s.stream);
    d.s.stream = NULL;
    while (!d.h.released)
        hostile_turn(&d.s);
    hostile_close(&d.s);
}
END_TEST

static void *extract_main(void *ctx)
{
    (void)ctx;

    ck_assert_int_eq(recording_handler_extract(&d.h, &d.h.held[0]), 0);
    return NULL;
}

START_TEST(R31_release_waits_for_an_extraction_that_runs)
{
    pthread_t other;

    driven_open("thread schema slow push watch error release");
    driven_start();
    driven_await_tasks(2);
    ck_assert_int_eq(pthread_create(&other, NULL, extract_main, &d), 0);
    hostile_producer_await_gate(&d.s.peer, 1); /* inside extract_data */
    hostile_turn_until(&d.s, &d.s.peer.spent, 1);
    give_it_a_chance();
    ck_assert_int_eq(atomic_load(&d.s.peer.played), 0);
    hostile_producer_open_gate(&d.s.peer);
    pthread_join(other, NULL);
    hostile_turn_until(&d.s, &d.s.peer.played, 1);
    ck_assert_int_eq(recording_handler_extract(&d.h, &d.h.held[1]), 0);
    ck_assert_int_eq(d.h.sum, 10);
}
END_TEST

/* The reverse case: a handler extracts a task that release is extracting. */
START_TEST(R31_an_extraction_waits_for_release)
{
    pthread_t other;

    driven_open("thread schema slow error release");
    driven_start();
    driven_await_tasks(1);
    hostile_producer_await_gate(&d.s.peer, 1); /* inside release */
    ck_assert_int_eq(pthread_create(&other, NULL, extract_main, &d), 0);
    hostile_producer_open_gate(&d.s.peer);
    pthread_join(other, NULL);
    ck_assert_int_eq(atomic_load(&d.s.peer.spent), 1);
    ck_assert_int_eq(d.h.rows, 3);
}
END_TEST

START_TEST(AT21_a_discard_leaves_it_to_release)
{
    driven_open("thread schema slow end release");
    d.h.discard = true;
    driven_start();
    driven_await_tasks(1);
    hostile_producer_await_gate(&d.s.peer, 1);
    (void)recording_handler_extract(&d.h, &d.h.held[0]); /* does not wait */
    ck_assert_int_eq(atomic_load(&d.s.peer.spent), 0);
    hostile_producer_open_gate(&d.s.peer);
}
END_TEST

START_TEST(AT23_an_extraction_may_end_the_stream_on_its_own_stack)
{
    hostile_open(&h, "schema ending");
    h.peer.on_loop = _i == 1;
    hostile_play(&h, false);
    ck_assert_msg(strcmp(h.transcript, "schema 0 failed EIO") == 0 ||
                      strcmp(h.transcript, "schema failed EIO") == 0,
                  "%s", h.transcript);
}
END_TEST

/* ---- request, and the end ----------------------------------------------- */

static struct uva__foreign *foreign_of(struct hostile_fixture *s)
{
    return uva__container_of(s->stream->tail->source, struct uva__foreign,
                             source);
}

START_TEST(Q15_a_request_that_waits_for_a_callback_holds_nobody_up)
{
    hostile_open(&h, "schema task asked task asked task asked task end "
                     "release");
    h.peer.request = HOSTILE_BLOCKS;
    h.peer.window = 1; /* so that no callback needs to request */
    h.peer.on_loop = true;
    hostile_make(&h);
    foreign_of(&h)->limit_ms = 1; /* the end may also meet such a request */
    hostile_start(&h);
    hostile_finish(&h);
    ck_assert_str_eq(h.transcript, "schema 0 1 2 3 complete");
}
END_TEST

START_TEST(AP28_a_request_that_waits_for_the_end_is_left_behind)
{
    hostile_open(&h, "schema task watch end release");
    h.peer.request = HOSTILE_DAWDLES;
    h.peer.window = 1;
    h.peer.on_loop = true;
    hostile_make(&h);
    foreign_of(&h)->limit_ms = 1;
    hostile_start(&h);
    hostile_finish(&h);
    hostile_turn_until(&h, &h.peer.played, 1);
    ck_assert_str_eq(h.transcript, "schema 0 complete");
    ck_assert_str_eq(h.clauses, "AP-28");
    atomic_store(&h.peer.faults, 0); /* the test itself caused that fault */
    hostile_producer_open_gate(&h.peer);
}
END_TEST

/* The release waits for the request, which only the interrupt ends. */
START_TEST(a_request_that_hangs_is_interrupted)
{
    hostile_open(&h, "thread schema task cancelled release");
    h.peer.request = HOSTILE_DAWDLES;
    h.peer.request_at = 2;
    h.peer.window = 1;
    h.peer.on_loop = true;
    h.peer.interrupt_at = 1;
    hostile_make(&h);
    foreign_of(&h)->limit_ms = 3600000;
    hostile_start(&h);
    while (h.batches < 1)
        hostile_turn(&h);
    hostile_producer_await_gate(&h.peer, 1);
    uva_stream_cancel(h.stream, 0, NULL);
    hostile_finish(&h);
    ck_assert_str_eq(h.transcript, "schema 0 cancelled");
    hostile_turn_until(&h, &h.peer.freed, 1);
    ck_assert_int_ge(atomic_load(&h.peer.interrupts), 1);
    ck_assert_str_eq(h.clauses, "");
}
END_TEST

/* The extra thread's request is held at the gate while the peer ends. */
START_TEST(TH10_the_end_waits_for_a_request_of_ours)
{
    hostile_open(&h, "schema task watch end free release");
    h.peer.request = HOSTILE_DAWDLES;
    h.peer.request_at = 2;
    h.peer.window = 1;
    h.peer.on_loop = true;
    hostile_make(&h);
    foreign_of(&h)->limit_ms = 3600000; /* even on a slow machine */
    hostile_start(&h);
    while (h.batches < 1)
        hostile_turn(&h);
    hostile_producer_await_gate(&h.peer, 1);
    give_it_a_chance();
    ck_assert_int_eq(atomic_load(&h.peer.played), 0);
    hostile_producer_open_gate(&h.peer);
    hostile_finish(&h);
    ck_assert_str_eq(h.transcript, "schema 0 complete");
    ck_assert_str_eq(h.clauses, "");
}
END_TEST

/* ---- our own producers as peers ----------------------------------------- */

/* A stream drives the foreign handler of another stream of the library. */
struct own {
    struct uva_runtime *runtime; /* runtime of the driving stream */
    struct fake_source *fake;
    bool tasks; /* its tasks are expensive and may fail */
    bool on_worker;
    atomic_long *freed;
};

static int own_start(void *ctx, struct ArrowAsyncDeviceStreamHandler *handler,
                     struct uva_error *error)
{
    const struct own *own = ctx;
    const struct uva_drive options = {.on_worker = own->on_worker};
    struct ArrowArrayStream plain;
    struct uva_arrow_source blocking = fake_source_options(own->fake);
    struct uva_task_source tasks = fake_source_tasks(own->fake);
    struct uva_stream *stream;
    int code;

    fake_source_plain(own->fake, &plain);
    if (own->tasks)
        stream = uva_stream_from_tasks(own->runtime, &tasks);
    else
        stream = uva_stream_from_arrow_stream(own->runtime, &plain, &blocking);
    code = uva_stream_drive(stream, handler, &options, error);
    uva_stream_release(stream);
    return code;
}

static void own_free(void *ctx)
{
    atomic_fetch_add(((struct own *)ctx)->freed, 1);
}

/* Bits of the loop index. */
enum {
    OWN_TASKS = 1,
    OWN_RUNTIME = 2,
    OWN_WORKER = 4,
    OWN_ON_LOOP = 8,
    OWNS = 16
};

static struct own_fixture {
    struct fixture f;
    struct uva_runtime *other; /* on a separate thread; or NULL */
    struct own own;
    atomic_long freed;
} ours;

static void own_open(struct own_fixture *s, int64_t batches, int way)
{
    memset(s, 0, sizeof(*s));
    fixture_open(&s->f, batches);
    if (way & OWN_RUNTIME)
        ck_assert_int_eq(uva_runtime_open(NULL, NULL, &s->other, NULL), 0);
    s->own = (struct own){.runtime = s->other ? s->other : s->f.loop.runtime,
                          .fake = &s->f.fake,
                          .tasks = way & OWN_TASKS,
                          .on_worker = way & OWN_WORKER,
                          .freed = &s->freed};
}

static struct uva_stream *own_stream(struct own_fixture *s, int way)
{
    const struct uva_async_source source = {.start = own_start,
                                            .free_ctx = own_free,
                                            .ctx = &s->own,
                                            .window = {.batches = 5},
                                            .on_loop = way & OWN_ON_LOOP};

    return uva_stream_from_async(s->f.loop.runtime, &source);
}

static void own_close(struct own_fixture *s, int way)
{
    loop_close_runtime(&s->f.loop, UVA_FOREVER);
    if (s->other != NULL)
        ck_assert_int_eq(uva_runtime_join(s->other, UVA_FOREVER), 0);
    hostile_await(&s->freed, 1);
    fixture_close_counted(&s->f, (way & OWN_TASKS) == 0, 1);
}

START_TEST(R41_our_own_producers_can_be_foreign_ones)
{
    own_open(&ours, 500, _i);
    fixture_consume(&ours.f, own_stream(&ours, _i));
    ck_assert_int_eq(ours.f.got.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(atomic_load(&ours.f.got.rows), 1500);
    own_close(&ours, _i);
}
END_TEST

START_TEST(R41_their_errors_arrive)
{
    own_open(&ours, 500, _i);
    ours.f.fake.fail_at = 123;
    fixture_consume(&ours.f, own_stream(&ours, _i));
    ck_assert_int_eq(ours.f.got.outcome.end, UVA_END_FAILED);
    ck_assert_int_eq(ours.f.got.outcome.error.code, EIO);
    ck_assert_str_eq(ours.f.got.outcome.error.message,
                     (_i & OWN_TASKS) != 0
                         ? "tasks: the disk is on fire"
                         : "arrow_stream: the disk is on fire");
    ck_assert_int_eq(atomic_load(&ours.f.got.rows), 369);
    own_close(&ours, _i);
}
END_TEST

START_TEST(R41_they_can_be_cancelled)
{
    struct uva_stream *stream;

    own_open(&ours, 1 << 30, _i);
    stream = own_stream(&ours, _i);
    ck_assert_int_eq(uva__stream_limit(stream, 77), 0);
    fixture_consume(&ours.f, stream);
    ck_assert_int_eq(ours.f.got.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(atomic_load(&ours.f.got.rows), 231);
    own_close(&ours, _i);
}
END_TEST

/* ---- a cancel at any time ----------------------------------------------- */

static void *cancel_main(void *ctx)
{
    struct hostile_fixture *s = ctx;

    hostile_await(&s->peer.offered, 10);
    uva_stream_cancel(s->stream, 0, "enough");
    return NULL;
}

START_TEST(TH04_any_thread_may_cancel_at_any_time)
{
    pthread_t other;

    hostile_open(&h, _i & 1 ? "thread schema task*100000 release"
                            : "schema task*100000 release");
    h.peer.window = 1 + _i / 4;
    h.peer.on_loop = _i & 2;
    hostile_make(&h);
    ck_assert_int_eq(pthread_create(&other, NULL, cancel_main, &h), 0);
    hostile_start(&h);
    hostile_finish(&h);
    pthread_join(other, NULL);
    ck_assert_ptr_nonnull(strstr(h.transcript, "cancelled"));
}
END_TEST

START_TEST(AP14_a_cancel_at_every_batch_is_followed_by_the_release)
{
    for (int k = 0; k < 12; k++) {
        hostile_open(&h, _i & 1 ? "thread schema task*10 end release"
                                : "schema task*10 end release");
        h.peer.window = 3;
        h.peer.on_loop = _i & 2;
        h.stop_at = k;
        hostile_play(&h, false);
        ck_assert_ptr_nonnull(
            strstr(h.transcript, k < 10 ? "cancelled" : "complete"));
        hostile_close(&h);
    }
}
END_TEST

/* ---- peers at random ---------------------------------------------------- */

static uint32_t rolled;

static uint32_t roll(uint32_t sides)
{
    rolled = rolled * 1664525u + 1013904223u;
    return (rolled >> 8) % sides;
}

static void roll_script(char *script, size_t size)
{
    static const char *const words[] = {
        "schema",  "schema-none", "schema-dead", "schema-alone",  "push",
        "push",    "push",        "push*7",      "broken",        "empty",
        "crooked", "alien",       "hollow",      "tagged",        "smudged",
        "end",     "error",       "error-0",     "error-smudged", "push*70"};
    uint32_t n = roll(9);

    (void)snprintf(script, size, "%s%s", roll(2) ? "thread " : "",
                   roll(8) ? "schema" : "push");
    for (; n > 0; n--) {
        strcat(script, " ");
        strcat(script, words[roll(sizeof(words) / sizeof(words[0]))]);
    }
    if (strstr(script, "thread") == NULL && roll(3) == 0)
        strcat(script, " thread push");
    strcat(script, roll(3) ? " end release" : " release");
}

START_TEST(no_peer_at_random_is_too_much)
{
    char script[512];

    rolled = (uint32_t)_i * 7919u + 1;
    for (int k = 0; k < 60; k++) {
        roll_script(script, sizeof(script));
        hostile_open(&h, script);
        h.peer.window = (int32_t)roll(5);
        h.peer.on_loop = roll(2);
        h.peer.request = roll(4) ? HOSTILE_COUNTS : HOSTILE_IGNORES;
        if (memcmp(script, "thread", 6) != 0 && roll(6) == 0)
            h.peer.start_code = EIO; /* an uncalled handler stays ours */
        h.stop_at = roll(3) ? -1 : (int64_t)roll(4);
        hostile_play(&h, roll(2));
        ck_assert_msg(h.done, "%s", script);
        hostile_close(&h);
    }
}
END_TEST

/* ---- threads that cannot be created ------------------------------------- */

START_TEST(R04_without_a_thread_the_stream_fails_when_it_is_made)
{
    const struct uva_async_source source = {.start = hostile_never};
    struct uva_stream *stream;
    struct loop_fixture loop;

    loop_open(&loop);
    lane_threads_run_out(true);
    stream = uva_stream_from_async(loop.runtime, &source);
    lane_threads_run_out(false);
    ck_assert_int_eq(uva_stream_status(stream, NULL), ENOMEM);
    uva_stream_release(stream);
    loop_close(&loop);
}
END_TEST

int main(void)
{
    TCase *meet = tcase_create("meet"), *own = tcase_create("own"),
          *chance = tcase_create("chance");

    suite_add(meet, G13_tasks_held_by_others_are_extracted_inside_release,
              G13_tasks_still_queued_are_extracted_inside_release,
              ER12_a_failure_inside_release_is_told_to_who_extracts,
              R31_release_waits_for_an_extraction_that_runs,
              R31_an_extraction_waits_for_release,
              AT21_a_discard_leaves_it_to_release,
              Q15_a_request_that_waits_for_a_callback_holds_nobody_up,
              AP28_a_request_that_waits_for_the_end_is_left_behind,
              a_request_that_hangs_is_interrupted,
              TH10_the_end_waits_for_a_request_of_ours,
              R04_without_a_thread_the_stream_fails_when_it_is_made, NULL);
    suite_add_loops(
        meet, 0, 2,
        G16_tasks_nobody_extracts_are_spent_when_the_stream_is_dropped,
        AT23_an_extraction_may_end_the_stream_on_its_own_stack, NULL);
    suite_add_loops(own, 0, OWNS, R41_our_own_producers_can_be_foreign_ones,
                    R41_their_errors_arrive, R41_they_can_be_cancelled, NULL);
    suite_add_loops(chance, 0, 16, TH04_any_thread_may_cancel_at_any_time,
                    no_peer_at_random_is_too_much, NULL);
    tcase_add_loop_test(
        chance, AP14_a_cancel_at_every_batch_is_followed_by_the_release, 0, 4);
    return suite_main("from_async_threads", NULL, tear_down, meet, own, chance,
                      NULL);
}
