/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder of Arrow IPC: every type, refused data, dictionaries from batch
 * to batch, and memory that runs out. Whether readers understand the bytes is
 * tested with Arrow C++, in tests/interop. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "io/encoder.h"
#include "support/check_suite.h"
#include "support/every_type.h"
#include "support/faulty_libc.h"
#include "support/native.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"
#include "uvarrow/io.h"

static struct uva_error error;

static void set_up(void)
{
    memset(&error, 0, sizeof(error));
}

static void tear_down(void)
{
    every_type_forget();
    ck_assert_int_eq(plain_live(), 0);
}

/* ---- parts -------------------------------------------------------------- */

/* The bytes of all parts so far. */
struct output {
    char *bytes;
    size_t size;
};

/* Adds the bytes of a part, and releases it. */
static void output_add(struct output *output, struct uva_part *part)
{
    int64_t bytes = 0;

    for (size_t i = 0; i < part->count; i++) {
        const uv_buf_t *buffer = &part->buffers[i];

        ck_assert(buffer->len > 0 && buffer->base != NULL);
        output->bytes = realloc(output->bytes, output->size + buffer->len);
        ck_assert_ptr_nonnull(output->bytes);
        memcpy(output->bytes + output->size, buffer->base, buffer->len);
        output->size += buffer->len;
        bytes += (int64_t)buffer->len;
    }
    ck_assert_int_eq(bytes, part->bytes);
    uva_part_release(part);
    ck_assert_ptr_null(part->owner);
}

static void output_free(struct output *output)
{
    free(output->bytes);
    *output = (struct output){0};
}

/* ---- batches ------------------------------------------------------------ */

/* Makes a root of one column, which it takes. */
static void wrap(struct ArrowSchema *schema, struct ArrowArray *array,
                 struct ArrowSchema *root, struct ArrowDeviceArray *batch)
{
    plain_schema(root, "+s", "", 1);
    *root->children[0] = *schema;
    uva_array_clear(batch);
    batch->device_type = ARROW_DEVICE_CPU;
    batch->device_id = -1;
    plain_array(&batch->array, array->length, 1, 1);
    *batch->array.children[0] = *array;
}

static const int32_t offsets[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
static const uint8_t bits[] = {0xb5, 0x5b};
static const int8_t indices[] = {0, 1, 0, 1, 0, 1, 0, 1};

/* A column of texts "a", "b"... */
static void texts(struct ArrowSchema *schema, struct ArrowArray *array,
                  int64_t length)
{
    plain_schema(schema, "u", "texts", 0);
    plain_array(array, length, 3, 0);
    array->buffers[1] = offsets;
    array->buffers[2] = "abcdefghi";
}

/* A batch of `rows` indices of the given values, which it takes. */
static void indexed(int64_t rows, struct ArrowSchema *values_schema,
                    struct ArrowArray *values, struct ArrowSchema *root,
                    struct ArrowDeviceArray *batch)
{
    struct ArrowSchema schema;
    struct ArrowArray array;

    plain_schema(&schema, "c", "indices", 0);
    *plain_schema_dictionary(&schema) = *values_schema;
    plain_array(&array, rows, 2, 0);
    array.buffers[1] = indices;
    *plain_array_dictionary(&array) = *values;
    wrap(&schema, &array, root, batch);
}

/* Encodes batches of one schema, which it takes. */
static int encode(const struct uva_encode *options, struct ArrowSchema *schema,
                  struct ArrowDeviceArray *batches, size_t count,
                  struct output *output)
{
    struct uva__encoder *encoder = NULL;
    struct uva_part part;
    int code = uva__encoder_new(schema, options, &encoder, &error);

    uva_schema_release(schema);
    if (code == 0) {
        ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
        output_add(output, &part);
    }
    for (size_t i = 0; i < count; i++) {
        if (code == 0) {
            code = uva__encoder_batch(encoder, &batches[i], &part, &error);
            if (code == 0)
                output_add(output, &part);
        }
        uva_array_release(&batches[i]);
    }
    if (code == 0) {
        ck_assert_int_eq(uva__encoder_end(encoder, &part), 0);
        output_add(output, &part);
    }
    uva__encoder_free(encoder);
    return code;
}

/* ---- every type --------------------------------------------------------- */

static const struct every_variant variants[] = {
    {5, 0, false}, {5, 3, true}, {9, 8, true}, {0, 0, true}, {0, 5, false},
};

START_TEST(every_type_is_encoded)
{
    const struct every_variant *variant = &variants[_i % 5];
    const struct uva_encode options = {
        .format = _i % 2 == 0 ? UVA_FORMAT_ARROW : UVA_FORMAT_ARROW_FILE,
        .compression = _i / 5 % 3};
    struct ArrowDeviceArray column, batch;
    struct ArrowSchema schema, root;
    struct output output = {0};
    int code;

    every_type(_i / 5, variant, &schema, &column);
    wrap(&schema, &column.array, &root, &batch);
    code = encode(&options, &root, &batch, 1, &output);
    if (code != ENOTSUP || options.compression == 0)
        ck_assert_msg(code == 0 || strstr(error.message, "run") != NULL ||
                          strstr(error.message, "items") != NULL,
                      "%s", error.message);
    ck_assert(output.size % 8 == 0 || options.format == UVA_FORMAT_ARROW_FILE);
    output_free(&output);
}
END_TEST

/* Whether the type has views. */
static bool has_views(int type)
{
    return type == 17 || type == 18 || type == 30;
}

/* The bytes of a dictionary are sent once if it stays, and every type can be
 * compared with itself. */
START_TEST(an_equal_dictionary_is_not_sent_again)
{
    const struct every_variant *variant = &variants[_i % 2];
    struct ArrowDeviceArray batches[2];
    struct ArrowSchema schema, root;
    struct uva_part part;
    struct uva__encoder *encoder;
    int64_t first = 0;

    if (_i / 2 == 31) /* runs that do not grow */
        return;
    for (int i = 0; i < 2; i++) {
        struct ArrowDeviceArray values;

        every_type(_i / 2, variant, &schema, &values);
        if (schema.dictionary != NULL) { /* indices of another dictionary */
            uva_schema_release(&schema);
            uva_array_release(&values);
            if (i == 1)
                abort();
            return;
        }
        indexed(4, &schema, &values.array, &root, &batches[i]);
        if (i == 0)
            uva_schema_release(&root);
    }
    ck_assert_int_eq(uva__encoder_new(&root, NULL, &encoder, &error), 0);
    uva_schema_release(&root);
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
    uva_part_release(&part);
    for (int i = 0; i < 2; i++) {
        const int code =
            uva__encoder_batch(encoder, &batches[i], &part, &error);

        ck_assert_msg(code == 0, "%s", error.message);
        if (i == 0)
            first = part.bytes;
        else /* views may point nowhere: then they count as different */
            ck_assert(part.bytes < first || has_views(_i / 2));
        uva_part_release(&part);
    }
    uva__encoder_free(encoder);
}
END_TEST

/* ---- refused data ------------------------------------------------------- */

START_TEST(options_are_checked)
{
    static int something;
    static const struct {
        struct uva_encode options;
        int code;
        const char *text;
    } cases[] = {
        {{.format = (enum uva_format)7}, EINVAL, "format is 7"},
        {{.compression = 3}, EINVAL, "compression is 3"},
        {{.compression = -1}, EINVAL, "compression is -1"},
        {{.reserved = {NULL, NULL, NULL, &something}}, EINVAL, "reserved[3]"},
    };
    struct uva__encoder *encoder;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct ArrowSchema schema;

        plain_schema(&schema, "+s", "", 0);
        ck_assert_int_eq(
            uva__encoder_new(&schema, &cases[i].options, &encoder, &error),
            cases[i].code);
        ck_assert_msg(strstr(error.message, cases[i].text) != NULL, "%s",
                      error.message);
        uva_schema_release(&schema);
    }
}
END_TEST

