/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_from_async() with a foreign producer that keeps the rules, or
 * breaks one: the callbacks of the consumer, and the breach that is reported.
 * Each script is played inside start and on a separate thread, with extraction
 * on the loop thread and on a worker. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop/loop.h"
#include "support/check_suite.h"
#include "support/hostile_fixture.h"
#include "uvarrow/uvarrow.h"

/* The four ways to run each script, as bits of the loop index. */
enum { ON_THREAD = 1, ON_LOOP = 2, WAYS = 4 };

static struct hostile_fixture h;

static void tear_down(void)
{
    hostile_close(&h);
}

static char script_room[1024];

/* Returns the script, moved to a separate thread if `way` requires it. */
static const char *script_for(const char *script, int way)
{
    (void)snprintf(script_room, sizeof(script_room), "%s%s",
                   way & ON_THREAD ? "thread " : "", script);
    return script_room;
}

static void open_script(struct hostile_fixture *s, const char *script, int way)
{
    hostile_open(s, script_for(script, way));
    s->peer.on_loop = (way & ON_LOOP) != 0;
}

/* ---- one script a line -------------------------------------------------- */

struct scripted {
    const char *script;
    const char *transcript; /* transcript of the consumer */
    const char *clauses;    /* clauses reported as broken */
    const char *message;    /* part of the message; NULL: not checked */
    bool live;              /* the loop must turn while the script is played */
};

static void script_check(const struct scripted *scripted, int way)
{
    struct hostile_fixture s;

    open_script(&s, scripted->script, way);
    hostile_play(&s, !scripted->live);
    hostile_turn_until(&s, &s.peer.played, 1);
    ck_assert_msg(strcmp(s.transcript, scripted->transcript) == 0,
                  "\"%s\" way %d: \"%s\"", scripted->script, way, s.transcript);
    ck_assert_msg(strcmp(s.clauses, scripted->clauses) == 0,
                  "\"%s\" way %d broke \"%s\", not \"%s\"", scripted->script,
                  way, s.clauses, scripted->clauses);
    if (scripted->message != NULL)
        ck_assert_msg(strstr(s.message, scripted->message) != NULL,
                      "\"%s\": %s", scripted->script, s.message);
    hostile_close(&s);
}

static void scripts_check(const struct scripted *expected, size_t count,
                          int way)
{
    for (size_t i = 0; i < count; i++)
        script_check(&expected[i], way);
}

#define CHECK_SCRIPTS(expected, way)                                           \
    scripts_check(expected, sizeof(expected) / sizeof((expected)[0]), way)

START_TEST(AH01_lawful_streams_are_read_whole)
{
    static const struct scripted expected[] = {
        {"schema task*5 end release", "schema 0 1 2 3 4 complete", "", NULL, 0},
        {"schema task*64 end free release",
         "schema 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 "
         "24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 "
         "47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 complete",
         "", NULL, 0},
        {"schema end release", "schema complete", "", NULL, 0}, /* AH-23 */
        {"schema task free end release", "schema 0 complete", "", NULL, 0},
    };

    CHECK_SCRIPTS(expected, _i);
}
END_TEST

START_TEST(AH18_errors_come_behind_the_batches_before_them)
{
    static const struct scripted expected[] = {
        {"schema task*2 error release", "schema 0 1 failed EIO", "",
         "the disk is on fire", 0},
        {"schema error release", "schema failed EIO", "", "the disk is on fire",
         0},
        {"error release", "failed EIO", "", "the disk is on fire", 0},
        /* the handler's producer was never set */
        {"poison error release", "failed EIO", "", "the disk is on fire", 0},
        {"schema task error free release", "schema 0 failed EIO", "",
         "the disk is on fire", 0}, /* */
        {"schema error-0 release", "schema failed EIO", "ER-06",
         "the disk is on fire", 0},
        {"schema error-negative release", "schema failed EIO", "",
         "the disk is on fire", 0},
        {"schema error-smudged release", "schema failed EIO", "MD-05",
         "the disk is on fire", 0},
    };

    CHECK_SCRIPTS(expected, _i);
}
END_TEST

START_TEST(ER13_release_alone_is_an_error)
{
    static const struct scripted expected[] = {
        {"release", "failed ECONNABORTED", "AH-05", "(ER-13)", 0},
        {"schema release", "schema failed ECONNABORTED", "AH-12", "(ER-13)", 0},
        {"schema task*2 release", "schema 0 1 failed ECONNABORTED", "AH-12",
         "(ER-13)", 0},
    };

    CHECK_SCRIPTS(expected, _i);
}
END_TEST

