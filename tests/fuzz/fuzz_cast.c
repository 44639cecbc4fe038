/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of any castable type, cast to any type that they can be cast to, and
 * back.
 *
 * The bytes build two schemas and an array together. The array has the shape of
 * its schema, but offsets, views, indices, ids and ends of runs may be
 * anything. Each buffer is a block of exactly its size, so that a read beyond
 * one is found. A result must have the shape of the target; a failure must have
 * a text, and leave no memory behind. */
#include <errno.h>
#include <string.h>

#include "arrow/cast.h"
#include "arrow/format.h"
#include "arrow/layout.h"
#include "fuzz/fuzz_input.h"
#include "support/faulty_allocator.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

enum { MOST_BLOCKS = 4096, MOST_DEPTH = 5, MOST_ITEMS = 64 };

static struct fuzz_input in;
static void *blocks[MOST_BLOCKS]; /* owns: all buffers */
static int block_count;
static bool wrong; /* a number of the array is: equal columns keep it */

static void *block_new(int64_t size)
{
    void *block = calloc(1, size > 0 ? (size_t)size : 1);

    FUZZ_RULE(block != NULL && block_count < MOST_BLOCKS);
    blocks[block_count++] = block;
    return block;
}

static void *random_bytes(int64_t size)
{
    uint8_t *bytes = block_new(size);

    for (int64_t i = 0; i < size && in.size > 0; i++)
        bytes[i] = fuzz_byte(&in);
    return bytes;
}

static void put(void *to, int32_t width, int64_t i, int64_t value)
{
    const int32_t four = (int32_t)value;
    const int16_t two = (int16_t)value;

    memcpy((char *)to + i * width,
           width == 8   ? (const void *)&value
           : width == 4 ? (const void *)&four
                        : (const void *)&two,
           (size_t)width);
}

/* A number that is right, or seldom one that is wrong. */
static int64_t almost(int64_t right)
{
    if (fuzz_byte(&in) < 248)
        return right;
    wrong = true;
    return fuzz_strange(&in);
}

/* ---- arrays ------------------------------------------------------------- */

/* An array with at least `items` items, and the bitmap of its first buffer. */
static int64_t array_new(struct ArrowArray *out, int64_t items, int buffers,
                         int children, bool nullable)
{
    const int64_t offset = fuzz_below(&in, 3);
    const int64_t length = items + fuzz_below(&in, 3);

    plain_array(out, length, buffers, children);
    out->offset = offset;
    if (nullable && fuzz_below(&in, 2) == 1) {
        out->buffers[0] = random_bytes((length + offset + 7) / 8);
        out->null_count = -1;
    }
    return length + offset;
}

/* Offsets that go up, for the most part. Returns the last one, which is small.
 */
static int64_t offsets_fill(void *to, int32_t width, int64_t items)
{
    int64_t end = 0;

    for (int64_t i = 0; i < items; i++) {
        put(to, width, i, almost(end));
        end += end < MOST_ITEMS ? fuzz_below(&in, 4) : 0;
    }
    put(to, width, items, end);
    return end;
}

static void fixed_array(struct ArrowArray *out, const char *format,
                        int64_t items)
{
    const int64_t all = array_new(out, items, 2, 0, true);
    struct uva__layout layout;

    FUZZ_RULE(uva__format_read(format, &layout) == 0);
    out->buffers[1] =
        random_bytes(layout.buffers[1].width > 0 ? all * layout.buffers[1].width
                                                 : (all + 7) / 8);
}

static void offsets_array(struct ArrowArray *out, int32_t width, int64_t items)
{
    const int64_t all = array_new(out, items, 3, 0, true);
    void *offsets = block_new((all + 1) * width);

    out->buffers[1] = offsets;
    out->buffers[2] = random_bytes(offsets_fill(offsets, width, all));
}

static void views_array(struct ArrowArray *out, int64_t items)
{
    const int64_t all = array_new(out, items, 5, 0, true);
    int32_t *views = block_new(all * 16);
    int64_t *lengths = block_new(16);

    for (int64_t i = 0; i < all; i++) {
        views[4 * i] = (int32_t)almost(fuzz_below(&in, 24));
        for (int k = 1; k < 4; k++)
            views[4 * i + k] = (int32_t)almost(fuzz_below(&in, 3));
    }
    lengths[0] = 30;
    lengths[1] = fuzz_below(&in, 30);
    out->buffers[1] = views;
    out->buffers[2] = random_bytes(lengths[0]);
    out->buffers[3] = random_bytes(lengths[1]);
    out->buffers[4] = lengths;
}

static void bytes_array(struct ArrowArray *out, const char *format,
                        int64_t items)
{
    if (format[0] == 'v')
        views_array(out, items);
    else if (format[0] == 'w')
        fixed_array(out, format, items);
    else
        offsets_array(out, format[0] == 'U' || format[0] == 'Z' ? 8 : 4, items);
}

/* ---- both schemas and an array ------------------------------------------ */

struct column {
    struct ArrowSchema *from, *to; /* `to` is NULL: it is given already */
    struct ArrowArray *array;
};

