/* SPDX-License-Identifier: Apache-2.0 */
/* Peers built from the document's text of ArrowAsyncProducer and peers built
 * from the released header must read the same values from one object (AB-09,
 * G-03). */
#include <check.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/printed_layout.h"

static const char METADATA[4] = {0}; /* a block without a pair */

static void request(struct ArrowAsyncProducer *self, int64_t n)
{
    (void)self;
    (void)n;
}

static void cancel(struct ArrowAsyncProducer *self)
{
    (void)self;
}

/* The released object followed by eight zero bytes, as ours are. */
struct readable_producer {
    struct ArrowAsyncProducer producer;
    void *nothing;
};

static struct readable_producer make(void)
{
    return (struct readable_producer){
        .producer = {.device_type = ARROW_DEVICE_CUDA,
                     .request = request,
                     .cancel = cancel,
                     .additional_metadata = METADATA,
                     .private_data = (void *)(uintptr_t)METADATA},
    };
}

START_TEST(both_layouts_find_the_same_metadata)
{
    struct readable_producer object = make();

    ck_assert_ptr_eq(object.producer.additional_metadata, METADATA);
    ck_assert_ptr_eq(printed_layout_metadata(&object), METADATA);
}
END_TEST

START_TEST(both_layouts_find_the_same_functions)
{
    struct readable_producer object = make();
    struct printed_producer printed = printed_layout_read(&object);

    ck_assert_int_eq(printed.device_type, ARROW_DEVICE_CUDA);
    ck_assert(memcmp(&printed.request, &object.producer.request,
                     sizeof(printed.request)) == 0);
    ck_assert(memcmp(&printed.cancel, &object.producer.cancel,
                     sizeof(printed.cancel)) == 0);
    ck_assert_ptr_null(printed.private_data);
}
END_TEST

START_TEST(without_the_second_pointer_a_printed_reader_finds_nothing)
{
    struct readable_producer object = make();

    object.producer.private_data = NULL;
    ck_assert_ptr_null(printed_layout_metadata(&object));
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("AB-09");

    tcase_add_test(tcase, both_layouts_find_the_same_metadata);
    tcase_add_test(tcase, both_layouts_find_the_same_functions);
    tcase_add_test(tcase,
                   without_the_second_pointer_a_printed_reader_finds_nothing);
    return suite_main("printed_layout", NULL, NULL, tcase, NULL);
}
