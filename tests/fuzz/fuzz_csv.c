/* SPDX-License-Identifier: Apache-2.0 */
/* How CSV quotes: columns of any texts, written in any style, and read again by
 * a simple reader of RFC 4180. The reader must get the written values: each
 * text byte by byte, and nulls apart from empty texts and from texts that are
 * spelled as a null.
 *
 * Input: the style, then the names of the columns, then the fields. Most bytes
 * stand for characters that a style may have to quote. */
#include <errno.h>
#include <string.h>
#include <uv.h>

#include "fuzz/fuzz_input.h"
#include "io/encoder.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"
#include "uvarrow/io.h"

enum { COLUMNS = 3, ROWS = 6, MOST = 12, ROOM = 1 << 14 };

/* A text, or a null. */
struct field {
    char bytes[MOST + 1]; /* ended by a NUL */
    size_t size;
    bool is_null;
};

static struct {
    struct uva_encode options;
    struct field null_text;
    struct field names[COLUMNS];
    struct field fields[ROWS][COLUMNS];
    int columns, rows;
    /* the buffers of the columns */
    uint8_t valid[COLUMNS];
    int32_t ends[COLUMNS][ROWS + 1];
    int64_t far_ends[COLUMNS][ROWS + 1];
    char data[COLUMNS][ROWS * MOST];
    bool is_large[COLUMNS];
    /* the written text, and where the reader is */
    char text[ROOM];
    size_t size, at;
} csv;

/* ---- the input ---------------------------------------------------------- */

static char character(struct fuzz_input *in)
{
    static const char odd[] = "\"\"\",,;\n\n\r\r\tNaN0. '\\";
    const uint8_t byte = fuzz_byte(in);

    return byte < 3 * sizeof(odd) ? odd[byte % (sizeof(odd) - 1)] : (char)byte;
}

/* A name ends at its first NUL. */
static void field_read(struct field *field, struct fuzz_input *in, bool is_name)
{
    const int kind = fuzz_byte(in);

    memset(field, 0, sizeof(*field));
    field->is_null = !is_name && kind % 8 == 0;
    if (field->is_null)
        return;
    if (kind % 8 == 1) {
        *field = csv.null_text;
        return;
    }
    for (int n = kind / 8 % (MOST + 1); n > 0; n--)
        field->bytes[field->size++] = character(in);
    if (is_name)
        field->size = strlen(field->bytes);
}

static void style_read(struct fuzz_input *in)
{
    const int way = fuzz_byte(in);

    csv.options.format = UVA_FORMAT_CSV;
    csv.options.csv.rows_only = way & 1;
    csv.options.csv.crlf = way & 2;
    if (way & 4)
        csv.options.csv.delimiter = character(in);
    if (way & 8) {
        field_read(&csv.null_text, in, true);
        csv.options.csv.null_text = csv.null_text.bytes;
    }
}

static char delimiter(void)
{
    return csv.options.csv.delimiter == '\0' ? ',' : csv.options.csv.delimiter;
}

/* The statements of io.h on a style. */
static bool style_is_valid(void)
{
    const char d = delimiter();

    return d != '"' && d != '\n' && d != '\r' && (unsigned char)d < 0x80 &&
           strchr(csv.null_text.bytes, d) == NULL &&
           strpbrk(csv.null_text.bytes, "\"\r\n") == NULL;
}

/* ---- the batch ---------------------------------------------------------- */

static void column_fill(int c, struct ArrowArray *array)
{
    int32_t end = 0;

    for (int r = 0; r < csv.rows; r++) {
        const struct field *field = &csv.fields[r][c];

        if (!field->is_null)
            csv.valid[c] |= (uint8_t)(1u << r);
        memcpy(csv.data[c] + end, field->bytes, field->size);
        end += (int32_t)field->size;
        csv.ends[c][r + 1] = end;
        csv.far_ends[c][r + 1] = end;
    }
    plain_array(array, csv.rows, 3, 0);
    array->null_count = -1;
    array->buffers[0] = &csv.valid[c];
    array->buffers[1] = csv.is_large[c] ? (const void *)csv.far_ends[c]
                                        : (const void *)csv.ends[c];
    array->buffers[2] = csv.data[c];
}

static void batch_make(struct ArrowSchema *schema,
                       struct ArrowDeviceArray *batch)
{
    plain_schema(schema, "+s", "", csv.columns);
    uva_array_clear(batch);
    batch->device_type = ARROW_DEVICE_CPU;
    batch->device_id = -1;
    plain_array(&batch->array, csv.rows, 1, csv.columns);
    for (int c = 0; c < csv.columns; c++) {
        plain_schema(schema->children[c], csv.is_large[c] ? "U" : "u",
                     csv.names[c].bytes, 0);
        schema->children[c]->flags = ARROW_FLAG_NULLABLE;
        column_fill(c, batch->array.children[c]);
    }
}

