/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of the handler, the producer object and the schema. */
#include <check.h>
#include <string.h>

#include "support/check_play.h"
#include "support/check_suite.h"
#include "support/native.h"
#include "support/plain_tree.h"

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

/* ---- the handler -------------------------------------------------------- */

START_TEST(an_empty_slot_is_AH_02_and_nothing_is_taken)
{
    struct ArrowAsyncDeviceStreamHandler handler = play.inner, *out = NULL;
    struct uva_error error = {0};

    handler.on_error = NULL;
    ck_assert_int_eq(uva_check_handler(&handler, &play.options, &out, &error),
                     EINVAL);
    ck_assert_ptr_null(out);
    ck_assert(strstr(error.message, "on_error") != NULL);
    ck_assert_int_eq(atomic_load(&play.freed), 0);
    play_expect("AH-02 consumer error");
}
END_TEST

START_TEST(a_handler_without_slots_is_refused_without_a_report_too)
{
    struct ArrowAsyncDeviceStreamHandler handler = play.inner, *out = NULL;
    const struct uva_check wrong = {.allocator = {.alloc = NULL},
                                    .reserved = {&handler}};

    handler.release = NULL;
    ck_assert_int_eq(uva_check_handler(&handler, &wrong, &out, NULL), EINVAL);
    ck_assert_int_eq(uva_check_handler(&handler, NULL, &out, NULL), EINVAL);
    ck_assert_int_eq(uva_check_handler(&play.inner, &wrong, &out, NULL),
                     EINVAL);
}
END_TEST

START_TEST(a_copy_of_the_handler_is_AH_24)
{
    struct ArrowAsyncDeviceStreamHandler copy = *play.out;

    play_begin();
    ck_assert_int_eq(copy.on_next_task(&copy, NULL, NULL), 0);
    check_fixture_release(&play);
    play_expect_at_last("AH-24 producer error");
}
END_TEST

START_TEST(private_data_written_by_the_producer_is_AH_25)
{
    void *values[] = {NULL, &play, (char *)play.out->private_data + 1};

    play_begin();
    play.out->private_data = values[_i];
    play_end();
    play_expect_at_last("AH-25 producer fatal");
}
END_TEST

START_TEST(a_slot_written_by_the_producer_is_AH_26)
{
    const struct ArrowAsyncDeviceStreamHandler whole = *play.out;

    play_begin();
    if (_i == 0)
        play.out->on_schema = NULL;
    else if (_i == 1)
        play.out->on_next_task = NULL;
    else if (_i == 2)
        play.out->on_error = NULL;
    else
        play.out->release = NULL;
    (void)whole.on_next_task(play.out, NULL, NULL);
    play_release();
    play_expect_at_last("AH-26 producer error");
}
END_TEST

START_TEST(another_producer_in_mid_stream_is_AH_29)
{
    struct ArrowAsyncProducer other = play.producer;

    play_begin();
    play.out->producer = &other;
    play_end();
    play_expect_at_last("AH-29 either error");
}
END_TEST

START_TEST(another_producer_with_a_second_schema_is_AH_29_too)
{
    struct ArrowAsyncProducer other = play.producer;

    play_begin();
    play.out->producer = &other;
    (void)check_fixture_schema(&play);
    play.out->producer = &play.producer;
    play_end();
    play_expect_at_last("AH-05 producer error\nAH-29 either error");
}
END_TEST

START_TEST(a_handler_checked_twice_is_AH_29)
{
    const struct ArrowAsyncDeviceStreamHandler before = play.inner;
    struct ArrowAsyncDeviceStreamHandler *second;

    play_begin();
    ck_assert_int_eq(uva_check_handler(&play.inner, NULL, &second, NULL), 0);
    play_tasks(1);
    play_expect("AH-29 either error");
    ck_assert_ptr_eq(uva_check_withdraw(second), &play.inner);
    ck_assert_ptr_null(play.inner.producer);
    play.inner = before; /* as the first check recorded it */
}
END_TEST

static int forget_producer(struct check_fixture *s, struct ArrowAsyncTask *task)
{
    s->inner.producer = NULL;
    return check_fixture_take_task(s, task);
}

START_TEST(a_consumer_may_clear_its_producer)
{
    play_begin();
    play.on_task = forget_producer;
    play_tasks(2);
    play_end();
    play_expect_at_last("");
}
END_TEST

/* ---- the producer ------------------------------------------------------- */