/* Columns, with their children or the values of their dictionary. */
static const struct {
    const char *format, *first, *second, *dictionary;
    int code;
} schemas[] = {
    {"?", NULL, NULL, NULL, ENOTSUP},
    {"", NULL, NULL, NULL, ENOTSUP},
    {"ts", NULL, NULL, NULL, ENOTSUP},
    {"tsx:", NULL, NULL, NULL, ENOTSUP},
    {"tsm", NULL, NULL, NULL, ENOTSUP},
    {"w:", NULL, NULL, NULL, EINVAL},
    {"w:-3", NULL, NULL, NULL, EINVAL},
    {"w:99999999999", NULL, NULL, NULL, EINVAL},
    {"w:3x", NULL, NULL, NULL, EINVAL},
    {"d:", NULL, NULL, NULL, EINVAL},
    {"d:3", NULL, NULL, NULL, EINVAL},
    {"d:3,", NULL, NULL, NULL, EINVAL},
    {"d:3,1,", NULL, NULL, NULL, EINVAL},
    {"d:3,1,17", NULL, NULL, NULL, EINVAL},
    {"d:3,1,64x", NULL, NULL, NULL, EINVAL},
    {"d:3,-1,32", NULL, NULL, NULL, 0},
    {"d:3,1,256", NULL, NULL, NULL, 0},
    {"+us:", NULL, NULL, NULL, 0},
    {"+us:1;2", "i", "i", NULL, EINVAL},
    {"+us:x", "i", NULL, NULL, EINVAL},
    {"+us:128", "i", NULL, NULL, EINVAL},
    {"+ud:-1", "i", NULL, NULL, EINVAL},
    {"+ud:1", "i", "i", NULL, EINVAL},
    {"+ud:1,5", "i", "i", NULL, 0},
    {"+ud:1,1", "i", "i", NULL, EINVAL},
    {"+l", NULL, NULL, NULL, EINVAL},
    {"+l", "?", NULL, NULL, ENOTSUP},
    {"+m", "i", NULL, NULL, EINVAL},
    {"+m", "+s", NULL, NULL, EINVAL},
    {"+r", "i", "i", NULL, 0},
    {"+r", "I", "i", NULL, EINVAL},
    {"+r", "", "i", NULL, EINVAL},
    {"+r", "tdD", "i", NULL, EINVAL},
    {"i", NULL, NULL, "u", 0},
    {"u", NULL, NULL, "u", EINVAL},
    {"g", NULL, NULL, "u", EINVAL},
    {"i", "i", NULL, NULL, EINVAL},
    {"i", NULL, NULL, "?", ENOTSUP},
};

