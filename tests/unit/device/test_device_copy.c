/* SPDX-License-Identifier: Apache-2.0 */
/* Copies to a device and back: every type arrives as it was; every call and
 * every event may fail, and then all begun calls end before memory is freed,
 * and the array is released once. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/every_type.h"
#include "support/plain_tree.h"
#include "support/soft_copies.h"
#include "support/soft_memory.h"
#include "support/watch_fixture.h"
#include "uvarrow/arrow.h"

enum { ROUND = 27, VIEW = 30, WORDS = 32 }; /* types with many buffers */

static const struct every_variant variants[] = {
    {5, 0, false}, {5, 0, true}, {4, 3, true}, {0, 0, false}, {0, 2, true}};

enum { VARIANTS = sizeof(variants) / sizeof(variants[0]) };

static struct event_wait_fixture s; /* large */

static void schema_end(struct ArrowSchema *schema)
{
    schema->release(schema);
    event_wait_close(&s);
    every_type_forget();
    ck_assert_int_eq(plain_live(), 0);
    ck_assert_int_eq(soft_memory_live(), 0);
}

START_TEST(every_type_goes_to_a_device_and_comes_back)
{
    struct ArrowDeviceArray array, there, back;
    const struct ArrowArray *kept;
    struct ArrowSchema schema, second;
    struct ArrowDeviceArray original;
    struct uva_error error;
    int buffers;

    for (int v = 0; v < VARIANTS; v++) {
        event_wait_open(&s, SOFT_COPIES);
        every_type(_i, &variants[v], &schema, &array);
        every_type(_i, &variants[v], &second, &original);
        kept = &original.array;
        buffers = every_type_buffers(&schema, kept);
        ck_assert_int_eq(event_wait_copy(&s, ARROW_DEVICE_EXT_DEV, &schema,
                                         &array, &there, &error),
                         0);
        ck_assert_int_eq(s.device.copies, buffers);
        ck_assert_int_eq(soft_memory_live(), buffers);
        ck_assert_int_eq(there.device_type, ARROW_DEVICE_EXT_DEV);
        ck_assert((there.sync_event != NULL) == (buffers > 0));
        ck_assert_int_eq(event_wait_copy(&s, ARROW_DEVICE_CPU, &schema, &there,
                                         &back, &error),
                         0);
        ck_assert_int_eq(s.device.copies, 2 * buffers);
        ck_assert_int_eq(back.device_type, ARROW_DEVICE_CPU);
        ck_assert(every_type_equal(&schema, kept, &back.array));
        uva_array_release(&back);
        uva_array_release(&original);
        second.release(&second);
        schema_end(&schema);
    }
}
END_TEST

/* One round trip of type `k`; gives its outcome. */
static int round_trip(int k, struct ArrowSchema *schema,
                      struct uva_error *error)
{
    const struct every_variant variant = {6, 1, true};
    struct ArrowDeviceArray array, there, back;
    int code;

    every_type(k, &variant, schema, &array);
    code = event_wait_copy(&s, ARROW_DEVICE_EXT_DEV, schema, &array, &there,
                           error);
    if (code == 0)
        code =
            event_wait_copy(&s, ARROW_DEVICE_CPU, schema, &there, &back, error);
    if (code == 0)
        uva_array_release(&back);
    return code;
}

START_TEST(any_call_of_a_copy_may_fail)
{
    struct ArrowSchema schema;
    struct uva_error error;
    int code;

    for (long k = 1; k == s.device.copy_fails_at + 1 || k == 1; k++) {
        event_wait_open(&s, SOFT_COPIES);
        s.device.copy_fails_at = k;
        s.device.copy_code = _i == 1 ? EAGAIN : 0;
        code = round_trip(ROUND, &schema, &error);
        if (code != 0) {
            ck_assert_int_eq(code, EIO);
            ck_assert_ptr_nonnull(
                strstr(error.message,
                       _i == 1 ? "a copy could not be begun" : "has failed"));
        }
        schema_end(&schema);
        if (code == 0)
            break;
    }
    ck_assert_int_gt(s.device.copy_fails_at, 10);
}
END_TEST

START_TEST(the_event_of_any_step_may_fail)
{
    struct ArrowSchema schema;
    struct uva_error error;
    int code = EIO;
    long k;

    for (k = 1; code != 0; k++) {
        event_wait_open(&s, SOFT_COPIES);
        s.device.step_fails_at = k;
        code = round_trip(VIEW, &schema, &error);
        ck_assert_int_eq(code, k <= s.device.copies ? EIO : 0);
        schema_end(&schema);
    }
    ck_assert_int_gt(k, 10);
}
END_TEST

