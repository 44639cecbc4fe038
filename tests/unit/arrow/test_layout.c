/* SPDX-License-Identifier: Apache-2.0 */
/* Valid arrays are measured. All others are refused with an error that names
 * the place and the fault, and do no harm. */
#include "arrow/layout.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/buffer.h"
#include "arrow/plan.h"
#include "arrow/structs.h"
#include "support/check_suite.h"
#include "support/faulty_allocator.h"
#include "support/guard_page.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

/* A schema, an array, and the results of measuring them. */
struct bench {
    struct ArrowSchema schema;
    struct ArrowDeviceArray array;
    struct uva_error error;
    int64_t size;   /* the size of its rows */
    int64_t memory; /* the size of its buffers */
};

static char DATA[8][256]; /* buffers with arbitrary content */

/* Makes a column of `format`, with `length` items and `n_buffers` buffers that
 * are filled, except the first. */
static struct bench *column(const char *format, int64_t length, int n_buffers)
{
    static struct bench bench;

    memset(&bench, 0, sizeof(bench));
    plain_schema(&bench.schema, format, "x", 0);
    plain_array(&bench.array.array, length, n_buffers, 0);
    for (int i = 1; i < n_buffers; i++)
        bench.array.array.buffers[i] = DATA[i];
    bench.array.device_type = ARROW_DEVICE_CPU;
    return &bench;
}

/* Makes a node with `n` children of format "i" and length 2. */
static struct bench *nested(const char *format, int n_buffers, int n)
{
    static struct bench bench;

    memset(&bench, 0, sizeof(bench));
    plain_schema(&bench.schema, format, "x", n);
    plain_array(&bench.array.array, 2, n_buffers, n);
    for (int i = 1; i < n_buffers; i++)
        bench.array.array.buffers[i] = DATA[i];
    for (int i = 0; i < n; i++) {
        plain_schema(bench.schema.children[i], "i", "y", 0);
        plain_array(bench.array.array.children[i], 2, 2, 0);
        bench.array.array.children[i]->buffers[1] = DATA[5 + i];
    }
    bench.array.device_type = ARROW_DEVICE_CPU;
    return &bench;
}

static void released_by_nobody(struct ArrowSchema *schema)
{
    (void)schema;
}

static void released_by_no_one(struct ArrowArray *array)
{
    (void)array;
}

/* As the column of a batch: a plan accepts no other arrays, and measures the
 * same size. */
static void compare_with_plan(struct bench *bench)
{
    const void *buffers[1] = {NULL};
    struct ArrowSchema *schemas[1] = {&bench->schema};
    struct ArrowArray *arrays[1] = {&bench->array.array};
    struct ArrowSchema schema = {.format = "+s",
                                 .n_children = 1,
                                 .children = schemas,
                                 .release = released_by_nobody};
    struct ArrowDeviceArray batch = bench->array;
    struct faulty_allocator faulty;
    struct uva_allocator allocator;
    struct uva__plan plan;
    int64_t size = -1, other = -1;
    int code;

    batch.array = (struct ArrowArray){.n_buffers = 1,
                                      .buffers = buffers,
                                      .n_children = 1,
                                      .children = arrays,
                                      .release = released_by_no_one};
    if (bench->array.array.length > 0)
        batch.array.length = bench->array.array.length;
    faulty_allocator_init(&faulty, 0);
    allocator = faulty_allocator_table(&faulty);
    code = uva__layout_measure(&schema, &batch, &other, NULL);
    uva__plan_init(&plan, &allocator, &schema);
    if (uva__plan_measure(&plan, &schema, &batch, &size)) {
        ck_assert_int_eq(code, 0);
        ck_assert_int_eq(size, other);
    }
    uva__plan_fini(&plan);
}

/* Measures in all ways, which must agree; does not release. Arrays that begin
 * with the first item of their buffers, as most here, have their full size. */
static int measure_both(struct bench *bench)
{
    int64_t other = -1;
    int code;

    bench->size = bench->memory = -1;
    memset(&bench->error, 0, sizeof(bench->error));
    code = uva__layout_measure(&bench->schema, &bench->array, &bench->size,
                               &bench->error);
    ck_assert_int_eq(uva_array_size(&bench->schema, &bench->array, &other),
                     code);
    ck_assert_int_eq(other, bench->size);
    ck_assert_int_eq(
        uva_array_memory(&bench->schema, &bench->array, &bench->memory), code);
    ck_assert_int_eq(bench->size >= 0, code == 0);
    ck_assert_int_eq(bench->memory >= 0, code == 0);
    ck_assert_int_eq(bench->error.code, code);
    if (bench->schema.n_children == bench->array.array.n_children)
        compare_with_plan(bench); /* a schema has the children it states */
    return code;
}

static void clear(struct bench *bench)
{
    uva_schema_release(&bench->schema);
    uva_array_release(&bench->array);
    ck_assert_int_eq(plain_live(), 0);
}

/* Returns the size of a valid array, and clears the bench. */
static int64_t size_of(struct bench *bench)
{
    ck_assert_int_eq(measure_both(bench), 0);
    clear(bench);
    return bench->size;
}

/* The same for its memory. */
static int64_t memory_of(struct bench *bench)
{
    (void)size_of(bench);
    return bench->memory;
}

/* Returns the error text for an invalid array, and clears the bench. */
static const char *fault_of(struct bench *bench)
{
    ck_assert_int_eq(measure_both(bench), EINVAL);
    clear(bench);
    return bench->error.message;
}

/* ---- sizes -------------------------------------------------------------- */

