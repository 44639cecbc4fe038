/* SPDX-License-Identifier: Apache-2.0 */
/* Batches pushed on the loop thread: every return code of a push, and the
 * batches of the consumer. Ends are in test_pusher_ends.c, threads in
 * test_pusher_threads.c, a fork in test_pusher_fork.c. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/plain_tree.h"
#include "support/push_fixture.h"
#include "uvarrow/arrow.h"

static struct push_fixture p;

static void tear_down(void)
{
    push_close(&p);
}

/* Lets the consumer take `n` more batches, and turns the loop until it is idle.
 */
static void feed(int64_t n)
{
    recording_feed(&p.consumer, n);
    loop_settle(&p.loop);
}

/* ---- without failures --------------------------------------------------- */

START_TEST(batches_come_in_order_and_the_close_ends_the_stream)
{
    push_open(&p, 0, 0);
    push_start(&p);
    push_batches(&p, 1, 3);
    push_settles(&p, "schema 1 2 3");
    push_batches(&p, 4, 5);
    push_end(&p);
    push_ends(&p, "schema 1 2 3 4 5 complete");
    ck_assert_int_eq(p.consumer.ordinal, 4);
}
END_TEST

START_TEST(what_was_pushed_and_closed_before_the_start_is_delivered)
{
    push_open(&p, 0, 0);
    push_batches(&p, 1, 3);
    push_end(&p);
    loop_settle(&p.loop);
    push_start(&p);
    push_ends(&p, "schema 1 2 3 complete");
}
END_TEST

START_TEST(the_schema_alone_is_a_stream)
{
    push_open_bare(&p, 0, 0);
    push_start(&p);
    push_settles(&p, "");
    ck_assert_int_eq(push_describe(&p), 0);
    push_settles(&p, "schema");
    push_end(&p);
    push_ends(&p, "schema complete");
}
END_TEST

static struct ArrowDeviceArray pinned;

START_TEST(batches_are_of_the_device_that_was_said)
{
    struct uva_push_source options = {.device_type = ARROW_DEVICE_CUDA_HOST};

    push_open(&p, 0, 0);
    push_release(&p);
    push_end(&p);
    p.stream = uva_stream_from_pusher(p.loop.runtime, &options, &p.pusher);
    ck_assert_int_eq(push_describe(&p), 0);
    ck_assert_int_eq(push_batch(&p, 1, 0), EINVAL);
    batch_make(&pinned, 2);
    pinned.device_type = ARROW_DEVICE_CUDA_HOST;
    ck_assert_int_eq(uva_pusher_push(p.pusher, &pinned, NULL, 0), 0);
    push_start(&p);
    push_end(&p);
    push_ends(&p, "schema 2 complete");
    ck_assert_int_eq(uva_stream_get_info(p.stream)->device_type,
                     ARROW_DEVICE_CUDA_HOST);
}
END_TEST

START_TEST(a_steady_flow_allocates_nothing)
{
    char block[64];
    size_t size = sizeof(block);
    const struct uva_pair pair[] = {
        {.key = "key", .value = "\0bytes", .value_size = 6}, {0}};
    long asked = 0;

    ck_assert_int_eq(uva_metadata_encode(pair, block, &size), 0);
    push_open(&p, 17, 0);
    p.consumer.quiet = true;
    push_start(&p);
    for (int i = 0; i < 200; i++) {
        if (i == 100)
            asked = faulty_allocator_asked(&p.loop.memory);
        for (int k = 0; k < 16; k++)
            ck_assert_int_eq(push_batch_with(&p, 1, block, 0), 0);
        recording_await(&p.consumer, &p.loop, (i + 1) * 16);
    }
    ck_assert_int_eq(faulty_allocator_asked(&p.loop.memory), asked);
}
END_TEST

/* ---- metadata ----------------------------------------------------------- */