START_TEST(AH05_schemas_that_cannot_be_used_are_refused)
{
    static const struct scripted expected[] = {
        {"schema-alone release", "failed EINVAL", "AH-03", "(AH-03)", 0},
        {"schema-none release", "failed EINVAL", "AH-07", "(AH-07)", 0},
        {"schema-dead release", "failed EINVAL", "AH-07", "(AH-07)", 0},
        /* as Arrow C++ reports it */
        {"schema-dead error release", "failed EINVAL", "AH-07 AH-08", NULL, 0},
        {"schema-dead end release", "failed EINVAL", "AH-07 AH-08", NULL, 0},
        {"schema-dead push schema release", "failed EINVAL",
         "AH-07 AH-08 AH-08", NULL, 0},
    };

    CHECK_SCRIPTS(expected, _i);
}
END_TEST

START_TEST(AH05_a_second_schema_is_refused_and_the_stream_goes_on)
{
    static const struct scripted expected[] = {
        {"schema schema task end release", "schema 0 complete", "AH-05", NULL,
         0},
        {"schema task schema task end release", "schema 0 1 complete", "AH-05",
         NULL, 0},
        {"push schema end release", "failed EPROTO", "AH-05 AH-08", "(AH-05)",
         0},
        {"end release", "failed EPROTO", "AH-05", "(AH-05)", 0},
    };

    CHECK_SCRIPTS(expected, _i);
}
END_TEST

START_TEST(AH11_what_comes_behind_the_end_is_discarded)
{
    static const struct scripted expected[] = {
        {"schema task end push release", "schema 0 failed EPROTO", "AH-11",
         "(AH-11)", 0},
        {"schema task end end release", "schema 0 complete", "AH-11", NULL, 0},
        {"schema task end schema release", "schema 0 complete", "AH-11", NULL,
         0},
        {"schema error push error end schema release", "schema failed EIO",
         "AH-17 AH-17 AH-17 AH-17", NULL, 0},
        {"schema end error release", "schema failed EIO", "AH-33",
         "the disk is on fire", 0},
    };

    CHECK_SCRIPTS(expected, _i);
}
END_TEST

/* While start runs; test_late_callbacks.c has calls that come later. */
START_TEST(AH22_what_comes_behind_release_is_discarded)
{
    static const struct scripted expected[] = {
        {"schema task end release push end error schema release",
         "schema 0 complete", "AH-22 AH-22 AH-22 AH-22 AH-21", NULL, 0},
        {"schema error release schema push release", "schema failed EIO",
         "AH-22 AH-22 AH-21", NULL, 0},
    };

    CHECK_SCRIPTS(expected, _i);
}
END_TEST

START_TEST(AH24_a_copy_of_the_handler_is_as_good)
{
    static const struct scripted expected[] = {
        {"copy schema task end release", "schema 0 complete",
         "AH-24 AH-24 AH-24 AH-24", NULL, 0},
    };

    CHECK_SCRIPTS(expected, _i);
}
END_TEST

START_TEST(AP06_unasked_batches_are_taken_and_counted)
{
    open_script(&h, "schema push*67 end release", _i);
    hostile_play(&h, true);
    ck_assert_int_eq(h.batches, 67);
    ck_assert_ptr_nonnull(strstr(h.transcript, "complete"));
    ck_assert_str_eq(h.clauses, "AP-06 AP-06 AP-06");
}
END_TEST

START_TEST(AT01_lost_batches_end_the_stream_and_cancel_it)
{
    static const struct scripted expected[] = {
        {"schema task hollow cancelled push release", "schema 0 failed EPROTO",
         "AT-01", "(AT-01)", 1},
        {"schema task broken cancelled push release", "schema 0 failed EIO", "",
         "EIO", 1},
        {"schema task empty cancelled push end release",
         "schema 0 failed EPROTO", "AT-05", "(AT-05)", 1}, /* */
        {"schema task crooked cancelled push error release",
         "schema 0 failed EPROTO", "AT-17", "n_buffers", 1},
        /* only our own outcome reports that (ER-12) */
        {"schema broken end release", "schema failed EIO", "", "EIO", 0},
        {"schema negative end release", "schema failed EIO", "", "EIO (-5)", 0},
        {"schema task crooked end release", "schema 0 failed EPROTO", "AT-17",
         "n_buffers", 0},
    };

    CHECK_SCRIPTS(expected, _i);
}
END_TEST

/* ---- after a stage ------------------------------------------------------ */

