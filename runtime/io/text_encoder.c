/* SPDX-License-Identifier: Apache-2.0 */
/* Batches as lines of text: CSV, and JSON with an object a line. text_rows.h
 * writes them. After its start an encoder does not change, but for a hint
 * that is atomic, so that several threads may encode batches. */
#include "io/text_encoder.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "io/encoder.h"
#include "io/part.h"
#include "io/text_field.h"
#include "io/text_rows.h"
#include "uvarrow/arrow.h"

struct text_encoder {
    struct uva__encoder encoder; /* first */
    struct ArrowSchema schema;   /* owns: a copy, which `root` borrows */
    struct uva__text_field root; /* the struct with the columns */
    struct uva__csv_style csv;   /* its text of nulls is after this struct */
    bool is_json;
    bool has_header;          /* of CSV */
    atomic_size_t bytes_hint; /* size of the largest text so far */
    char null_text[];
};

static int text_no_memory(struct uva_error *error)
{
    return uva_error_set(error, ENOMEM, "out of memory");
}

/* ---- options ------------------------------------------------------------ */

static char csv_delimiter(const struct uva_csv *options)
{
    return (char)(options->delimiter == '\0' ? ',' : options->delimiter);
}

int uva__text_encoder_check(const struct uva_csv *options,
                            struct uva_error *error)
{
    const char delimiter = csv_delimiter(options);
    const char *null_text = options->null_text;

    if (delimiter == '"' || delimiter == '\n' || delimiter == '\r' ||
        (unsigned char)delimiter >= 0x80)
        return uva_error_set(error, EINVAL,
                             "uva_encode: csv.delimiter is 0x%02x",
                             (unsigned)(unsigned char)delimiter);
    if (null_text != NULL && (strchr(null_text, delimiter) != NULL ||
                              strpbrk(null_text, "\"\r\n") != NULL))
        return uva_error_set(error, EINVAL,
                             "uva_encode: csv.null_text holds a delimiter, a "
                             "quote, or a line break");
    return 0;
}

/* Sets the style, which borrows the text of nulls from `encoder`. */
static void csv_style_set(struct text_encoder *encoder,
                          const struct uva_csv *options, size_t null_size)
{
    struct uva__csv_style *style = &encoder->csv;

    if (null_size > 0)
        memcpy(encoder->null_text, options->null_text, null_size);
    style->delimiter = csv_delimiter(options);
    style->null_text = encoder->null_text;
    style->null_size = null_size;
    style->has_crlf = options->crlf;
    style->stops['"'] = style->stops['\r'] = style->stops['\n'] = true;
    style->stops[(unsigned char)style->delimiter] = true;
}

/* ---- lines -------------------------------------------------------------- */

/* Makes the delimiter after the last field the end of the line. */
static void csv_end_line(const struct text_encoder *encoder,
                         struct uva__text *out)
{
    if (out->failed)
        return;
    out->data[out->size - 1] = encoder->csv.has_crlf ? '\r' : '\n';
    if (encoder->csv.has_crlf)
        uva__text_put_char(out, '\n');
}

static void csv_put_header(const struct text_encoder *encoder,
                           struct uva__text *out)
{
    for (int64_t i = 0; i < encoder->root.n_children; i++) {
        const char *name = encoder->root.children[i].name;

        uva__text_put_csv(out, name, strlen(name), &encoder->csv);
        uva__text_put_char(out, encoder->csv.delimiter);
    }
    csv_end_line(encoder, out);
}

/* Batches are usually of similar size: with room for the largest so far, the
 * text is seldom reallocated. */
static void text_write(struct text_encoder *encoder,
                       const struct ArrowArray *array, struct uva__text *out)
{
    const size_t hint =
        atomic_load_explicit(&encoder->bytes_hint, memory_order_relaxed);

    if (array->length > 0)
        (void)uva__text_room(out, hint);
    uva__text_rows_put(&encoder->root, array,
                       encoder->is_json ? NULL : &encoder->csv, out);
    if (out->size > hint)
        atomic_store_explicit(&encoder->bytes_hint, out->size + out->size / 8,
                              memory_order_relaxed);
}

/* ---- the calls ---------------------------------------------------------- */

/* Makes a part of the text, which it takes in every case. An empty text is an
 * empty part. */