START_TEST(no_producer_in_on_schema_is_AH_03)
{
    play.out->producer = NULL;
    ck_assert_int_eq(check_fixture_schema(&play), EINVAL);
    ck_assert_ptr_null(play.peer);
    play_release();
    play_expect_at_last("AH-03 producer error");
}
END_TEST

START_TEST(no_producer_at_an_early_error_is_AH_03_and_a_warning)
{
    play.out->producer = NULL;
    check_fixture_error(&play, EIO, NULL);
    play_release();
    play_expect_at_last("AH-03 producer warning");
}
END_TEST

START_TEST(an_early_error_reads_no_member_of_the_producer)
{
    play.out->producer = (struct ArrowAsyncProducer *)(uintptr_t)0x5a5a5a5a;
    check_fixture_error(&play, EIO, "no entry");
    play_release();
    play_expect_at_last("");
}
END_TEST

START_TEST(an_empty_slot_of_the_producer_is_AB_17_and_never_called)
{
    if (_i == 0)
        play.producer.request = NULL;
    else
        play.producer.cancel = NULL;
    play_begin();
    play_request(1);
    play_cancel();
    play_end();
    play_expect_at_last("AB-17 producer error");
}
END_TEST

START_TEST(calls_held_back_for_a_producer_without_slots_go_nowhere)
{
    play.producer.request = NULL;
    play.producer.cancel = NULL;
    play.peer = play.inner.producer;
    play_request(1);
    play_cancel();
    play_begin();
    play_release();
    play_expect_at_last("AH-04 consumer error\nAB-17 producer error");
}
END_TEST

START_TEST(calls_held_back_for_no_producer_go_nowhere)
{
    play.peer = play.inner.producer;
    play_request(1);
    play.out->producer = NULL;
    (void)check_fixture_schema(&play);
    play_release();
    play_expect_at_last("AH-04 consumer error\nAH-03 producer error");
}
END_TEST

START_TEST(a_producer_that_begins_with_code_is_AB_19)
{
    static const uint64_t codes[] = {UINT64_C(0x7f1234567890), /* x86-64 */
                                     UINT64_C(0xaaaad5c34100), /* arm64 */
                                     UINT64_C(0x5500005c34)};  /* in qemu */

    memcpy(&play.producer, &codes[_i], sizeof(codes[_i]));
    play_begin();
    play.producer.device_type = ARROW_DEVICE_CPU;
    play_expect("AB-19 producer note");
}
END_TEST

START_TEST(padding_after_the_device_type_means_nothing)
{
    memset((char *)&play.producer + 4, 0xA5, 4);
    play_begin();
    play_end();
    play_expect_at_last("");
}
END_TEST

START_TEST(large_device_types_are_types)
{
    static const uint32_t types[][2] = {
        {9999999, 0}, {10000000, 0xA5A5A5A5}, {17, 0x7ffd}};

    memcpy(&play.producer, types[_i], sizeof(types[_i]));
    play_begin();
    play_end();
    play_expect_at_last("");
}
END_TEST

START_TEST(a_producer_may_clear_the_handlers_pointer)
{
    play_begin();
    play.out->producer = NULL;
    play_tasks(1);
    play_end();
    play_expect_at_last("");
}
END_TEST

START_TEST(no_device_type_is_AP_01)
{
    play.producer.device_type = 0;
    play_begin();
    play_end();
    play_expect_at_last("AP-01 producer error");
}
END_TEST

static int keep_task(struct check_fixture *s, struct ArrowAsyncTask *task)
{
    s->kept[0] = *task;
    return 0;
}

START_TEST(another_device_type_is_AP_01)
{
    play_begin();
    play.on_task = keep_task;
    play.producer.device_type = ARROW_DEVICE_CUDA;
    play_tasks(1);
    play_expect("AP-01 producer error");
    uva_task_discard(&play.kept[0]);
    play_end();
    play_expect_at_last("");
}
END_TEST

START_TEST(additional_metadata_is_copied)
{
    play.producer.additional_metadata = ONE_PAIR;
    play_begin();
    ck_assert_ptr_ne(play.peer->additional_metadata, ONE_PAIR);
    ck_assert_mem_eq(play.peer->additional_metadata, ONE_PAIR, 14);
    ck_assert_int_eq(play.peer->device_type, ARROW_DEVICE_CPU);
    play_end();
    play_expect_at_last("");
}
END_TEST