/* Writes a block of one pair; returns its size. */
static size_t block_of(char *block, size_t value_size)
{
    static const char value[128];
    size_t size = 256;
    const struct uva_pair pair[] = {{.key = "k\0y",
                                     .value = value,
                                     .key_size = 3,
                                     .value_size = value_size},
                                    {0}};

    ck_assert_int_eq(uva_metadata_encode(pair, block, &size), 0);
    return size;
}

static void ck_metadata_arrives(size_t value_size)
{
    char block[256];
    size_t size = block_of(block, value_size);

    push_open(&p, 0, 0);
    ck_assert_int_eq(push_batch_with(&p, 1, block, 0), 0);
    memset(block, 0xee, sizeof(block)); /* the pusher has copied the block */
    push_start(&p);
    recording_await(&p.consumer, &p.loop, 1);
    ck_assert_uint_eq(p.consumer.metadata_size, size);
    (void)block_of(block, value_size);
    ck_assert_mem_eq(p.consumer.metadata, block, size);
}

START_TEST(metadata_that_fits_a_slot_arrives_whole)
{
    ck_metadata_arrives(64 - 4 - 4 - 3 - 4);
}
END_TEST

START_TEST(metadata_that_is_larger_arrives_whole)
{
    ck_metadata_arrives(64 - 4 - 4 - 3 - 4 + 1);
}
END_TEST

START_TEST(metadata_of_a_batch_beyond_the_window_arrives)
{
    char block[256];
    const size_t size = block_of(block, 100);

    push_open(&p, 1, 0);
    ck_assert_int_eq(push_batch(&p, 1, 0), EAGAIN);
    ck_assert_int_eq(push_batch_with(&p, 2, block, 0), EAGAIN);
    push_start(&p);
    recording_await(&p.consumer, &p.loop, 2);
    ck_assert_uint_eq(p.consumer.metadata_size, size);
    ck_assert_int_eq(push_batch(&p, 3, 0), EAGAIN);
    recording_await(&p.consumer, &p.loop, 3);
    ck_assert_uint_eq(p.consumer.metadata_size, 0);
}
END_TEST

START_TEST(metadata_without_a_pair_is_none)
{
    static const char none[4];

    push_open(&p, 0, 0);
    ck_assert_int_eq(push_batch_with(&p, 1, none, 0), 0);
    push_start(&p);
    recording_await(&p.consumer, &p.loop, 1);
    ck_assert_uint_eq(p.consumer.metadata_size, 0);
}
END_TEST

START_TEST(malformed_metadata_is_refused)
{
    static const char bad[4] = {-1, -1, -1, -1};

    push_open(&p, 0, 0);
    ck_assert_int_eq(push_batch_with(&p, 1, bad, 0), EINVAL);
}
END_TEST

/* ---- refused pushes ----------------------------------------------------- */

START_TEST(there_is_no_push_before_the_schema)
{
    push_open_bare(&p, 0, 0);
    ck_assert_int_eq(push_batch(&p, 1, 0), EINVAL);
    ck_assert_int_eq(push_describe(&p), 0);
    ck_assert_int_eq(push_batch(&p, 1, 0), 0);
}
END_TEST

START_TEST(the_schema_is_said_once)
{
    push_open(&p, 0, 0);
    ck_assert_int_eq(push_describe(&p), EBUSY);
    push_start(&p);
    loop_settle(&p.loop);
    ck_assert_int_eq(push_describe(&p), EBUSY);
}
END_TEST

START_TEST(a_schema_that_is_no_good_is_refused_and_another_taken)
{
    struct ArrowSchema schema = {0};

    push_open_bare(&p, 0, 0);
    ck_assert_int_eq(uva_pusher_set_schema(p.pusher, NULL), EINVAL);
    ck_assert_int_eq(uva_pusher_set_schema(p.pusher, &schema), EINVAL);
    batch_schema(&schema);
    schema.n_children = -1;
    ck_assert_int_eq(uva_pusher_set_schema(p.pusher, &schema), EINVAL);
    ck_assert(!uva_schema_is_live(&schema));
    ck_assert_int_eq(push_describe(&p), 0);
}
END_TEST