static int pass_on(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                   void *emitter, struct uva_error *error)
{
    int code;

    (void)ctx;
    (void)error;
    code = emit(emitter, in);
    return code == EAGAIN ? 0 : code;
}

/* Adds a stage that extracts tasks itself. */
static void add_stage(struct uva_stream *stream, int which)
{
    if (which == 0)
        (void)uva_stream_parallel(stream, NULL);
    else if (which == 1)
        (void)uva_stream_ready(stream, NULL);
    else
        (void)uva_stream_transform(
            stream,
            &(struct uva_transform){.batch = pass_on, .on_loop = which == 3});
}

/* The task failed before the stream was cut off, in the order of the data. */
START_TEST(ER12_behind_a_stage_a_failed_task_is_told_before_the_missing_end)
{
    open_script(&h,
                _i % 2 == 0 ? "schema push broken push release"
                            : "schema broken release",
                _i / 8);
    hostile_make(&h);
    add_stage(h.stream, _i % 8 / 2);
    hostile_start(&h);
    hostile_finish(&h);
    ck_assert_str_eq(h.transcript,
                     _i % 2 == 0 ? "schema 0 failed EIO" : "schema failed EIO");
}
END_TEST

/* The producer reports the code that we use for a missing end. */
START_TEST(ER05_behind_a_stage_an_error_takes_its_text_along)
{
    open_script(&h, "schema broken error-aborted release", _i / 4);
    hostile_make(&h);
    add_stage(h.stream, _i % 4);
    atomic_store(&h.peer.held, true);
    hostile_start(&h);
    hostile_turn(&h); /* begins the stream, which then sees all callbacks */
    atomic_store(&h.peer.held, false);
    hostile_await(&h.peer.played, 1);
    hostile_finish(&h);
    ck_assert_str_eq(h.transcript, "schema failed ECONNABORTED");
    ck_assert_str_eq(h.message, "the cable is cut");
}
END_TEST

START_TEST(AT16_batches_of_another_kind_are_delivered)
{
    static const struct scripted expected[] = {
        {"schema alien*2 end release", "schema 0 1 complete", "AT-16", NULL, 0},
    };

    CHECK_SCRIPTS(expected, _i);
}
END_TEST

/* ---- cancel ------------------------------------------------------------- */

static void check_cancel(const char *script, enum hostile_cancel how,
                         const char *clauses, int way)
{
    struct hostile_fixture s;

    open_script(&s, script, way);
    s.peer.cancel = how;
    s.stop_at = 1;
    hostile_play(&s, false);
    hostile_turn_until(&s, &s.peer.played, 1);
    ck_assert_str_eq(s.transcript, "schema 0 1 cancelled");
    ck_assert_str_eq(s.message, "the consumer wants no more");
    ck_assert_str_eq(s.clauses, clauses);
    ck_assert_int_eq(atomic_load(&s.peer.cancels), 1);
    hostile_close(&s);
}

START_TEST(ER14_whatever_follows_a_cancel_is_a_cancel)
{
    check_cancel("schema task*3 cancelled release", HOSTILE_NOTES, "", _i);
    check_cancel("schema task*3 cancelled end release", HOSTILE_NOTES, "",
                 _i); /* */
    check_cancel("schema task*3 cancelled error release", HOSTILE_NOTES, "",
                 _i); /* */
    check_cancel("schema task*3 cancelled push*5 end release", HOSTILE_NOTES,
                 "", _i); /* AP-15 */
    check_cancel("schema task*3 cancelled error push end error release",
                 HOSTILE_NOTES, "AH-17 AH-17 AH-17", _i);
}
END_TEST

START_TEST(R08_cancel_may_end_the_stream_on_its_own_stack)
{
    check_cancel("schema task*2 cancelled release", HOSTILE_REPORTS, "", _i);
    check_cancel("schema task*2 cancelled", HOSTILE_RELEASES, "AP-13", _i);
}
END_TEST

START_TEST(Q14_a_producer_freed_after_cancel_is_not_called)
{
    check_cancel("schema task*3 cancelled free release", HOSTILE_NOTES, "", _i);
}
END_TEST