static const struct {
    const char *format; /* format of a column of 10 items at offset 3 */
    int n_buffers;      /* number of buffers */
    int64_t memory;     /* without a bitmap, and ... */
    int64_t with;       /* ... with one in the first buffer */
} FIXED[] = {
    {"b", 2, 2, 4},
    {"c", 2, 13, 15},
    {"S", 2, 26, 28},
    {"e", 2, 26, 28},
    {"i", 2, 52, 54},
    {"f", 2, 52, 54},
    {"l", 2, 104, 106},
    {"g", 2, 104, 106},
    {"d:9,1,32", 2, 52, 54},
    {"d:5,1", 2, 208, 210},
    {"d:70,1,256", 2, 416, 418},
    {"w:5", 2, 65, 67},
    {"tdD", 2, 52, 54},
    {"tdm", 2, 104, 106},
    {"tts", 2, 52, 54},
    {"ttn", 2, 104, 106},
    {"tsu:UTC", 2, 104, 106},
    {"tDs", 2, 104, 106},
    {"tiM", 2, 52, 54},
    {"tiD", 2, 104, 106},
    {"tin", 2, 208, 210},
};

/* The rows take 10 of 13 items, and of the bits, which are in two bytes, the
 * one byte that begins within them. */
START_TEST(fixed_widths_count_offset_and_length) /* DA-23 */
{
    const bool are_bits = FIXED[_i].format[0] == 'b';
    const int64_t rows = are_bits ? 1 : FIXED[_i].memory / 13 * 10;

    for (int bitmap = 0; bitmap < FIXED[_i].n_buffers; bitmap++) {
        struct bench *bench = column(FIXED[_i].format, 10, FIXED[_i].n_buffers);

        bench->array.array.offset = 3;
        bench->array.array.buffers[0] = bitmap ? DATA : NULL;
        ck_assert_int_eq(memory_of(bench),
                         bitmap ? FIXED[_i].with : FIXED[_i].memory);
        ck_assert_int_eq(bench->size, rows + bitmap);
    }
}
END_TEST

START_TEST(nulls_need_nothing)
{
    ck_assert_int_eq(size_of(column("n", 10, 0)), 0);
}
END_TEST

START_TEST(bits_fill_whole_bytes)
{
    const int64_t lengths[] = {1, 7, 8, 9, 16, 17};
    const int64_t sizes[] = {1, 1, 1, 2, 2, 3};

    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(size_of(column("b", lengths[i], 2)), sizes[i]);
}
END_TEST

START_TEST(a_width_of_nothing_needs_nothing)
{
    struct bench *bench = column("w:0", INT64_MAX, 2);

    ck_assert_int_eq(size_of(bench), 0);
    bench = column("w:0", 10, 2);
    bench->array.array.buffers[1] = NULL;
    ck_assert_int_eq(size_of(bench), 0);
}
END_TEST

START_TEST(text_counts_up_to_its_last_offset)
{
    const int32_t narrow[] = {0, 5, 5, 9};
    const int64_t wide[] = {0, 5, 5, 9};
    struct bench *bench = column("u", 2, 3);

    bench->array.array.offset = 1;
    bench->array.array.buffers[1] = narrow;
    ck_assert_int_eq(memory_of(bench), 16 + 9);
    ck_assert_int_eq(bench->size, 8 + 4);
    bench = column("Z", 3, 3);
    bench->array.array.buffers[1] = wide;
    ck_assert_int_eq(size_of(bench), 32 + 9);
}
END_TEST

START_TEST(offsets_lie_at_any_address) /* DA-24 */
{
    const int64_t wide[] = {0, 5, 5, 9};
    char odd[sizeof(wide) + 1];
    struct bench *bench = column("U", 3, 3);

    memcpy(odd + 1, wide, sizeof(wide));
    bench->array.array.buffers[1] = odd + 1;
    ck_assert_int_eq(size_of(bench), 32 + 9);
}
END_TEST

START_TEST(da27_views_count_their_buffers_and_lengths)
{
    const int64_t lengths[] = {100, 0, 7};
    struct bench *bench = column("vu", 2, 6);

    bench->array.array.buffers[5] = lengths;
    ck_assert_int_eq(memory_of(bench), 2 * 16 + 107 + 24);
    ck_assert_int_eq(bench->size, 2 * 16 + 24); /* they are empty */
    bench = column("vz", 2, 3);
    ck_assert_int_eq(size_of(bench), 2 * 16);
    bench = column("vz", 2, 3);
    bench->array.array.buffers[2] = NULL; /* no buffers, no lengths */
    ck_assert_int_eq(size_of(bench), 2 * 16);
}
END_TEST

START_TEST(what_only_a_device_can_read_is_not_looked_at)
{
    const ArrowDeviceType types[] = {ARROW_DEVICE_CUDA,
                                     ARROW_DEVICE_CUDA_MANAGED,
                                     ARROW_DEVICE_ROCM,
                                     ARROW_DEVICE_EXT_DEV,
                                     0,
                                     9999};

    for (int i = 0; i < 6; i++) {
        struct bench *bench = column("u", 2, 3);
        bench->array.device_type = types[i];
        bench->array.array.buffers[1] = (void *)(uintptr_t)0x10;
        bench->array.array.buffers[2] = (void *)(uintptr_t)0x20;
        ck_assert_int_eq(size_of(bench), 12);
        bench = column("vu", 2, 4);
        bench->array.device_type = types[i];
        bench->array.array.buffers[2] = (void *)(uintptr_t)0x10;
        bench->array.array.buffers[3] = (void *)(uintptr_t)0x20;
        ck_assert_int_eq(size_of(bench), 32 + 8);
    }
}
END_TEST

START_TEST(pinned_memory_is_read_once_no_event_is_open)
{
    const int32_t offsets[] = {0, 5, 9};
    struct bench *bench = column("u", 2, 3);

    bench->array.device_type = ARROW_DEVICE_CUDA_HOST;
    bench->array.array.buffers[1] = offsets;
    ck_assert_int_eq(size_of(bench), 12 + 9);
    bench = column("u", 2, 3);
    bench->array.device_type = ARROW_DEVICE_ROCM_HOST;
    bench->array.sync_event = DATA;
    bench->array.array.buffers[1] = (void *)(uintptr_t)0x10;
    ck_assert_int_eq(size_of(bench), 12);
    bench = column("u", 2, 3);
    bench->array.sync_event = DATA; /* has no meaning on a CPU (G-80) */
    bench->array.array.buffers[1] = offsets;
    ck_assert_int_eq(size_of(bench), 12 + 9);
}
END_TEST