START_TEST(a_device_may_be_out_of_memory)
{
    struct ArrowSchema schema;
    struct uva_error error;
    int code = ENOMEM;
    long k = 1;

    for (; code != 0; k++) {
        event_wait_open(&s, SOFT_COPIES);
        s.device.alloc_fails_at = k;
        code = round_trip(ROUND, &schema, &error);
        ck_assert(code == 0 || code == ENOMEM);
        schema_end(&schema);
    }
    ck_assert_int_gt(k, 5);
}
END_TEST

/* The array is on the device, and its source was released. */
static void array_upload(int k, const struct every_variant *variant,
                         struct ArrowSchema *schema,
                         struct ArrowDeviceArray *there)
{
    struct ArrowDeviceArray array;
    struct uva_error error;
    int nodes;

    every_type(k, variant, schema, &array);
    nodes = plain_live();
    ck_assert_int_eq(event_wait_copy(&s, ARROW_DEVICE_EXT_DEV, schema, &array,
                                     there, &error),
                     0);
    while (plain_live() == nodes)
        event_wait_flush(&s);
    event_wait_flush(&s);
}

START_TEST(a_copy_that_is_cancelled_keeps_its_memory_until_it_has_ended)
{
    const struct every_variant variant = {6, 1, true};
    struct ArrowDeviceArray there, nothing = {0};
    struct uva_watch *watch;
    struct ArrowSchema schema;
    struct uva_error error;
    int memory;

    event_wait_open(&s, SOFT_COPIES);
    array_upload(ROUND, &variant, &schema, &there);
    atomic_store(&s.device.held, true);
    memory = soft_memory_live();
    ck_assert_int_gt(memory, 0);
    ck_assert_int_eq(event_wait_begin_copy(&s, ARROW_DEVICE_CPU, &schema,
                                           &there, &watch, &error),
                     0);
    if (_i != 1) /* else the end may come before the device thread has begun */
        event_wait_flush(&s);
    if (_i == 2) {
        uva__event_wait_cancel(watch);
        event_wait_flush(&s);
    } else {
        ck_assert(uva__event_wait_abandon(watch, &nothing));
    }
    event_wait_end(&s); /* the workers end; the device thread stays */
    ck_assert_int_eq(soft_memory_live(), memory);
    ck_assert_int_eq(s.device.unloads, 0);
    atomic_store(&s.device.held, false);
    if (_i == 2) {
        ck_assert_int_eq(event_wait_await(&s, watch), ECANCELED);
        uva__event_wait_release(watch);
    }
    schema_end(&schema);
}
END_TEST

/* In any order of their ends: the copies, the owner of the result, the
 * workers. */
START_TEST(what_goes_to_a_device_is_given_when_all_was_begun)
{
    const struct every_variant variant = {6, 1, true};
    struct ArrowDeviceArray array, there;
    struct ArrowSchema schema;
    struct uva_error error;
    int nodes, memory;

    event_wait_open(&s, SOFT_COPIES);
    atomic_store(&s.device.held, true);
    every_type(ROUND, &variant, &schema, &array);
    nodes = plain_live();
    ck_assert_int_eq(event_wait_copy(&s, ARROW_DEVICE_EXT_DEV, &schema, &array,
                                     &there, &error),
                     0);
    ck_assert_ptr_nonnull(there.sync_event);
    memory = soft_memory_live();
    if (_i == 0) {
        atomic_store(&s.device.held, false);
        while (plain_live() == nodes)
            event_wait_flush(&s);
        ck_assert_int_eq(soft_memory_live(), memory);
        uva_array_release(&there);
    } else {
        uva_array_release(&there);
        if (_i == 2)
            event_wait_end(&s);
        else
            event_wait_flush(&s);
        ck_assert_int_eq(plain_live(), nodes);
        ck_assert_int_eq(soft_memory_live(), memory);
        ck_assert_int_eq(s.device.events_live, 1);
        atomic_store(&s.device.held, false);
    }
    schema_end(&schema);
}
END_TEST