START_TEST(an_array_that_is_no_good_is_refused)
{
    struct ArrowDeviceArray array = {.device_type = ARROW_DEVICE_CPU};

    push_open(&p, 0, 0);
    ck_assert_int_eq(uva_pusher_push(p.pusher, NULL, NULL, 0), EINVAL);
    ck_assert_int_eq(uva_pusher_push(p.pusher, &array, NULL, 0), EINVAL);
    batch_make(&array, 1);
    array.device_type = ARROW_DEVICE_CUDA;
    ck_assert_int_eq(uva_pusher_push(p.pusher, &array, NULL, 0), EINVAL);
    ck_assert(!uva_array_is_live(&array));
    batch_make(&array, 1);
    array.array.n_buffers = 1;
    ck_assert_int_eq(uva_pusher_push(p.pusher, &array, NULL, 0), EINVAL);
    ck_assert(!uva_array_is_live(&array));
    ck_assert_int_eq(push_batch(&p, 1, -1), EINVAL);
    ck_assert_int_eq(push_batch(&p, 1, 0), 0);
}
END_TEST

START_TEST(a_format_unknown_here_is_passed_on)
{
    struct ArrowSchema schema;

    push_open_bare(&p, 0, 0);
    batch_schema(&schema);
    schema.format = "?!";
    ck_assert_int_eq(uva_pusher_set_schema(p.pusher, &schema), 0);
    ck_assert_int_eq(push_batch(&p, 1, 0), 0);
}
END_TEST

START_TEST(no_pusher_is_one_that_is_over)
{
    struct ArrowDeviceArray array;
    struct ArrowSchema schema;

    push_open(&p, 0, 0);
    batch_make(&array, 1);
    batch_schema(&schema);
    ck_assert_int_eq(uva_pusher_push(NULL, &array, NULL, UVA_FOREVER), EPIPE);
    ck_assert_int_eq(uva_pusher_set_schema(NULL, &schema), EPIPE);
    uva_pusher_close(NULL, NULL, NULL);
    ck_assert(!uva_array_is_live(&array) && !uva_schema_is_live(&schema));
}
END_TEST

/* ---- waiting on the loop ------------------------------------------------ */

static void push_and_wait(void *ctx)
{
    (void)ctx;
    ck_assert_int_eq(push_batch(&p, 1, UVA_FOREVER), EDEADLK);
    ck_assert_int_eq(push_batch(&p, 1, 1), EDEADLK);
    ck_assert_int_eq(push_batch(&p, 1, 0), 0);
}

START_TEST(the_loop_thread_may_not_wait_between_turns)
{
    push_open(&p, 0, 0);
    loop_call(&p.loop, push_and_wait, NULL);
}
END_TEST

START_TEST(the_loop_thread_may_not_wait_inside_a_turn)
{
    push_open(&p, 0, 0);
    ck_assert_int_eq(uva_runtime_post(p.loop.runtime, push_and_wait, NULL), 0);
    loop_settle(&p.loop);
    push_start(&p);
    recording_await(&p.consumer, &p.loop, 1);
}
END_TEST

/* ---- on_writable -------------------------------------------------------- */

START_TEST(a_full_window_says_eagain_and_room_is_told_at_the_refill_mark)
{
    push_open(&p, 4, 0);
    p.consumer.appetite = 0;
    push_start(&p);
    push_batches(&p, 1, 3);
    ck_assert_int_eq(push_batch(&p, 4, 0), EAGAIN);
    push_settles(&p, "schema");
    feed(1);
    ck_assert_str_eq(p.consumer.transcript, "schema 1");
    feed(1);
    ck_assert_str_eq(p.consumer.transcript, "schema 1 2 room");
    push_batches(&p, 5, 5);
    ck_assert_int_eq(push_batch(&p, 6, 0), EAGAIN);
    feed(1);
    ck_assert_str_eq(p.consumer.transcript, "schema 1 2 room 3");
    feed(1);
    ck_assert_str_eq(p.consumer.transcript, "schema 1 2 room 3 4 room");
    feed(3);
    ck_assert_str_eq(p.consumer.transcript, "schema 1 2 room 3 4 room 5 6");
}
END_TEST