/* The stream stops, but the peer's cancel does not return. */
START_TEST(AH21_a_peer_that_never_releases_holds_nobody_up)
{
    struct uva_runtime_stats stats;

    open_script(&h, "schema task*3 cancelled gate push release", _i);
    h.stop_at = 0;
    hostile_play(&h, false);
    ck_assert_str_eq(h.transcript, "schema 0 cancelled");
    hostile_turn_until(&h, &h.peer.cancels, 1);
    hostile_producer_await_gate(&h.peer, 1);
    uva_stream_release(h.stream);
    h.stream = NULL;
    loop_settle(&h.loop);
    do /* the cancel is about to return */
        uva_runtime_get_stats(h.loop.runtime, &stats);
    while (stats.calls_stuck != (_i & ON_THREAD ? 0 : 1));
    ck_assert_int_eq(stats.streams_open, 0);
    ck_assert_int_eq(stats.streams_held, 0);
    loop_close_runtime(&h.loop, 0);
    ck_assert_int_eq(atomic_load(&h.peer.freed), 0);
    hostile_producer_open_gate(&h.peer); /* now it returns */
}
END_TEST

START_TEST(Q17_a_start_that_hangs_holds_nobody_up)
{
    hostile_open(&h, "gate");
    h.peer.start_code = EIO;
    hostile_begin(&h);
    hostile_turn(&h);
    hostile_producer_await_gate(&h.peer, 1);
    uva_stream_cancel(h.stream, ETIMEDOUT, "too late");
    hostile_finish(&h);
    ck_assert_str_eq(h.transcript, "cancelled");
    ck_assert_str_eq(h.message, "too late");
    loop_close_runtime(&h.loop, 0);
    hostile_producer_open_gate(&h.peer);
}
END_TEST

/* The interrupts before the one at `_i` have no effect. */
START_TEST(a_start_that_hangs_is_interrupted_until_it_returns)
{
    static const struct {
        const char *script;
        int code;
    } starts[] = {{"gate schema release", 0}, {"gate", EIO}};

    for (int i = 0; i < 2; i++) {
        hostile_open(&h, starts[i].script);
        h.peer.start_code = starts[i].code;
        h.peer.interrupt_at = _i;
        hostile_begin(&h);
        hostile_turn(&h);
        hostile_producer_await_gate(&h.peer, 1);
        ck_assert_int_eq(atomic_load(&h.peer.interrupts), 0);
        uva_stream_cancel(h.stream, ETIMEDOUT, "too late");
        hostile_finish(&h);
        ck_assert_str_eq(h.transcript, "cancelled");
        ck_assert_str_eq(h.message, "too late");
        hostile_turn_until(&h, &h.peer.freed, 1);
        ck_assert_int_ge(atomic_load(&h.peer.interrupts), _i);
        hostile_close(&h);
    }
}
END_TEST

/* Each turn decides anew whether start has returned by then. */
START_TEST(a_start_that_lasts_as_long_as_the_stream_may_be_interrupted)
{
    for (int i = 0; i < 50; i++) {
        open_script(&h, "schema task*3 cancelled release", _i);
        h.peer.interrupt_at = 1;
        h.stop_at = 0;
        hostile_play(&h, false);
        ck_assert_str_eq(h.transcript, "schema 0 cancelled");
        hostile_close(&h);
    }
}
END_TEST

START_TEST(a_stream_that_ends_by_itself_is_not_interrupted)
{
    open_script(&h, "schema task*3 end release", _i);
    h.peer.interrupt_at = 1;
    hostile_play(&h, false);
    ck_assert_str_eq(h.transcript, "schema 0 1 2 complete");
    loop_close_runtime(&h.loop, 0);
    ck_assert_int_eq(atomic_load(&h.peer.interrupts), 0);
}
END_TEST

START_TEST(a_close_leaves_the_peer_behind_as_an_orphan)
{
    hostile_open(&h, "schema task*2 gate push*3 schema error release");
    hostile_begin(&h);
    hostile_turn(&h);
    hostile_producer_await_gate(&h.peer, 1);
    loop_close_runtime(&h.loop, 0);
    ck_assert(h.done);
    hostile_producer_open_gate(&h.peer);
}
END_TEST

START_TEST(a_close_waits_for_peers_on_their_way_home)
{
    static const char *const scripts[] = {"schema task end release",
                                          "schema task cancelled release",
                                          "schema task error release"};

    for (int i = 0; i < 30; i++) {
        open_script(&h, scripts[i % 3], _i);
        h.stop_at = i % 3 == 1 ? 0 : -1;
        hostile_play(&h, false);
        loop_close_runtime(&h.loop, 0);
        ck_assert_int_eq(atomic_load(&h.peer.freed), 1);
        hostile_close(&h);
    }
}
END_TEST