START_TEST(a_copy_is_queued_on_the_device_behind_the_arrays_event)
{
    const struct every_variant variant = {5, 0, true};
    struct ArrowDeviceArray array, there, back = {0};
    struct uva_watch *watch;
    struct ArrowSchema schema;
    struct uva_error error;

    event_wait_open(&s, SOFT_COPIES);
    every_type(15, &variant, &schema, &array);
    ck_assert_int_eq(event_wait_copy(&s, ARROW_DEVICE_EXT_DEV, &schema, &array,
                                     &there, &error),
                     0);
    there.sync_event = &s.device.events[0];
    ck_assert_int_eq(event_wait_begin_copy(&s, ARROW_DEVICE_CPU, &schema,
                                           &there, &watch, &error),
                     0);
    event_wait_flush(&s);
    ck_assert_int_eq(s.device.copies, 3 + 2); /* begun: no thread waits first */
    ck_assert_int_eq(s.device.chained, 1);    /* the next copies follow */
    ck_assert(!uva__event_wait_is_over(watch));
    soft_event_end(&s.device, 0, _i == 0 ? 0 : EIO);
    ck_assert_int_eq(event_wait_await(&s, watch), _i == 0 ? 0 : EIO);
    ck_assert_int_eq(s.device.chained, 1);
    if (_i == 0)
        uva__copy_give(watch->work, &back);
    uva__event_wait_release(watch);
    uva_array_release(&back);
    schema_end(&schema);
}
END_TEST

/* A device that makes copies at once, without regard to the events that they
 * are queued after; their own need not be freed. */
static long deaf_copies, deaf_fails_at;

static int deaf_copy(void *state, const struct uva_device_copy *copy,
                     void **event_out, struct uva_error *error)
{
    struct soft_device *device = state;

    if (++deaf_copies == deaf_fails_at)
        return uva_error_set(error, ENOSPC, "no room");
    memcpy(soft_memory_at(copy->target, copy->size_bytes),
           soft_memory_at(copy->source, copy->size_bytes), copy->size_bytes);
    *event_out = &device->events[1];
    return 0;
}

/* The array's own event is pending at the end, or fails, or is complete; in the
 * second half a copy fails too. */
START_TEST(the_arrays_event_is_asked_after_whatever_its_copies_say)
{
    static const int events[] = {-1, EPROTO, 0};
    const struct every_variant variant = {5, 0, true};
    const int reported = _i >= 3 ? ENOSPC : _i == 1 ? EPROTO : 0;
    struct ArrowDeviceArray array, there, back;
    struct uva_device_ops ops;
    struct ArrowSchema schema;
    struct uva_error error;

    soft_device_init(&s.device, SOFT_COPIES);
    ops = *soft_device_ops(&s.device);
    ops.copy = deaf_copy;
    ops.event_free = NULL;
    event_wait_open_with(&s, &ops, &s.device);
    deaf_copies = deaf_fails_at = 0;
    soft_event_end(&s.device, 1, 0);
    every_type(15, &variant, &schema, &array);
    ck_assert_int_eq(event_wait_copy(&s, ARROW_DEVICE_EXT_DEV, &schema, &array,
                                     &there, &error),
                     0);
    there.sync_event = &s.device.events[0];
    atomic_store(&s.device.events[0].state, events[_i % 3]);
    deaf_fails_at = _i >= 3 ? deaf_copies + 2 : 0;
    ck_assert_int_eq(
        event_wait_copy(&s, ARROW_DEVICE_CPU, &schema, &there, &back, &error),
        reported);
    if (reported == ENOSPC)
        ck_assert_str_eq(error.message, "no room");
    if (reported == EPROTO)
        ck_assert_str_eq(error.message, "soft_query failed with 700: event 0");
    uva_array_release(&back);
    schema_end(&schema);
}
END_TEST

/* ---- ways --------------------------------------------------------------- */

static enum uva__copy_way way(ArrowDeviceType from, int64_t from_id,
                              ArrowDeviceType to, int64_t to_id, void *event)
{
    const struct uva__copy_destination target = {.device_type = to,
                                                 .device_id = to_id};
    const struct ArrowDeviceArray array = {
        .device_type = from, .device_id = from_id, .sync_event = event};
    struct uva_error error = {0};
    const enum uva__copy_way found =
        uva__copy_find(s.devices, &target, &array, &error);

    ck_assert_int_eq(error.code, found == UVA__COPY_LOST ? ENOTSUP : 0);
    return found;
}

