/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the oldest batch of a window keeps alive is measured once,
 * however often the loop looks at the window. The tests make the measured
 * arrays longer meanwhile, which the budget would see if it measured them
 * again. */
#include <check.h>
#include <stdalign.h>
#include <stddef.h>

#include "arrow/share.h"
#include "arrow/slice.h"
#include "stream/budget.h"
#include "support/check_suite.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

enum { PARENT = 4096, ROWS = 16, FROM = 1024 }; /* of one byte each */

static const char bytes[8 * PARENT];
static struct uva__rt *rt;
static struct uva__share share;
static struct uva__share_kept kept;
static struct ArrowSchema schema;
static struct uva__measure measure; /* of it */

static void set_up(void)
{
    const struct uva_runtime_options options = {.memory_bytes = 1};

    ck_assert_int_eq(uva__rt_new(&options, &rt), 0);
    share = (struct uva__share){0};
    kept = (struct uva__share_kept){0};
    ck_assert_int_eq(uva__share_open(&share, rt), 0);
    plain_schema(&schema, "c", "", 0);
    uva__measure_lend(&measure, &rt->allocator, &schema);
}

static void tear_down(void)
{
    uva__share_stop(&share);
    uva__share_close(&share);
    uva__measure_fini(&measure);
    uva_schema_release(&schema);
    uva__rt_retire(rt);
    uva__rt_release(rt);
    ck_assert_int_eq(plain_live(), 0);
}

static void make(int64_t rows, struct ArrowDeviceArray *out)
{
    *out = (struct ArrowDeviceArray){.device_type = ARROW_DEVICE_CPU};
    plain_array(&out->array, rows, 2, 0);
    out->array.buffers[1] = bytes;
}

/* Returns the count of the budget while a batch of ROWS rows is the oldest, and
 * the only one. */
static int64_t held_with(const struct ArrowDeviceArray *oldest, int64_t ordinal)
{
    const struct uva__batch_info info = {.ordinal = ordinal, .bytes = ROWS};

    uva__share_hold(&share, 1, ROWS);
    uva__share_keep(&share, &kept, &measure, oldest, &info);
    return (int64_t)uva__atomic64_peek(&rt->stats.memory_held);
}

/* A record batch of one column, by the plan: whole, and not. */
START_TEST(a_whole_batch_has_no_more_than_its_rows)
{
    struct ArrowDeviceArray array = {.device_type = ARROW_DEVICE_CPU};

    uva__measure_fini(&measure);
    uva_schema_release(&schema);
    plain_schema(&schema, "+s", "", 1);
    plain_schema(schema.children[0], "c", "", 0);
    uva__measure_lend(&measure, &rt->allocator, &schema);
    plain_array(&array.array, ROWS, 1, 1);
    plain_array(array.array.children[0], ROWS, 2, 0);
    array.array.children[0]->buffers[1] = bytes;
    ck_assert_int_eq(held_with(&array, 0), ROWS);
    ck_assert_int_eq(kept.memory, ROWS);
    array.array.children[0]->offset = FROM;
    ck_assert_int_eq(held_with(&array, 0), ROWS);
    ck_assert_int_eq(held_with(&array, 1), FROM + ROWS);
    uva_array_release(&array);
}
END_TEST

START_TEST(a_batch_is_measured_once)
{
    struct ArrowDeviceArray array;

    make(ROWS, &array);
    array.array.offset = FROM;
    ck_assert_int_eq(held_with(&array, 0), FROM + ROWS);
    array.array.offset = 2 * FROM;
    ck_assert_int_eq(held_with(&array, 0), FROM + ROWS);
    ck_assert_int_eq(held_with(&array, 1), 2 * FROM + ROWS);
    uva_array_release(&array);
}
END_TEST

START_TEST(an_unknown_format_is_looked_at_once)
{
    struct ArrowDeviceArray array;

    schema.format = "?";
    make(ROWS, &array);
    ck_assert_int_eq(held_with(&array, 0), ROWS);
    schema.format = "c";
    array.array.offset = FROM;
    ck_assert_int_eq(held_with(&array, 0), ROWS);
    ck_assert_int_eq(held_with(&array, 1), FROM + ROWS);
    uva_array_release(&array);
}
END_TEST

/* ---- parents ------------------------------------------------------------ */

/* Gives its only block again and again. */
static alignas(max_align_t) char block[4096];

static void *block_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    (void)align;
    ck_assert_uint_le(size, sizeof(block));
    return block;
}

static void block_free(void *ctx, void *at, size_t size)
{
    (void)ctx;
    (void)size;
    ck_assert_ptr_eq(at, block);
}

static const struct uva_allocator one_block = {block_alloc, block_free, NULL};

/* Cuts ROWS rows from a parent that has no other owner. */
static void cut(int64_t rows, struct ArrowDeviceArray *slice)
{
    struct ArrowDeviceArray parent;

    make(rows, &parent);
    ck_assert_int_eq(
        uva__slice_array(&one_block, &schema, &parent, FROM, ROWS, slice), 0);
    uva_array_release(&parent);
}

START_TEST(a_parent_is_measured_once)
{
    struct ArrowDeviceArray slice;
    struct ArrowArray *parent;

    cut(PARENT, &slice);
    ck_assert_int_eq(held_with(&slice, 0), PARENT);
    parent = (struct ArrowArray *)uva__array_share_whole(&slice.array);
    parent->length = 2 * PARENT;
    ck_assert_int_eq(held_with(&slice, 1), PARENT);
    uva_array_release(&slice);
}
END_TEST

START_TEST(another_parent_at_the_same_address_is_measured)
{
    struct ArrowDeviceArray slice;
    const struct ArrowArray *parent;

    cut(PARENT, &slice);
    parent = uva__array_share_whole(&slice.array);
    ck_assert_int_eq(held_with(&slice, 0), PARENT);
    uva_array_release(&slice);
    cut(2 * PARENT, &slice);
    ck_assert_ptr_eq(uva__array_share_whole(&slice.array), parent);
    ck_assert_int_eq(held_with(&slice, 1), 2 * PARENT);
    uva_array_release(&slice);
}
END_TEST

int main(void)
{
    TCase *tc = suite_tests(
        "kept batches", a_whole_batch_has_no_more_than_its_rows,
        a_batch_is_measured_once, an_unknown_format_is_looked_at_once,
        a_parent_is_measured_once,
        another_parent_at_the_same_address_is_measured, NULL);
    return suite_main("kept", set_up, tear_down, tc, NULL);
}