START_TEST(schemas_are_checked)
{
    for (size_t i = 0; i < sizeof(schemas) / sizeof(*schemas); i++) {
        struct uva__encoder *encoder = NULL;
        struct ArrowSchema root, *at;
        const int n = (schemas[i].first != NULL) + (schemas[i].second != NULL);

        plain_schema(&root, "+s", "", 1);
        at = root.children[0];
        plain_schema(at, schemas[i].format, NULL, n);
        if (n > 0)
            plain_schema(at->children[0], schemas[i].first, "first", 0);
        if (n > 1)
            plain_schema(at->children[1], schemas[i].second, "second", 0);
        if (schemas[i].dictionary != NULL)
            plain_schema(plain_schema_dictionary(at), schemas[i].dictionary, "",
                         0);
        ck_assert_msg(uva__encoder_new(&root, NULL, &encoder, &error) ==
                          schemas[i].code,
                      "%s: %s", schemas[i].format, error.message);
        uva__encoder_free(encoder);
        uva_schema_release(&root);
    }
}
END_TEST

START_TEST(other_schemas_are_refused)
{
    static const char metadata[] = NATIVE_PAIR;
    struct ArrowSchema root, *values;
    struct uva__encoder *encoder;

    ck_assert_int_eq(uva__encoder_new(NULL, NULL, &encoder, &error), EINVAL);
    plain_schema(&root, "i", "", 0);
    ck_assert_int_eq(uva__encoder_new(&root, NULL, &encoder, &error), EINVAL);
    uva_schema_release(&root);
    plain_schema(&root, "+s", "", 1);
    plain_schema(root.children[0], "i", "x", 0);
    values = plain_schema_dictionary(root.children[0]);
    plain_schema(values, "u", "x", 0);
    values->metadata = metadata;
    ck_assert_int_eq(uva__encoder_new(&root, NULL, &encoder, &error), ENOTSUP);
    ck_assert_ptr_nonnull(strstr(error.message, "metadata"));
    values->metadata = NULL;
    values->format = "i";
    plain_schema(plain_schema_dictionary(values), "u", "", 0);
    ck_assert_int_eq(uva__encoder_new(&root, NULL, &encoder, &error), ENOTSUP);
    ck_assert_ptr_nonnull(strstr(error.message, "indices"));
    uva_schema_release(&root);
}
END_TEST

/* One fault of an array, and how its text names it. */
struct fault {
    const char *format, *child;
    void (*spoil)(struct ArrowArray *array);
    const char *text;
};

#define SPOIL(name, statement)                                                 \
    static void name(struct ArrowArray *array)                                 \
    {                                                                          \
        statement;                                                             \
    }

static const int64_t minus[] = {-5, -5, -5, -5, -5, -5, -5, -5};
static const int32_t below[] = {-5, -5, -5, -5, -5, -5, -5, -5};
static const int32_t shrinking[] = {5, 4, 3, 2, 1, 0, 0, 0};
static const int32_t far_off[] = {0, 100, 200, 300, 400, 500, 600, 700};

SPOIL(negative_length, array->length = -1)
SPOIL(negative_offset, array->offset = -1)
SPOIL(huge_offset, array->offset = INT64_MAX - 2)
SPOIL(large_offset, array->offset = INT64_MAX / 2)
SPOIL(huge_length, array->length = INT64_MAX)

SPOIL(null_count_of_minus_2, array->null_count = -2)
SPOIL(too_many_nulls, array->null_count = array->length + 1)
SPOIL(no_bitmap, array->null_count = 2)
SPOIL(shorter, array->length--)
SPOIL(more_buffers, array->n_buffers++)
SPOIL(fewer_buffers, array->n_buffers--)
SPOIL(most_buffers, array->n_buffers = INT64_MAX)
SPOIL(no_buffer_0, array->buffers[0] = NULL)
SPOIL(no_buffer_1, array->buffers[1] = NULL)
SPOIL(no_buffer_2, array->buffers[2] = NULL)
SPOIL(more_children, array->n_children++)
SPOIL(negative_offsets, array->buffers[1] = below)
SPOIL(shrinking_offsets, array->buffers[1] = shrinking)
SPOIL(far_offsets, array->buffers[1] = far_off)
SPOIL(negative_size, array->buffers[array->n_buffers - 1] = minus)
SPOIL(no_sizes, array->buffers[array->n_buffers - 1] = NULL)
SPOIL(no_data, array->buffers[2] = NULL)
SPOIL(negative_child, array->children[0]->length = -1)
SPOIL(short_child, array->children[0]->length = 3)
SPOIL(no_ends, array->children[0]->buffers[1] = NULL)
SPOIL(short_ends, array->children[0]->length = 1)
SPOIL(bad_ends, array->children[0]->n_buffers = 3)
SPOIL(shrinking_ends, array->children[0]->buffers[1] = shrinking)
SPOIL(short_values, array->children[1]->length = 0)

