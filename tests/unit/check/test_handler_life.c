/* SPDX-License-Identifier: Apache-2.0 */
/* A check without `keep` frees itself after the last of release, calls and
 * tasks; in quarantine, late calls still find it. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "check/handler_check.h"
#include "support/check_fixture.h"
#include "support/check_suite.h"
#include "support/faulty_allocator.h"

static struct check_fixture play;

/* A scene with a check that frees itself; the schema is released at once, as it
 * holds a reference. */
static int drop_schema(struct check_fixture *s, struct ArrowSchema *schema)
{
    uva_schema_release(schema);
    s->peer = s->inner.producer;
    s->peer->request(s->peer, 9);
    return 0;
}

static void setup(void)
{
    check_fixture_init(&play, NULL);
    (void)uva_check_withdraw(play.out);
    atomic_store(&play.freed, 0);
    play.options.keep = false;
    ck_assert_int_eq(
        uva_check_handler(&play.inner, &play.options, &play.out, NULL), 0);
    play.out->producer = &play.producer;
    play.on_schema = drop_schema;
}

static void teardown(void)
{
    ck_assert_int_eq(atomic_load(&play.freed), 1);
    ck_assert_int_eq(check_fixture_live(), 0);
    play.out = NULL;
    check_fixture_fini(&play);
}

static void breaches(const char *expected)
{
    ck_assert_str_eq(check_fixture_breaches(&play), expected);
}

static int keep_task(struct check_fixture *s, struct ArrowAsyncTask *task)
{
    s->kept[0] = *task;
    return 0;
}

static void play_stream(void)
{
    ck_assert_int_eq(check_fixture_schema(&play), 0);
    ck_assert_int_eq(check_fixture_task(&play), 0);
    ck_assert_int_eq(check_fixture_end(&play), 0);
    check_fixture_release(&play);
}

START_TEST(release_frees_it)
{
    play_stream();
    ck_assert_int_eq(atomic_load(&play.released), 1);
    breaches("");
}
END_TEST

START_TEST(a_task_that_is_held_keeps_it)
{
    struct ArrowDeviceArray array;

    play.on_task = keep_task;
    play_stream();
    ck_assert_int_eq(atomic_load(&play.freed), 0);
    ck_assert_int_eq(uva_task_extract(&play.kept[0], &array), 0);
    ck_assert_int_eq(atomic_load(&play.freed), 0);
    uva_array_release(&array);
    breaches("");
}
END_TEST

START_TEST(late_calls_are_told_while_a_task_is_held)
{
    play.on_task = keep_task;
    play_stream();
    play.peer->request(play.peer, 1);
    play.peer->cancel(play.peer);
    check_fixture_release(&play);
    ck_assert_int_eq(atomic_load(&play.released), 1);
    uva_task_discard(&play.kept[0]);
    breaches("AP-24 consumer error\nAH-21 producer fatal");
}
END_TEST

static void refuse_array(struct ArrowArray *array)
{
    array->release = NULL;
    abort();
}

START_TEST(a_failed_extraction_leaves_a_released_array)
{
    struct ArrowDeviceArray array = {.array.release = refuse_array};

    play.on_task = keep_task;
    play.tasks[0].code = EIO;
    play_stream();
    ck_assert_int_eq(play.kept[0].extract_data(&play.kept[0], &array), EIO);
    ck_assert(array.array.release == NULL);
    breaches("");
}
END_TEST

static void request_releases(struct check_fixture *s, int64_t n)
{
    (void)n;
    s->on_request = NULL;
    check_fixture_release(s);
}

START_TEST(a_release_inside_request_frees_it_when_that_returns)
{
    ck_assert_int_eq(check_fixture_schema(&play), 0);
    play.on_request = request_releases;
    play.peer->cancel(play.peer);
    play.peer->request(play.peer, 1);
    breaches("");
}
END_TEST

static int release_in_schema(struct check_fixture *s,
                             struct ArrowSchema *schema)
{
    check_fixture_release(s);
    ck_assert_int_eq(atomic_load(&s->released), 0);
    uva_schema_release(schema);
    return 0;
}

START_TEST(a_release_inside_a_callback_frees_it_when_that_returns)
{
    play.on_schema = release_in_schema;
    ck_assert_int_eq(check_fixture_schema(&play), 0);
    ck_assert_int_eq(atomic_load(&play.released), 1);
    breaches("TH-08 producer error\nAH-12 producer error");
}
END_TEST

START_TEST(what_is_withdrawn_is_as_it_was)
{
    ck_assert_ptr_eq(uva_check_withdraw(play.out), &play.inner);
    ck_assert_ptr_null(play.inner.producer);
    ck_assert_int_eq(atomic_load(&play.released), 0);
    breaches("");
}
END_TEST

/* ---- in quarantine ------------------------------------------------------ */

static struct faulty_allocator memory;
static struct uva__quarantine *quarantine;

