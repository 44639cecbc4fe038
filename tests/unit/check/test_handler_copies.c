/* SPDX-License-Identifier: Apache-2.0 */
/* Strings that are copied and overwritten; calls that take too long; too little
 * memory. */
#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "support/check_play.h"
#include "support/check_suite.h"
#include "support/faulty_allocator.h"
#include "support/native.h"

static const char ONE_PAIR[] = NATIVE_PAIR;
static const char NO_PAIR[] = "\0\0\0\0";
static const char BAD_COUNT[] = "\377\377\377\377";
static const char BAD_LENGTH[] = NATIVE("\1") "\377\377\377\377";
static const char HUGE_COUNT[] = "\0\0\0\100";

/* Malformed blocks, and the clauses that report them. */
static const struct {
    const char *block;
    const char *breaches;
} METADATA[] = {{NO_PAIR, "MD-02 producer note"},
                {BAD_COUNT, "MD-05 producer error"},
                {BAD_LENGTH, "MD-05 producer error"},
                {HUGE_COUNT, "MD-09 producer error"}};

enum { METADATA_COUNT = sizeof(METADATA) / sizeof(METADATA[0]) };

/* ---- strings ------------------------------------------------------------ */

static int check_metadata(struct check_fixture *s, struct ArrowAsyncTask *task)
{
    ck_assert_ptr_ne(s->metadata, ONE_PAIR);
    ck_assert_mem_eq(s->metadata, ONE_PAIR, 14);
    return check_fixture_take_task(s, task);
}

static int next_task(const char *metadata)
{
    struct check_fixture_task *mine = &play.tasks[0];
    struct ArrowAsyncTask task = {check_fixture_extract, mine};

    mine->fixture = &play;
    return play.out->on_next_task(play.out, &task, metadata);
}

START_TEST(metadata_of_a_task_is_copied_and_spoilt)
{
    play_begin();
    play.on_task = check_metadata;
    ck_assert_int_eq(next_task(ONE_PAIR), 0);
    ck_assert_int_eq((unsigned char)play.metadata[0], 0xDD);
    ck_assert_int_eq(next_task(ONE_PAIR), 0);
    play_end();
    play_expect_at_last("");
}
END_TEST

START_TEST(metadata_of_many_tasks_is_copied_to_the_same_places)
{
    play_begin();
    play.on_task = check_metadata;
    for (int i = 0; i < 90; i++)
        ck_assert_int_eq(next_task(ONE_PAIR), 0);
    play_end();
    play_expect_at_last("");
}
END_TEST

START_TEST(metadata_of_the_end_is_copied_and_spoilt)
{
    play_begin();
    ck_assert_int_eq(play.out->on_next_task(play.out, NULL, ONE_PAIR), 0);
    ck_assert_ptr_ne(play.metadata, ONE_PAIR);
    ck_assert_int_eq((unsigned char)play.metadata[0], 0xDD);
    play_release();
    play_expect_at_last("");
}
END_TEST

START_TEST(bad_metadata_of_a_task_is_told_and_passed_on)
{
    play_begin();
    ck_assert_int_eq(next_task(METADATA[_i].block), 0);
    ck_assert_int_eq(play.metadata == METADATA[_i].block, _i != 0);
    play_end();
    play_expect_at_last(METADATA[_i].breaches);
}
END_TEST

static const char *kept_message, *kept_metadata;

static void keep_strings(struct check_fixture *s, int code, const char *message,
                         const char *metadata)
{
    (void)s;
    (void)code;
    ck_assert_str_eq(message, "no disk");
    ck_assert_mem_eq(metadata, ONE_PAIR, 14);
    kept_message = message;
    kept_metadata = metadata;
}

START_TEST(strings_of_an_error_are_copied_and_spoilt)
{
    play.on_error = keep_strings;
    play_begin();
    play.out->on_error(play.out, EIO, "no disk", ONE_PAIR);
    ck_assert_str_eq(kept_message, "\xDD\xDD\xDD\xDD\xDD\xDD\xDD");
    ck_assert_int_eq((unsigned char)kept_metadata[0], 0xDD);
    play_release();
    play_expect_at_last("");
}
END_TEST