static void plant(struct column c, const char *name, int64_t items, int depth);

static const char *one_of(const char *const formats[], int count)
{
    return formats[fuzz_below(&in, count)];
}

/* Gives both schemas a node, whose nulls are allowed or not. */
static void schemas_new(struct column c, const char *from, const char *to,
                        const char *name, int children)
{
    plain_schema(c.from, from, name, children);
    c.from->flags = fuzz_below(&in, 8) > 0 ? ARROW_FLAG_NULLABLE : 0;
    plain_schema(c.to, to, name, children);
    c.to->flags = fuzz_below(&in, 8) > 0 ? ARROW_FLAG_NULLABLE : 0;
}

static struct column below(struct column c, int i)
{
    return (struct column){c.from->children[i], c.to->children[i],
                           c.array->children[i]};
}

static void plant_number(struct column c, const char *name, int64_t items)
{
    static const char *const numbers[] = {"c", "s", "i", "l", "C", "S",
                                          "I", "L", "e", "f", "g", "b"};
    static const char *const times[] = {"tss:", "tsm:", "tsu:", "tsn:"};
    const bool is_time = fuzz_below(&in, 4) == 0;
    const char *const from = is_time ? one_of(times, 4) : one_of(numbers, 12);

    schemas_new(c, from, is_time ? one_of(times, 4) : one_of(numbers, 12), name,
                0);
    fixed_array(c.array, from, items);
}

static void plant_bytes(struct column c, const char *name, int64_t items)
{
    static const char *const texts[] = {"u", "U", "vu"};
    static const char *const bytes[] = {"z", "Z", "vz", "w:3"};
    const bool text = fuzz_below(&in, 2) == 0;
    const char *const from = text ? one_of(texts, 3) : one_of(bytes, 4);

    schemas_new(c, from, text ? one_of(texts, 3) : one_of(bytes, 4), name, 0);
    bytes_array(c.array, from, items);
}

static void plant_list(struct column c, const char *name, int64_t items,
                       int depth)
{
    static const char *const lists[] = {"+l", "+L", "+vl", "+vL"};
    const char *const from = one_of(lists, 4);
    const int32_t width = from[strlen(from) - 1] == 'L' ? 8 : 4;
    const bool views = from[1] == 'v';
    int64_t all, end = 20;

    schemas_new(c, from, one_of(lists, 4), name, 1);
    all = array_new(c.array, items, views ? 3 : 2, 1, true);
    c.array->buffers[1] = block_new((all + 1) * width);
    if (views) {
        c.array->buffers[2] = block_new(all * width);
        for (int64_t i = 0; i < all; i++) {
            put((void *)(uintptr_t)c.array->buffers[1], width, i,
                almost(fuzz_below(&in, 10)));
            put((void *)(uintptr_t)c.array->buffers[2], width, i,
                almost(fuzz_below(&in, 10)));
        }
    } else {
        end = offsets_fill((void *)(uintptr_t)c.array->buffers[1], width, all);
    }
    plant(below(c, 0), "item", fuzz_byte(&in) < 248 ? end : 0, depth + 1);
}

static void plant_row(struct column c, const char *name, int64_t items,
                      int depth)
{
    const bool fixed = fuzz_below(&in, 2) == 0;
    const char *const format = fixed ? "+w:2" : "+s";
    int64_t all;

    schemas_new(c, format, format, name, fixed ? 1 : 2);
    all = array_new(c.array, items, 1, fixed ? 1 : 2, true);
    plant(below(c, 0), "a", fixed ? all * 2 : all, depth + 1);
    if (!fixed)
        plant(below(c, 1), "b", all, depth + 1);
}

static void plant_union(struct column c, const char *name, int64_t items,
                        int depth)
{
    const bool dense = fuzz_below(&in, 2) == 0;
    const char *const format = dense ? "+ud:5,7" : "+us:5,7";
    int64_t all;
    int8_t *ids;
    int32_t *offsets;

    schemas_new(c, format, format, name, 2);
    all = array_new(c.array, items, dense ? 2 : 1, 2, false);
    ids = block_new(all);
    offsets = block_new(all * 4);
    for (int64_t i = 0; i < all; i++) {
        ids[i] = (int8_t)almost(fuzz_below(&in, 2) == 0 ? 5 : 7);
        offsets[i] = (int32_t)almost(fuzz_below(&in, 4));
    }
    c.array->buffers[0] = ids;
    if (dense)
        c.array->buffers[1] = offsets;
    plant(below(c, 0), "a", dense ? 4 : all, depth + 1);
    plant(below(c, 1), "b", dense ? 4 : all, depth + 1);
}

/* The target is that of the values. */
static void plant_dictionary(struct column c, const char *name, int64_t items,
                             int depth)
{
    static const char *const indices[] = {"c", "S", "i", "L"};
    const char *const index = one_of(indices, 4);
    const int32_t width = uva__format_width(index);
    int64_t all;
    void *at;

    plain_schema(c.from, index, name, 0);
    c.from->flags = ARROW_FLAG_NULLABLE;
    all = array_new(c.array, items, 2, 0, true);
    at = block_new(all * 8);
    for (int64_t i = 0; i < all; i++)
        if (width == 1)
            ((int8_t *)at)[i] = (int8_t)almost(fuzz_below(&in, 3));
        else
            put(at, width, i, almost(fuzz_below(&in, 3)));
    c.array->buffers[1] = at;
    plant((struct column){plain_schema_dictionary(c.from), c.to,
                          plain_array_dictionary(c.array)},
          name, 3, depth + 1);
}