START_TEST(empty_arrays_need_no_buffers)
{
    const char *const formats[] = {"i", "u", "U", "b", "vu", "tss:"};
    const int n_buffers[] = {2, 3, 3, 2, 3, 2};

    for (int i = 0; i < 6; i++)
        for (int filled = 0; filled < 2; filled++) {
            struct bench *bench = column(formats[i], 0, n_buffers[i]);
            bench->array.array.offset = 5 * filled;
            for (int b = 0; b < n_buffers[i]; b++) /* must not be read */
                bench->array.array.buffers[b] =
                    filled ? (void *)(uintptr_t)0x10 : NULL;
            ck_assert_int_eq(size_of(bench), 0);
        }
}
END_TEST

static const struct {
    const char *format;
    int n_buffers, n_children;
    int64_t own, below; /* with children of 8 bytes each */
    int64_t taken;      /* of these, by buffers that are full of zeroes */
} NESTED[] = {
    {"+s", 1, 3, 0, 24, 24},      {"+s", 1, 0, 0, 0, 0},
    {"+l", 2, 1, 12, 8, 0},       {"+L", 2, 1, 24, 8, 0},
    {"+m", 2, 1, 12, 8, 0},       {"+vl", 3, 1, 16, 8, 0},
    {"+vL", 3, 1, 32, 8, 0},      {"+w:1", 1, 1, 0, 8, 8},
    {"+ud:3,4", 2, 2, 10, 16, 0}, {"+us:3,4", 1, 2, 2, 16, 16},
    {"+r", 0, 2, 0, 16, 16},      {"+us:", 1, 0, 2, 0, 0},
};

START_TEST(nested_types_add_their_children)
{
    struct bench *bench =
        nested(NESTED[_i].format, NESTED[_i].n_buffers, NESTED[_i].n_children);

    if (NESTED[_i].format[1] == 'u')
        bench->array.array.buffers[0] = DATA;
    ck_assert_int_eq(memory_of(bench), NESTED[_i].own + NESTED[_i].below);
    ck_assert_int_eq(bench->size, NESTED[_i].own + NESTED[_i].taken);
}
END_TEST

START_TEST(a_dictionary_is_added)
{
    const int32_t offsets[] = {0, 4};
    struct bench *bench = column("c", 10, 2);
    struct ArrowArray *words = plain_array_dictionary(&bench->array.array);

    plain_schema(plain_schema_dictionary(&bench->schema), "u", NULL, 0);
    plain_array(words, 1, 3, 0);
    words->buffers[1] = offsets;
    words->buffers[2] = DATA;
    ck_assert_int_eq(size_of(bench), 10 + 8 + 4);
}
END_TEST

/* By its address; a longer part of it counts in its place. Beyond some number
 * they count each time. */
START_TEST(a_buffer_that_several_columns_have_counts_once_as_memory)
{
    struct bench *bench = nested("+s", 1, 3);
    struct ArrowArray **children = bench->array.array.children;

    children[1]->buffers[1] = children[2]->buffers[1] = DATA[5];
    children[1]->length = 5;
    ck_assert_int_eq(memory_of(bench), 20);
    ck_assert_int_eq(bench->size, 24);
}
END_TEST

START_TEST(a_batch_may_have_any_number_of_buffers)
{
    enum { COLUMNS = 300 };
    static int32_t items[COLUMNS][2];
    struct ArrowDeviceArray array = {.device_type = ARROW_DEVICE_CPU};
    struct ArrowSchema schema;
    int64_t memory;

    plain_schema(&schema, "+s", "x", COLUMNS);
    plain_array(&array.array, 2, 1, COLUMNS);
    for (int i = 0; i < COLUMNS; i++) {
        plain_schema(schema.children[i], "i", "y", 0);
        plain_array(array.array.children[i], 2, 2, 0);
        array.array.children[i]->buffers[1] = items[i];
    }
    ck_assert_int_eq(uva_array_memory(&schema, &array, &memory), 0);
    ck_assert_int_eq(memory, COLUMNS * 8);
    array.array.children[COLUMNS - 1]->buffers[1] = items[COLUMNS - 2];
    ck_assert_int_eq(uva_array_memory(&schema, &array, &memory), 0);
    ck_assert_int_eq(memory, COLUMNS * 8); /* it was not remembered */
    array.array.children[COLUMNS - 1]->buffers[1] = items[0];
    ck_assert_int_eq(uva_array_memory(&schema, &array, &memory), 0);
    ck_assert_int_eq(memory, (COLUMNS - 1) * 8);
    uva_array_release(&array);
    uva_schema_release(&schema);
}
END_TEST

START_TEST(nothing_behind_the_offsets_is_read)
{
    const int32_t offsets[] = {0, 5, 9};
    char *wall = guard_page_copy(offsets, sizeof(offsets));
    struct bench *bench = column("z", 2, 3);

    bench->array.array.buffers[1] = wall;
    ck_assert_int_eq(size_of(bench), 12 + 9);
    guard_page_free(wall, sizeof(offsets));
}
END_TEST