START_TEST(bad_metadata_of_an_error_is_told)
{
    play_begin();
    play.out->on_error(play.out, EIO, "", METADATA[_i].block);
    play_release();
    play_expect_at_last(METADATA[_i].breaches);
}
END_TEST

START_TEST(an_error_with_the_code_0_is_ER_06)
{
    play_begin();
    check_fixture_error(&play, 0, "fine");
    play_release();
    play_expect_at_last("ER-06 producer warning");
}
END_TEST

START_TEST(a_message_that_is_not_UTF_8_is_ER_07)
{
    play_begin();
    check_fixture_error(&play, EIO, "no \xff disk");
    play_release();
    play_expect_at_last("ER-07 producer error");
}
END_TEST

/* ---- time --------------------------------------------------------------- */

static int64_t now_ns;

int64_t __wrap_uva__checker_host_clock_ns(bool fine);

/* The clock that limits use: other calls take no time, however slow this
 * machine is. */
int64_t __wrap_uva__checker_host_clock_ns(bool fine)
{
    (void)fine;
    return now_ns;
}

/* Lasts longer than a limit of 1 ms. */
static void dawdle(void)
{
    now_ns += 3000000;
}

static int dawdle_in_task(struct check_fixture *s, struct ArrowAsyncTask *task)
{
    dawdle();
    return check_fixture_take_task(s, task);
}

static void dawdle_in_cancel(struct check_fixture *s)
{
    (void)s;
    dawdle();
}

static void dawdle_in_extract(struct check_fixture *s,
                              struct ArrowDeviceArray *array)
{
    (void)s;
    (void)array;
    dawdle();
}

START_TEST(a_callback_beyond_its_limit_is_TH_12)
{
    play_again_within(&(struct uva__check_times){.slow_call_ms = 1});
    play_begin();
    play.on_task = dawdle_in_task;
    play_tasks(1);
    play_end();
    play_expect_at_last("TH-12 consumer warning");
}
END_TEST

START_TEST(an_extraction_beyond_its_limit_is_AT_09)
{
    play_again_within(&(struct uva__check_times){.slow_extract_ms = 1});
    play_begin();
    play.on_extract = dawdle_in_extract;
    play_tasks(1);
    play_end();
    play_expect_at_last("AT-09 producer warning");
}
END_TEST

/* Milliseconds, and the warning. */
static const struct {
    int64_t task, extraction;
    const char *warning;
} usual[] = {{900, 100, ""},
             {901, 100, "TH-12 consumer warning"},
             {0, 101, "AT-09 producer warning"}};

static int last_in_task(struct check_fixture *s, struct ArrowAsyncTask *task)
{
    const int code = check_fixture_take_task(s, task);

    now_ns += *(const int64_t *)s->ctx * 1000000;
    return code;
}

static void last_in_extract(struct check_fixture *s,
                            struct ArrowDeviceArray *array)
{
    const int64_t *ms = s->ctx;

    (void)array;
    now_ns += ms[1] * 1000000;
}

START_TEST(the_usual_limits_are_a_second_and_100_ms_for_an_extraction)
{
    int64_t ms[] = {usual[_i].task, usual[_i].extraction};

    play_begin();
    play.ctx = ms;
    play.on_task = last_in_task; /* extracts, too */
    play.on_extract = last_in_extract;
    play_tasks(1);
    play_end();
    play_expect_at_last(usual[_i].warning);
}
END_TEST

static void dawdle_in_request(struct check_fixture *s, int64_t n)
{
    s->on_request = NULL;
    (void)n;
    dawdle();
}

static int request_in_task(struct check_fixture *s, struct ArrowAsyncTask *task)
{
    s->on_request = dawdle_in_request;
    play_request(1);
    return check_fixture_take_task(s, task);
}

START_TEST(a_request_beyond_its_limit_is_AP_28)
{
    play_again_within(&(struct uva__check_times){.slow_call_ms = 1});
    play_begin();
    play.on_request = dawdle_in_request;
    play_request(1);
    play_end();
    play_expect_at_last("AP-28 producer error");
}
END_TEST

