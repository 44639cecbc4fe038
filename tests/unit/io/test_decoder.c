/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder, message by message: dictionaries that are shared, missing,
 * joined or too large, indices of every width, schemas that are too deep,
 * limits, and memory that runs out. The encoder's messages, in the order that a
 * test wants, some with changed bytes. tests/fuzz/fuzz_ipc.c tries the rest. */
#define _GNU_SOURCE /* memmem() */
#include "io/encoder.h"
#include "io/ipc_decoder.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "io/flatbuffer_reader.h"
#include "io/flatbuffer_writer.h"
#include "io/ipc_compress.h"
#include "support/check_suite.h"
#include "support/faulty_libc.h"
#include "support/native.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"
#include "uvarrow/io.h"

enum { MOST = 12, ROOM = 1 << 16, LIMIT = 1 << 20 };

static struct uva_error error;
static uint8_t bytes[ROOM];
static size_t size;
static struct uva__message messages[MOST]; /* of the stream in `bytes` */
static int count;
static struct uva__ipc_decoder *decoder;

static void set_up(void)
{
    memset(&error, 0, sizeof(error));
    size = 0;
    count = 0;
    decoder = NULL;
}

static void forget_messages(void)
{
    while (count > 0)
        uva__message_fini(&messages[--count]);
}

static void tear_down(void)
{
    forget_messages();
    uva__ipc_decoder_free(decoder);
    ck_assert_int_eq(plain_live(), 0);
}

/* ---- decoded messages --------------------------------------------------- */