static const struct fault faults[] = {
    {"i", NULL, negative_length, "length -1"},
    {"i", NULL, negative_offset, "offset -1"},
    {"i", NULL, huge_offset, "offset 9223372036854775805"},
    {"i", NULL, large_offset, "too many"},
    {"i", NULL, huge_length, "length 9223372036854775807"},
    {"i", NULL, null_count_of_minus_2, "null_count -2"},
    {"i", NULL, too_many_nulls, "null_count 6, length 5"},
    {"i", NULL, no_bitmap, "null_count 2 without a bitmap"},
    {"i", NULL, shorter, "4 items, 5 are needed"},
    {"i", NULL, more_buffers, "3 buffers, expected 2"},
    {"i", NULL, fewer_buffers, "1 buffers, expected 2"},
    {"i", NULL, most_buffers, "buffers, expected 2"},
    {"i", NULL, no_buffer_1, "buffer 1 is NULL"},
    {"i", NULL, more_children, "1 children, expected 0"},
    {"b", NULL, no_buffer_1, "buffer 1 is NULL"},
    {"u", NULL, no_buffer_1, "buffer 1 is NULL"},
    {"u", NULL, no_data, "buffer 2 is NULL"},
    {"u", NULL, negative_offsets, "offsets from -5"},
    {"u", NULL, shrinking_offsets, "offsets from 5 to 0"},
    {"U", NULL, large_offset, "too many"},
    {"vu", NULL, most_buffers, "3 or more"},
    {"vu", NULL, no_buffer_1, "buffer 1 is NULL"},
    {"vu", NULL, no_buffer_2, "buffer 2 is NULL"},
    {"vu", NULL, no_sizes, "is NULL"},
    {"vu", NULL, negative_size, "data buffer 0 has -5 bytes"},
    {"+l", "i", far_offsets, "8 items, 500 are needed"},
    {"+l", "i", negative_offsets, "offsets from -5"},
    {"+vl", "i", no_buffer_1, "buffer 1 is NULL"},
    {"+vl", "i", no_buffer_2, "buffer 2 is NULL"},
    {"+vl", "i", negative_child, "length -1"},
    {"+w:1", "i", short_child, "3 items, 5 are needed"},
    {"+w:1", "i", large_offset, "too many"},
    {"+s", "i", short_child, "3 items, 5 are needed"},
    {"+us:0", "i", no_buffer_0, "buffer 0 is NULL"},
    {"+us:0", "i", short_child, "3 items, 5 are needed"},
    {"+ud:0", "i", no_buffer_1, "buffer 1 is NULL"},
    {"+ud:0", "i", negative_child, "length -1"},
    {"+r", "i", no_ends, "buffer 1 is NULL"},
    {"+r", "i", short_ends, "no run reaches"},
    {"+r", "i", bad_ends, "3 buffers, expected 2"},
    {"+r", "i", shrinking_ends, "no run reaches"},
    {"+r", "i", short_values, "items"},
    {"+r", "i", large_offset, "no run reaches"},
};

/* How many buffers a column of the format has. */
static int buffers_of(const char *format)
{
    static const struct {
        const char *begin;
        int count;
    } known[] = {{"u", 3},  {"U", 3},  {"vu", 5},  {"+vl", 3},
                 {"+w", 1}, {"+s", 1}, {"+us", 1}, {"+r", 0}};

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (strncmp(format, known[i].begin, strlen(known[i].begin)) == 0)
            return known[i].count;
    return 2;
}

/* A column of 5 items; children have 8. */
static void column_of(const char *format, const char *child,
                      struct ArrowSchema *schema, struct ArrowArray *array)
{
    static const int64_t sizes[] = {9, 9, 9};
    static const int32_t views[40] = {1};
    const int n_children =
        (child != NULL) + (strcmp(format, "+r") == 0 ? 1 : 0);
    const int n_buffers = buffers_of(format);

    plain_schema(schema, format, "it", n_children);
    plain_array(array, 5, n_buffers, n_children);
    for (int i = 0; i < n_buffers; i++)
        array->buffers[i] =
            format[0] == 'v' && i == 1 ? (void *)views : (void *)offsets;
    if (n_buffers > 0 && strncmp(format, "+u", 2) != 0)
        array->buffers[0] = NULL;
    if (format[0] == 'v')
        array->buffers[4] = sizes;
    for (int i = 0; i < n_children; i++) {
        plain_schema(schema->children[i], child, "child", 0);
        plain_array(array->children[i], 8, 2, 0);
        array->children[i]->buffers[1] = offsets;
    }
}

START_TEST(arrays_are_checked)
{
    const struct fault *fault = &faults[_i];
    struct ArrowSchema schema, root;
    struct ArrowArray array, whole, child[2] = {{0}};
    struct ArrowDeviceArray batch;
    struct uva__encoder *encoder;
    struct uva_part part;
    int code;

    column_of(fault->format, fault->child, &schema, &array);
    wrap(&schema, &array, &root, &batch);
    ck_assert_int_eq(uva__encoder_new(&root, NULL, &encoder, &error), 0);
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
    uva_part_release(&part);
    whole = *batch.array.children[0];
    for (int64_t i = 0; i < whole.n_children; i++)
        child[i] = *whole.children[i];
    fault->spoil(batch.array.children[0]);
    code = uva__encoder_batch(encoder, &batch, &part, &error);
    ck_assert_int_eq(code, EINVAL);
    ck_assert_msg(strstr(error.message, fault->text) != NULL &&
                      strstr(error.message, "'it") != NULL,
                  "%s", error.message);
    *batch.array.children[0] = whole;
    for (int64_t i = 0; i < whole.n_children; i++)
        *whole.children[i] = child[i];
    uva_array_release(&batch);
    uva__encoder_free(encoder);
    uva_schema_release(&root);
}
END_TEST

