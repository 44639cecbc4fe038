/* SPDX-License-Identifier: Apache-2.0 */
/* Many batches of random columns as text: their hashes were recorded when each
 * value was looked up and written on its own, before columns were prepared. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "io/encoder.h"
#include "support/check_suite.h"
#include "support/faulty_libc.h"
#include "support/native.h"
#include "uvarrow/arrow.h"
#include "uvarrow/io.h"

enum { COLUMNS = 6, VALUES = 40, BATCHES = 300 };

/* ---- random columns ----------------------------------------------------- */

static uint64_t state;

static uint64_t random_next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint64_t random_below(uint64_t limit)
{
    return random_next() % limit;
}

/* A column of VALUES values, and the memory of its buffers. */
struct column {
    struct ArrowSchema schema;
    struct ArrowArray array;
    const void *buffers[3];
    uint8_t bits[VALUES / 8];
    char values[VALUES * 16];
    int64_t offsets[VALUES + 1];
    int32_t short_offsets[VALUES + 1];
    char text[VALUES * 48];
};

/* Formats, and the bytes of their values. */
static const struct {
    const char *format;
    int width;
} fixed[] = {
    {"b", 0},        {"c", 1},         {"s", 2},       {"i", 4},
    {"l", 8},        {"C", 1},         {"S", 2},       {"I", 4},
    {"L", 8},        {"e", 2},         {"f", 4},       {"g", 8},
    {"d:9,3,32", 4}, {"d:18,4,64", 8}, {"d:38,2", 16}, {"d:38,30", 16},
    {"tdD", 4},      {"tsu:UTC", 8},   {"tsn:", 8},    {"tss:+05:30", 8},
    {"ttm", 4},      {"tDm", 8},       {"tiM", 4},     {"l", 8},
};

static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void release_array(struct ArrowArray *array)
{
    array->release = NULL;
}

/* Numbers of all sizes. */
static uint64_t random_value(const char *format)
{
    const uint64_t shift = random_below(64);
    uint64_t value = random_next() >> shift;

    if (strcmp(format, "g") == 0 && random_below(2) == 0) {
        const double price = (double)(value % 10000000) / 100;

        memcpy(&value, &price, sizeof(value));
    } else if (random_below(3) == 0) {
        value = 0 - value;
    }
    return format[0] == 't' && format[1] != 'd' ? value >> 3 : value;
}

static void store(char *at, uint64_t value, int width)
{
    const uint8_t u8 = (uint8_t)value;
    const uint16_t u16 = (uint16_t)value;
    const uint32_t u32 = (uint32_t)value;
    const uint64_t high = random_below(2) == 0 ? value >> 63 ? UINT64_MAX : 0
                                               : random_next() >> 20;

    switch (width) {
    case 1:
        memcpy(at, &u8, 1);
        break;
    case 2:
        memcpy(at, &u16, 2);
        break;
    case 4:
        memcpy(at, &u32, 4);
        break;
    case 16:
        memcpy(at + (NATIVE_IS_BIG ? 0 : 8), &high, 8);
        memcpy(at + (NATIVE_IS_BIG ? 8 : 0), &value, 8);
        break;
    default:
        memcpy(at, &value, 8);
    }
}

static void fill_fixed(struct column *c, const char *format, int width)
{
    c->schema.format = format;
    c->array.n_buffers = 2;
    c->buffers[1] = c->values;
    for (int i = 0; i < VALUES; i++)
        if (width > 0)
            store(c->values + i * width, random_value(format), width);
        else
            c->values[i / 8] = (char)random_next();
}

/* Most columns have texts without quotes alone. */
static void fill_text(struct column *c, bool is_odd)
{
    static const char *const texts[] = {
        "UA",         "N14228",
        "a",          "IAH5",
        "",           "2013-01-01T10:00",
        "12345678",   "0123456789abcdefghij",
        "NA",         "a,b",
        "say \"no\"", "two\nlines",
        "c;d",        "caf\xc3\xa9",
        "\xff!",      "a\\b\t",
        "\r",         "\"",
        "x\x7fy",     "eight77\"and more of it",
        "\x01z",      "0,1",
        "plain text", "  ",
    };
    const bool is_long = random_below(2) == 0;
    int32_t end = 0;

    c->schema.format = is_long ? "U" : "u";
    c->array.n_buffers = 3;
    c->buffers[1] =
        is_long ? (const void *)c->offsets : (const void *)c->short_offsets;
    c->buffers[2] = c->text;
    for (int i = 0; i < VALUES; i++) {
        const char *text =
            texts[random_below(is_odd ? sizeof(texts) / sizeof(*texts) : 8)];

        memcpy(c->text + end, text, strlen(text));
        end += (int32_t)strlen(text);
        c->offsets[i + 1] = c->short_offsets[i + 1] = end;
    }
}