static const int32_t offsets[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

static void texts(struct ArrowSchema *schema, struct ArrowArray *array,
                  int64_t length)
{
    plain_schema(schema, "u", "texts", 0);
    plain_array(array, length, 3, 0);
    array->buffers[1] = offsets;
    array->buffers[2] = "abcdefghi";
}

/* A column of indices of `values`, which it takes. */
static void indices(const char *format, const void *data, int64_t length,
                    struct ArrowSchema *values_schema,
                    struct ArrowArray *values, struct ArrowSchema *schema,
                    struct ArrowArray *array)
{
    plain_schema(schema, format, "indices", 0);
    *plain_schema_dictionary(schema) = *values_schema;
    plain_array(array, length, 2, 0);
    array->buffers[1] = data;
    *plain_array_dictionary(array) = *values;
}

/* A struct of columns, which it takes. */
static void group(struct ArrowSchema *schemas, struct ArrowArray *arrays, int n,
                  struct ArrowSchema *schema, struct ArrowArray *array)
{
    plain_schema(schema, "+s", "group", n);
    plain_array(array, arrays[0].length, 1, n);
    for (int i = 0; i < n; i++) {
        *schema->children[i] = schemas[i];
        *array->children[i] = arrays[i];
    }
}

static void put(struct uva_part *part)
{
    for (size_t i = 0; i < part->count; i++) {
        ck_assert_uint_le(size + part->buffers[i].len, ROOM);
        memcpy(bytes + size, part->buffers[i].base, part->buffers[i].len);
        size += part->buffers[i].len;
    }
    uva_part_release(part);
}

/* Encodes a batch, which it takes. Makes the encoder for the first one. */
static void encode(struct uva__encoder **encoder, struct ArrowSchema *schema,
                   struct ArrowArray *array)
{
    struct ArrowDeviceArray batch;
    struct uva_part part;

    if (*encoder == NULL) {
        ck_assert_msg(uva__encoder_new(schema, NULL, encoder, &error) == 0,
                      "%s", error.message);
        ck_assert_int_eq(uva__encoder_begin(*encoder, &part), 0);
        put(&part);
    }
    uva_array_from_cpu(array, &batch);
    ck_assert_msg(uva__encoder_batch(*encoder, &batch, &part, &error) == 0,
                  "%s", error.message);
    put(&part);
    uva_schema_release(schema);
}

/* Cuts the bytes into messages. */
static void cut(void)
{
    struct uva__ipc_framer framer;
    size_t at = 0;

    forget_messages();
    uva__ipc_framer_init(&framer, LIMIT);
    while (at < size) {
        uint8_t *to;
        size_t want;

        uva__ipc_framer_want(&framer, &to, &want);
        memcpy(to, bytes + at, want);
        at += want;
        ck_assert_msg(uva__ipc_framer_add(&framer, want, &error) == 0, "%s",
                      error.message);
        if (framer.state == UVA__IPC_FRAMER_FULL) {
            ck_assert_int_lt(count, MOST);
            uva__ipc_framer_take(&framer, &messages[count++]);
        }
    }
    uva__ipc_framer_fini(&framer);
}

/* Encodes one batch and cuts that. */
static void encode_one(struct ArrowSchema *schema, struct ArrowArray *array)
{
    struct uva__encoder *encoder = NULL;

    encode(&encoder, schema, array);
    uva__encoder_free(encoder);
    cut();
}

/* Changes the only 8-byte number `from` of a header. */
static void patch(int message, uint64_t from, uint64_t to)
{
    uint8_t *head = messages[message].head->bytes;
    int found = 0;

    for (size_t i = 0; i + 8 <= messages[message].head->size; i += 8)
        if (uva__table_load(head + i, 8) == from) {
            uva__flatbuffer_store(head + i, to, 8);
            found++;
        }
    ck_assert_int_eq(found, 1);
}

/* ---- decoding ----------------------------------------------------------- */

static int begin(int64_t limit)
{
    uva__ipc_decoder_free(decoder);
    decoder = uva__ipc_decoder_new(limit);
    ck_assert_ptr_nonnull(decoder);
    return uva__ipc_decoder_begin(decoder, &messages[0], &error);
}

/* Takes a message, of which more are made by sharing. Gives the array of a
 * batch. */
static int take(int message, struct ArrowDeviceArray *out)
{
    struct uva__message again = messages[message];
    struct uva__ipc_item *item = NULL;
    int code;

    (void)uva__shared_bytes_acquire(again.head);
    if (again.body != NULL)
        (void)uva__shared_bytes_acquire(again.body);
    code = uva__ipc_decoder_take(decoder, &again, &item, &error);
    uva__message_fini(&again);
    if (code == 0 && item != NULL)
        code = uva__ipc_item_decode(item, out, &error);
    uva__ipc_item_free(item);
    return code;
}

static void fails(int code, int expected, const char *text)
{
    ck_assert_int_eq(code, expected);
    ck_assert_msg(strstr(error.message, text) != NULL, "%s", error.message);
    ck_assert_int_eq(strncmp(error.message, "Arrow IPC: message ", 19), 0);
}

/* ---- one dictionary for two columns ------------------------------------- */

static const int8_t low[] = {0, 1, 0, 1};

enum { TEXT, BYTES, GROUP, NUMBERS, NESTED };

/* Values of some kind: texts, bytes, or a struct of texts, numbers or indices.
 */
static void values_of(int kind, struct ArrowSchema *schema,
                      struct ArrowArray *array)
{
    struct ArrowSchema inner, values_schema;
    struct ArrowArray column, values;

    texts(schema, array, 3);
    if (kind == BYTES)
        schema->format = "z";
    if (kind < GROUP)
        return;
    inner = *schema;
    column = *array;
    if (kind == NUMBERS) {
        inner.format = "c";
        column.n_buffers = 2;
    }
    if (kind == NESTED) {
        values_schema = inner;
        values = column;
        indices("c", low, 3, &values_schema, &values, &inner, &column);
    }
    group(&inner, &column, 1, schema, array);
}

/* Encodes two columns of indices of such values. */
static void encode_pair(int first, int second)
{
    struct ArrowSchema schemas[2], schema, values_schema;
    struct ArrowArray arrays[2], array, values;

    for (int i = 0; i < 2; i++) {
        values_of(i == 0 ? first : second, &values_schema, &values);
        indices("c", low, 4, &values_schema, &values, &schemas[i], &arrays[i]);
    }
    group(schemas, arrays, 2, &schema, &array);
    encode_one(&schema, &array);
}

START_TEST(columns_may_share_a_dictionary)
{
    struct ArrowDeviceArray batch = {0};

    encode_pair(TEXT, TEXT);
    ck_assert_int_eq(count, 4);
    patch(0, 1, 0);
    ck_assert_int_eq(begin(0), 0);
    ck_assert_int_eq(take(1, NULL), 0);
    ck_assert_int_eq(take(3, &batch), 0);
    for (int i = 0; i < 2; i++) {
        const struct ArrowArray *column = batch.array.children[i];

        ck_assert_int_eq(column->dictionary->length, 3);
        ck_assert_int_eq(memcmp(column->dictionary->buffers[2], "abc", 3), 0);
    }
    fails(take(2, NULL), EPROTO, "dictionary 1 is not in the schema");
    uva_array_release(&batch);
}
END_TEST

START_TEST(a_dictionary_has_one_type)
{
    static const int pairs[][2] = {
        {TEXT, BYTES}, {TEXT, GROUP}, {NUMBERS, NESTED}, {NESTED, NESTED}};

    encode_pair(pairs[_i][0], pairs[_i][1]);
    patch(0, 1, 0);
    fails(begin(0), EPROTO, "dictionary 0 has two types");
}
END_TEST

/* ---- values ------------------------------------------------------------- */

/* A batch of `rows` indices into a struct of texts and of indices of texts. */
static void nested(struct uva__encoder **encoder, int64_t rows, int64_t inner)
{
    struct ArrowSchema schemas[2], schema, values_schema, root;
    struct ArrowArray arrays[2], array, values, batch;

    texts(&schemas[0], &arrays[0], 2);
    texts(&values_schema, &values, inner);
    indices("c", low, 2, &values_schema, &values, &schemas[1], &arrays[1]);
    group(schemas, arrays, 2, &values_schema, &values);
    indices("c", low, rows, &values_schema, &values, &schema, &array);
    group(&schema, &array, 1, &root, &batch);
    encode(encoder, &root, &batch);
}

START_TEST(a_missing_dictionary_has_no_values)
{
    struct uva__encoder *encoder = NULL;
    struct ArrowDeviceArray batch = {0};

    nested(&encoder, 4 * _i, 2);
    uva__encoder_free(encoder);
    cut();
    ck_assert_int_eq(begin(0), 0);
    if (_i == 1) {
        fails(take(count - 1, &batch), EPROTO,
              "an index points behind the dictionary");
        return;
    }
    ck_assert_int_eq(take(count - 1, &batch), 0);
    ck_assert_int_eq(batch.array.children[0]->dictionary->length, 0);
    uva_array_release(&batch);
}
END_TEST

/* Makes the values of a message a delta. */
static void make_delta(int message)
{
    uint8_t *head = messages[message].head->bytes;
    struct uva__ipc_head read;

    ck_assert_int_eq(
        uva__ipc_head_read(head, messages[message].head->size, &read, &error),
        0);
    head[read.header.at + uva__table_load(head + read.header.slots_at + 4, 2)] =
        1;
}

/* Deltas of every type are joined, also with nested dictionaries. */
START_TEST(deltas_are_joined)
{
    struct uva__encoder *encoder = NULL;
    struct ArrowDeviceArray batch = {0};

    nested(&encoder, 4, 3);
    uva__encoder_free(encoder);
    cut();
    ck_assert_int_eq(count, 4);
    ck_assert_int_eq(begin(0), 0);
    for (int i = 1; i < 4; i++)
        ck_assert_int_eq(take(i, &batch), 0);
    uva_array_release(&batch);
    make_delta(2);
    ck_assert_int_eq(take(2, NULL), 0);
    ck_assert_int_eq(take(2, NULL), 0);
    ck_assert_int_eq(take(3, &batch), 0);
    ck_assert_int_eq(batch.array.children[0]->dictionary->length, 6);
    uva_array_release(&batch);
}
END_TEST

/* The messages of nested(): the dictionary inside, the one around it, a batch.
 */
enum { INNER = 1, OUTER, BATCH };

/* The dictionary of `batch` and that inside of it have so many values. */
static void has_values(struct ArrowDeviceArray *batch, int64_t outer,
                       int64_t inner)
{
    const struct ArrowArray *values = batch->array.children[0]->dictionary;

    ck_assert_int_eq(values->length, outer);
    ck_assert_int_eq(values->children[1]->dictionary->length, inner);
    uva_array_release(batch);
}

static void begin_nested(int64_t limit)
{
    struct uva__encoder *encoder = NULL;

    nested(&encoder, 4, 3);
    uva__encoder_free(encoder);
    cut();
    ck_assert_int_eq(begin(limit), 0);
}

/* As Java writes them. */
START_TEST(a_dictionary_may_come_before_that_of_its_values)
{
    struct ArrowDeviceArray batch = {0};

    begin_nested(0);
    for (int i = 0; i < 2 * _i; i++) { /* also in the usual order before */
        ck_assert_int_eq(take(INNER + i, NULL), 0);
    }
    ck_assert_int_eq(take(OUTER, NULL), 0);
    ck_assert_int_eq(take(INNER, NULL), 0);
    ck_assert_int_eq(take(BATCH, &batch), 0);
    has_values(&batch, 2, 3);
    ck_assert_int_eq(take(BATCH, &batch), 0);
    has_values(&batch, 2, 3);
}
END_TEST

START_TEST(a_dictionary_that_waits_may_have_a_delta)
{
    struct ArrowDeviceArray batch = {0};

    begin_nested(0);
    ck_assert_int_eq(take(OUTER, NULL), 0);
    ck_assert_int_eq(take(INNER, NULL), 0);
    make_delta(OUTER);
    ck_assert_int_eq(take(OUTER, NULL), 0);
    ck_assert_int_eq(take(BATCH, &batch), 0);
    has_values(&batch, 4, 3);
}
END_TEST

/* The text names the message with the index, not only the one that needs it. */
START_TEST(a_dictionary_waits_for_that_of_its_values_in_vain)
{
    struct ArrowDeviceArray batch;

    begin_nested(0);
    ck_assert_int_eq(take(OUTER, NULL), 0);
    fails(take(_i == 0 ? BATCH : OUTER, &batch), EPROTO,
          "an index points behind the dictionary");
}
END_TEST

/* It counts, until it is made: its head and its body, up to the last byte. */
START_TEST(a_dictionary_that_waits_has_a_limit)
{
    for (int i = 0; i < 2; i++) {
        begin_nested(LIMIT);
        uva__shared_bytes_release(messages[OUTER].body);
        messages[OUTER].body =
            uva__shared_bytes_new(LIMIT - messages[OUTER].head->size + i);
        ck_assert_ptr_nonnull(messages[OUTER].body);
        if (i == 0)
            ck_assert_int_eq(take(OUTER, NULL), 0);
        else
            fails(take(OUTER, NULL), EMSGSIZE, "dictionaries are too large");
    }
}
END_TEST

/* Deltas may follow; a stream may replace it. */
START_TEST(a_file_has_a_dictionary_once)
{
    struct uva__encoder *encoder = NULL;

    nested(&encoder, 4, 3);
    uva__encoder_free(encoder);
    cut();
    for (int i = 0; i < count; i++)
        messages[i].is_in_file = _i > 0;
    ck_assert_int_eq(begin(0), 0);
    ck_assert_int_eq(take(1, NULL), 0);
    if (_i == 2) {
        make_delta(2);
        ck_assert_int_eq(take(2, NULL), 0);
        ck_assert_int_eq(take(2, NULL), 0);
    }
    if (_i == 0)
        ck_assert_int_eq(take(1, NULL), 0);
    else
        fails(take(1, NULL), EPROTO, "dictionary 1 comes twice");
}
END_TEST

/* Whatever values cost is counted, although they have no bytes. */
START_TEST(empty_deltas_have_a_limit)
{
    struct uva__encoder *encoder = NULL;
    struct ArrowDeviceArray batch = {0};
    int taken = 0, code = 0;

    nested(&encoder, 4, 3);
    uva__encoder_free(encoder);
    cut();
    make_delta(2);
    ck_assert_int_eq(begin(LIMIT), 0);
    ck_assert_int_eq(take(1, NULL), 0);
    for (; code == 0 && taken < LIMIT; taken++)
        code = take(2, NULL);
    fails(code, EMSGSIZE, "dictionaries are too large");
    ck_assert_int_lt(taken, LIMIT / 128);
    uva_array_release(&batch);
}
END_TEST

/* So is the memory that they borrow from: a few bytes may be part of many. */
START_TEST(bodies_of_values_have_a_limit)
{
    struct uva__encoder *encoder = NULL;
    struct ArrowDeviceArray batch = {0};
    struct uva__shared_bytes *larger = uva__shared_bytes_new(LIMIT / 3), *body;

    nested(&encoder, 4, 3);
    uva__encoder_free(encoder);
    cut();
    make_delta(2);
    body = messages[2].body;
    ck_assert_ptr_nonnull(larger);
    memset(larger->bytes, 0, larger->size);
    memcpy(larger->bytes, body->bytes, body->size);
    uva__shared_bytes_release(body);
    messages[2].body = larger;
    ck_assert_int_eq(begin(LIMIT), 0);
    for (int i = 1; i < 3; i++)
        ck_assert_int_eq(take(i, NULL), 0);
    ck_assert_int_eq(take(2, NULL), 0);
    fails(take(2, NULL), EMSGSIZE, "dictionaries are too large");
    ck_assert_int_eq(begin(LIMIT), 0);
    for (int i = 0; i < 9; i++) { /* joined, they have their own size */
        ck_assert_int_eq(take(1 + i % 2, NULL), 0);
        if (i == 0)
            continue;
        ck_assert_int_eq(take(3, &batch), 0);
        uva_array_release(&batch);
    }
}
END_TEST

static int8_t some_indices[] = {0, 1, 2};
static int16_t short_indices[] = {0, 1, 2};
static int32_t int_indices[] = {0, 1, 2};
static int64_t long_indices[] = {0, 1, 2};

static const struct {
    const char *format;
    void *data;
    int width;
} widths[] = {
    {"c", some_indices, 1},  {"C", some_indices, 1}, {"s", short_indices, 2},
    {"S", short_indices, 2}, {"i", int_indices, 4},  {"I", int_indices, 4},
    {"l", long_indices, 8},  {"L", long_indices, 8},
};

/* Indices that are null may be anything. */
START_TEST(indices_of_every_width_are_checked)
{
    static const int64_t tries[] = {2, 3, -1};

    for (int i = 0; i < 3; i++) {
        struct ArrowSchema values_schema, schema, root;
        struct ArrowArray values, array, batch;
        struct ArrowDeviceArray out = {0};
        int code;

        size = 0;
        native_store((char *)widths[_i].data + 2 * widths[_i].width, tries[i],
                     (size_t)widths[_i].width);
        texts(&values_schema, &values, 3);
        indices(widths[_i].format, widths[_i].data, 3, &values_schema, &values,
                &schema, &array);
        group(&schema, &array, 1, &root, &batch);
        encode_one(&root, &batch);
        ck_assert_int_eq(begin(0), 0);
        ck_assert_int_eq(take(1, NULL), 0);
        code = take(2, &out);
        if (i > 0)
            fails(code, EPROTO, "an index points behind the dictionary");
        else
            ck_assert_int_eq(code, 0);
        uva_array_release(&out);
    }
}
END_TEST

/* ---- run ends ----------------------------------------------------------- */

static const int16_t ends[] = {2, 20000};

/* Two runs. */
static void runs(struct ArrowSchema *schema, struct ArrowArray *array)
{
    plain_schema(schema, "+r", "runs", 2);
    plain_schema(schema->children[0], "s", "ends", 0);
    plain_array(array, 20000, 0, 2);
    plain_array(array->children[0], 2, 2, 0);
    array->children[0]->buffers[1] = ends;
    texts(schema->children[1], array->children[1], 2);
}

START_TEST(runs_that_cannot_be_joined_are_refused)
{
    struct ArrowSchema values_schema, schema, root;
    struct ArrowArray values, array, batch;
    struct ArrowDeviceArray out = {0};

    runs(&values_schema, &values);
    indices("c", low, 4, &values_schema, &values, &schema, &array);
    group(&schema, &array, 1, &root, &batch);
    encode_one(&root, &batch);
    ck_assert_int_eq(begin(0), 0);
    ck_assert_int_eq(take(1, NULL), 0);
    make_delta(1);
    ck_assert_int_eq(take(1, NULL), 0); /* 40,000 values */
    fails(take(2, &out), EPROTO, "EOVERFLOW");
    ck_assert_int_eq(begin(2000), 0);
    ck_assert_int_eq(take(1, NULL), 0);
    for (int i = 0; i < 1000 && error.code != EMSGSIZE; i++)
        (void)take(1, NULL);
    fails(error.code, EMSGSIZE, "dictionaries are too large");
}
END_TEST

/* ---- contents ----------------------------------------------------------- */

static const int64_t wide_offsets[] = {0, 1, 2, 3};
static const int32_t view_sizes[] = {1, 1, 1};
static const int8_t codes[] = {0, 1, 0};
static const int64_t data_sizes[] = {13};
static const char long_text[] = "thirteen char";

/* A column of three items, in a body with the buffers that matter first. */
static void content(const char *format, struct ArrowSchema *schema,
                    struct ArrowArray *array)
{
    const bool is_union = strncmp(format, "+u", 2) == 0;
    const bool is_nested = format[0] == '+';
    const int n_children = is_union ? 2 : is_nested ? 1 : 0;
    const bool is_wide = strchr(format, 'L') != NULL || format[0] == 'U';
    static const char views[3][16] = {NATIVE("\15") "thir", NATIVE("\1") "x",
                                      ""};

    plain_schema(schema, format, "x", n_children);
    plain_array(array, 3, 4, n_children); /* room for any of them */
    array->n_buffers = format[0] == 'v'                 ? 4
                       : strcmp(format, "+us:0,1") == 0 ? 1
                       : is_nested && format[1] != 'v'  ? 2
                                                        : 3;
    for (int i = 0; i < n_children; i++) {
        plain_schema(schema->children[i], "c", "", 0);
        plain_array(array->children[i], 3, 2, 0);
        array->children[i]->buffers[1] = low;
    }
    array->buffers[0] = is_union ? codes : NULL;
    array->buffers[1] = is_wide ? (const void *)wide_offsets : offsets;
    array->buffers[2] = is_nested ? (const void *)view_sizes : "abc";
    if (format[0] == 'v') {
        array->buffers[1] = views;
        array->buffers[2] = long_text;
        array->buffers[3] = data_sizes;
    }
}

static const struct {
    const char *format;
    int at, width; /* of a number in the body */
    int64_t value;
    const char *text; /* NULL: it is right */
} contents[] = {
    {"u", 12, 4, 3, NULL},
    {"u", 12, 4, 4, "offsets fall"},
    {"u", 4, 4, 3, "offsets fall"},
    {"u", 0, 4, -1, "offsets fall"},
    {"U", 24, 8, 4, "offsets fall"},
    {"U", 8, 8, 3, "offsets fall"},
    {"U", 0, 8, -1, "offsets fall"},
    {"+l", 12, 4, 4, "behind the child"},
    {"+l", 12, 4, 2, NULL},
    {"+L", 24, 8, 4, "behind the child"},
    {"+L", 16, 8, 0, "behind the child"},
    {"+vl", 0, 4, 2, NULL},
    {"+vl", 0, 4, 3, "outside of the child"},
    {"+vl", 0, 4, 4, "outside of the child"},
    {"+vl", 0, 4, -1, "outside of the child"},
    {"+vl", 16, 4, -1, "outside of the child"},
    {"+vl", 16, 4, 4, "outside of the child"},
    {"vu", 0, 4, 13, NULL},
    {"vu", 0, 4, 14, "a view does not fit"},
    {"vu", 0, 4, -1, "a view does not fit"},
    {"vu", 8, 4, 1, "a view does not fit"},
    {"vu", 8, 4, -1, "a view does not fit"},
    {"vu", 12, 4, 1, "a view does not fit"},
    {"vu", 12, 4, -1, "a view does not fit"},
    {"vu", 4, 1, 'T', "a view does not fit"},
    {"vu", 20, 1, 'y', NULL},
    {"vu", 21, 1, 'y', "a view does not fit"},
    {"vu", 31, 1, 'y', "a view does not fit"},
    {"vu", 32, 4, 12, NULL},
    {"vu", 47, 1, 'y', "a view does not fit"},
    {"+ud:0,1", 8, 4, 2, NULL},
    {"+ud:0,1", 8, 4, 3, "outside of a child"},
    {"+ud:0,1", 8, 4, -1, "outside of a child"},
    {"+ud:0,1", 16, 4, 1, NULL},
    {"+ud:0,1", 12, 4, 0, NULL},
    {"+ud:0,1", 0, 1, 1, NULL},
    {"+ud:0,1", 1, 1, 2, "a code that no child has"},
    {"+us:0,1", 1, 1, -1, "a code that no child has"},
    {"+us:0,1", 1, 1, 0, NULL},
};

enum { CONTENTS = sizeof(contents) / sizeof(contents[0]) };

START_TEST(contents_are_checked)
{
    struct ArrowSchema schema, root;
    struct ArrowArray array, batch;
    struct ArrowDeviceArray out = {0};
    int code;

    content(contents[_i].format, &schema, &array);
    group(&schema, &array, 1, &root, &batch);
    encode_one(&root, &batch);
    ck_assert_int_eq(begin(0), 0);
    native_store(messages[1].body->bytes + contents[_i].at, contents[_i].value,
                 (size_t)contents[_i].width);
    code = take(1, &out);
    if (contents[_i].text != NULL)
        fails(code, EPROTO, contents[_i].text);
    else
        ck_assert_msg(code == 0, "%s", error.message);
    uva_array_release(&out);
}
END_TEST

/* A message states how many nulls a column has; for a type without a bitmap,
 * the type does. */
START_TEST(the_nulls_of_a_type_without_a_bitmap_are_known)
{
    const char *const format = _i == 0 ? "n" : "+us:0,1";
    struct ArrowSchema schema, root;
    struct ArrowArray array, batch;
    struct ArrowDeviceArray out = {0};

    if (_i == 0) {
        plain_schema(&schema, format, "x", 0);
        plain_array(&array, 3, 0, 0);
    } else {
        content(format, &schema, &array);
    }
    group(&schema, &array, 1, &root, &batch);
    encode_one(&root, &batch);
    ck_assert_int_eq(begin(0), 0);
    ck_assert_int_eq(take(1, &out), 0);
    ck_assert_int_eq(out.array.children[0]->null_count, _i == 0 ? 3 : 0);
    uva_array_release(&out);
}
END_TEST

/* ---- the other byte order ------------------------------------------------ */

/* One value of a type, and the same of the other byte order. */
static const struct {
    const char *format;
    int width;
    const char *turned;
} turns[] = {
    {"c", 1, "A"},
    {"b", 1, "A"},
    {"w:3", 3, "ABC"},
    {"e", 2, "BA"},
    {"tdD", 4, "DCBA"},
    {"l", 8, "HGFEDCBA"},
    {"tiD", 8, "DCBAHGFE"},
    {"tin", 16, "DCBAHGFEPONMLKJI"},
    {"d:20,0", 16, "PONMLKJIHGFEDCBA"},
    {"d:50,0,256", 32, "fedcbaZYXWVUTSRQPONMLKJIHGFEDCBA"},
};

enum { TURNS = sizeof(turns) / sizeof(turns[0]) };

/* Encodes such a value, with zeroes after it, and states that they are of the
 * other byte order. */
static void encode_turned(int which, int64_t rows)
{
    static char values[3200] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef";
    struct ArrowSchema schema, root;
    struct ArrowArray array, batch;
    struct uva__ipc_head head;
    uint8_t *at;

    plain_schema(&schema, turns[which].format, "x", 0);
    plain_array(&array, rows, 2, 0);
    array.buffers[1] = values;
    group(&schema, &array, 1, &root, &batch);
    encode_one(&root, &batch);
    at = messages[0].head->bytes;
    ck_assert_int_eq(
        uva__ipc_head_read(at, messages[0].head->size, &head, &error), 0);
    at += head.header.at + uva__table_load(at + head.header.slots_at, 2);
    *at = !NATIVE_IS_BIG;
}

START_TEST(numbers_of_the_other_order_are_turned)
{
    struct ArrowDeviceArray out = {0};

    encode_turned(_i, 1);
    ck_assert_int_eq(begin(0), 0);
    ck_assert_msg(take(1, &out) == 0, "%s", error.message);
    ck_assert_int_eq(memcmp(out.array.children[0]->buffers[1], turns[_i].turned,
                            (size_t)turns[_i].width),
                     0);
    uva_array_release(&out);
}
END_TEST

/* Copies are limited: a header may list one buffer a thousand times. */
START_TEST(turned_copies_have_a_limit)
{
    struct ArrowDeviceArray out = {0};

    encode_turned(TURNS - 1, 100);
    ck_assert_int_eq(begin(3200), 0);
    ck_assert_int_eq(take(1, &out), 0);
    uva_array_release(&out);
    ck_assert_int_eq(begin(3199), 0);
    fails(take(1, &out), EMSGSIZE, "too large when decompressed or copied");
}
END_TEST

/* Encodes a map of three pairs of a key and a value, of which an entry (1) or a
 * key (2) may be null. */
static void encode_map(int null)
{
    static const uint8_t two = 3;
    struct ArrowSchema schema, root;
    struct ArrowArray array, batch;

    plain_schema(&schema, "+m", "map", 1);
    plain_array(&array, 3, 2, 1);
    plain_schema(schema.children[0], "+s", "entries", 2);
    plain_array(array.children[0], 3, 1, 2);
    array.buffers[1] = offsets;
    for (int i = 0; i < 2; i++) {
        plain_schema(schema.children[0]->children[i], "c", "", 0);
        plain_array(array.children[0]->children[i], 3, 2, 0);
        array.children[0]->children[i]->buffers[1] = low;
    }
    if (null != 0) {
        struct ArrowArray *with = array.children[0];

        if (null > 1)
            with = with->children[null - 2];
        with->null_count = 1;
        with->buffers[0] = &two;
    }
    group(&schema, &array, 1, &root, &batch);
    encode_one(&root, &batch);
}

/* Values of a map may be null. */
START_TEST(keys_of_a_map_are_never_null)
{
    struct ArrowDeviceArray out = {0};
    int code;

    encode_map(_i);
    ck_assert_int_eq(begin(0), 0);
    code = take(1, &out);
    if (_i == 1 || _i == 2)
        fails(code, EPROTO, "an entry or a key of a map is null");
    else
        ck_assert_msg(code == 0, "%s", error.message);
    uva_array_release(&out);
}
END_TEST

static const int16_t run_ends[][2] = {{2, 3}, {2, 2}, {0, 3}, {1, 2}};

/* The encoder sends ends as they are, if the last one is right. */
START_TEST(run_ends_are_checked)
{
    struct ArrowSchema schema, root;
    struct ArrowArray array, batch;
    struct ArrowDeviceArray out = {0};
    int code;

    runs(&schema, &array);
    array.length = 3;
    array.children[0]->buffers[1] = run_ends[0];
    group(&schema, &array, 1, &root, &batch);
    encode_one(&root, &batch);
    ck_assert_int_eq(begin(0), 0);
    memcpy(messages[1].body->bytes, run_ends[_i], 4);
    code = take(1, &out);
    if (_i > 0)
        fails(code, EPROTO,
              _i == 3 ? "the last run ends too early" : "run ends do not grow");
    else
        ck_assert_int_eq(code, 0);
    uva_array_release(&out);
}
END_TEST

/* ---- codecs ------------------------------------------------------------- */

/* A compressed buffer has exactly the bytes that its size covers. */
START_TEST(nothing_follows_compressed_bytes)
{
    static char raw[1000];
    char packed[1100], again[sizeof(raw)];
    struct uva__ipc_buffer buffer = {.data = raw, .size = sizeof(raw)};
    struct uva__ipc_body body = {.buffers = &buffer, .n_buffers = 1};
    size_t most;

    if (uva__ipc_compress_check(_i, &error) != 0)
        return; /* built without it */
    ck_assert_int_eq(uva__ipc_compress_body(&body, _i, &error), 0);
    ck_assert_int_lt(buffer.size, (int64_t)sizeof(raw));
    most = (size_t)buffer.size - 8; /* without the size in front */
    memset(packed, 0, sizeof(packed));
    memcpy(packed, (const char *)buffer.data + 8, most);
    ck_assert_int_eq(
        uva__ipc_decompress(_i, again, sizeof(raw), packed, most, &error), 0);
    ck_assert_int_eq(
        uva__ipc_decompress(_i, again, sizeof(raw), packed, most + 1, &error),
        EPROTO);
    ck_assert_int_eq(
        uva__ipc_decompress(_i, again, sizeof(raw), packed, most - 1, &error),
        EPROTO);
    ck_assert_int_eq(
        uva__ipc_decompress(_i, again, sizeof(raw) - 1, packed, most, &error),
        EPROTO);
    uva__ipc_blocks_free(body.blocks);
}
END_TEST

/* ---- schemas ------------------------------------------------------------ */

START_TEST(a_schema_has_a_depth)
{
    struct ArrowSchema schema, deeper;
    struct ArrowArray array, wider;

    texts(&schema, &array, 1);
    for (int i = 0; i < 59 + _i; i++) {
        group(&schema, &array, 1, &deeper, &wider);
        schema = deeper;
        array = wider;
    }
    group(&schema, &array, 1, &deeper, &wider);
    encode_one(&deeper, &wider);
    if (_i == 0)
        ck_assert_int_eq(begin(0), 0);
    else if (_i == 2)
        fails(begin(0), EPROTO, "nested too deeply");
}
END_TEST

START_TEST(a_schema_has_a_size)
{
    static const int64_t limits[] = {1, 200, 400};
    struct ArrowSchema schema, root;
    struct ArrowArray array, batch;

    texts(&schema, &array, 1);
    group(&schema, &array, 1, &root, &batch);
    encode_one(&root, &batch);
    fails(begin(limits[_i]), EMSGSIZE, "too large");
}
END_TEST

/* Otherwise readers would disagree on the child, and so on its length. */
START_TEST(a_code_belongs_to_one_child)
{
    /* two, which are 0 and 1, each with the lowest byte first */
    static const char listed[12] = {2, 0, 0, 0, 0, 0, 0, 0, 1};
    struct ArrowSchema schema, root;
    struct ArrowArray array, batch;
    uint8_t *head, *at;

    content("+ud:0,1", &schema, &array);
    group(&schema, &array, 1, &root, &batch);
    encode_one(&root, &batch);
    head = messages[0].head->bytes;
    at = memmem(head, messages[0].head->size, listed, sizeof(listed));
    ck_assert_ptr_nonnull(at);
    if (_i == 1)
        at[8] = 0;
    if (_i == 0)
        ck_assert_int_eq(begin(0), 0);
    else
        fails(begin(0), EPROTO, "parameters of its type");
}
END_TEST

START_TEST(a_zone_has_a_length)
{
    char format[400] = "tsu:";
    struct ArrowSchema schema, root;
    struct ArrowArray array, batch;

    memset(format + 4, 'Z', 300);
    plain_schema(&schema, format, "when", 0);
    plain_array(&array, 0, 2, 0);
    group(&schema, &array, 1, &root, &batch);
    encode_one(&root, &batch);
    fails(begin(0), EPROTO, "field 'when': impossible parameters");
}
END_TEST

/* Two columns whose names differ after a NUL would become alike. */
START_TEST(a_nul_in_a_text_is_refused)
{
    static const struct {
        const char *name, *format, *find, *wanted;
    } all[] = {
        {"one_two", "i", "one_two",
         "its name has a NUL character behind 'one'"},
        {"_two", "i", "_two", "its name has a NUL character behind ''"},
        {"two_", "i", "two_", "its name has a NUL character behind 'two'"},
        {"when", "tsu:Europe_B", "Europe_B",
         "'when': its time zone has a NUL character behind 'Europe'"},
    };
    struct ArrowSchema schema, root;
    struct ArrowArray array, batch;
    char *at;

    plain_schema(&schema, all[_i].format, all[_i].name, 0);
    plain_array(&array, 0, 2, 0);
    group(&schema, &array, 1, &root, &batch);
    encode_one(&root, &batch);
    at = memmem(messages[0].head->bytes, messages[0].head->size, all[_i].find,
                strlen(all[_i].find));
    ck_assert_ptr_nonnull(at);
    *strchr(at, '_') = '\0';
    fails(begin(0), ENOTSUP, all[_i].wanted);
}
END_TEST

/* ---- metadata ----------------------------------------------------------- */

/* Makes a stream without columns, and a batch with metadata, in some version:
 * `pairs` times the same pair, with a value of `length` bytes. */
static void tagged(size_t pairs, const char *key, size_t length, int version)
{
    struct uva__flatbuffer flat = {0};
    struct uva__encoder *encoder = NULL;
    struct ArrowSchema schema;
    struct ArrowArray array;
    char *text = calloc(length + 1, 1);
    size_t pair, batch, name;

    plain_schema(&schema, "+s", "", 0);
    plain_array(&array, 0, 1, 0);
    encode(&encoder, &schema, &array);
    uva__encoder_free(encoder);
    cut();
    ck_assert_ptr_nonnull(text);
    pair = uva__flatbuffer_string(&flat, text, (int64_t)length);
    name = key == NULL ? 0 : uva__flatbuffer_string(&flat, key, -1);
    uva__flatbuffer_begin_table(&flat, 2);
    uva__flatbuffer_set_place(&flat, 0, name);
    uva__flatbuffer_set_place(&flat, 1, pair);
    pair = uva__flatbuffer_end_table(&flat);
    uva__flatbuffer_align(&flat, 4, 0);
    for (size_t i = 0; i < pairs; i++)
        uva__flatbuffer_put_place(&flat, pair);
    pair = uva__flatbuffer_end_vector(&flat, pairs);
    uva__flatbuffer_begin_table(&flat, 1);
    batch = uva__flatbuffer_end_table(&flat);
    uva__flatbuffer_begin_table(&flat, 5);
    uva__flatbuffer_set_place(&flat, 2, batch);
    uva__flatbuffer_set_place(&flat, 4, pair);
    uva__flatbuffer_set(&flat, 0, 2, (uint64_t)version - 1);
    uva__flatbuffer_set(&flat, 1, 1, 3);
    uva__flatbuffer_finish(&flat, uva__flatbuffer_end_table(&flat));
    uva__shared_bytes_release(messages[1].head);
    messages[1].head = uva__shared_bytes_new(flat.used);
    ck_assert_ptr_nonnull(messages[1].head);
    memcpy(messages[1].head->bytes, uva__flatbuffer_bytes(&flat), flat.used);
    uva__flatbuffer_fini(&flat);
    free(text);
}

/* Arrow 0.17 wrote files that state there that they are compressed. */
START_TEST(an_experimental_compression_is_refused)
{
    static const char *const keys[] = {"ARROW:experimental_compression",
                                       "ARROW:experimental_compression", NULL,
                                       "ARROW:experimental_compressioN"};
    struct ArrowDeviceArray batch = {0};
    int code;

    tagged(2, keys[_i], 3, _i == 1 ? 5 : 4);
    ck_assert_int_eq(begin(0), 0);
    code = take(1, &batch);
    if (_i == 0)
        fails(code, ENOTSUP, "the experimental compression");
    else
        ck_assert_msg(code == 0, "%s", error.message);
    uva_array_release(&batch);
}
END_TEST

START_TEST(metadata_has_a_limit)
{
    struct ArrowDeviceArray batch;

    tagged(100, NULL, 100, 5);
    ck_assert_int_eq(begin(0), 0);
    ck_assert_int_eq(take(1, &batch), 0);
    uva_array_release(&batch);
    ck_assert_int_eq(begin(8000), 0);
    fails(take(1, &batch), EMSGSIZE, "too much metadata");
    size = 0;
    tagged((1 << 20) + 1, NULL, 0, 5); /* more pairs than a block may have */
    ck_assert_int_eq(begin(0), 0);
    fails(take(1, &batch), EMSGSIZE, "too much metadata");
}
END_TEST

/* ---- places ------------------------------------------------------------- */

enum { ODD_ROWS = 2001 };

/* Encodes numbers that begin one byte after where they were: a reader of
 * numbers may not look for them there. */
static void encode_oddly(void)
{
    static int16_t numbers[ODD_ROWS];
    struct ArrowSchema schema, root;
    struct ArrowArray array, batch;
    struct uva__ipc_head head;
    struct uva__ipc_parts parts;
    uint8_t *body;

    for (int i = 0; i < ODD_ROWS; i++)
        numbers[i] = (int16_t)i;
    plain_schema(&schema, "s", "x", 0);
    plain_array(&array, ODD_ROWS, 2, 0);
    array.buffers[1] = numbers;
    group(&schema, &array, 1, &root, &batch);
    encode_one(&root, &batch);
    body = messages[1].body->bytes;
    ck_assert_uint_gt(messages[1].body->size, sizeof(numbers));
    memmove(body + 1, body, sizeof(numbers));
    ck_assert_int_eq(uva__ipc_head_read(messages[1].head->bytes,
                                        messages[1].head->size, &head, &error),
                     0);
    ck_assert_int_eq(uva__ipc_parts_read(&head.header, &parts, &error), 0);
    uva__flatbuffer_store((uint8_t *)(uintptr_t)parts.buffers.items + 16, 1, 8);
}

/* It counts among the decompressed bytes. */
START_TEST(a_buffer_at_an_odd_place_is_copied)
{
    const int64_t most = ODD_ROWS * (int64_t)sizeof(int16_t);
    struct ArrowDeviceArray batch = {0};
    const int16_t *numbers;

    encode_oddly();
    ck_assert_int_eq(begin(most - _i), 0);
    if (_i == 1) {
        fails(take(1, &batch), EMSGSIZE, "max_bytes");
        return;
    }
    ck_assert_int_eq(take(1, &batch), 0);
    numbers = batch.array.children[0]->buffers[1];
    ck_assert_uint_eq((uintptr_t)numbers % 8, 0);
    for (int i = 0; i < ODD_ROWS; i++)
        ck_assert_int_eq(numbers[i], i);
    uva_array_release(&batch);
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

/* Decodes the stream in `messages`. */
static int decode_all(void)
{
    struct ArrowSchema schema = {0};
    int code;

    uva__ipc_decoder_free(decoder);
    decoder = uva__ipc_decoder_new(0);
    if (decoder == NULL)
        return ENOMEM;
    code = uva__ipc_decoder_begin(decoder, &messages[0], &error);
    if (code == 0)
        code = uva__ipc_decoder_schema(decoder, &schema, &error);
    uva_schema_release(&schema);
    for (int i = 1; i < count && code == 0; i++) {
        struct ArrowDeviceArray batch = {0};

        code = take(i, &batch);
        uva_array_release(&batch);
    }
    return code;
}

START_TEST(memory_that_runs_out_is_reported)
{
    struct uva__encoder *encoder = NULL;
    bool failed = true;

    if (_i == 2) {
        tagged(3, NULL, 3, 5);
    } else if (_i == 3) {
        encode_oddly();
    } else {
        nested(&encoder, _i == 1 ? 0 : 4, 2);
        nested(&encoder, _i == 1 ? 0 : 4, 3); /* a delta, a replacement */
        uva__encoder_free(encoder);
        cut();
    }
    if (_i == 4) { /* one dictionary before that of its values */
        struct uva__message first = messages[INNER];

        messages[INNER] = messages[OUTER];
        messages[OUTER] = first;
    }
    if (_i == 1) { /* dictionaries that never came */
        struct uva__message last = messages[count - 1];

        messages[count - 1] = messages[1];
        messages[1] = last;
        while (count > 2)
            uva__message_fini(&messages[--count]);
    }
    for (long k = 1; failed; k++) {
        int code;

        faulty_libc_fail(k);
        code = decode_all();
        failed = faulty_libc_stop();
        ck_assert_int_eq(code, failed ? ENOMEM : 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("decoder");
    TCase *all = suite_case(suite, "decoder", set_up, tear_down);

    suite_add_loops(all, 0, 4, a_dictionary_has_one_type,
                    a_nul_in_a_text_is_refused, NULL);
    suite_add_loops(all, 0, 2, a_missing_dictionary_has_no_values,
                    a_dictionary_may_come_before_that_of_its_values,
                    a_dictionary_waits_for_that_of_its_values_in_vain, NULL);
    suite_add_loops(all, 0, 3, a_file_has_a_dictionary_once, NULL);
    suite_add_loops(all, 0, CONTENTS, contents_are_checked, NULL);
    suite_add_loops(all, 0, 2, the_nulls_of_a_type_without_a_bitmap_are_known,
                    NULL);
    suite_add_loops(all, 0, TURNS, numbers_of_the_other_order_are_turned, NULL);
    suite_add_loops(all, 0, 4, run_ends_are_checked, NULL);
    suite_add_loops(all, 0, 4, an_experimental_compression_is_refused, NULL);
    suite_add_loops(all, 0, 4, keys_of_a_map_are_never_null, NULL);
    suite_add_loops(all, 1, 3, nothing_follows_compressed_bytes, NULL);
    suite_add_loops(all, 0, 2, a_code_belongs_to_one_child, NULL);
    suite_add_loops(all, 0, 8, indices_of_every_width_are_checked, NULL);
    suite_add_loops(all, 0, 3, a_schema_has_a_depth, a_schema_has_a_size, NULL);
    suite_add_loops(all, 0, 2, a_buffer_at_an_odd_place_is_copied, NULL);
    suite_add_loops(all, 0, 5, memory_that_runs_out_is_reported, NULL);
    suite_add(all, columns_may_share_a_dictionary, deltas_are_joined,
              a_dictionary_that_waits_may_have_a_delta,
              a_dictionary_that_waits_has_a_limit,
              runs_that_cannot_be_joined_are_refused, a_zone_has_a_length,
              turned_copies_have_a_limit, metadata_has_a_limit,
              empty_deltas_have_a_limit, bodies_of_values_have_a_limit, NULL);
    return suite_run(suite);
}