static void plant_runs(struct column c, const char *name, int64_t items,
                       int depth)
{
    static const char *const formats[] = {"s", "i", "l"};
    const char *const format = one_of(formats, 3);
    const int32_t width = uva__format_width(format);
    const int64_t all = array_new(c.array, items, 0, 2, false);
    struct ArrowArray *ends = c.array->children[0];
    int64_t end = 0;
    void *at;

    plain_schema(c.from, "+r", name, 2);
    c.from->flags = ARROW_FLAG_NULLABLE;
    plain_schema(c.from->children[0], format, "run_ends", 0);
    plain_array(ends, all + 1, 2, 0);
    at = block_new((all + 1) * width);
    for (int64_t i = 0; i <= all; i++) {
        end += 1 + fuzz_below(&in, 3);
        put(at, width, i, almost(end));
    }
    ends->buffers[1] = at;
    plant((struct column){c.from->children[1], c.to, c.array->children[1]},
          name, fuzz_byte(&in) < 248 ? all + 1 : 0, depth + 1);
}

/* Nulls of the type that another column has. */
static void plant_nulls(struct column c, const char *name, int64_t items,
                        int depth)
{
    struct ArrowSchema other = {0};
    struct ArrowArray array = {0};

    plant((struct column){&other, c.to, &array}, name, 0, depth + 1);
    array.release(&array);
    other.release(&other);
    plain_schema(c.from, "n", name, 0);
    c.from->flags = ARROW_FLAG_NULLABLE;
    (void)array_new(c.array, items, 0, 0, false);
}

static void plant(struct column c, const char *name, int64_t items, int depth)
{
    const int way = fuzz_below(&in, depth < MOST_DEPTH ? 9 : 2);

    switch (way) {
    case 1:
        plant_bytes(c, name, items);
        break;
    case 2:
    case 3:
        plant_list(c, name, items, depth);
        break;
    case 4:
        plant_row(c, name, items, depth);
        break;
    case 5:
        plant_union(c, name, items, depth);
        break;
    case 6:
        plant_dictionary(c, name, items, depth);
        break;
    case 7:
        plant_runs(c, name, items, depth);
        break;
    case 8:
        plant_nulls(c, name, items, depth);
        break;
    default:
        plant_number(c, name, items);
    }
}

/* ---- checks ------------------------------------------------------------- */

/* Casts, and takes the array. Returns the code. */
static int cast(const struct uva_allocator *allocator,
                const struct ArrowSchema *from, const struct ArrowSchema *to,
                struct ArrowDeviceArray *array, struct ArrowDeviceArray *out)
{
    struct uva_error error = {0};
    struct uva__cast *made;
    int64_t size;
    int code = uva__cast_new(allocator, from, to, &made, &error);

    out->array.release = NULL;
    if (code == 0)
        code = uva__cast_array(made, array, out, &error);
    uva__cast_free(made);
    FUZZ_RULE(code == 0 || code == EINVAL || code == EOVERFLOW ||
              code == ENOMEM);
    FUZZ_RULE(error.code == code && (code == 0) == (error.message[0] == '\0'));
    FUZZ_RULE(uva_array_is_live(out) == (code == 0));
    FUZZ_RULE(code != 0 || wrong ||
              uva__layout_measure(to, out, &size, &error) == 0);
    if (uva_array_is_live(array))
        uva_array_release(array);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ArrowSchema from, to;
    struct ArrowDeviceArray array = {0}, out, back;
    struct faulty_allocator memory;
    struct uva_allocator allocator;
    int64_t rows;

    in = (struct fuzz_input){data, size};
    wrong = false;
    faulty_allocator_init(&memory,
                          fuzz_byte(&in) < 224 ? 0 : fuzz_below(&in, 32));
    allocator = faulty_allocator_table(&memory);
    rows = fuzz_below(&in, 20);
    plain_schema(&from, "+s", "", 1);
    plain_schema(&to, "+s", "", 1);
    plain_array(&array.array, rows, 1, 1);
    array.device_type = ARROW_DEVICE_CPU;
    plant((struct column){from.children[0], to.children[0],
                          array.array.children[0]},
          "x", rows, 0);
    if (cast(&allocator, &from, &to, &array, &out) == 0 &&
        cast(&allocator, &to, &from, &out, &back) == 0) {
        FUZZ_RULE(back.array.length == rows);
        uva_array_release(&back);
    }
    uva_schema_release(&from);
    uva_schema_release(&to);
    FUZZ_RULE(plain_live() == 0);
    FUZZ_RULE(faulty_allocator_live(&memory) == 0);
    while (block_count > 0)
        free(blocks[--block_count]);
    return 0;
}