START_TEST(the_way_follows_from_the_types)
{
    struct uva_device_ops ops;
    struct uva_error error;
    int event;

    event_wait_open(&s, SOFT_COPIES);
    ops = *soft_device_ops(&s.device);
    ck_assert_int_eq(uva__devices_register(s.devices, ARROW_DEVICE_CUDA, &ops,
                                           &s.device, &error),
                     0);
    ck_assert_int_eq(way(1, -1, 1, 7, NULL), UVA__COPY_NONE);
    ck_assert_int_eq(way(12, 3, 12, 3, &event), UVA__COPY_NONE);
    ck_assert_int_eq(way(12, 3, 12, 4, NULL), UVA__COPY_LOST);
    ck_assert_int_eq(way(12, 3, 2, 3, NULL), UVA__COPY_LOST);
    ck_assert_int_eq(way(3, 0, 1, -1, &event), UVA__COPY_WAIT);
    ck_assert_int_eq(way(1, 0, 12, 0, &event), UVA__COPY_MOVE);
    ck_assert_int_eq(way(3, 0, 12, 0, NULL), UVA__COPY_MOVE);
    ck_assert_int_eq(way(3, 0, 12, 0, &event), UVA__COPY_LOST);
    ck_assert_int_eq(way(3, 0, 2, 0, &event), UVA__COPY_MOVE);
    ck_assert_int_eq(way(3, 0, 13, 0, &event), UVA__COPY_MOVE);
    ck_assert_int_eq(way(11, 0, 2, 0, &event), UVA__COPY_LOST);
    ck_assert_int_eq(way(3, 0, 10, 0, &event), UVA__COPY_LOST);
    ck_assert_int_eq(way(1, 0, 8, 0, NULL), UVA__COPY_LOST);
    ck_assert_int_eq(way(99, 0, 1, 0, NULL), UVA__COPY_LOST);
    ck_assert_int_eq(way(2, 0, 3, 0, &event), UVA__COPY_MOVE);
    ck_assert_int_eq(way(2, 0, 11, 0, &event), UVA__COPY_LOST); /* DA-03 */
    ck_assert_int_eq(way(12, 0, 3, 0, &event), UVA__COPY_LOST);
    ck_assert_int_eq(way(1, 0, 3, 0, NULL), UVA__COPY_LOST);
    ck_assert_int_eq(way(11, 0, 3, 0, NULL), UVA__COPY_LOST);
    ops.dealloc = NULL; /* then no array can get there */
    ck_assert_int_eq(way(1, 0, 2, 0, NULL), UVA__COPY_LOST);
    ops.alloc = NULL;
    ck_assert_int_eq(way(1, 0, 2, 0, NULL), UVA__COPY_LOST);
    ops.copy = NULL;
    ck_assert_int_eq(way(2, 0, 1, 0, NULL), UVA__COPY_LOST);
    ops.host_readable = true; /* but can be read where it is */
    ck_assert_int_eq(way(2, 0, 1, 0, NULL), UVA__COPY_WAIT);
    ck_assert_int_eq(way(2, 0, 3, 0, NULL), UVA__COPY_LOST);
    event_wait_close(&s);
}
END_TEST

START_TEST(sizes_on_the_host_are_read_when_a_device_has_filled_them_in)
{
    const struct every_variant variant = {5, 0, true};
    struct ArrowDeviceArray array, there = {0};
    struct uva_watch *watch;
    struct ArrowSchema schema;
    struct uva_error error;
    int32_t *offsets, last;

    event_wait_open(&s, SOFT_COPIES);
    ck_assert_int_eq(uva__devices_register(s.devices, ARROW_DEVICE_CUDA,
                                           soft_device_ops(&s.device),
                                           &s.device, &error),
                     0);
    every_type(15, &variant, &schema, &array);
    offsets = (void *)(uintptr_t)array.array.buffers[1];
    last = offsets[5];
    offsets[5] = -1; /* the device is copying */
    array.device_type = ARROW_DEVICE_CUDA_HOST;
    array.sync_event = &s.device.events[0];
    ck_assert_int_eq(event_wait_begin_copy(&s, ARROW_DEVICE_CUDA, &schema,
                                           &array, &watch, &error),
                     0);
    event_wait_flush(&s);
    ck_assert_int_eq(s.device.copies, 0);
    offsets[5] = last;
    soft_event_end(&s.device, 0, _i == 0 ? 0 : EIO);
    ck_assert_int_eq(event_wait_await(&s, watch), _i == 0 ? 0 : EIO);
    ck_assert_int_eq(s.device.copies, _i == 0 ? 3 : 0);
    if (_i == 0)
        uva__copy_give(watch->work, &there);
    uva__event_wait_release(watch);
    uva_array_release(&there);
    schema_end(&schema);
}
END_TEST

START_TEST(an_event_on_the_host_means_nothing)
{
    const struct every_variant variant = {5, 0, true};
    struct ArrowDeviceArray array, there;
    struct ArrowSchema schema;
    struct uva_error error;

    event_wait_open(&s, SOFT_COPIES);
    every_type(5, &variant, &schema, &array);
    array.sync_event = (void *)1; /* EV-04 */
    ck_assert_int_eq(event_wait_copy(&s, ARROW_DEVICE_EXT_DEV, &schema, &array,
                                     &there, &error),
                     0);
    uva_array_release(&there);
    schema_end(&schema);
}
END_TEST

