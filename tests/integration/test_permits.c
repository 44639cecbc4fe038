/* SPDX-License-Identifier: Apache-2.0 */
/* Permits that blocking sources share, and the metadata that such a source
 * gives. Pools of connections, in unit/adbc, use both. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/forked_child.h"
#include "support/native.h"

static struct fixture f, more[3];
static struct uva_permits *permits;
static const char *about, *why; /* the hook's texts */
static char seen[200];          /* key in the consumer's metadata */
static bool stuck;              /* a cancel does not end a call */

static void set_up(void)
{
    fixture_open(&f, 0);
    about = why = NULL;
    seen[0] = '\0';
    stuck = false;
}

static void tear_down(void)
{
    uva_permits_release(permits);
    permits = NULL;
    for (int i = 0; i < 3; i++)
        fixture_close(&more[i]);
    fixture_close(&f);
}

static void make(int64_t wait_ms)
{
    ck_assert_int_eq(
        uva_permits_new(f.loop.runtime, 1, wait_ms, &permits, NULL), 0);
    for (int i = 0; i < 3; i++) {
        fixture_open_beside(&more[i], 5, &f);
        more[i].options.permits = permits;
        if (stuck)
            more[i].options.interrupt = NULL; /* which would open the gate */
        more[i].stream = fixture_hook(&more[i]);
    }
}

static bool is_at_gate(void *ctx)
{
    struct fixture *at = ctx;

    loop_nudge(&f.loop);
    return fake_source_is_waiting(&at->fake);
}

static bool is_done(void *ctx)
{
    return ((struct fixture *)ctx)->got.done > 0;
}

static int await_end(struct fixture *at)
{
    loop_until(&f.loop, is_done, at);
    return at->got.outcome.error.code;
}

START_TEST(a_cancelled_source_keeps_its_permit)
{
    stuck = true;
    make(0);
    more[0].fake.gate_at = 0;
    for (int i = 0; i < 3; i++)
        fixture_start(&more[i]);
    loop_until(&f.loop, is_at_gate, &more[0]);
    uva_stream_cancel(more[1].stream, 0, NULL); /* it waits */
    ck_assert_int_eq(await_end(&more[1]), ECANCELED);
    uva_stream_cancel(more[0].stream, 0, NULL); /* it is stuck */
    ck_assert_int_eq(await_end(&more[0]), ECANCELED);
    loop_settle(&f.loop);
    ck_assert_int_eq(atomic_load(&more[2].fake.opened), 0);
    fake_source_open_gate(&more[0].fake);
    ck_assert_int_eq(await_end(&more[2]), 0);
}
END_TEST

START_TEST(a_permit_may_come_too_late)
{
    make(1);
    more[0].fake.gate_at = 0;
    for (int i = 0; i < 3; i++)
        fixture_start(&more[i]);
    for (int i = 1; i < 3; i++) {
        ck_assert_int_eq(await_end(&more[i]), ETIMEDOUT);
        ck_assert_int_eq(atomic_load(&more[i].fake.opened), 0);
        text_contains(more[i].got.outcome.error.message, "within 1 ms");
    }
    fake_source_open_gate(&more[0].fake);
    ck_assert_int_eq(await_end(&more[0]), 0);
}
END_TEST

/* ---- another number ------------------------------------------------------ */

static bool opened(int i)
{
    return atomic_load(&more[i].fake.opened) > 0;
}

static void *resize_to_two(void *ctx)
{
    (void)ctx;
    ck_assert_int_eq(uva_permits_resize(permits, 2), 0);
    return NULL;
}

