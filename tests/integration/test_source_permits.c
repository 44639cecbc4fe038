/* SPDX-License-Identifier: Apache-2.0 */
/* Permits of all kinds of sources that may wait for one: at most so many are
 * open at one time, and the rest wait in order. Waits that end too late, and
 * permits within permits, are in test_permits*.c. */
#include <check.h>
#include <errno.h>

#include "support/check_suite.h"
#include "support/fixture.h"

enum { SOURCES = 3, BATCHES = 5 };

static struct fixture f, sources[SOURCES];
static struct uva_permits *permits;
static int64_t appetite = -1; /* of the first consumer; negative: takes all */

/* Makes the sources, of that kind, with `count` permits. */
static void make(int kind, int32_t count)
{
    fixture_open(&f, 0);
    ck_assert_int_eq(uva_permits_new(f.loop.runtime, count, 0, &permits, NULL),
                     0);
    for (int i = 0; i < SOURCES; i++) {
        fixture_open_beside(&sources[i], BATCHES, &f);
        sources[i].fake.gate_at = 0;
        sources[i].options.permits = permits;
        if (i == 0)
            sources[i].got.appetite = appetite;
        sources[i].stream = fixture_sources[kind].make(&sources[i]);
        fixture_start(&sources[i]);
    }
    uva_permits_release(permits); /* the sources keep theirs */
    permits = NULL;
}

static void tear_down(void)
{
    uva_permits_release(permits);
    permits = NULL;
    appetite = -1;
    for (int i = 0; i < SOURCES; i++)
        fixture_close(&sources[i]);
    fixture_close(&f);
}

static bool is_at_gate(void *ctx)
{
    struct fixture *source = ctx;

    loop_nudge(&f.loop);
    return fake_source_is_waiting(&source->fake);
}

static int await_end(struct fixture *source)
{
    recording_await_done(&source->got, &f.loop);
    return source->got.outcome.error.code;
}

static enum uva_waiting waits_for(struct fixture *source)
{
    struct uva_stage_stats stage;
    size_t count = 1;

    ck_assert_int_eq(uva_stream_get_stats(source->stream, &stage, &count), 0);
    return stage.waiting;
}

/* Those on the loop thread need none. */
static const int KINDS[] = {SOURCE_BLOCKING, SOURCE_TASKS, SOURCE_HOOK};

START_TEST(sources_beyond_the_permits_are_opened_in_order)
{
    make(KINDS[_i], 1);
    for (int i = 0; i < SOURCES; i++) {
        loop_until(&f.loop, is_at_gate, &sources[i]);
        for (int k = i + 1; k < SOURCES; k++)
            ck_assert_int_eq(waits_for(&sources[k]), UVA_WAITING_PERMIT);
        fake_source_open_gate(&sources[i].fake);
        ck_assert_int_eq(await_end(&sources[i]), 0);
        ck_assert_int_eq(sources[i].got.taken, BATCHES);
    }
}
END_TEST

START_TEST(as_many_are_open_as_there_are_permits)
{
    make(KINDS[_i], 2);
    loop_until(&f.loop, is_at_gate, &sources[0]);
    loop_until(&f.loop, is_at_gate, &sources[1]);
    ck_assert_int_eq(waits_for(&sources[2]), UVA_WAITING_PERMIT);
    for (int i = 0; i < SOURCES; i++)
        fake_source_open_gate(&sources[i].fake);
    for (int i = 0; i < SOURCES; i++)
        ck_assert_int_eq(await_end(&sources[i]), 0);
}
END_TEST

START_TEST(a_source_that_waits_for_a_permit_can_be_cancelled)
{
    make(KINDS[_i], 1);
    loop_until(&f.loop, is_at_gate, &sources[0]);
    uva_stream_cancel(sources[1].stream, 0, NULL);
    ck_assert_int_eq(await_end(&sources[1]), ECANCELED);
    ck_assert_int_eq(atomic_load(&sources[1].fake.given), 0);
    uva_stream_cancel(sources[0].stream, 0, NULL); /* and interrupted */
    ck_assert_int_eq(await_end(&sources[0]), ECANCELED);
    loop_until(&f.loop, is_at_gate, &sources[2]);
    fake_source_open_gate(&sources[2].fake);
    ck_assert_int_eq(await_end(&sources[2]), 0);
}
END_TEST

START_TEST(permits_of_another_runtime_are_refused)
{
    fixture_open(&f, 0);
    fixture_open(&sources[0], 1);
    ck_assert_int_eq(uva_permits_new(f.loop.runtime, 1, 0, &permits, NULL), 0);
    sources[0].options.permits = permits;
    fixture_refused(&sources[0], fixture_sources[KINDS[_i]].make(&sources[0]),
                    EINVAL, "`permits` are those of another runtime");
}
END_TEST

/* Once the last item was found, another source may begin: extraction may be
 * long after that. */
START_TEST(items_that_wait_for_their_extraction_hold_no_permit)
{
    struct fixture *late = &sources[0], *next = &sources[1];

    appetite = 1;
    make(SOURCE_TASKS, 1);
    loop_until(&f.loop, is_at_gate, late);
    fake_source_open_gate(&late->fake);
    loop_until(&f.loop, is_at_gate, next);
    ck_assert_int_lt(late->got.taken, BATCHES);
    recording_feed(&late->got, BATCHES);
    ck_assert_int_eq(await_end(late), 0);
    for (int i = 1; i < SOURCES; i++) {
        fake_source_open_gate(&sources[i].fake);
        ck_assert_int_eq(await_end(&sources[i]), 0);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("source permits");

    suite_add_loops(tc, 0, 3, sources_beyond_the_permits_are_opened_in_order,
                    as_many_are_open_as_there_are_permits,
                    a_source_that_waits_for_a_permit_can_be_cancelled,
                    permits_of_another_runtime_are_refused, NULL);
    suite_add(tc, items_that_wait_for_their_extraction_hold_no_permit, NULL);
    return suite_main("source permits", NULL, tear_down, tc, NULL);
}