/* The batch is refused, by a text with these words. */
static void refused(struct uva__encoder *encoder,
                    struct ArrowDeviceArray *batch, int code, const char *words)
{
    struct uva_part part;

    ck_assert_int_eq(uva__encoder_batch(encoder, batch, &part, &error), code);
    ck_assert_msg(strstr(error.message, words) != NULL, "%s", error.message);
}

/* Faults of the batch itself; the encoder goes on after each of them. */
START_TEST(devices_are_refused)
{
    struct ArrowSchema schema, root;
    struct ArrowArray array;
    struct ArrowDeviceArray batch;
    struct uva__encoder *encoder;
    struct uva_part part;
    int event = 0;

    texts(&schema, &array, 3);
    wrap(&schema, &array, &root, &batch);
    ck_assert_int_eq(uva__encoder_new(&root, NULL, &encoder, NULL), 0);
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
    uva_part_release(&part);
    batch.device_type = ARROW_DEVICE_CUDA;
    refused(encoder, &batch, ENOTSUP, "on a device");
    batch.device_type = ARROW_DEVICE_CUDA_HOST;
    batch.sync_event = &event;
    refused(encoder, &batch, ENOTSUP, "behind an event");
    batch.sync_event = NULL;
    batch.device_type = ARROW_DEVICE_ROCM_HOST;
    ck_assert_int_eq(uva__encoder_batch(encoder, &batch, &part, &error), 0);
    uva_part_release(&part);
    uva__encoder_free(encoder);
    uva_schema_release(&root);
}
END_TEST

START_TEST(batches_are_checked)
{
    struct ArrowSchema schema, root;
    struct ArrowArray array, kept;
    struct ArrowDeviceArray batch;
    struct uva__encoder *encoder;
    struct uva_part part;
    struct ArrowArray *column, other = {0};

    texts(&schema, &array, 3);
    wrap(&schema, &array, &root, &batch);
    ck_assert_int_eq(uva__encoder_new(&root, NULL, &encoder, NULL), 0);
    refused(encoder, &batch, EINVAL, "comes first");
    ck_assert_int_eq(uva__encoder_end(encoder, &part), EINVAL);
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
    uva_part_release(&part);
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), EINVAL);
    ck_assert_int_eq(uva__encoder_batch(encoder, NULL, &part, NULL), EINVAL);
    kept = batch.array;
    batch.array.release = NULL;
    refused(encoder, &batch, EINVAL, "released");
    batch.array = kept;
    batch.array.buffers = NULL;
    refused(encoder, &batch, EINVAL, "vector of buffers");
    batch.array = kept;
    batch.array.children = NULL;
    refused(encoder, &batch, EINVAL, "vector of children");
    batch.array = kept;
    column = batch.array.children[0];
    batch.array.children[0] = NULL;
    refused(encoder, &batch, EINVAL, "child 0 is NULL");
    batch.array.children[0] = column;
    column->dictionary = &other;
    refused(encoder, &batch, EINVAL, "unexpected dictionary");
    column->dictionary = NULL;
    batch.array.buffers[0] = bits;
    batch.array.null_count = -1;
    refused(encoder, &batch, ENOTSUP, "rows that are null");
    batch.array.null_count = 0;
    ck_assert_int_eq(uva__encoder_batch(encoder, &batch, &part, &error), 0);
    uva_part_release(&part);
    ck_assert_int_eq(uva__encoder_end(encoder, &part), 0);
    uva_part_release(&part);
    ck_assert_int_eq(uva__encoder_end(encoder, &part), EINVAL);
    refused(encoder, &batch, EINVAL, "uva__encoder_end");
    uva__encoder_free(encoder);
    uva_schema_release(&root);
}
END_TEST

START_TEST(buffers_that_cannot_be_are_refused)
{
    struct ArrowSchema root;
    struct ArrowDeviceArray batch;
    struct uva__encoder *encoder;
    struct uva_part part;

    plain_schema(&root, "+s", "", 4);
    uva_array_clear(&batch);
    batch.device_type = ARROW_DEVICE_CPU;
    plain_array(&batch.array, INT64_MAX / 4, 1, 4);
    for (int i = 0; i < 4; i++) {
        plain_schema(root.children[i], "c", "x", 0);
        plain_array(batch.array.children[i], INT64_MAX / 4, 2, 0);
        batch.array.children[i]->buffers[1] = bits;
    }
    ck_assert_int_eq(uva__encoder_new(&root, NULL, &encoder, &error), 0);
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
    uva_part_release(&part);
    ck_assert_int_eq(uva__encoder_batch(encoder, &batch, &part, &error),
                     EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "too large"));
    uva_array_release(&batch);
    uva__encoder_free(encoder);
    uva_schema_release(&root);
}
END_TEST