START_TEST(G30_a_stream_cancelled_before_its_schema_refuses_it)
{
    hostile_open(&h, "gate schema release");
    hostile_begin(&h);
    hostile_turn(&h);
    hostile_producer_await_gate(&h.peer, 1);
    uva_stream_cancel(h.stream, 0, NULL);
    hostile_finish(&h);
    ck_assert_str_eq(h.transcript, "cancelled");
    hostile_producer_open_gate(&h.peer);
    hostile_turn_until(&h, &h.peer.played, 1);
    ck_assert_int_eq(atomic_load(&h.peer.schema_answer), ECANCELED);
    ck_assert_int_eq(atomic_load(&h.peer.cancels), 0);
}
END_TEST

static atomic_long at_log, past_log;

/* Keeps the peer's thread inside on_schema. */
static void log_hold(void *ctx, const struct uva_log_record *record)
{
    (void)ctx;
    if (record->clause == NULL || strcmp(record->clause, "AP-01") != 0)
        return;
    atomic_store(&at_log, 1);
    hostile_await(&past_log, 1);
}

START_TEST(G30_a_stream_cancelled_while_its_schema_comes_refuses_it)
{
    atomic_store(&at_log, 0);
    atomic_store(&past_log, 0);
    hostile_open(&h, "thread schema release");
    uva__loop_rt(h.loop.runtime)->log =
        (struct uva_log){log_hold, &h, UVA_LOG_WARN};
    h.peer.device_type = 0;
    hostile_begin(&h);
    hostile_turn_until(&h, &at_log, 1);
    uva_stream_cancel(h.stream, 0, NULL);
    hostile_finish(&h);
    ck_assert_str_eq(h.transcript, "cancelled");
    atomic_store(&past_log, 1);
    hostile_turn_until(&h, &h.peer.played, 1);
    ck_assert_int_eq(atomic_load(&h.peer.schema_answer), ECANCELED);
    ck_assert_int_eq(atomic_load(&h.peer.cancels), 0);
}
END_TEST

START_TEST(a_deaf_peer_holds_nobody_up)
{
    hostile_open(&h, "thread schema task*3 cancelled release");
    h.peer.cancel = HOSTILE_HANGS;
    h.stop_at = 0;
    hostile_play(&h, false);
    ck_assert_str_eq(h.transcript, "schema 0 cancelled");
    hostile_producer_open_gate(&h.peer);
}
END_TEST

/* ---- start -------------------------------------------------------------- */

static void check_start(const char *script, int code, const char *text,
                        const char *transcript, const char *message)
{
    struct hostile_fixture s;

    hostile_open(&s, script);
    s.peer.start_code = code;
    s.peer.start_text = text;
    hostile_play(&s, strstr(script, "cancelled") == NULL);
    ck_assert_msg(strcmp(s.transcript, transcript) == 0, "\"%s\": \"%s\"",
                  script, s.transcript);
    ck_assert_msg(strstr(s.message, message) != NULL, "\"%s\": \"%s\"", script,
                  s.message);
    hostile_close(&s);
}

START_TEST(G55_start_may_fail_with_or_without_a_release)
{
    check_start("", ENOENT, "no such flight", "failed ENOENT",
                "no such flight");
    check_start("", ENOENT, NULL, "failed ENOENT", strerror(ENOENT));
    check_start("", -ENOENT, "no such flight", "failed ENOENT",
                "no such flight");
    check_start("release", ENOENT, "no such flight", "failed ENOENT",
                "no such flight");
    check_start("error release", ENOENT, "no such flight", "failed EIO",
                "the disk is on fire");
    check_start("schema release", ENOENT, "no such flight",
                "schema failed ENOENT", "no such flight");
    check_start("schema task thread cancelled release", ENOENT,
                "no such flight", "schema 0 failed ENOENT", "no such flight");
    check_start("schema task end release", ENOENT, "no such flight",
                "schema 0 complete", "");
}
END_TEST

/* ---- demand ------------------------------------------------------------- */

START_TEST(Q16_a_request_stays_open_to_the_end)
{
    open_script(&h, "schema task*1000 end release", _i);
    h.peer.window = 3;
    hostile_play(&h, false);
    ck_assert_int_eq(h.batches, 1000);
    ck_assert_str_eq(h.clauses, "");
    ck_assert_int_ge(atomic_load(&h.peer.credits), 1000);
    ck_assert_int_le(atomic_load(&h.peer.credits), 1003);
}
END_TEST

START_TEST(a_window_of_one_is_enough)
{
    open_script(&h, "schema task*200 end release", _i);
    h.peer.window = 1;
    hostile_play(&h, false);
    ck_assert_int_eq(h.batches, 200);
    ck_assert_str_eq(h.clauses, "");
}
END_TEST