/* A program that goes on after EAGAIN loses nothing. */
START_TEST(beyond_the_window_all_is_taken_in_order)
{
    push_open(&p, 2, 0);
    p.consumer.appetite = 0;
    push_start(&p);
    push_batches(&p, 1, 1);
    for (int i = 2; i < 6; i++)
        ck_assert_int_eq(push_batch(&p, i, 0), EAGAIN);
    push_settles(&p, "schema");
    feed(2);
    ck_assert_str_eq(p.consumer.transcript, "schema 1 2");
    feed(1);
    ck_assert_str_eq(p.consumer.transcript, "schema 1 2 3");
    feed(1);
    ck_assert_str_eq(p.consumer.transcript, "schema 1 2 3 4 room");
    feed(1);
    ck_assert_str_eq(p.consumer.transcript, "schema 1 2 3 4 room 5");
}
END_TEST

START_TEST(room_is_not_told_to_those_who_never_filled_the_window)
{
    push_open(&p, 3, 0);
    push_start(&p);
    for (int i = 1; i < 7; i += 2) {
        push_batches(&p, i, i + 1);
        loop_settle(&p.loop);
    }
    ck_assert_str_eq(p.consumer.transcript, "schema 1 2 3 4 5 6");
}
END_TEST

START_TEST(there_is_room_as_soon_as_the_window_is_not_full)
{
    push_open(&p, 4, 0);
    p.consumer.appetite = 1;
    push_start(&p);
    push_batches(&p, 1, 3);
    ck_assert_int_eq(push_batch(&p, 4, 0), EAGAIN);
    loop_settle(&p.loop);
    ck_assert_int_eq(push_batch(&p, 5, 0), EAGAIN); /* the fourth: the consumer
                                                       has taken the first */
}
END_TEST

START_TEST(a_window_of_one_takes_one)
{
    push_open(&p, 1, 0);
    ck_assert_int_eq(push_batch(&p, 1, 0), EAGAIN);
    push_start(&p);
    push_settles(&p, "schema 1 room");
    ck_assert_int_eq(push_batch(&p, 2, 0), EAGAIN);
}
END_TEST

START_TEST(a_window_counts_bytes)
{
    push_open(&p, 0, 1000);
    p.consumer.appetite = 1;
    ck_assert_int_eq(push_batch(&p, 999, 0), 0);
    ck_assert_int_eq(push_batch(&p, 601, 0), EAGAIN);
    push_start(&p);
    push_settles(&p, "schema 999"); /* 601 bytes left: more than half */
    ck_assert_int_eq(push_batch(&p, 0, 0), 0);
    feed(1);
    ck_assert_str_eq(p.consumer.transcript, "schema 999 601 room");
    feed(1);
    ck_assert_str_eq(p.consumer.transcript, "schema 999 601 room 0");
}
END_TEST

START_TEST(one_batch_always_fits)
{
    push_open(&p, 0, 10);
    ck_assert_int_eq(push_batch(&p, 1000, 0), EAGAIN);
    push_start(&p);
    push_settles(&p, "schema 1000 room");
}
END_TEST

START_TEST(sizes_too_large_to_be_added_up_fill_the_window)
{
    struct uva_push_source options = {.device_type = ARROW_DEVICE_CUDA,
                                      .window.bytes = INT64_MAX};
    struct ArrowDeviceArray array;

    push_open(&p, 0, 0);
    push_release(&p);
    push_end(&p);
    p.stream = uva_stream_from_pusher(p.loop.runtime, &options, &p.pusher);
    ck_assert_int_eq(push_describe(&p), 0);
    for (int i = 0; i < 4; i++) {
        batch_make(&array, 0);
        array.device_type = ARROW_DEVICE_CUDA;
        array.array.length = INT64_MAX / 2; /* on a device: never read */
        ck_assert_int_eq(uva_pusher_push(p.pusher, &array, NULL, 0),
                         i < 2 ? 0 : EAGAIN);
        ck_assert(!uva_array_is_live(&array));
    }
}
END_TEST