/* ---- dictionaries ------------------------------------------------------- */

/* Batches with dictionaries of 2 texts, of 2 (equal), of 4, and of 3. */
static void growing(struct ArrowSchema *root, struct ArrowDeviceArray *batches)
{
    static const int64_t sizes[] = {2, 2, 4, 3};

    for (int i = 0; i < 4; i++) {
        struct ArrowSchema schema;
        struct ArrowArray values;

        texts(&schema, &values, sizes[i]);
        indexed(3 + i, &schema, &values, root, &batches[i]);
        if (i < 3)
            uva_schema_release(root);
    }
}

/* How many messages a part has. */
static size_t messages_of(const struct uva_part *part)
{
    size_t count = 0;

    for (size_t i = 0; i < part->count; i++)
        count += part->buffers[i].len > 8 &&
                 memcmp(part->buffers[i].base, "\xff\xff\xff\xff", 4) == 0;
    return count;
}

START_TEST(a_dictionary_is_sent_as_it_changes)
{
    struct ArrowDeviceArray batches[4];
    struct uva_part part;
    struct uva__encoder *encoder;
    struct ArrowSchema root;
    size_t headers[4] = {0};

    growing(&root, batches);
    ck_assert_int_eq(uva__encoder_new(&root, NULL, &encoder, &error), 0);
    uva_schema_release(&root);
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
    uva_part_release(&part);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(
            uva__encoder_batch(encoder, &batches[i], &part, &error), 0);
        headers[i] = messages_of(&part);
        uva_part_release(&part);
    }
    uva__encoder_free(encoder);
    ck_assert_uint_eq(headers[0], 2);
    ck_assert_uint_eq(headers[1], 1);
    ck_assert_uint_eq(headers[2], 2);
    ck_assert_uint_eq(headers[3], 2);
}
END_TEST

/* Encodes two batches with such dictionaries, which it takes; `schema` is the
 * schema of the values. Returns whether the second one is not sent. */
static bool is_kept(struct ArrowSchema *schema, struct ArrowArray *values)
{
    struct uva__encoder *encoder;
    struct uva_part part;
    size_t messages = 0;

    for (int i = 0; i < 2; i++) {
        struct ArrowDeviceArray batch;
        struct ArrowSchema root, copy;

        ck_assert_int_eq(uva_schema_copy(schema, &copy), 0);
        indexed(4, &copy, &values[i], &root, &batch);
        if (i == 0) {
            ck_assert_int_eq(uva__encoder_new(&root, NULL, &encoder, &error),
                             0);
            ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
            uva_part_release(&part);
        }
        uva_schema_release(&root);
        ck_assert_msg(uva__encoder_batch(encoder, &batch, &part, &error) == 0,
                      "%s", error.message);
        messages = messages_of(&part);
        uva_part_release(&part);
    }
    uva__encoder_free(encoder);
    uva_schema_release(schema);
    return messages == 1;
}

/* Dictionaries of one type that have other values. */
START_TEST(another_dictionary_is_sent)
{
    static const struct every_variant others[][2] = {
        {{5, 0, false}, {9, 0, false}}, {{9, 0, false}, {5, 0, false}},
        {{5, 0, false}, {5, 3, false}}, {{5, 0, true}, {5, 3, true}},
        {{5, 0, false}, {5, 0, true}},
    };
    struct ArrowSchema schema, again;
    struct ArrowDeviceArray first, second;
    struct ArrowArray values[2];
    const int type = _i / 5;

    every_type(type, &others[_i % 5][0], &schema, &first);
    every_type(type, &others[_i % 5][1], &again, &second);
    uva_schema_release(&again);
    values[0] = first.array;
    values[1] = second.array;
    if (schema.dictionary == NULL && type != 31) {
        (void)is_kept(&schema, values);
        return;
    }
    uva_schema_release(&schema); /* indices, or runs that do not grow */
    uva_array_release(&first);
    uva_array_release(&second);
}
END_TEST

START_TEST(views_are_compared)
{
    static const int64_t sizes[] = {36};
    static const int32_t views[][4] = {
        {20, 0, 0, 8},  {20, 0, 0, 17}, {20, 0, 1, 0},
        {20, 0, -1, 0}, {20, 0, 0, -1}, {-5, 0, 0, 0},
    };
    struct ArrowSchema schema;
    struct ArrowArray values[2];

    plain_schema(&schema, "vu", "", 0);
    for (int i = 0; i < 2; i++) {
        plain_array(&values[i], 1, 4, 0);
        values[i].buffers[1] = views[_i];
        values[i].buffers[2] = offsets;
        values[i].buffers[3] = sizes;
    }
    ck_assert_int_eq(is_kept(&schema, values), _i == 0);
}
END_TEST

START_TEST(a_file_cannot_replace_a_dictionary)
{
    const struct uva_encode file = {.format = UVA_FORMAT_ARROW_FILE};
    struct ArrowDeviceArray batches[4];
    struct output output = {0};
    struct ArrowSchema root;

    growing(&root, batches);
    ck_assert_int_eq(encode(&file, &root, batches, 4, &output), ENOTSUP);
    ck_assert_ptr_nonnull(strstr(error.message, "write a stream"));
    output_free(&output);
}
END_TEST