/* Only the consumer extracts on the loop thread, so with `on_loop` the window
 * is the only buffer. */
START_TEST(a_consumer_that_stops_stops_the_producer)
{
    hostile_open(&h, "schema task*1000 release");
    h.peer.window = 4;
    h.peer.on_loop = true;
    h.appetite = 2;
    hostile_begin(&h);
    while (atomic_load(&h.peer.offered) < 6)
        hostile_turn(&h);
    loop_settle(&h.loop);
    ck_assert_int_eq(h.batches, 2);
    ck_assert_int_le(atomic_load(&h.peer.credits), 2 + 1 + 4);
    uva_stream_cancel(h.stream, 0, NULL);
    hostile_finish(&h);
}
END_TEST

START_TEST(AP06_a_flood_ends_the_stream_behind_what_fitted)
{
    hostile_open(&h, "schema flood release");
    h.peer.window = 2;
    h.peer.on_loop = true;
    h.appetite = 1;
    hostile_begin(&h);
    while (atomic_load(&h.peer.cancels) == 0)
        hostile_turn(&h);
    hostile_turn_until(&h, &h.peer.played, 1);
    h.appetite = -1;
    uva_stream_resume(h.stream);
    hostile_finish(&h);
    ck_assert_int_ge(h.batches, 1026);
    ck_assert_ptr_nonnull(strstr(h.transcript, "failed EOVERFLOW"));
    ck_assert_ptr_nonnull(strstr(h.message, "(AP-06)"));
}
END_TEST

START_TEST(a_producer_that_ignores_requests_can_be_cancelled)
{
    open_script(&h, "schema task cancelled release", _i);
    h.peer.request = HOSTILE_IGNORES;
    hostile_begin(&h);
    while (strcmp(h.transcript, "schema") != 0)
        hostile_turn(&h);
    uva_stream_cancel(h.stream, 0, NULL);
    hostile_finish(&h);
    ck_assert_str_eq(h.transcript, "schema cancelled");
}
END_TEST

/* ---- request that calls back -------------------------------------------- */

START_TEST(AP04_tasks_on_the_stack_of_request_are_taken_and_counted)
{
    open_script(&h, "schema gate end release", _i);
    h.peer.request = HOSTILE_DELIVERS;
    h.peer.window = 4;
    h.appetite = 50;
    hostile_begin(&h);
    while (h.batches < 50)
        hostile_turn(&h);
    ck_assert_int_eq(memcmp(h.clauses, "TH-01 TH-01 TH-01 TH-01 AP-04", 29), 0);
    uva_stream_cancel(h.stream, 0, NULL);
    hostile_finish(&h);
    hostile_turn_until(&h, &h.peer.cancels, 1); /* no request after that */
    hostile_producer_await_calm(&h.peer);
    hostile_producer_open_gate(&h.peer);
}
END_TEST

START_TEST(R08_request_may_end_the_stream_on_its_own_stack)
{
    open_script(&h, "schema", _i); /* in the request inside on_schema */
    h.peer.request = HOSTILE_ENDS;
    hostile_play(&h, true);
    ck_assert_str_eq(h.transcript, "schema complete");
    ck_assert_str_eq(h.clauses, "TH-01 TH-01");
    hostile_close(&h);
    open_script(&h, "schema task gate", _i); /* in an extra thread's */
    h.peer.request = HOSTILE_ENDS;
    h.peer.request_at = 2;
    h.peer.window = 1;
    hostile_play(&h, false);
    hostile_turn_until(&h, &h.clause_count, 2);
    ck_assert_str_eq(h.transcript, "schema 0 complete");
    ck_assert_str_eq(h.clauses, "AP-04 AP-05");
    hostile_producer_open_gate(&h.peer);
}
END_TEST

START_TEST(TH01_overlapping_callbacks_are_survived_and_counted)
{
    open_script(&h, "schema task end release", _i);
    h.peer.request = HOSTILE_OVERLAPS;
    h.peer.request_at = 1;
    hostile_play(&h, true);
    ck_assert_str_eq(h.transcript, "schema 0 1 complete");
    ck_assert_str_eq(h.clauses, "TH-01");
}
END_TEST

/* ---- metadata, types and statistics ------------------------------------- */

static const char *about(void)
{
    static char block[64];
    const struct uva_pair pair[] = {{.key = "made", .value = "here"}, {0}};
    size_t size = sizeof(block);

    ck_assert_int_eq(uva_metadata_encode(pair, block, &size), 0);
    return block;
}