START_TEST(inside_a_callback_too_which_then_is_late_itself)
{
    play_again_within(&(struct uva__check_times){.slow_call_ms = 1});
    play_begin();
    play.on_task = request_in_task;
    play_tasks(1);
    play_end();
    play_expect_at_last("AP-28 producer error\nTH-12 consumer warning");
}
END_TEST

START_TEST(a_cancel_beyond_its_limit_is_AP_28)
{
    play_again_within(&(struct uva__check_times){.slow_call_ms = 1});
    play_begin();
    play.on_cancel = dawdle_in_cancel;
    play_cancel();
    play_release();
    play_expect_at_last("AP-28 producer error");
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

static struct ArrowAsyncTask kept;

static int keep_task(struct check_fixture *s, struct ArrowAsyncTask *task)
{
    (void)s;
    kept = *task;
    return 0;
}

/* A stream with everything in it, with any amount of memory: the first task
 * fails after the end, which is reported then. */
static void play_all(struct faulty_allocator *faulty)
{
    struct uva_check options = {.allocator = faulty_allocator_table(faulty)};
    struct ArrowDeviceArray array = {.array.release = NULL};

    if (!check_fixture_try(&play, &options))
        return;
    play.producer.additional_metadata = ONE_PAIR;
    play_begin();
    play.on_task = keep_task;
    ck_assert_int_eq(next_task(ONE_PAIR), 0);
    play.on_task = NULL;
    play_tasks(20);
    play.tasks[0].code = EIO;
    ck_assert_int_eq(play.out->on_next_task(play.out, NULL, ONE_PAIR), 0);
    ck_assert_int_eq(kept.extract_data(&kept, &array), EIO);
    play.out->on_error(play.out, EIO, "no disk", ONE_PAIR);
    play_release();
    ck_assert_int_eq(atomic_load(&play.extracted), 21);
    play_expect_at_last("");
}

START_TEST(a_stream_passes_unharmed_whichever_allocation_fails)
{
    struct faulty_allocator faulty;
    long i = 0;

    do {
        check_fixture_fini(&play);
        faulty_allocator_init(&faulty, ++i);
        play_all(&faulty);
        ck_assert_int_eq((int)faulty_allocator_live(&faulty), 0);
    } while (faulty_allocator_has_failed(&faulty));
    ck_assert_int_gt((int)i, 5);
}
END_TEST

/* ---- all cases ---------------------------------------------------------- */

static void add_all(TCase *all)
{
    tcase_add_test(all, metadata_of_a_task_is_copied_and_spoilt);
    tcase_add_test(all, metadata_of_many_tasks_is_copied_to_the_same_places);
    tcase_add_test(all, metadata_of_the_end_is_copied_and_spoilt);
    tcase_add_loop_test(all, bad_metadata_of_a_task_is_told_and_passed_on, 0,
                        METADATA_COUNT);
    tcase_add_test(all, strings_of_an_error_are_copied_and_spoilt);
    tcase_add_loop_test(all, bad_metadata_of_an_error_is_told, 0,
                        METADATA_COUNT);
    tcase_add_test(all, an_error_with_the_code_0_is_ER_06);
    tcase_add_test(all, a_message_that_is_not_UTF_8_is_ER_07);
    tcase_add_test(all, a_callback_beyond_its_limit_is_TH_12);
    tcase_add_test(all, an_extraction_beyond_its_limit_is_AT_09);
    tcase_add_loop_test(
        all, the_usual_limits_are_a_second_and_100_ms_for_an_extraction, 0, 3);
    tcase_add_test(all, a_request_beyond_its_limit_is_AP_28);
    tcase_add_test(all, inside_a_callback_too_which_then_is_late_itself);
    tcase_add_test(all, a_cancel_beyond_its_limit_is_AP_28);
    tcase_add_test(all, a_stream_passes_unharmed_whichever_allocation_fails);
}

int main(void)
{
    TCase *all = tcase_create("all");

    add_all(all);
    return suite_main("handler_copies", play_setup, play_teardown, all, NULL);
}
