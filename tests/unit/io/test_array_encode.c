/* SPDX-License-Identifier: Apache-2.0 */
/* uva_array_encode(): the bytes of an encoder, as one part; arrays that are
 * taken, or left as they were. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "io/encoder.h"
#include "support/check_suite.h"
#include "support/every_type.h"
#include "support/faulty_libc.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"
#include "uvarrow/io.h"

enum { COUNT = 2 };

static struct uva_error error;
static struct ArrowSchema schema;
static struct ArrowDeviceArray arrays[COUNT];

static const struct uva_encode options[] = {
    {.format = UVA_FORMAT_ARROW},
    {.format = UVA_FORMAT_ARROW_FILE},
    {.format = UVA_FORMAT_CSV},
    {.format = UVA_FORMAT_JSON},
    {.format = UVA_FORMAT_ARROW, .compression = UVA_COMPRESSION_LZ4},
};

enum { OPTIONS = sizeof(options) / sizeof(*options) };

/* Makes an array of `rows` numbers in one column. */
static void make(int64_t rows, struct ArrowDeviceArray *out)
{
    static const int32_t numbers[] = {1, 2, 3, 4, 5};

    uva_array_clear(out);
    out->device_type = ARROW_DEVICE_CPU;
    out->device_id = -1;
    plain_array(&out->array, rows, 1, 1);
    plain_array(out->array.children[0], rows, 2, 0);
    out->array.children[0]->buffers[1] = numbers;
}

static void set_up(void)
{
    memset(&error, 0, sizeof(error));
    plain_schema(&schema, "+s", "", 1);
    plain_schema(schema.children[0], "i", "n", 0);
    for (int i = 0; i < COUNT; i++)
        make(i + 2, &arrays[i]);
}

static void tear_down(void)
{
    for (int i = 0; i < COUNT; i++)
        uva_array_release(&arrays[i]);
    uva_schema_release(&schema);
    ck_assert_int_eq(plain_live(), 0);
}

/* ---- bytes --------------------------------------------------------------- */

struct output {
    char bytes[4096];
    size_t size;
};

static void output_add(struct output *output, struct uva_part *part)
{
    int64_t bytes = 0;

    for (size_t i = 0; i < part->count; i++) {
        memcpy(output->bytes + output->size, part->buffers[i].base,
               part->buffers[i].len);
        output->size += part->buffers[i].len;
        bytes += (int64_t)part->buffers[i].len;
    }
    ck_assert_int_eq(bytes, part->bytes);
    uva_part_release(part);
}

/* The bytes that an encoder gives for arrays like those of set_up(). */
static void expect(const struct uva_encode *o, int count, struct output *output)
{
    struct uva__encoder *encoder;
    struct uva_part part;

    ck_assert_int_eq(uva__encoder_new(&schema, o, &encoder, &error), 0);
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
    output_add(output, &part);
    for (int i = 0; i < count; i++) {
        struct ArrowDeviceArray array;

        make(i + 2, &array);
        ck_assert_int_eq(uva__encoder_batch(encoder, &array, &part, &error), 0);
        output_add(output, &part);
    }
    ck_assert_int_eq(uva__encoder_end(encoder, &part), 0);
    output_add(output, &part);
    uva__encoder_free(encoder);
}

START_TEST(all_bytes_are_one_part)
{
    const struct uva_encode *o = &options[_i / 3];
    const int count = _i % 3;
    struct output wanted = {.size = 0}, output = {.size = 0};
    struct uva_part part;
    const int code =
        uva_array_encode(&schema, arrays, (size_t)count, o, &part, &error);

    if (code == ENOTSUP && o->compression != UVA_COMPRESSION_NONE)
        return; /* built without the codec */
    ck_assert_msg(code == 0, "%s", error.message);
    ck_assert_int_eq(part.rows, count == 2 ? 5 : 2 * count);
    for (int i = 0; i < COUNT; i++)
        ck_assert_int_eq(uva_array_is_live(&arrays[i]), i >= count);
    uva_schema_release(&schema); /* it was borrowed for the call */
    output_add(&output, &part);
    plain_schema(&schema, "+s", "", 1);
    plain_schema(schema.children[0], "i", "n", 0);
    expect(o, count, &wanted);
    ck_assert_uint_eq(output.size, wanted.size);
    ck_assert_int_eq(memcmp(output.bytes, wanted.bytes, output.size), 0);
}
END_TEST

START_TEST(without_options_it_is_arrow)
{
    struct uva_part part;

    ck_assert_int_eq(
        uva_array_encode(&schema, arrays, COUNT, NULL, &part, NULL), 0);
    ck_assert_int_eq(memcmp(part.buffers[0].base, "\xff\xff\xff\xff", 4), 0);
    uva_part_release(&part);
}
END_TEST