START_TEST(G03_the_producer_is_read_in_either_layout)
{
    open_script(&h, "schema task end release", 0);
    h.peer.printed = _i == 1;
    h.peer.about = about();
    h.peer.device_type = ARROW_DEVICE_CUDA_HOST;
    hostile_play(&h, false);
    ck_assert_str_eq(h.about, "made=here");
    ck_assert_int_eq(h.kind, ARROW_DEVICE_CUDA_HOST);
}
END_TEST

START_TEST(AP19_malformed_metadata_of_a_producer_is_left_out)
{
    const int32_t bad = -1;

    open_script(&h, "schema task end release", 0);
    h.peer.about = (const char *)&bad;
    hostile_play(&h, true);
    ck_assert_str_eq(h.transcript, "schema 0 complete");
    ck_assert_str_eq(h.about, "");
    ck_assert_str_eq(h.clauses, "MD-05");
}
END_TEST

START_TEST(AP01_a_producer_without_a_device_is_of_the_kind_it_was_said_to_be)
{
    open_script(&h, "schema end release", 0);
    h.peer.device_type = 0;
    hostile_play(&h, true);
    ck_assert_int_eq(h.kind, ARROW_DEVICE_CPU);
    ck_assert_str_eq(h.clauses, "AP-01");
}
END_TEST

START_TEST(AH13_metadata_of_tasks_and_errors_is_copied_where_it_is_sound)
{
    open_script(&h, "schema tagged end release", _i);
    hostile_play(&h, true);
    ck_assert_str_eq(h.tag, "k=v");
    hostile_close(&h);
    open_script(&h, "schema tagged smudged end release", _i);
    hostile_play(&h, true);
    ck_assert_str_eq(h.transcript, "schema 0 1 complete");
    ck_assert_str_eq(h.tag, "");
    ck_assert_str_eq(h.clauses, "MD-05");
    hostile_close(&h);
    open_script(&h, "schema error-tagged release", _i);
    hostile_play(&h, true);
    ck_assert_str_eq(h.tag, "k=v");
}
END_TEST

/* ---- building ----------------------------------------------------------- */

static void count(void *ctx)
{
    atomic_fetch_add((atomic_long *)ctx, 1);
}

static void check_refused(struct uva_stream *stream, int code, const char *text)
{
    struct uva_error error = {0};

    ck_assert_int_eq(uva_stream_status(stream, &error), code);
    ck_assert_msg(strstr(error.message, text) != NULL, "%s", error.message);
    uva_stream_release(stream);
}

START_TEST(sources_that_make_no_sense_are_refused_and_freed)
{
    atomic_long freed = 0;
    struct uva_async_source source = {
        .start = hostile_never, .free_ctx = count, .ctx = &freed};
    struct loop_fixture loop;

    loop_open(&loop);
    check_refused(uva_stream_from_async(loop.runtime, NULL), EINVAL, "start");
    check_refused(uva_stream_from_async(NULL, &source), EINVAL, "runtime");
    ck_assert_int_eq(freed, 1);
    source.window.batches = -1;
    check_refused(uva_stream_from_async(loop.runtime, &source), EINVAL,
                  "window");
    ck_assert_int_eq(freed, 2);
    source.window.batches = 0;
    source.reserved[2] = &source;
    check_refused(uva_stream_from_async(loop.runtime, &source), EINVAL,
                  "reserved");
    ck_assert_int_eq(freed, 3);
    source.reserved[2] = NULL;
    source.start = NULL;
    check_refused(uva_stream_from_async(loop.runtime, &source), EINVAL,
                  "start");
    ck_assert_int_eq(freed, 4);
    loop_close(&loop);
}
END_TEST