static int text_give(struct uva__text *text, struct uva_part *out)
{
    struct uva__part_draft draft = {0};
    bool complete = !text->failed;

    *out = (struct uva_part){0};
    if (complete && text->size > 0) {
        complete = uva__part_add(&draft, text->data, (int64_t)text->size);
        if (complete)
            text->data = NULL; /* the draft's */
        complete = complete && uva__part_finish(&draft, NULL, out) == 0;
    }
    uva__part_fini(&draft);
    uva__text_fini(text);
    return complete ? 0 : ENOMEM;
}

static int text_encoder_begin(struct uva__encoder *base, struct uva_part *out)
{
    const struct text_encoder *encoder = (struct text_encoder *)base;
    struct uva__text text = {0};

    if (encoder->has_header && encoder->root.n_children > 0)
        csv_put_header(encoder, &text);
    return text_give(&text, out);
}

static int text_encoder_end(struct uva__encoder *base, struct uva_part *out)
{
    (void)base;
    *out = (struct uva_part){0};
    return 0;
}

/* Rows that are null have no place in either format. */
static int text_check_rows(const struct ArrowArray *array,
                           struct uva_error *error)
{
    const uint8_t *bits = array->null_count == 0 ? NULL : array->buffers[0];

    for (int64_t i = 0; bits != NULL && i < array->length; i++)
        if (!uva__ipc_bit(bits, array->offset + i))
            return uva_error_set(error, ENOTSUP,
                                 "row %lld is null, which text cannot express",
                                 (long long)i);
    return 0;
}

static int text_encoder_batch(struct uva__encoder *base,
                              struct ArrowDeviceArray *batch,
                              struct uva_part *out, struct uva_error *error)
{
    struct text_encoder *encoder = (struct text_encoder *)base;
    struct uva__text text = {0};
    int code = uva__text_field_check(&encoder->root, &batch->array, error);

    if (code == 0)
        code = text_check_rows(&batch->array, error);
    if (code != 0)
        return code;
    text_write(encoder, &batch->array, &text);
    if (text_give(&text, out) != 0)
        return text_no_memory(error);
    uva_array_release(batch);
    return 0;
}

static void text_encoder_free(struct uva__encoder *base)
{
    struct text_encoder *encoder = (struct text_encoder *)base;

    uva__text_field_fini(&encoder->root);
    uva_schema_release(&encoder->schema);
    free(encoder);
}

static const struct uva__encoder_ops text_encoder_ops = {
    .begin = text_encoder_begin,
    .batch = text_encoder_batch,
    .end = text_encoder_end,
    .free = text_encoder_free,
};

static int text_read_schema(struct text_encoder *encoder,
                            const struct ArrowSchema *schema,
                            struct uva_error *error)
{
    /* a delimiter such as '.' or a text such as "0" may be in any value */
    const bool is_loose =
        encoder->csv.delimiter != ',' || encoder->csv.null_size > 0;
    int code =
        schema == NULL ? EINVAL : uva_schema_copy(schema, &encoder->schema);

    if (code != 0)
        return uva_error_set(
            error, code, code == ENOMEM ? "out of memory" : "invalid schema");
    if (strcmp(encoder->schema.format, "+s") != 0)
        return uva_error_set(error, EINVAL,
                             "the schema has the format '%.64s', and is no "
                             "struct of columns",
                             encoder->schema.format);
    return uva__text_field_init(&encoder->root, &encoder->schema, is_loose,
                                error);
}

int uva__text_encoder_new(const struct ArrowSchema *schema,
                          const struct uva_encode *options,
                          struct uva__encoder **out, struct uva_error *error)
{
    const struct uva_csv *csv = &options->csv;
    const bool is_json = options->format == UVA_FORMAT_JSON;
    const size_t null_size =
        is_json || csv->null_text == NULL ? 0 : strlen(csv->null_text);
    struct text_encoder *encoder = calloc(1, sizeof(*encoder) + null_size);
    int code;

    if (encoder == NULL)
        return text_no_memory(error);
    encoder->encoder.ops = &text_encoder_ops;
    encoder->is_json = is_json;
    encoder->has_header = !is_json && !csv->rows_only;
    atomic_init(&encoder->bytes_hint, 0);
    csv_style_set(encoder, csv, null_size);
    code = text_read_schema(encoder, schema, error);
    if (code != 0) {
        text_encoder_free(&encoder->encoder);
        return code;
    }
    if (!options->as_stored)
        uva__text_field_mark(&encoder->root, &encoder->schema);
    *out = &encoder->encoder;
    return 0;
}
