/* SPDX-License-Identifier: Apache-2.0 */
/* The producer object that a checked consumer gets, read by the released header
 * and by the layout that the document prints.
 * Clauses: AB-09. */
#include <check.h>
#include <string.h>

#include "support/check_play.h"
#include "support/check_suite.h"
#include "support/faulty_allocator.h"
#include "support/native.h"
#include "support/printed_layout.h"

static const char BLOCK[] = NATIVE_PAIR;
static const char EMPTY[4] = {0};

enum { BLOCK_SIZE = sizeof(BLOCK) - 1 };

static void expect_printed(const char *block, size_t size)
{
    const struct printed_producer printed = printed_layout_read(play.peer);

    ck_assert_int_eq(printed.device_type, play.peer->device_type);
    ck_assert_mem_eq(&printed.request, &play.peer->request,
                     sizeof(printed.request));
    ck_assert_mem_eq(&printed.cancel, &play.peer->cancel,
                     sizeof(printed.cancel));
    ck_assert_ptr_null(printed.private_data);
    ck_assert_mem_eq(printed.additional_metadata, block, size);
}

START_TEST(metadata_is_where_either_layout_has_it)
{
    play.producer.additional_metadata = BLOCK;
    play_begin();
    ck_assert_mem_eq(play.peer->additional_metadata, BLOCK, BLOCK_SIZE);
    expect_printed(BLOCK, BLOCK_SIZE);
    play_end();
    play_expect_at_last("");
}
END_TEST

START_TEST(without_metadata_the_printed_layout_has_an_empty_block)
{
    play_begin();
    ck_assert_ptr_null(play.peer->additional_metadata);
    expect_printed(EMPTY, sizeof(EMPTY));
    play_end();
    play_expect_at_last("");
}
END_TEST

START_TEST(metadata_that_cannot_be_read_is_not_shown_in_the_printed_layout)
{
    play.producer.additional_metadata = "\377\377\377\377";
    play_begin();
    expect_printed(EMPTY, sizeof(EMPTY));
    play_end();
    play_expect_at_last("MD-05 producer error");
}
END_TEST

START_TEST(with_metadata_copies_and_what_is_written_are_known_too)
{
    struct ArrowAsyncProducer copy;

    play.producer.additional_metadata = BLOCK;
    play_begin();
    copy = *play.peer;
    copy.request(&copy, 5);
    play.peer->private_data = (char *)play.peer->private_data + 2;
    play_request(1);
    ck_assert_ptr_eq(play.peer->private_data, copy.private_data);
    play_end();
    ck_assert_int_eq((int)atomic_load(&play.requested), 106);
    play_expect_at_last("AP-23 consumer error\nAP-21 consumer fatal");
}
END_TEST

START_TEST(short_of_memory_both_layouts_still_have_the_metadata)
{
    struct faulty_allocator memory;
    struct uva_check options = play.options;
    int i = 2; /* after the two of the check itself */

    do {
        faulty_allocator_init(&memory, ++i);
        options.allocator = faulty_allocator_table(&memory);
        play_again(&options);
        play.producer.additional_metadata = BLOCK;
        play_begin();
        ck_assert_mem_eq(play.peer->additional_metadata, BLOCK, BLOCK_SIZE);
        expect_printed(BLOCK, BLOCK_SIZE);
        play_request(1);
        play_end();
        play_expect_at_last("");
        ck_assert_int_eq((int)faulty_allocator_live(&memory), 0);
    } while (faulty_allocator_has_failed(&memory));
    ck_assert_int_gt(i, 4);
}
END_TEST

int main(void)
{
    TCase *all = tcase_create("both layouts");

    tcase_add_test(all, metadata_is_where_either_layout_has_it);
    tcase_add_test(all, without_metadata_the_printed_layout_has_an_empty_block);
    tcase_add_test(
        all, metadata_that_cannot_be_read_is_not_shown_in_the_printed_layout);
    tcase_add_test(all, with_metadata_copies_and_what_is_written_are_known_too);
    tcase_add_test(all, short_of_memory_both_layouts_still_have_the_metadata);
    return suite_main("handler layout", play_setup, play_teardown, all, NULL);
}