START_TEST(a_dictionary_must_be_there)
{
    struct ArrowDeviceArray batches[4];
    struct uva_part part;
    struct uva__encoder *encoder;
    struct ArrowArray *values;
    struct ArrowSchema root;

    growing(&root, batches);
    ck_assert_int_eq(uva__encoder_new(&root, NULL, &encoder, &error), 0);
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
    uva_part_release(&part);
    values = batches[0].array.children[0]->dictionary;
    batches[0].array.children[0]->dictionary = NULL;
    ck_assert_int_eq(uva__encoder_batch(encoder, &batches[0], &part, &error),
                     EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "lacks its"));
    batches[0].array.children[0]->dictionary = values;
    values->length = -7;
    ck_assert_int_eq(uva__encoder_batch(encoder, &batches[0], &part, &error),
                     EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "length -7"));
    for (int i = 0; i < 4; i++)
        uva_array_release(&batches[i]);
    uva__encoder_free(encoder);
    uva_schema_release(&root);
}
END_TEST

START_TEST(runs_are_compared)
{
    static const int32_t ends[] = {0, 1, 2, 4, 5, 6, 7, 8, 9};
    static const int32_t later[] = {0, 1, 2, 3, 5, 6, 7, 8, 9};
    static const struct {
        int64_t first, second;
        const int32_t *ends;
        bool kept;
    } cases[] = {
        {5, 5, offsets, true}, {5, 3, offsets, false}, {5, 5, ends, false},
        {5, 6, later, false},  {2, 5, ends, false}, /* a delta */
    };
    struct ArrowSchema schema, again;
    struct ArrowArray values[2];

    column_of("+r", "i", &schema, &values[0]);
    column_of("+r", "i", &again, &values[1]);
    uva_schema_release(&again);
    values[0].length = cases[_i].first;
    values[1].length = cases[_i].second;
    values[1].children[0]->buffers[1] = cases[_i].ends;
    ck_assert_int_eq(is_kept(&schema, values), cases[_i].kept);
}
END_TEST