START_TEST(more_permits_let_begin_what_waits)
{
    pthread_t thread;

    make(0);
    for (int i = 0; i < 3; i++) {
        more[i].fake.gate_at = 0;
        fixture_start(&more[i]);
    }
    loop_until(&f.loop, is_at_gate, &more[0]);
    ck_assert_int_eq(pthread_create(&thread, NULL, resize_to_two, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    loop_until(&f.loop, is_at_gate, &more[1]);
    loop_settle(&f.loop);
    ck_assert(!opened(2));
    for (int i = 0; i < 3; i++) {
        fake_source_open_gate(&more[i].fake);
        ck_assert_int_eq(await_end(&more[i]), 0);
    }
}
END_TEST

START_TEST(without_permits_all_wait_but_for_what_has_one)
{
    make(0);
    more[0].fake.gate_at = 0;
    fixture_start(&more[0]);
    loop_until(&f.loop, is_at_gate, &more[0]);
    ck_assert_int_eq(uva_permits_resize(permits, 0), 0);
    fixture_start(&more[1]);
    fake_source_open_gate(&more[0].fake);
    ck_assert_int_eq(await_end(&more[0]), 0);
    loop_settle(&f.loop);
    ck_assert(!opened(1));
    ck_assert_int_eq(uva_permits_resize(permits, 1), 0);
    ck_assert_int_eq(await_end(&more[1]), 0);
}
END_TEST

START_TEST(permits_outlive_their_runtime)
{
    make(0);
    loop_close_runtime(&f.loop, 0);
    ck_assert_int_eq(uva_permits_resize(permits, 2), 0);
}
END_TEST

/* ---- a late free_ctx ----------------------------------------------------- */

static uv_sem_t may_free;
static void (*frees)(void *ctx); /* the fixture's */

static void free_when_told(void *ctx)
{
    uv_sem_wait(&may_free);
    frees(ctx);
}

/* `_i`: the source ends with its batches, or with a failure. */
START_TEST(a_stream_ends_before_a_late_free_ctx_and_its_permit_after_it)
{
    ck_assert_int_eq(uv_sem_init(&may_free, 0), 0);
    make(0);
    uva_stream_release(more[0].stream);
    frees = more[0].options.free_ctx;
    more[0].options.free_ctx = free_when_told;
    more[0].options.frees_late = true;
    more[0].fake.fail_at = _i == 0 ? -1 : 2;
    more[0].stream = fixture_hook(&more[0]);
    for (int i = 0; i < 2; i++)
        fixture_start(&more[i]);
    ck_assert_int_eq(await_end(&more[0]), _i == 0 ? 0 : EIO);
    ck_assert_int_eq(more[0].got.batches, _i == 0 ? 5 : 2);
    ck_assert_int_eq(atomic_load(&more[0].fake.released), 1);
    fixture_release(&more[0]);
    loop_settle(&f.loop);
    ck_assert(!opened(1));
    uv_sem_post(&may_free);
    ck_assert_int_eq(await_end(&more[1]), 0);
    uv_sem_destroy(&may_free);
}
END_TEST

/* ---- needed sources ------------------------------------------------------ */

static long needs[3]; /* of `more`, as long as it was not opened */

static void on_needed(void *ctx)
{
    for (int i = 0; i < 3; i++)
        needs[i] += &more[i].fake == ctx && !opened(i);
}

static void note_needs(void)
{
    for (int i = 0; i < 3; i++) {
        uva_stream_release(more[i].stream);
        more[i].options.needed = on_needed;
        more[i].stream = fixture_hook(&more[i]);
        needs[i] = 0;
    }
}

START_TEST(a_source_is_told_that_it_is_needed)
{
    make(0);
    note_needs();
    more[0].fake.gate_at = 0;
    ck_assert_int_eq(needs[0], 0);
    for (int i = 0; i < 2; i++)
        fixture_start(&more[i]);
    loop_until(&f.loop, is_at_gate, &more[0]);
    ck_assert_int_eq(needs[0], 1);
    ck_assert_int_eq(needs[1], 1); /* it waits for its permit */
    fake_source_open_gate(&more[0].fake);
    ck_assert_int_eq(await_end(&more[1]), 0);
    ck_assert_int_eq(needs[1], 1);
}
END_TEST

/* Starts a source with another one opened ahead, and awaits that the first
 * stays in a call. Values belong to no single source. */
static void start_ahead(int32_t count)
{
    struct uva_stream *later;

    make(0);
    ck_assert_int_eq(uva_permits_resize(permits, count), 0);
    more[0].fake.column = more[1].fake.column = "k";
    more[0].fake.gate_at = 4;
    note_needs();
    later = more[1].stream;
    more[1].stream = NULL;
    ck_assert_int_eq(uva_stream_concat(more[0].stream, &later, 1,
                                       &(struct uva_merge){.open_at_once = 2}),
                     0);
    fixture_start(&more[0]);
    loop_until(&f.loop, is_at_gate, &more[0]);
    loop_settle(&f.loop);
}

START_TEST(a_source_that_waits_ahead_is_needed_in_its_time)
{
    start_ahead(1);
    ck_assert_int_eq(needs[0], 1);
    ck_assert_int_eq(needs[1], 0);
    fake_source_open_gate(&more[0].fake);
    ck_assert_int_eq(await_end(&more[0]), 0);
    ck_assert_int_eq(needs[1], 1);
}
END_TEST

/* A call while it is open could come when its ctx was freed. */
START_TEST(a_source_that_was_opened_ahead_is_not_told)
{
    start_ahead(2);
    ck_assert(opened(1));
    fake_source_open_gate(&more[0].fake);
    ck_assert_int_eq(await_end(&more[0]), 0);
    ck_assert_int_eq(needs[1], 0);
}
END_TEST

START_TEST(what_is_invalid_is_refused)
{
    struct uva_permits *none = NULL;
    struct fixture other = {0};

    ck_assert_int_eq(uva_permits_new(NULL, 1, 0, &none, NULL), EINVAL);
    ck_assert_int_eq(uva_permits_new(f.loop.runtime, 1, 0, NULL, NULL), EINVAL);
    ck_assert_int_eq(uva_permits_new(f.loop.runtime, 0, 0, &none, NULL),
                     EINVAL);
    ck_assert_int_eq(uva_permits_new(f.loop.runtime, 1, -1, &none, NULL),
                     EINVAL);
    loop_fail(&f.loop, 1);
    ck_assert_int_eq(uva_permits_new(f.loop.runtime, 1, 0, &none, NULL),
                     ENOMEM);
    loop_fail(&f.loop, 0);
    ck_assert_ptr_null(none);
    make(INT64_MAX);
    ck_assert_int_eq(uva_permits_resize(NULL, 1), EINVAL);
    ck_assert_int_eq(uva_permits_resize(permits, -1), EINVAL);
    uva_permits_explain(NULL, "nothing"); /* of no permits */
    fixture_open(&other, 1);
    other.options.permits = permits;
    fixture_refused(&other, fixture_hook(&other), EINVAL, "another runtime");
    fixture_close(&other);
}
END_TEST

static int make_permits(void *ctx)
{
    struct uva_permits *made;

    (void)ctx;
    return uva_permits_new(f.loop.runtime, 1, 0, &made, NULL) != EPERM;
}

START_TEST(a_forked_child_cannot_make_permits)
{
    forked_child_run(make_permits, NULL);
}
END_TEST

/* ---- metadata ------------------------------------------------------------ */

static const char PAIR[] = NATIVE_PAIR;
static const char ODD[] = NATIVE("\1") "\377\377\377\377k";

static const char *give(void *ctx, int code)
{
    (void)ctx;
    return code == 0 ? about : why;
}

static void on_done(struct recording_consumer *c,
                    const struct uva_outcome *outcome)
{
    const struct uva_stream_info *info = uva_stream_get_info(outcome->stream);
    struct uva_pair pair;

    (void)c;
    if (info != NULL && info->metadata != NULL &&
        uva_metadata_get(info->metadata, "k", &pair) == 0)
        (void)strcat(seen, "info ");
    if (outcome->metadata != NULL &&
        uva_metadata_get(outcome->metadata, "k", &pair) == 0)
        (void)strcat(seen, "outcome ");
}

static int play(int fail_at)
{
    make(0);
    more[0].options.metadata = give;
    uva_stream_release(more[0].stream);
    more[0].stream = NULL;
    fixture_close(&more[0]);
    fixture_open_beside(&more[0], 5, &f);
    more[0].options.metadata = give;
    more[0].fake.fail_at = fail_at;
    more[0].stream = fixture_hook(&more[0]);
    more[0].got.on_done = on_done;
    fixture_start(&more[0]);
    return await_end(&more[0]);
}

START_TEST(metadata_reaches_the_consumer)
{
    about = PAIR;
    ck_assert_int_eq(play(-1), 0);
    ck_assert_str_eq(seen, "info ");
}
END_TEST

START_TEST(a_failure_has_its_own)
{
    why = PAIR;
    ck_assert_int_ne(play(2), 0);
    ck_assert_str_eq(seen, "outcome ");
}
END_TEST

START_TEST(malformed_metadata_is_left_out)
{
    about = ODD;
    ck_assert_int_eq(play(-1), 0);
    ck_assert_str_eq(seen, "");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("permits");

    tcase_add_test(tc, a_cancelled_source_keeps_its_permit);
    tcase_add_test(tc, a_permit_may_come_too_late);
    suite_add(tc, more_permits_let_begin_what_waits,
              without_permits_all_wait_but_for_what_has_one,
              permits_outlive_their_runtime, a_source_is_told_that_it_is_needed,
              a_source_that_waits_ahead_is_needed_in_its_time,
              a_source_that_was_opened_ahead_is_not_told, NULL);
    suite_add_loops(
        tc, 0, 2, a_stream_ends_before_a_late_free_ctx_and_its_permit_after_it,
        NULL);
    tcase_add_test(tc, what_is_invalid_is_refused);
    tcase_add_test(tc, a_forked_child_cannot_make_permits);
    tcase_add_test(tc, metadata_reaches_the_consumer);
    tcase_add_test(tc, a_failure_has_its_own);
    tcase_add_test(tc, malformed_metadata_is_left_out);
    return suite_main("permits", set_up, tear_down, tc, NULL);
}