/* ---- writing ------------------------------------------------------------ */

static void part_add(struct uva_part *part)
{
    for (size_t i = 0; i < part->count; i++) {
        const uv_buf_t *buffer = &part->buffers[i];

        FUZZ_RULE(csv.size + buffer->len <= ROOM);
        memcpy(csv.text + csv.size, buffer->base, buffer->len);
        csv.size += buffer->len;
    }
    uva_part_release(part);
}

/* Returns whether the style was accepted. */
static bool csv_write(void)
{
    struct uva__encoder *encoder = NULL;
    struct uva_part part = {0};
    struct ArrowDeviceArray batch;
    struct ArrowSchema schema;
    int code;

    batch_make(&schema, &batch);
    code = uva__encoder_new(&schema, &csv.options, &encoder, NULL);
    FUZZ_RULE(code == (style_is_valid() ? 0 : EINVAL));
    if (code == 0) {
        FUZZ_RULE(uva__encoder_begin(encoder, &part) == 0);
        part_add(&part);
        FUZZ_RULE(uva__encoder_batch(encoder, &batch, &part, NULL) == 0);
        part_add(&part);
        FUZZ_RULE(uva__encoder_end(encoder, &part) == 0);
        part_add(&part);
        uva__encoder_free(encoder);
    }
    uva_array_release(&batch);
    uva_schema_release(&schema);
    FUZZ_RULE(plain_live() == 0);
    return code == 0;
}

/* ---- the simple reader -------------------------------------------------- */

static int reader_peek(void)
{
    return csv.at < csv.size ? (unsigned char)csv.text[csv.at] : -1;
}

static bool reader_skip(int byte)
{
    if (reader_peek() != byte)
        return false;
    csv.at++;
    return true;
}

static void quoted_check(const struct field *field)
{
    for (size_t i = 0; i < field->size; i++) {
        FUZZ_RULE(reader_peek() == (unsigned char)field->bytes[i]);
        csv.at++;
        if (field->bytes[i] == '"')
            FUZZ_RULE(reader_skip('"'));
    }
    FUZZ_RULE(reader_skip('"'));
}

/* Without quotes it ends before the next delimiter or line break. */
static void plain_check(const struct field *field)
{
    const char *from = csv.text + csv.at;
    size_t size = 0;
    int byte;

    while ((byte = reader_peek()) >= 0 && byte != delimiter() && byte != '\n' &&
           byte != '\r') {
        FUZZ_RULE(byte != '"');
        csv.at++;
        size++;
    }
    FUZZ_RULE(size == field->size && memcmp(from, field->bytes, size) == 0);
}

static void field_check(const struct field *field, bool is_name)
{
    if (reader_skip('"')) {
        FUZZ_RULE(!field->is_null);
        quoted_check(field);
        return;
    }
    FUZZ_RULE(is_name || field->is_null || field->size != csv.null_text.size ||
              memcmp(field->bytes, csv.null_text.bytes, field->size) != 0);
    FUZZ_RULE(is_name || field->is_null || field->size > 0);
    plain_check(field->is_null ? &csv.null_text : field);
}

static void line_check(const struct field *fields, bool is_header)
{
    for (int c = 0; c < csv.columns; c++) {
        FUZZ_RULE(c == 0 || reader_skip(delimiter()));
        field_check(&fields[c], is_header);
    }
    if (csv.options.csv.crlf)
        FUZZ_RULE(reader_skip('\r'));
    FUZZ_RULE(reader_skip('\n'));
}

/* ---- one input ---------------------------------------------------------- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};

    memset(&csv, 0, sizeof(csv));
    style_read(&in);
    csv.columns = 1 + fuzz_below(&in, COLUMNS);
    csv.rows = fuzz_below(&in, ROWS + 1);
    for (int c = 0; c < csv.columns; c++) {
        csv.is_large[c] = fuzz_below(&in, 2) != 0;
        field_read(&csv.names[c], &in, true);
    }
    for (int r = 0; r < csv.rows; r++)
        for (int c = 0; c < csv.columns; c++)
            field_read(&csv.fields[r][c], &in, false);
    if (!csv_write())
        return 0;
    if (!csv.options.csv.rows_only)
        line_check(csv.names, true);
    for (int r = 0; r < csv.rows; r++)
        line_check(csv.fields[r], false);
    FUZZ_RULE(csv.at == csv.size);
    return 0;
}