START_TEST(one_buffer_can_be_measured)
{
    const int32_t offsets[] = {0, 5, 9};
    struct bench *bench = column("u", 2, 3);
    const struct ArrowArray *array = &bench->array.array;
    const int64_t sizes[] = {0, 12, 9};
    struct uva__layout layout;
    int64_t size;

    bench->array.array.buffers[1] = offsets;
    ck_assert_int_eq(uva__format_read("u", &layout), 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(uva__buffer_size(&layout, array, i, true, &size), 0);
        ck_assert_int_eq(size, sizes[i]);
    }
    ck_assert_int_eq(uva__buffer_needed(&layout, array, 0, true, &size), 0);
    ck_assert_int_eq(size, 1);
    ck_assert_int_eq(uva__buffer_size(&layout, array, 2, false, &size), 0);
    ck_assert_int_eq(size, 0);
    bench->array.array.buffers[1] = NULL; /* then its size is unknown */
    ck_assert_int_eq(uva__buffer_needed(&layout, array, 2, true, &size),
                     EINVAL);
    clear(bench);
}
END_TEST

/* ---- faults ------------------------------------------------------------- */

START_TEST(da20_the_number_of_buffers_follows_from_the_format)
{
    ck_assert_str_eq(fault_of(column("i", 3, 3)),
                     "batch (name 'x', format 'i'): n_buffers is 3, "
                     "expected 2");
    ck_assert_str_eq(fault_of(column("u", 3, 2)),
                     "batch (name 'x', format 'u'): n_buffers is 2, "
                     "expected 3");
    ck_assert_str_eq(fault_of(column("vu", 3, 2)),
                     "batch (name 'x', format 'vu'): n_buffers is 2, "
                     "expected 3");
    for (int i = 0; i < 2; i++) {
        struct bench *bench = column(i == 0 ? "i" : "vu", 3, 3);
        bench->array.array.n_buffers = i == 0 ? -1 : INT64_MAX;
        (void)fault_of(bench);
    }
}
END_TEST

START_TEST(da20_the_number_of_children_follows_from_the_schema)
{
    struct bench *bench = nested("+s", 1, 2);

    bench->array.array.n_children = 1;
    ck_assert_str_eq(fault_of(bench),
                     "batch (name 'x', format '+s'): n_children is 1, "
                     "expected 2");
    (void)fault_of(nested("+l", 2, 2));
    (void)fault_of(nested("i", 2, 1));
    (void)fault_of(nested("+us:1,2", 1, 1));
    bench = nested("+s", 1, 2);
    bench->schema.n_children = bench->array.array.n_children = -1;
    (void)fault_of(bench);
    bench = nested("+s", 1, 2);
    bench->schema.n_children = bench->array.array.n_children = INT64_MAX;
    (void)fault_of(bench);
}
END_TEST

START_TEST(da21_lengths_offsets_and_counts_are_in_range)
{
    const int64_t bad[][3] = {
        {-1, 0, 0},        {3, -1, 0},        {3, 0, -2},       {3, 0, 4},
        {INT64_MIN, 0, 0}, {INT64_MAX, 1, 0}, {1, INT64_MAX, 0}};

    for (int i = 0; i < 7; i++)
        for (int text = 0; text < 2; text++) {
            struct bench *bench = column(text ? "u" : "i", 3, text ? 3 : 2);
            bench->array.array.length = bad[i][0];
            bench->array.array.offset = bad[i][1];
            bench->array.array.null_count = bad[i][2];
            (void)fault_of(bench);
        }
}
END_TEST

START_TEST(sizes_that_cannot_be_are_refused)
{
    struct bench *bench = column("l", INT64_MAX / 4, 2);

    (void)fault_of(bench);
    bench = column("w:2147483647", INT64_MAX / 1024, 2);
    (void)fault_of(bench);
    bench = column("u", INT64_MAX, 3);
    (void)fault_of(bench);
    bench = column("c", INT64_MAX, 2); /* fits alone, but not with a bitmap */
    ck_assert_int_eq(measure_both(bench), 0);
    bench->array.array.buffers[0] = DATA;
    (void)fault_of(bench);
}
END_TEST

START_TEST(da22_only_a_bitmap_of_no_nulls_may_be_missing)
{
    struct bench *bench = column("i", 3, 2);

    bench->array.array.buffers[1] = NULL;
    ck_assert_str_eq(fault_of(bench),
                     "batch (name 'x', format 'i'): buffers[1] is NULL");
    bench = column("i", 3, 2);
    bench->array.array.null_count = 1;
    ck_assert_str_eq(fault_of(bench),
                     "batch (name 'x', format 'i'): buffers[0] is NULL");
    bench = column("i", 3, 2);
    bench->array.array.null_count = -1; /* wrong, but common */
    ck_assert_int_eq(size_of(bench), 12);
    bench = nested("+us:1", 1, 1); /* type ids are not a bitmap */
    bench->array.array.buffers[0] = NULL;
    (void)fault_of(bench);
    bench = column("b", 3, 2);
    bench->array.array.buffers[1] = NULL;
    (void)fault_of(bench);
}
END_TEST

START_TEST(da22_the_buffers_vector_may_not_be_missing)
{
    for (int i = 0; i < 2; i++) {
        struct bench *bench = column(i == 0 ? "i" : "u", 3, 2 + i);
        const void **buffers = bench->array.array.buffers;
        bench->array.array.buffers = NULL;
        ck_assert_int_eq(measure_both(bench), EINVAL);
        bench->array.array.buffers = buffers;
        clear(bench);
    }
}
END_TEST

START_TEST(data_may_be_missing_only_if_the_offsets_say_so)
{
    const int32_t none[] = {0, 0, 0}, some[] = {0, 0, 3};
    struct bench *bench = column("u", 2, 3);

    bench->array.array.buffers[1] = none;
    bench->array.array.buffers[2] = NULL;
    ck_assert_int_eq(size_of(bench), 12);
    bench = column("u", 2, 3);
    bench->array.array.buffers[1] = some;
    bench->array.array.buffers[2] = NULL;
    (void)fault_of(bench);
    bench = column("u", 2, 3);
    bench->array.array.buffers[1] = NULL;
    (void)fault_of(bench);
}
END_TEST