START_TEST(an_array_that_does_not_fit_its_schema_is_not_copied)
{
    const struct every_variant variant = {5, 0, true};
    struct ArrowDeviceArray array, there;
    struct ArrowSchema schema;
    struct uva_error error;

    event_wait_open(&s, SOFT_COPIES);
    every_type(5, &variant, &schema, &array);
    schema.format = _i == 0 ? "u" : "?";
    ck_assert_int_eq(event_wait_copy(&s, ARROW_DEVICE_EXT_DEV, &schema, &array,
                                     &there, &error),
                     _i == 0 ? EINVAL : ENOTSUP);
    ck_assert_int_eq(s.device.copies, 0);
    schema_end(&schema);
}
END_TEST

START_TEST(offsets_that_fall_end_the_copy_behind_what_was_begun)
{
    const struct every_variant variant = {5, 0, true};
    struct ArrowDeviceArray there, back;
    struct ArrowSchema schema;
    struct uva_error error;
    int32_t *offsets;

    event_wait_open(&s, SOFT_COPIES);
    array_upload(15, &variant, &schema, &there);
    offsets = soft_memory_at(there.array.buffers[1], 6 * sizeof(*offsets));
    offsets[5] = -1;
    ck_assert_int_eq(
        event_wait_copy(&s, ARROW_DEVICE_CPU, &schema, &there, &back, &error),
        EINVAL);
    ck_assert_str_eq(error.message, "the offsets of an array make no sense");
    ck_assert_int_eq(s.device.copies, 3 + 2);
    schema_end(&schema);
}
END_TEST

START_TEST(parts_of_a_copy_may_be_moved_out_and_outlive_the_rest)
{
    const struct every_variant variant = {5, 0, true};
    struct ArrowDeviceArray array, there;
    struct ArrowArray child;
    struct ArrowSchema schema;
    struct uva_error error;

    event_wait_open(&s, SOFT_COPIES);
    every_type(_i == 0 ? ROUND : WORDS, &variant, &schema, &array);
    ck_assert_int_eq(event_wait_copy(&s, ARROW_DEVICE_EXT_DEV, &schema, &array,
                                     &there, &error),
                     0);
    if (_i == 0) {
        child = *there.array.children[0];
        there.array.children[0]->release = NULL;
    } else {
        child = *there.array.dictionary;
        there.array.dictionary->release = NULL;
    }
    uva_array_release(&there);
    event_wait_flush(&s);
    ck_assert_int_gt(soft_memory_live(), 0);
    event_wait_end(&s); /* the device stays as long as its memory */
    ck_assert_int_eq(s.device.unloads, 0);
    child.release(&child);
    schema_end(&schema);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, every_type_goes_to_a_device_and_comes_back, 0,
                        EVERY_TYPES);
    tcase_add_loop_test(tc, any_call_of_a_copy_may_fail, 0, 2);
    tcase_add_test(tc, the_event_of_any_step_may_fail);
    tcase_add_test(tc, a_device_may_be_out_of_memory);
    tcase_add_loop_test(
        tc, a_copy_that_is_cancelled_keeps_its_memory_until_it_has_ended, 0, 3);
    tcase_add_loop_test(tc, what_goes_to_a_device_is_given_when_all_was_begun,
                        0, 3);
    tcase_add_loop_test(
        tc, a_copy_is_queued_on_the_device_behind_the_arrays_event, 0, 2);
    tcase_add_loop_test(
        tc, the_arrays_event_is_asked_after_whatever_its_copies_say, 0, 6);
    tcase_add_test(tc, the_way_follows_from_the_types);
    tcase_add_loop_test(
        tc, sizes_on_the_host_are_read_when_a_device_has_filled_them_in, 0, 2);
    tcase_add_test(tc, an_event_on_the_host_means_nothing);
    tcase_add_loop_test(tc, an_array_that_does_not_fit_its_schema_is_not_copied,
                        0, 2);
    tcase_add_test(tc, offsets_that_fall_end_the_copy_behind_what_was_begun);
    tcase_add_loop_test(
        tc, parts_of_a_copy_may_be_moved_out_and_outlive_the_rest, 0, 2);
}

int main(void)
{
    TCase *tc = tcase_create("copies");

    tcase_set_timeout(tc, 60);
    add_tests(tc);
    return suite_main("device copy", NULL, NULL, tc, NULL);
}