static int pushed;

static void push_until_full(struct push_fixture *s)
{
    int code = 0;

    while (pushed < 20 && code == 0)
        code = push_batch(s, ++pushed, 0);
    ck_assert(code == 0 || code == EAGAIN);
    if (pushed == 20)
        push_end(s);
}

START_TEST(a_writer_on_the_loop_lives_on_room_alone)
{
    push_open(&p, 4, 0);
    p.on_callback = push_until_full;
    pushed = 0;
    push_until_full(&p);
    push_start(&p);
    push_await_done(&p);
    ck_assert_int_eq(p.consumer.taken, 20);
    ck_assert_int_eq(p.consumer.outcome.end, UVA_END_COMPLETE);
    ck_assert_ptr_null(p.pusher);
}
END_TEST

START_TEST(room_that_was_used_up_is_told_when_it_comes_again)
{
    push_open(&p, 2, 0);
    p.consumer.appetite = 1;
    push_start(&p);
    push_batches(&p, 1, 1);
    ck_assert_int_eq(push_batch(&p, 2, 0), EAGAIN);
    push_settles(&p, "schema 1 room");
    ck_assert_int_eq(push_batch(&p, 3, 0), EAGAIN);
    feed(1);
    ck_assert_str_eq(p.consumer.transcript, "schema 1 room 2 room");
}
END_TEST

/* ------------------------------------------------------------------------- */

static void add_writing(Suite *suite)
{
    TCase *refused = suite_case(suite, "what a push refuses", NULL, tear_down);
    TCase *room = suite_case(suite, "room", NULL, tear_down);

    suite_add(suite_case(suite, "all is well", NULL, tear_down),
              batches_come_in_order_and_the_close_ends_the_stream,
              what_was_pushed_and_closed_before_the_start_is_delivered,
              the_schema_alone_is_a_stream,
              batches_are_of_the_device_that_was_said,
              a_steady_flow_allocates_nothing, NULL);
    suite_add(suite_case(suite, "metadata", NULL, tear_down),
              metadata_that_fits_a_slot_arrives_whole,
              metadata_that_is_larger_arrives_whole,
              metadata_of_a_batch_beyond_the_window_arrives,
              metadata_without_a_pair_is_none, malformed_metadata_is_refused,
              NULL);
    suite_add(
        refused, there_is_no_push_before_the_schema, the_schema_is_said_once,
        a_schema_that_is_no_good_is_refused_and_another_taken,
        an_array_that_is_no_good_is_refused, a_format_unknown_here_is_passed_on,
        no_pusher_is_one_that_is_over, NULL);
    suite_add(suite_case(suite, "waiting on the loop", NULL, tear_down),
              the_loop_thread_may_not_wait_between_turns,
              the_loop_thread_may_not_wait_inside_a_turn, NULL);
    suite_add(
        room, a_full_window_says_eagain_and_room_is_told_at_the_refill_mark,
        beyond_the_window_all_is_taken_in_order,
        room_is_not_told_to_those_who_never_filled_the_window,
        there_is_room_as_soon_as_the_window_is_not_full,
        a_window_of_one_takes_one, a_window_counts_bytes, one_batch_always_fits,
        sizes_too_large_to_be_added_up_fill_the_window,
        a_writer_on_the_loop_lives_on_room_alone,
        room_that_was_used_up_is_told_when_it_comes_again, NULL);
}

int main(void)
{
    Suite *suite = suite_create("from_pusher");

    add_writing(suite);
    return suite_run(suite);
}