START_TEST(offsets_that_lie_are_refused)
{
    const int32_t negative[] = {-1, 2, 3}, falling[] = {4, 3, 2};
    const int64_t lengths[] = {5, -5};
    struct bench *bench = column("u", 2, 3);

    bench->array.array.buffers[1] = negative;
    (void)fault_of(bench);
    bench = column("u", 2, 3);
    bench->array.array.buffers[1] = falling;
    (void)fault_of(bench);
    bench = column("vu", 2, 5);
    bench->array.array.buffers[4] = lengths;
    (void)fault_of(bench);
    bench = column("vu", 2, 5);
    bench->array.array.buffers[4] = NULL;
    (void)fault_of(bench);
}
END_TEST

START_TEST(sums_that_overflow_are_refused)
{
    const int64_t lengths[] = {INT64_MAX, INT64_MAX};
    struct bench *bench = column("vu", 2, 5);

    bench->array.array.buffers[4] = lengths;
    (void)fault_of(bench);
}
END_TEST

START_TEST(a_column_of_numbers_is_added_to_a_huge_one)
{
    struct bench *bench = nested("+s", 1, 2);

    bench->schema.children[0]->format = "w:1";
    bench->array.array.children[0]->length = INT64_MAX / 2 + 1;
    ck_assert_int_eq(memory_of(bench), INT64_MAX / 2 + 1 + 8);
    ck_assert_int_eq(bench->size, 2 + 8);
}
END_TEST

START_TEST(da25_every_child_is_there_and_live)
{
    struct bench *bench = nested("+s", 1, 2);
    struct ArrowArray **children = bench->array.array.children;
    struct ArrowSchema **fields;

    bench->array.array.children = NULL;
    ck_assert_int_eq(measure_both(bench), EINVAL);
    bench->array.array.children = children;
    fields = bench->schema.children;
    bench->schema.children = NULL;
    ck_assert_int_eq(measure_both(bench), EINVAL);
    bench->schema.children = fields;
    children[1]->release(children[1]);
    ck_assert_str_eq(fault_of(bench), "children[1] (name 'y', format 'i'): "
                                      "the array is released");
    bench = nested("+s", 1, 2);
    children = bench->array.array.children;
    children[0]->release(children[0]);
    free(children[0]);
    children[0] = NULL;
    ck_assert_str_eq(fault_of(bench), "batch (name 'x', format '+s'): "
                                      "children[0] is NULL");
    bench = nested("+s", 1, 2);
    fields = bench->schema.children;
    fields[1]->release(fields[1]);
    free(fields[1]);
    fields[1] = NULL;
    ck_assert_str_eq(fault_of(bench), "batch (name 'x', format '+s'): "
                                      "children[1] is NULL");
}
END_TEST

START_TEST(da26_a_dictionary_is_there_exactly_when_it_should)
{
    struct bench *bench = column("i", 3, 2);

    plain_schema(plain_schema_dictionary(&bench->schema), "u", NULL, 0);
    ck_assert_str_eq(fault_of(bench), "batch (name 'x', format 'i'): lacks its "
                                      "dictionary");
    bench = column("i", 3, 2);
    plain_array(plain_array_dictionary(&bench->array.array), 0, 3, 0);
    ck_assert_str_eq(fault_of(bench), "batch (name 'x', format 'i'): has an "
                                      "unexpected dictionary");
    bench = column("g", 3, 2);
    plain_schema(plain_schema_dictionary(&bench->schema), "u", NULL, 0);
    plain_array(plain_array_dictionary(&bench->array.array), 0, 3, 0);
    (void)fault_of(bench);
    bench = column("i", 3, 2);
    plain_schema(plain_schema_dictionary(&bench->schema), "u", "w", 0);
    plain_array(plain_array_dictionary(&bench->array.array), 0, 2, 0);
    ck_assert_str_eq(fault_of(bench), "dictionary (name 'w', format 'u'): "
                                      "n_buffers is 2, expected 3");
}
END_TEST

START_TEST(da29_released_structs_are_not_read)
{
    struct bench *bench = nested("+s", 1, 2);
    struct ArrowDeviceArray other;

    uva_array_move(&bench->array, &other);
    ck_assert_int_eq(measure_both(bench), EINVAL);
    uva_array_release(&other);
    clear(bench);
    bench = column("i", 3, 2);
    uva_array_release(&bench->array);
    memset(&bench->array, 0xDD, sizeof(bench->array));
    bench->array.array.release = NULL;
    ck_assert_int_eq(measure_both(bench), EINVAL);
    uva_schema_release(&bench->schema);
    ck_assert_int_eq(measure_both(bench), EINVAL);
    ck_assert_ptr_nonnull(strstr(bench->error.message, "schema"));
}
END_TEST

/* A member moved out of a schema may have been freed since. */
START_TEST(da29_a_schema_moved_out_of_its_parent_is_not_read)
{
    struct bench *bench = nested("+s", 1, 1);
    struct ArrowSchema *child = bench->schema.children[0], moved = *child;

    memset(child, 0xDD, sizeof(*child));
    child->release = NULL;
    uva_schema_release(&moved);
    ck_assert_str_eq(
        fault_of(bench),
        "batch (name 'x', format '+s'): children[0] has a released schema");
    bench = column("i", 3, 2);
    (void)plain_schema_dictionary(&bench->schema);
    plain_array(plain_array_dictionary(&bench->array.array), 0, 2, 0);
    ck_assert_str_eq(
        fault_of(bench),
        "batch (name 'x', format 'i'): the dictionary has a released schema");
}
END_TEST