static void fill(struct column *c, int number)
{
    static const char *const names[] = {
        "n",        "name", "a \"b\"", "longer, name", "exactly_16_bytes",
        "e\xc3\xa9"};
    const uint64_t kind = random_below(sizeof(fixed) / sizeof(*fixed) + 12);

    *c = (struct column){.schema.name = names[number],
                         .schema.release = release_schema,
                         .array.release = release_array};
    if (kind < sizeof(fixed) / sizeof(*fixed))
        fill_fixed(c, fixed[kind].format, fixed[kind].width);
    else
        fill_text(c, kind % 3 == 0);
    for (size_t i = 0; i < sizeof(c->bits); i++)
        c->bits[i] = (uint8_t)(random_next() | random_next());
    c->buffers[0] = random_below(3) == 0 ? NULL : c->bits;
    c->array.null_count = c->buffers[0] == NULL ? 0 : -1;
    c->array.buffers = c->buffers;
    c->array.offset = (int64_t)random_below(5);
    c->array.length = VALUES - c->array.offset;
}

/* ---- a batch, and its text ---------------------------------------------- */

static uint64_t hash_part(uint64_t hash, struct uva_part *part)
{
    for (size_t i = 0; i < part->count; i++)
        for (size_t k = 0; k < part->buffers[i].len; k++)
            hash = (hash ^ (unsigned char)part->buffers[i].base[k]) *
                   UINT64_C(0x100000001b3);
    uva_part_release(part);
    return hash;
}

static uint64_t hash_batch(uint64_t hash, const struct uva_encode *options)
{
    static struct column columns[COLUMNS];
    struct ArrowSchema *schemas[COLUMNS];
    struct ArrowArray *arrays[COLUMNS];
    const void *no_bitmap[] = {NULL};
    struct ArrowSchema schema = {
        .format = "+s", .children = schemas, .release = release_schema};
    struct ArrowArray array = {.n_buffers = 1,
                               .buffers = no_bitmap,
                               .children = arrays,
                               .release = release_array};
    struct ArrowDeviceArray batch;
    struct uva__encoder *encoder;
    struct uva_part part;

    schema.n_children = array.n_children = (int64_t)random_below(COLUMNS + 1);
    for (int i = 0; i < array.n_children; i++) {
        fill(&columns[i], i);
        schemas[i] = &columns[i].schema;
        arrays[i] = &columns[i].array;
    }
    array.offset = (int64_t)random_below(3);
    array.length = (int64_t)random_below(VALUES - 8);
    uva_array_from_cpu(&array, &batch);
    ck_assert_int_eq(uva__encoder_new(&schema, options, &encoder, NULL), 0);
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
    hash = hash_part(hash, &part);
    ck_assert_int_eq(uva__encoder_batch(encoder, &batch, &part, NULL), 0);
    hash = hash_part(hash, &part);
    uva__encoder_free(encoder);
    return hash;
}

static const struct {
    struct uva_encode options;
    uint64_t hash;
} recorded[] = {
    {{.format = UVA_FORMAT_CSV}, UINT64_C(0x9c9bd2b5f5fa146e)},
    {{.format = UVA_FORMAT_CSV, .csv = {.delimiter = ';', .crlf = true}},
     UINT64_C(0xaeff89bda4ccd765)},
    {{.format = UVA_FORMAT_CSV, .csv = {.null_text = "NA"}},
     UINT64_C(0x6c429f4f1fbeba94)},
    {{.format = UVA_FORMAT_CSV, .csv = {.delimiter = '1', .null_text = "UA"}},
     UINT64_C(0xab79bb854940ccf7)},
    {{.format = UVA_FORMAT_JSON}, UINT64_C(0x6c71d8c86f783f6f)},
};

START_TEST(rows_are_written_as_ever)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    state = 88172645463325252;
    for (int i = 0; i < BATCHES; i++)
        hash = hash_batch(hash, &recorded[_i].options);
    ck_assert_msg(hash == recorded[_i].hash, "%d: 0x%016llx", _i,
                  (unsigned long long)hash);
}
END_TEST

/* ---- values without memory ---------------------------------------------- */