START_TEST(bytes_of_additional_metadata_that_change_are_AP_19)
{
    char block[sizeof(ONE_PAIR)];

    memcpy(block, ONE_PAIR, sizeof(block));
    play.producer.additional_metadata = block;
    play_begin();
    play_tasks(1);
    block[13] = 'w';
    play_tasks(1);
    play_end();
    play_expect_at_last("AP-19 producer error");
}
END_TEST

START_TEST(additional_metadata_that_moves_is_AP_20)
{
    play_begin();
    play.producer.additional_metadata = ONE_PAIR;
    play_tasks(1);
    play_end();
    play_expect_at_last("AP-20 producer error");
}
END_TEST

START_TEST(bad_additional_metadata_is_told_and_passed_on)
{
    play.producer.additional_metadata = METADATA[_i].block;
    play_begin();
    ck_assert_int_eq(play.peer->additional_metadata == METADATA[_i].block,
                     _i != 0);
    play_end();
    play_expect_at_last(METADATA[_i].breaches);
}
END_TEST

START_TEST(large_additional_metadata_is_looked_at_now_and_then)
{
    char block[2048] =
        NATIVE("\1") NATIVE("\1") "k" NATIVE_INT32("\0", "\4", "\0", "\0");

    play.producer.additional_metadata = block;
    play_begin();
    play_tasks(1);
    block[100] = 'w';
    play_tasks(10);
    play_expect("");
    atomic_store(&play.offered, 0);
    play_tasks(54);
    play_end();
    play_expect_at_last("AP-19 producer error");
}
END_TEST

START_TEST(a_producer_is_not_looked_at_when_the_stream_ends)
{
    play_begin();
    memset(&play.producer, 0xA5, sizeof(play.producer));
    if (_i == 0)
        play_the_end();
    else
        check_fixture_error(&play, EIO, NULL);
    play_release();
    play_expect_at_last("");
}
END_TEST

START_TEST(private_data_of_the_producer_written_is_AP_21)
{
    play_begin();
    play.peer->private_data = NULL;
    play_request(1);
    play.peer->private_data = &play;
    play_cancel();
    play_release();
    ck_assert_int_eq((int)atomic_load(&play.requested), 101);
    play_expect_at_last("AP-21 consumer fatal");
}
END_TEST

START_TEST(a_copy_of_the_producer_is_AP_23_and_forwarded)
{
    struct ArrowAsyncProducer copy;

    play_begin();
    copy = *play.peer;
    copy.request(&copy, 5);
    copy.cancel(&copy);
    play_release();
    ck_assert_int_eq((int)atomic_load(&play.requested), 105);
    ck_assert_int_eq(atomic_load(&play.cancels), 1);
    play_expect_at_last("AP-23 consumer error");
}
END_TEST

/* ---- the schema --------------------------------------------------------- */

START_TEST(no_schema_is_AH_07)
{
    ck_assert_int_eq(play.out->on_schema(play.out, NULL), EINVAL);
    play_release();
    play_expect_at_last("AH-07 producer error");
}
END_TEST

START_TEST(a_released_schema_is_AH_07)
{
    struct ArrowSchema schema = {.release = NULL};

    ck_assert_int_eq(play.out->on_schema(play.out, &schema), EINVAL);
    play_release();
    play_expect_at_last("AH-07 producer error");
}
END_TEST

static struct ArrowSchema *kept_schema;

static int leave_schema(struct check_fixture *s, struct ArrowSchema *schema)
{
    s->peer = s->inner.producer;
    kept_schema = schema;
    return 0;
}

START_TEST(a_schema_left_live_is_AH_06_and_the_producers_again)
{
    play.on_schema = leave_schema;
    play_begin();
    ck_assert_int_eq(check_fixture_live(), 0);
    play_end();
    play_expect_at_last("AH-06 consumer error");
}
END_TEST

static int keep_schema(struct check_fixture *s, struct ArrowSchema *schema)
{
    kept_schema = schema;
    return check_fixture_take_schema(s, schema);
}

START_TEST(a_schema_pointer_kept_is_AH_06)
{
    play.on_schema = keep_schema;
    play_begin();
    kept_schema->release(kept_schema);
    kept_schema->private_data = NULL;
    kept_schema->release(kept_schema);
    play_end();
    play_expect_at_last("AH-06 consumer error");
}
END_TEST

START_TEST(bad_metadata_of_a_schema_is_told)
{
    struct ArrowSchema schema;

    check_fixture_fill_schema(&schema);
    schema.metadata = METADATA[_i].block;
    ck_assert_int_eq(play.out->on_schema(play.out, &schema), 0);
    play_expect(METADATA[_i].breaches);
    play_tasks(1);
    play_end();
    play_expect_at_last("");
}
END_TEST