/* Children that a node of two items needs, at least. */
static const struct {
    const char *format;
    int n_buffers;
    int64_t offset;
    int64_t needed;
} CHILDREN[] = {
    {"+s", 1, 0, 2},    {"+s", 1, 3, 5},
    {"+us:1", 1, 0, 2}, {"+us:1", 1, 3, 5},
    {"+w:3", 1, 0, 6},  {"+w:3", 1, 1, 9},
    {"+w:0", 1, 3, 0},  {"+vl", 3, 3, 0},
    {"+ud:1", 2, 3, 0}, {"+w:2147483647", 1, INT64_MAX / 4, INT64_MAX},
};

START_TEST(da23_children_are_as_long_as_their_parent_needs)
{
    const int64_t needed = CHILDREN[_i].needed;
    char text[128];

    (void)snprintf(text, sizeof(text),
                   "children[0] (name 'y', format 'n'): length %lld, but the "
                   "parent needs %lld",
                   (long long)needed - 1, (long long)needed);
    for (int missing = 0; missing < 2 && missing <= needed; missing++) {
        struct bench *bench =
            nested(CHILDREN[_i].format, CHILDREN[_i].n_buffers, 1);
        struct ArrowArray *child = bench->array.array.children[0];

        if (CHILDREN[_i].format[1] == 'u')
            bench->array.array.buffers[0] = DATA;
        bench->array.array.offset = CHILDREN[_i].offset;
        bench->schema.children[0]->format = "n"; /* has no buffers */
        child->n_buffers = 0;
        child->length = needed - missing;
        if (missing > 0)
            ck_assert_str_eq(fault_of(bench), text);
        else
            (void)size_of(bench);
    }
}
END_TEST

START_TEST(da23_a_column_that_is_shorter_than_its_batch_is_refused)
{
    for (int i = 0; i < 2; i++) {
        struct bench *bench = nested("+s", 1, 2);

        bench->array.array.length -= i;
        bench->array.array.offset = 1;
        bench->array.array.children[0]->length = 4;
        if (i == 0)
            ck_assert_str_eq(fault_of(bench),
                             "children[1] (name 'y', format 'i'): length 2, "
                             "but the parent needs 3");
        else
            ck_assert_int_eq(memory_of(bench), 24);
        ck_assert_int_eq(bench->size, i == 0 ? -1 : 8);
    }
}
END_TEST

START_TEST(an_array_without_rows_needs_no_items_in_children)
{
    struct bench *bench = nested("+s", 1, 1);

    bench->array.array.length = 0;
    bench->array.array.offset = 5;
    ck_assert_int_eq(memory_of(bench), 8);
    ck_assert_int_eq(bench->size, 0);
}
END_TEST

/* Only the buffers of a column of an unknown format cannot be checked. */
START_TEST(what_lies_beside_an_unknown_format_is_checked)
{
    struct bench *bench = nested("+s", 1, 3);
    struct ArrowArray **children = bench->array.array.children;

    bench->schema.children[0]->format = "?";
    children[0]->n_buffers = 0;
    ck_assert_int_eq(measure_both(bench), ENOTSUP);
    children[0]->length = 1;
    ck_assert_int_eq(measure_both(bench), EINVAL);
    children[0]->length = 2;
    children[0]->n_children = 1;
    ck_assert_int_eq(measure_both(bench), EINVAL);
    children[0]->n_children = 0;
    children[2]->buffers[1] = NULL;
    ck_assert_int_eq(measure_both(bench), EINVAL);
    ck_assert_str_eq(bench->error.message,
                     "children[2] (name 'y', format 'i'): buffers[1] is NULL");
    bench->schema.children[1]->format = "+?";
    ck_assert_int_eq(measure_both(bench), EINVAL);
    children[2]->buffers[1] = DATA;
    ck_assert_int_eq(measure_both(bench), ENOTSUP);
    ck_assert_str_eq(bench->error.message,
                     "children[0] (name 'y', format '?'): unknown format");
    clear(bench);
}
END_TEST

START_TEST(unknown_formats_are_not_supported)
{
    struct bench *bench = nested("+s", 1, 2);

    bench->schema.children[1]->format = "?";
    ck_assert_int_eq(measure_both(bench), ENOTSUP);
    ck_assert_str_eq(bench->error.message,
                     "children[1] (name 'y', format '?'): unknown format");
    bench->schema.children[1]->format = "w:x";
    ck_assert_int_eq(measure_both(bench), EINVAL);
    bench->schema.children[1]->format = NULL;
    ck_assert_int_eq(measure_both(bench), EINVAL);
    clear(bench);
}
END_TEST

/* Structs nested in structs, with a number at the bottom. */
static struct bench *tower(int levels)
{
    struct bench *bench = nested("+s", 1, 1);
    struct ArrowSchema *schema = bench->schema.children[0];
    struct ArrowArray *array = bench->array.array.children[0];

    while (--levels > 0) {
        uva_schema_release(schema);
        array->release(array);
        plain_schema(schema, "+s", "z", 1);
        plain_array(array, 2, 1, 1);
        schema = schema->children[0];
        array = array->children[0];
        plain_schema(schema, "i", "n", 0);
        plain_array(array, 2, 2, 0);
        array->buffers[1] = DATA;
    }
    return bench;
}

START_TEST(there_is_a_bound_to_depth)
{
    ck_assert_int_eq(size_of(tower(UVA__STRUCTS_MAX_DEPTH)), 8);
    (void)fault_of(tower(UVA__STRUCTS_MAX_DEPTH + 1));
}
END_TEST

START_TEST(the_place_is_told_from_the_top)
{
    struct bench *bench = tower(3);
    struct ArrowArray *array = &bench->array.array;

    for (int i = 0; i < 3; i++)
        array = array->children[0];
    array->buffers[1] = NULL;
    ck_assert_str_eq(fault_of(bench),
                     "children[0].children[0].children[0] (name 'n', format "
                     "'i'): buffers[1] is NULL");
}
END_TEST