START_TEST(a_stream_never_started_frees_its_source)
{
    atomic_long freed = 0;
    const struct uva_async_source source = {.start = hostile_never,
                                            .free_ctx = count,
                                            .ctx = &freed,
                                            .device_type = ARROW_DEVICE_CPU};
    struct uva_stream *stream;
    struct loop_fixture loop;

    loop_open(&loop);
    stream = uva_stream_from_async(loop.runtime, &source);
    ck_assert_int_eq(uva_stream_status(stream, NULL), 0);
    uva_stream_release(stream);
    hostile_await(&freed, 1);
    stream = uva_stream_from_async(loop.runtime, &source);
    loop_close_runtime(&loop, 0);
    uva_stream_release(stream); /* after the runtime has closed */
    ck_assert_int_eq(freed, 2);
    loop_close(&loop);
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

static int pass(void *ctx, struct uva_batch *in, struct ArrowDeviceArray *out,
                struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    return 0;
}

/* Plays a stream again and again, until no allocation fails any more. */
static void sweep(int way, const struct uva_map *map)
{
    bool whole = false;
    long n;

    for (n = 1; !whole; n++) {
        open_script(&h, "schema tagged task*20 error-tagged release", way);
        h.peer.about = about();
        loop_fail(&h.loop, n);
        hostile_make(&h);
        if (map != NULL)
            (void)uva_stream_map(h.stream, map);
        hostile_start(&h);
        hostile_finish(&h);
        whole = !faulty_allocator_has_failed(&h.loop.memory);
        hostile_close(&h);
    }
    ck_assert_str_eq(h.about, "made=here");
    ck_assert_int_gt(n, 10);
}

START_TEST(no_failing_allocation_is_forgotten)
{
    sweep(_i, NULL);
}
END_TEST

START_TEST(no_failing_allocation_is_forgotten_behind_a_map)
{
    sweep(_i, &(struct uva_map){.batch = pass, .on_loop = true});
}
END_TEST

static void add_from_either_thread(TCase *ways)
{
    suite_add_loops(
        ways, 0, WAYS, AH01_lawful_streams_are_read_whole,
        AH18_errors_come_behind_the_batches_before_them,
        ER13_release_alone_is_an_error,
        AH05_schemas_that_cannot_be_used_are_refused,
        AH05_a_second_schema_is_refused_and_the_stream_goes_on,
        AH11_what_comes_behind_the_end_is_discarded,
        AH24_a_copy_of_the_handler_is_as_good,
        AP06_unasked_batches_are_taken_and_counted,
        AT01_lost_batches_end_the_stream_and_cancel_it,
        AT16_batches_of_another_kind_are_delivered,
        ER14_whatever_follows_a_cancel_is_a_cancel,
        R08_cancel_may_end_the_stream_on_its_own_stack,
        Q14_a_producer_freed_after_cancel_is_not_called,
        a_close_waits_for_peers_on_their_way_home,
        a_start_that_lasts_as_long_as_the_stream_may_be_interrupted,
        a_stream_that_ends_by_itself_is_not_interrupted,
        AH21_a_peer_that_never_releases_holds_nobody_up,
        Q16_a_request_stays_open_to_the_end, a_window_of_one_is_enough,
        a_producer_that_ignores_requests_can_be_cancelled,
        AP04_tasks_on_the_stack_of_request_are_taken_and_counted,
        R08_request_may_end_the_stream_on_its_own_stack,
        TH01_overlapping_callbacks_are_survived_and_counted,
        AH13_metadata_of_tasks_and_errors_is_copied_where_it_is_sound,
        no_failing_allocation_is_forgotten,
        no_failing_allocation_is_forgotten_behind_a_map, NULL);
}

static void add_once(TCase *once)
{
    suite_add(once, AH22_what_comes_behind_release_is_discarded,
              Q17_a_start_that_hangs_holds_nobody_up,
              a_close_leaves_the_peer_behind_as_an_orphan,
              G30_a_stream_cancelled_before_its_schema_refuses_it,
              G30_a_stream_cancelled_while_its_schema_comes_refuses_it,
              a_deaf_peer_holds_nobody_up,
              G55_start_may_fail_with_or_without_a_release,
              a_consumer_that_stops_stops_the_producer,
              AP06_a_flood_ends_the_stream_behind_what_fitted,
              AP19_malformed_metadata_of_a_producer_is_left_out,
              AP01_a_producer_without_a_device_is_of_the_kind_it_was_said_to_be,
              sources_that_make_no_sense_are_refused_and_freed,
              a_stream_never_started_frees_its_source, NULL);
    tcase_add_loop_test(
        once, a_start_that_hangs_is_interrupted_until_it_returns, 1, 3);
    tcase_add_loop_test(
        once, ER12_behind_a_stage_a_failed_task_is_told_before_the_missing_end,
        0, WAYS * 8);
    tcase_add_loop_test(once, ER05_behind_a_stage_an_error_takes_its_text_along,
                        0, 2 * 4);
    tcase_add_loop_test(once, G03_the_producer_is_read_in_either_layout, 0, 2);
}

int main(void)
{
    TCase *ways = tcase_create("ways"), *once = tcase_create("once");

    add_from_either_thread(ways);
    add_once(once);
    return suite_main("from_async", NULL, tear_down, ways, once, NULL);
}