START_TEST(a_format_nobody_knows_is_noted)
{
    struct ArrowSchema schema;

    plain_schema(&schema, "zz", "", 0);
    ck_assert_int_eq(play.out->on_schema(play.out, &schema), 0);
    play_end();
    play_expect_at_last("DA-20 producer note");
}
END_TEST

START_TEST(a_schema_released_twice_is_LC_02)
{
    struct ArrowSchema copy;

    play_begin();
    copy = play.schema;
    uva_schema_release(&play.schema);
    uva_schema_release(&copy);
    play_end();
    play_expect_at_last("LC-02 consumer fatal");
}
END_TEST

START_TEST(a_schema_never_released_is_LC_02)
{
    play_begin();
    play_end();
    (void)check_fixture_conclude(&play);
    play_expect("LC-02 consumer error");
}
END_TEST

/* ---- all cases ---------------------------------------------------------- */

static void add_all(TCase *all)
{
    tcase_add_test(all, an_empty_slot_is_AH_02_and_nothing_is_taken);
    tcase_add_test(all,
                   a_handler_without_slots_is_refused_without_a_report_too);
    tcase_add_test(all, a_copy_of_the_handler_is_AH_24);
    tcase_add_loop_test(all, private_data_written_by_the_producer_is_AH_25, 0,
                        3);
    tcase_add_loop_test(all, a_slot_written_by_the_producer_is_AH_26, 0, 4);
    tcase_add_test(all, another_producer_in_mid_stream_is_AH_29);
    tcase_add_test(all, another_producer_with_a_second_schema_is_AH_29_too);
    tcase_add_test(all, a_handler_checked_twice_is_AH_29);
    tcase_add_test(all, a_consumer_may_clear_its_producer);
    tcase_add_test(all, no_producer_in_on_schema_is_AH_03);
    tcase_add_test(all, no_producer_at_an_early_error_is_AH_03_and_a_warning);
    tcase_add_test(all, an_early_error_reads_no_member_of_the_producer);
    tcase_add_loop_test(
        all, an_empty_slot_of_the_producer_is_AB_17_and_never_called, 0, 2);
    tcase_add_test(all,
                   calls_held_back_for_a_producer_without_slots_go_nowhere);
    tcase_add_test(all, calls_held_back_for_no_producer_go_nowhere);
    tcase_add_loop_test(all, a_producer_that_begins_with_code_is_AB_19, 0, 3);
    tcase_add_test(all, padding_after_the_device_type_means_nothing);
    tcase_add_loop_test(all, large_device_types_are_types, 0, 3);
    tcase_add_test(all, a_producer_may_clear_the_handlers_pointer);
    tcase_add_test(all, no_device_type_is_AP_01);
    tcase_add_test(all, another_device_type_is_AP_01);
    tcase_add_test(all, additional_metadata_is_copied);
    tcase_add_test(all, bytes_of_additional_metadata_that_change_are_AP_19);
    tcase_add_test(all, additional_metadata_that_moves_is_AP_20);
    tcase_add_loop_test(all, bad_additional_metadata_is_told_and_passed_on, 0,
                        METADATA_COUNT);
    tcase_add_test(all, large_additional_metadata_is_looked_at_now_and_then);
    tcase_add_loop_test(all, a_producer_is_not_looked_at_when_the_stream_ends,
                        0, 2);
    tcase_add_test(all, private_data_of_the_producer_written_is_AP_21);
    tcase_add_test(all, a_copy_of_the_producer_is_AP_23_and_forwarded);
    tcase_add_test(all, no_schema_is_AH_07);
    tcase_add_test(all, a_released_schema_is_AH_07);
    tcase_add_test(all, a_schema_left_live_is_AH_06_and_the_producers_again);
    tcase_add_test(all, a_schema_pointer_kept_is_AH_06);
    tcase_add_loop_test(all, bad_metadata_of_a_schema_is_told, 0,
                        METADATA_COUNT);
    tcase_add_test(all, a_format_nobody_knows_is_noted);
    tcase_add_test(all, a_schema_released_twice_is_LC_02);
    tcase_add_test(all, a_schema_never_released_is_LC_02);
}

int main(void)
{
    TCase *all = tcase_create("all");

    add_all(all);
    return suite_main("handler_objects", play_setup, play_teardown, all, NULL);
}