START_TEST(hostile_names_leave_a_readable_text)
{
    char name[2000], format[2000];
    struct bench *bench = column("i", 3, 3);

    memset(name, 'a', sizeof(name));
    for (int i = 63; i < 1990; i += 3)
        memcpy(name + i, "\xE2\x82\xAC", 3);
    name[1999] = '\0';
    bench->schema.name = name;
    (void)fault_of(bench);
    ck_assert_ptr_nonnull(strstr(bench->error.message, "aaa', format 'i'"));
    bench = column("i", 3, 3);
    memset(format, '9', sizeof(format));
    memcpy(format, "w:", 2);
    format[1999] = '\0';
    bench->schema.format = format;
    ck_assert_ptr_nonnull(strstr(fault_of(bench), "malformed format"));
}
END_TEST

static void keep_schema(struct ArrowSchema *schema)
{
    (void)schema;
}

static void keep_array(struct ArrowArray *array)
{
    (void)array;
}

START_TEST(a_tree_that_shares_its_branches_ends_too)
{
    struct ArrowSchema schema = {.format = "+s", .n_children = 2};
    struct ArrowArray array = {.n_buffers = 1, .n_children = 2};
    struct ArrowSchema *schemas[] = {&schema, &schema};
    struct ArrowArray *arrays[] = {&array, &array};
    const void *buffers[] = {NULL};
    struct ArrowDeviceArray device = {0}, out;
    struct ArrowSchema copy;
    struct uva_error error;
    int64_t size;

    schema.children = schemas;
    schema.release = keep_schema;
    array.children = arrays;
    array.buffers = buffers;
    array.release = keep_array;
    device.array = array;
    ck_assert_int_eq(uva__layout_measure(&schema, &device, &size, &error),
                     EINVAL);
    ck_assert_int_eq(uva_schema_copy(&schema, &copy), EINVAL);
    ck_assert_int_eq(uva_array_share(&device, &out), EINVAL);
}
END_TEST

/* ---- at random ---------------------------------------------------------- */

static int64_t strange(void)
{
    static const int64_t values[] = {
        0, 1, 2, 3, 7, -1, -2, INT32_MAX, INT64_MAX, INT64_MIN, 1 << 20, 4};

    return values[rand() % 12];
}

/* Changes one thing in a valid node. Lengths stay small if offsets are read,
 * because buffers are trusted to cover the length. */
static void spoil(struct ArrowSchema *schema, struct ArrowArray *array)
{
    static const char *const formats[] = {"i", "u",   "+l", "+s",  "vu",
                                          "n", "w:9", "+r", "d:1", "?"};

    switch (rand() % 8) {
    case 0:
        array->length = rand() % 4 - 1;
        break;
    case 1:
        array->null_count = strange();
        break;
    case 2:
        array->offset = rand() % 3 - 1;
        break;
    case 3:
        schema->format = formats[rand() % 10];
        break;
    case 4:
        if (array->n_buffers > 0)
            array->buffers[rand() % array->n_buffers] = NULL;
        break;
    case 5:
        array->n_buffers -= array->n_buffers > 0 ? rand() % 2 : 0;
        break;
    case 6:
        if (schema->n_children > 0)
            schema->n_children--;
        break;
    default:
        if (array->n_children > 0)
            array->n_children--;
        break;
    }
}

START_TEST(no_single_fault_does_harm)
{
    int sound = 0, faulty = 0;

    for (unsigned seed = 0; seed < 20000; seed++) {
        const int i = (int)(seed % 12);
        struct bench *bench =
            nested(NESTED[i].format, NESTED[i].n_buffers, NESTED[i].n_children);
        int which, code;
        srand(seed);
        which = rand() % (NESTED[i].n_children + 1) - 1;
        if (which < 0)
            spoil(&bench->schema, &bench->array.array);
        else
            spoil(bench->schema.children[which],
                  bench->array.array.children[which]);
        code = measure_both(bench);
        ck_assert(code == 0 || code == EINVAL || code == ENOTSUP);
        ck_assert_int_eq(code == 0, bench->error.message[0] == '\0');
        sound += code == 0;
        faulty += code != 0;
        clear(bench);
    }
    ck_assert_int_gt(sound, 1000);
    ck_assert_int_gt(faulty, 1000);
}
END_TEST

/* Spoils a column of ten in one way, or not at all; `bitmap` is its first
 * buffer. */
static void bend(struct ArrowSchema *schema, struct ArrowArray *array, int way,
                 bool bitmap)
{
    int64_t *const numbers[] = {&array->length,     &array->offset,
                                &array->null_count, &array->n_buffers,
                                &array->n_children, &schema->n_children};

    array->offset = 3;
    if (bitmap)
        array->buffers[0] = DATA;
    if (way < 60)
        *numbers[way / 10] = (int64_t[]){
            0, 1, 9, 10, 11, -1, -2, INT32_MAX, INT64_MAX, INT64_MIN}[way % 10];
    else if (way < 62)
        array->buffers[way - 60] = NULL;
    else if (way == 62)
        plain_schema(plain_schema_dictionary(schema), "n", NULL, 0);
    else if (way == 63)
        plain_array(plain_array_dictionary(array), 0, 0, 0);
}

/* As the dictionary of an index, a node takes the thorough path, which must
 * give an equal result: for all its items, which a batch has of a column. */
static void agree(struct bench *bench, struct ArrowSchema *below_schema,
                  struct ArrowArray *below)
{
    const struct ArrowSchema schema = {.format = "i",
                                       .dictionary = below_schema,
                                       .release = bench->schema.release};
    static const int32_t index;
    const void *buffers[] = {NULL, &index};
    const struct ArrowDeviceArray array = {
        .array = {.length = 1,
                  .n_buffers = 2,
                  .buffers = buffers,
                  .dictionary = below,
                  .release = bench->array.array.release}};
    int64_t size = -1, memory = -1;
    const int code = measure_both(bench);