/* A part of Arrow IPC has the buffers of the array, not copies. */
START_TEST(columns_are_not_copied)
{
    const void *numbers = arrays[0].array.children[0]->buffers[1];
    struct uva_part part;
    bool found = false;

    ck_assert_int_eq(uva_array_encode(&schema, arrays, 1, NULL, &part, NULL),
                     0);
    for (size_t i = 0; i < part.count; i++)
        found = found || part.buffers[i].base == numbers;
    ck_assert(found);
    uva_part_release(&part);
}
END_TEST

/* Of any type, arrays are taken, and released with the part. */
START_TEST(every_type_is_encoded)
{
    const struct every_variant variant = {5, _i & 1 ? 3 : 0, true};
    struct ArrowDeviceArray column, batch;
    struct ArrowSchema root, of;
    struct uva_part part;
    int code;

    every_type(_i / 2, &variant, &of, &column);
    plain_schema(&root, "+s", "", 1);
    *root.children[0] = of;
    uva_array_clear(&batch);
    batch.device_type = ARROW_DEVICE_CPU;
    batch.device_id = -1;
    plain_array(&batch.array, column.array.length, 1, 1);
    *batch.array.children[0] = column.array;
    code = uva_array_encode(&root, &batch, 1, NULL, &part, &error);
    ck_assert_int_eq(uva_array_is_live(&batch), code != 0);
    uva_array_release(&batch);
    uva_part_release(&part);
    uva_schema_release(&root);
    every_type_forget();
}
END_TEST

/* ---- failures ------------------------------------------------------------ */

static void refused(const struct uva_encode *o, size_t count, int code,
                    const char *text)
{
    struct uva_part part;

    memset(&part, 0xff, sizeof(part));
    ck_assert_int_eq(uva_array_encode(&schema, arrays, count, o, &part, &error),
                     code);
    ck_assert_msg(strstr(error.message, text) != NULL, "%s", error.message);
    ck_assert(part.owner == NULL && part.count == 0 && part.bytes == 0);
}

START_TEST(arrays_that_fail_stay_the_callers)
{
    struct uva_part part;

    arrays[1].array.children[0]->length = 1; /* too short */
    refused(&options[_i], COUNT, EINVAL, "");
    ck_assert(uva_array_is_live(&arrays[0]) && uva_array_is_live(&arrays[1]));
    ck_assert_int_eq(
        uva_array_encode(&schema, arrays, 1, &options[_i], &part, NULL), 0);
    uva_part_release(&part);
}
END_TEST

START_TEST(bad_calls_are_refused)
{
    const struct uva_encode bad = {.format = (enum uva_format)9};
    struct uva_part part;

    refused(&bad, COUNT, EINVAL, "uva_encode: format is 9");
    uva_array_release(&arrays[1]);
    refused(NULL, COUNT, EINVAL, "array 1 is released");
    arrays[0].device_type = ARROW_DEVICE_CUDA;
    refused(NULL, 1, ENOTSUP, "on a device");
    arrays[0].device_type = ARROW_DEVICE_CPU;
    ck_assert_int_eq(uva_array_encode(&schema, NULL, 1, NULL, &part, &error),
                     EINVAL);
    ck_assert_int_eq(uva_array_encode(NULL, arrays, 1, NULL, &part, &error),
                     EINVAL);
    ck_assert(uva_array_is_live(&arrays[0]));
}
END_TEST

START_TEST(without_memory_arrays_stay_the_callers)
{
    int code = ENOMEM;

    for (long k = 1; code != 0; k++) {
        struct uva_part part;
        bool failed;

        faulty_libc_fail(k);
        code = uva_array_encode(&schema, arrays, COUNT, &options[_i], &part,
                                &error);
        failed = faulty_libc_stop();
        if (code == ENOTSUP)
            return;
        ck_assert_int_eq(code, failed ? ENOMEM : 0);
        for (int i = 0; i < COUNT; i++)
            ck_assert_int_eq(uva_array_is_live(&arrays[i]), code != 0);
        uva_part_release(&part);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("array_encode");
    TCase *all = suite_case(suite, "array_encode", set_up, tear_down);

    suite_add_loops(all, 0, OPTIONS * 3, all_bytes_are_one_part, NULL);
    suite_add_loops(all, 0, 4, arrays_that_fail_stay_the_callers, NULL);
    suite_add_loops(all, 0, OPTIONS, without_memory_arrays_stay_the_callers,
                    NULL);
    suite_add_loops(all, 0, 2 * EVERY_TYPES, every_type_is_encoded, NULL);
    suite_add(all, without_options_it_is_arrow, columns_are_not_copied,
              bad_calls_are_refused, NULL);
    return suite_run(suite);
}