/* Types and offsets of the same child. */
START_TEST(unions_are_compared)
{
    static const int32_t places[] = {4, 3, 2, 1, 0};
    struct ArrowSchema schema, again;
    struct ArrowArray values[2];

    column_of("+ud:0", "i", &schema, &values[0]);
    column_of("+ud:0", "i", &again, &values[1]);
    uva_schema_release(&again);
    if (_i > 0)
        values[1].buffers[_i - 1] = places;
    ck_assert_int_eq(is_kept(&schema, values), _i == 0);
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

static const struct uva_encode sweeps[] = {
    {.format = UVA_FORMAT_ARROW},
    {.format = UVA_FORMAT_ARROW_FILE},
    {.format = UVA_FORMAT_ARROW, .compression = 1},
    {.format = UVA_FORMAT_ARROW, .compression = 2},
    {.format = UVA_FORMAT_CSV},
    {.format = UVA_FORMAT_JSON},
};

/* Makes the k-th allocation of a call fail (0: no failure), counts that, and
 * calls again with enough memory. */
#define RETRY(call, k, failures)                                               \
    do {                                                                       \
        int code_;                                                             \
        faulty_libc_fail(k);                                                   \
        code_ = (call);                                                        \
        if (faulty_libc_stop()) {                                              \
            ck_assert_int_eq(code_, ENOMEM);                                   \
            (failures)++;                                                      \
            code_ = (call);                                                    \
        }                                                                      \
        ck_assert_int_eq(code_, 0);                                            \
    } while (0)

/* Whether the library was built with the codec. */
static bool has_codec(const struct uva_encode *options)
{
    struct uva__encoder *encoder = NULL;
    struct ArrowSchema schema;
    int code;

    plain_schema(&schema, "+s", "", 0);
    code = uva__encoder_new(&schema, options, &encoder, NULL);
    uva__encoder_free(encoder);
    uva_schema_release(&schema);
    return code == 0;
}

/* A slice of everything that is copied: bits, offsets, runs, views. */
static void copied(struct ArrowSchema *root, struct ArrowDeviceArray *batch)
{
    static const char *const formats[] = {"b", "u", "vu", "+r"};

    plain_schema(root, "+s", "", 4);
    uva_array_clear(batch);
    batch->device_type = ARROW_DEVICE_CPU;
    plain_array(&batch->array, 4, 1, 4);
    for (int i = 0; i < 4; i++) {
        struct ArrowArray *column = batch->array.children[i];

        column_of(formats[i], i == 3 ? "i" : NULL, root->children[i], column);
        column->length = 4;
        column->offset = 1;
        if (i < 3) {
            column->buffers[0] = bits;
            column->null_count = -1;
        }
    }
}

/* The bytes are as in a run with enough memory, whichever allocation of
 * whichever call failed before. */
START_TEST(a_call_without_memory_changes_nothing)
{
    const struct uva_encode *options = &sweeps[_i];
    struct output expected = {0};
    int failures = has_codec(&sweeps[_i]);

    for (long k = 0; failures > 0; k++) {
        struct ArrowDeviceArray batches[4];
        struct uva__encoder *encoder = NULL;
        struct uva_part part;
        struct output output = {0};
        struct ArrowSchema root;

        failures = k == 0;
        growing(&root, batches);
        root.metadata = NATIVE_PAIR;
        RETRY(uva__encoder_new(&root, options, &encoder, &error), k, failures);
        uva_schema_release(&root);
        RETRY(uva__encoder_begin(encoder, &part), k, failures);
        output_add(&output, &part);
        for (int i = 0; i < 3 + (options->format != UVA_FORMAT_ARROW_FILE);
             i++) {
            RETRY(uva__encoder_batch(encoder, &batches[i], &part, &error), k,
                  failures);
            output_add(&output, &part);
        }
        RETRY(uva__encoder_end(encoder, &part), k, failures);
        output_add(&output, &part);
        uva__encoder_free(encoder);
        uva_array_release(&batches[3]);
        if (k == 0) {
            expected = output;
            continue;
        }
        ck_assert_uint_eq(output.size, expected.size);
        ck_assert_int_eq(memcmp(output.bytes, expected.bytes, output.size), 0);
        output_free(&output);
    }
    output_free(&expected);
}
END_TEST

START_TEST(a_copy_without_memory_fails)
{
    int failures = has_codec(&sweeps[_i]);

    for (long k = 1; failures > 0; k++) {
        struct ArrowDeviceArray batch;
        struct uva__encoder *encoder = NULL;
        struct uva_part part;
        struct ArrowSchema root;

        failures = 0;
        copied(&root, &batch);
        RETRY(uva__encoder_new(&root, &sweeps[_i], &encoder, &error), k,
              failures);
        ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
        uva_part_release(&part);
        RETRY(uva__encoder_batch(encoder, &batch, &part, &error), k, failures);
        uva__encoder_free(encoder);
        uva_part_release(&part); /* outlives the encoder */
        uva_schema_release(&root);
    }
}
END_TEST

/* ---- sizes -------------------------------------------------------------- */

/* More than the encoder has room for at first. */
START_TEST(large_things_fit)
{
    static char name[3000];
    static const int64_t sizes[60];
    struct ArrowSchema schema, root;
    struct ArrowDeviceArray batch;
    struct output output = {0};
    struct ArrowArray array;

    memset(name, 'n', sizeof(name) - 1);
    plain_schema(&schema, "vu", name, 0);
    plain_array(&array, 1, 63, 0);
    array.buffers[1] = offsets;
    array.buffers[62] = sizes;
    wrap(&schema, &array, &root, &batch);
    ck_assert_msg(encode(NULL, &root, &batch, 1, &output) == 0, "%s",
                  error.message);
    ck_assert_uint_gt(output.size, sizeof(name));
    output_free(&output);
}
END_TEST

START_TEST(a_long_path_is_cut)
{
    enum { DEEP = 12 };
    static char name[64];
    struct ArrowSchema schema, root;
    struct ArrowDeviceArray batch;
    struct output output = {0};
    struct ArrowArray array;

    memset(name, 'n', sizeof(name) - 1);
    plain_schema(&schema, "i", name, 0);
    plain_array(&array, 1, 2, 0);
    for (int i = 0; i < DEEP; i++) {
        struct ArrowSchema up;
        struct ArrowArray above;

        plain_schema(&up, "+s", name, 1);
        *up.children[0] = schema;
        plain_array(&above, 1, 1, 1);
        *above.children[0] = array;
        schema = up;
        array = above;
    }
    wrap(&schema, &array, &root, &batch);
    ck_assert_int_eq(encode(NULL, &root, &batch, 1, &output), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "buffer 1 is NULL"));
    output_free(&output);
}
END_TEST

START_TEST(nothing_can_be_freed)
{
    struct uva_part part = {0};

    uva__encoder_free(NULL);
    uva_part_release(NULL);
    uva_part_release(&part);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("encoder");
    TCase *all = suite_case(suite, "encoder", set_up, tear_down);

    suite_add_loops(all, 0, EVERY_TYPES * 5, every_type_is_encoded, NULL);
    suite_add_loops(all, 0, EVERY_TYPES * 2,
                    an_equal_dictionary_is_not_sent_again, NULL);
    suite_add_loops(all, 0, EVERY_TYPES * 5, another_dictionary_is_sent, NULL);
    suite_add_loops(all, 0, 5, runs_are_compared, NULL);
    suite_add_loops(all, 0, 3, unions_are_compared, NULL);
    suite_add_loops(all, 0, 6, views_are_compared, NULL);
    suite_add_loops(all, 0, sizeof(faults) / sizeof(*faults),
                    arrays_are_checked, NULL);
    suite_add_loops(all, 0, 6, a_call_without_memory_changes_nothing,
                    a_copy_without_memory_fails, NULL);
    suite_add(all, options_are_checked, schemas_are_checked,
              other_schemas_are_refused, devices_are_refused,
              batches_are_checked, buffers_that_cannot_be_are_refused,
              a_dictionary_is_sent_as_it_changes,
              a_file_cannot_replace_a_dictionary, a_dictionary_must_be_there,
              large_things_fit, a_long_path_is_cut, nothing_can_be_freed, NULL);
    return suite_run(suite);
}