    ck_assert_int_eq(uva_array_size(&schema, &array, &size), code);
    ck_assert_int_eq(uva_array_memory(&schema, &array, &memory), code);
    if (code == 0) {
        ck_assert_int_eq(bench->memory + 4, memory);
        if (below == &bench->array.array)
            ck_assert_int_eq(bench->size + 4, size);
    }
    clear(bench);
}

START_TEST(what_is_looked_at_quickly_is_held_to_the_same_rules)
{
    const char *const formats[] = {"i", "tsu:", "c", "g", "w:3", "i", "b"};

    for (int i = 0; i < 64 * 2 * 7; i++) {
        const int last = i % 7 > 4; /* spoils the batch itself */
        struct bench *bench = nested("+s", 1, 1 + last);
        struct ArrowArray *array = &bench->array.array;
        struct ArrowSchema *schema = &bench->schema;
        schema->children[last]->format = formats[i % 7];
        array->length = last ? 2 : 0; /* of a column: any length fits */
        for (int k = 0; k < 1 + last; k++)
            array->children[k]->length = last ? 30 : 10;
        array = last ? array : array->children[0];
        schema = last ? schema : schema->children[0];
        if (!last || i / 14 != 61) /* the batch has one buffer */
            bend(schema, array, i / 14, i / 7 % 2);
        agree(bench, schema, array);
    }
}
END_TEST

/* No more items than an integer counts. */
START_TEST(equal_lists_may_have_the_most_items)
{
    struct bench *bench = nested("+w:2147483647", 1, 1);
    struct ArrowArray *items = bench->array.array.children[0];

    bench->schema.children[0]->format = "n";
    items->n_buffers = 0;
    items->length = INT64_MAX;
    bench->array.array.length = INT64_C(1) << 33;
    bench->array.array.offset = 1;
    ck_assert_int_eq(measure_both(bench), 0);
    ck_assert_int_eq(bench->size, 0);
    bench->array.array.offset = INT64_C(1) << 33;
    ck_assert_int_eq(size_of(bench), 0);
}
END_TEST

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

static TCase *sizes(void)
{
    TCase *tcase = tcase_create("sizes");

    tcase_add_loop_test(tcase, fixed_widths_count_offset_and_length, 0,
                        COUNT(FIXED));
    tcase_add_test(tcase, nulls_need_nothing);
    tcase_add_test(tcase, equal_lists_may_have_the_most_items);
    tcase_add_test(tcase, bits_fill_whole_bytes);
    tcase_add_test(tcase, a_width_of_nothing_needs_nothing);
    tcase_add_test(tcase, text_counts_up_to_its_last_offset);
    tcase_add_test(tcase, offsets_lie_at_any_address);
    tcase_add_test(tcase, da27_views_count_their_buffers_and_lengths);
    tcase_add_test(tcase, what_only_a_device_can_read_is_not_looked_at);
    tcase_add_test(tcase, pinned_memory_is_read_once_no_event_is_open);
    tcase_add_test(tcase, empty_arrays_need_no_buffers);
    tcase_add_loop_test(tcase, nested_types_add_their_children, 0,
                        COUNT(NESTED));
    tcase_add_test(tcase, a_dictionary_is_added);
    tcase_add_test(tcase,
                   a_buffer_that_several_columns_have_counts_once_as_memory);
    tcase_add_test(tcase, a_batch_may_have_any_number_of_buffers);
    tcase_add_test(tcase, nothing_behind_the_offsets_is_read);
    tcase_add_test(tcase, one_buffer_can_be_measured);
    return tcase;
}

static TCase *faults(void)
{
    TCase *tcase = tcase_create("faults");

    tcase_add_test(tcase, da20_the_number_of_buffers_follows_from_the_format);
    tcase_add_test(tcase, da20_the_number_of_children_follows_from_the_schema);
    tcase_add_test(tcase, da21_lengths_offsets_and_counts_are_in_range);
    tcase_add_test(tcase, sizes_that_cannot_be_are_refused);
    tcase_add_test(tcase, da22_only_a_bitmap_of_no_nulls_may_be_missing);
    tcase_add_test(tcase, da22_the_buffers_vector_may_not_be_missing);
    tcase_add_test(tcase, data_may_be_missing_only_if_the_offsets_say_so);
    tcase_add_test(tcase, offsets_that_lie_are_refused);
    tcase_add_test(tcase, sums_that_overflow_are_refused);
    tcase_add_test(tcase, a_column_of_numbers_is_added_to_a_huge_one);
    tcase_add_test(tcase, da25_every_child_is_there_and_live);
    tcase_add_test(tcase, da26_a_dictionary_is_there_exactly_when_it_should);
    tcase_add_test(tcase, da29_released_structs_are_not_read);
    tcase_add_test(tcase, da29_a_schema_moved_out_of_its_parent_is_not_read);
    tcase_add_loop_test(tcase, da23_children_are_as_long_as_their_parent_needs,
                        0, COUNT(CHILDREN));
    tcase_add_test(tcase,
                   da23_a_column_that_is_shorter_than_its_batch_is_refused);
    tcase_add_test(tcase, an_array_without_rows_needs_no_items_in_children);
    tcase_add_test(tcase, what_lies_beside_an_unknown_format_is_checked);
    tcase_add_test(tcase, unknown_formats_are_not_supported);
    tcase_add_test(tcase, there_is_a_bound_to_depth);
    tcase_add_test(tcase, the_place_is_told_from_the_top);
    tcase_add_test(tcase, hostile_names_leave_a_readable_text);
    tcase_add_test(tcase, a_tree_that_shares_its_branches_ends_too);
    tcase_add_test(tcase, what_is_looked_at_quickly_is_held_to_the_same_rules);
    tcase_add_test(tcase, no_single_fault_does_harm);
    return tcase;
}

int main(void)
{
    Suite *suite = suite_create("layout");

    suite_add_tcase(suite, sizes());
    suite_add_tcase(suite, faults());
    return suite_run(suite);
}