static void quarantine_setup(void)
{
    check_fixture_init(&play, NULL);
    (void)uva_check_withdraw(play.out);
    atomic_store(&play.freed, 0);
    play.options.keep = false;
    faulty_allocator_init(&memory, 0);
    play.options.allocator = faulty_allocator_table(&memory);
    ck_assert_int_eq(
        uva__handler_check_quarantine(&play.options.allocator, 2, &quarantine),
        0);
    play.on_schema = drop_schema;
}

static void quarantine_end(void)
{
    uva__quarantine_close(quarantine);
    uva__quarantine_release(quarantine);
}

static void quarantine_teardown(void)
{
    ck_assert_int_eq((int)faulty_allocator_live(&memory), 0);
    ck_assert_int_eq(check_fixture_live(), 0);
    play.out = NULL;
    check_fixture_fini(&play);
}

static void quarantine_check(void)
{
    ck_assert_int_eq(uva__handler_check(quarantine, &play.inner, &play.options,
                                        &play.out, NULL),
                     0);
    play.out->producer = &play.producer;
}

static void quarantine_stream(void)
{
    const struct ArrowAsyncDeviceStreamHandler before = play.inner;

    quarantine_check();
    play_stream();
    play.inner = before;
}

START_TEST(late_calls_find_a_check_in_quarantine)
{
    struct ArrowDeviceArray array;

    play.on_task = keep_task;
    quarantine_stream();
    ck_assert_int_eq(uva_task_extract(&play.kept[0], &array), 0);
    uva_array_release(&array);
    ck_assert_int_eq(uva_task_extract(&play.kept[0], &array), EINVAL);
    play.peer->request(play.peer, 1);
    check_fixture_release(&play);
    ck_assert_int_eq(check_fixture_end(&play), 0);
    ck_assert_int_eq(atomic_load(&play.freed), 0);
    breaches(
        "AT-03 consumer fatal\nAP-24 consumer error\nAH-21 producer fatal\n"
        "AH-22 producer fatal");
    quarantine_end();
    ck_assert_int_eq(atomic_load(&play.freed), 1);
}
END_TEST

START_TEST(the_oldest_makes_room)
{
    quarantine_stream();
    quarantine_stream();
    ck_assert_int_eq(atomic_load(&play.freed), 0);
    quarantine_stream();
    ck_assert_int_eq(atomic_load(&play.freed), 1);
    quarantine_end();
    ck_assert_int_eq(atomic_load(&play.freed), 3);
}
END_TEST

START_TEST(after_the_close_nothing_is_kept)
{
    quarantine_check();
    quarantine_end();
    play_stream();
    ck_assert_int_eq(atomic_load(&play.freed), 1);
}
END_TEST

/* Closes the quarantine from the report of a late call, which is inside its
 * check. */
static void close_in_report(void *ctx, const struct uva_breach *breach)
{
    (void)ctx;
    ck_assert_str_eq(breach->clause, "AP-24");
    quarantine_end();
    ck_assert_int_eq(atomic_load(&play.freed), 0);
}

START_TEST(a_late_call_keeps_what_it_is_in)
{
    play.options.report = close_in_report;
    quarantine_stream();
    play.peer->request(play.peer, 1);
    ck_assert_int_eq(atomic_load(&play.freed), 1);
}
END_TEST

START_TEST(a_quarantine_needs_memory_and_a_whole_handler)
{
    struct uva__quarantine *none;

    play.inner.release = NULL;
    ck_assert_int_eq(uva__handler_check(quarantine, &play.inner, &play.options,
                                        &play.out, NULL),
                     EINVAL);
    breaches("AH-02 consumer error");
    quarantine_end();
    faulty_allocator_init(&memory, 1);
    ck_assert_int_eq(
        uva__handler_check_quarantine(&play.options.allocator, 2, &none),
        ENOMEM);
}
END_TEST

int main(void)
{
    TCase *all = tcase_create("all"), *resting = tcase_create("quarantine");

    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, release_frees_it);
    tcase_add_test(all, a_task_that_is_held_keeps_it);
    tcase_add_test(all, late_calls_are_told_while_a_task_is_held);
    tcase_add_test(all, a_failed_extraction_leaves_a_released_array);
    tcase_add_test(all, a_release_inside_request_frees_it_when_that_returns);
    tcase_add_test(all, a_release_inside_a_callback_frees_it_when_that_returns);
    tcase_add_test(all, what_is_withdrawn_is_as_it_was);
    tcase_add_checked_fixture(resting, quarantine_setup, quarantine_teardown);
    tcase_add_test(resting, late_calls_find_a_check_in_quarantine);
    tcase_add_test(resting, the_oldest_makes_room);
    tcase_add_test(resting, after_the_close_nothing_is_kept);
    tcase_add_test(resting, a_late_call_keeps_what_it_is_in);
    tcase_add_test(resting, a_quarantine_needs_memory_and_a_whole_handler);
    return suite_main("handler_life", NULL, NULL, all, resting, NULL);
}