/* A value that needs more room than the columns of its row. */
static const struct {
    struct uva_encode options;
    const char *format;
    const char *first; /* its first byte; the others are 'a' */
} large[] = {
    {{.format = UVA_FORMAT_CSV}, "u", "\""},
    {{.format = UVA_FORMAT_CSV}, "u", "a"},
    {{.format = UVA_FORMAT_CSV}, "z", "a"},
    {{.format = UVA_FORMAT_CSV, .csv = {.delimiter = '6'}}, "z", "a"},
    {{.format = UVA_FORMAT_JSON}, "u", "\""},
    {{.format = UVA_FORMAT_JSON}, "u", "a"},
};

/* The allocation with that number fails. */
static int encode_large(int number, long failing, int64_t *bytes)
{
    struct column c = {.offsets = {0}};
    const int32_t offsets[] = {0, sizeof(c.text)};
    struct ArrowSchema *schemas[] = {&c.schema};
    struct ArrowArray *arrays[] = {&c.array};
    struct ArrowSchema schema = {.format = "+s",
                                 .n_children = 1,
                                 .children = schemas,
                                 .release = release_schema};
    struct ArrowArray array = {.length = 1,
                               .n_buffers = 1,
                               .buffers = c.buffers,
                               .n_children = 1,
                               .children = arrays,
                               .release = release_array};
    struct ArrowDeviceArray batch;
    struct uva__encoder *encoder;
    struct uva_part part = {0};
    int code;

    memset(c.text, 'a', sizeof(c.text));
    c.text[0] = *large[number].first;
    c.buffers[1] = offsets;
    c.buffers[2] = c.text;
    c.schema = (struct ArrowSchema){
        .format = large[number].format, .name = "n", .release = release_schema};
    c.array = (struct ArrowArray){.length = 1,
                                  .n_buffers = 3,
                                  .buffers = c.buffers,
                                  .release = release_array};
    uva_array_from_cpu(&array, &batch);
    ck_assert_int_eq(
        uva__encoder_new(&schema, &large[number].options, &encoder, NULL), 0);
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
    uva_part_release(&part);
    faulty_libc_fail(failing);
    code = uva__encoder_batch(encoder, &batch, &part, NULL);
    ck_assert_int_eq(code, faulty_libc_stop() ? ENOMEM : 0);
    *bytes = part.bytes;
    uva_part_release(&part);
    if (code != 0) /* it is still the caller's */
        uva_array_release(&batch);
    uva__encoder_free(encoder);
    return code;
}

START_TEST(a_large_value_without_memory_fails)
{
    int64_t bytes = 0;
    int code = ENOMEM;

    for (long k = 1; code != 0; k++)
        code = encode_large(_i, k, &bytes);
    ck_assert_int_gt(bytes, (int64_t)sizeof(((struct column *)NULL)->text));
}
END_TEST

START_TEST(a_struct_without_members_is_an_empty_object)
{
    const void *no_bitmap[] = {NULL};
    struct ArrowSchema inner = {
        .format = "+s", .name = "s", .release = release_schema};
    struct ArrowArray inner_array = {.length = 2,
                                     .n_buffers = 1,
                                     .buffers = no_bitmap,
                                     .release = release_array};
    struct ArrowSchema *schemas[] = {&inner};
    struct ArrowArray *arrays[] = {&inner_array};
    struct ArrowSchema schema = {.format = "+s",
                                 .n_children = 1,
                                 .children = schemas,
                                 .release = release_schema};
    struct ArrowArray array = {.length = 2,
                               .n_buffers = 1,
                               .buffers = no_bitmap,
                               .n_children = 1,
                               .children = arrays,
                               .release = release_array};
    const struct uva_encode json = {.format = UVA_FORMAT_JSON};
    static const char text[] = "{\"s\":{}}\n{\"s\":{}}\n";
    struct ArrowDeviceArray batch;
    struct uva__encoder *encoder;
    struct uva_part part;

    uva_array_from_cpu(&array, &batch);
    ck_assert_int_eq(uva__encoder_new(&schema, &json, &encoder, NULL), 0);
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
    uva_part_release(&part);
    ck_assert_int_eq(uva__encoder_batch(encoder, &batch, &part, NULL), 0);
    ck_assert_uint_eq(part.buffers[0].len, strlen(text));
    ck_assert_mem_eq(part.buffers[0].base, text, strlen(text));
    uva_part_release(&part);
    uva__encoder_free(encoder);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("text_rows");

    TCase *rows = suite_case(suite, "rows", NULL, NULL);

    suite_add_loops(rows, 0, sizeof(recorded) / sizeof(*recorded),
                    rows_are_written_as_ever, NULL);
    suite_add_loops(rows, 0, sizeof(large) / sizeof(*large),
                    a_large_value_without_memory_fails, NULL);
    suite_add(rows, a_struct_without_members_is_an_empty_object, NULL);
    return suite_run(suite);
}
