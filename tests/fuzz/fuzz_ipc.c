/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow IPC of any bytes, read by the framer and the decoder.
 *
 * Input: a number, then either the bytes of a stream or of a file, or changes
 * to a stream that the encoder made of a type: where, how wide, and the new
 * value. Whatever is decoded is read to its last byte by a simple reader that
 * knows the buffers of each type, and is sized and joined by the library.
 * Blocks are exactly as large as the part that was read, so the sanitizer
 * notices any byte more. */
#include <errno.h>
#include <string.h>
#include <uv.h>

#include "fuzz/fuzz_input.h"
#include "io/encoder.h"
#include "io/ipc_decoder.h"
#include "io/ipc_type.h"
#include "support/every_type.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"
#include "uvarrow/io.h"

enum { LIMIT = 1 << 18, TEMPLATES = EVERY_TYPES * 6, MOST = 1 << 16 };

/* A sum over every read, so that no read is left out. */
static volatile uint64_t fuzz_sum;

/* ---- the simple reader -------------------------------------------------- */

static void touch(const void *buffer, int64_t size)
{
    const uint8_t *bytes = buffer;
    uint64_t sum = 0;

    for (int64_t i = 0; i < size; i++)
        sum += bytes[i];
    fuzz_sum += sum;
}

static bool is_null(const struct ArrowArray *array, int64_t i)
{
    const uint8_t *bits = array->buffers[0];

    return bits != NULL && !(bits[i / 8] >> i % 8 & 1);
}

static int64_t number_at(const void *buffer, int32_t width, int64_t i)
{
    const char *at = (const char *)buffer + i * width;

    switch (width) {
    case 1:
        return *(const int8_t *)at;
    case 2:
        return *(const int16_t *)(const void *)at;
    case 4:
        return *(const int32_t *)(const void *)at;
    default:
        return *(const int64_t *)(const void *)at;
    }
}

static void check_views(const struct ArrowArray *array)
{
    const int64_t *sizes = array->buffers[array->n_buffers - 1];

    for (int64_t i = 0; i < array->n_buffers - 3; i++)
        touch(array->buffers[2 + i], sizes[i]);
    for (int64_t i = 0; i < array->length; i++) {
        const int32_t *view = (const int32_t *)array->buffers[1] + 4 * i;

        if (is_null(array, i) || view[0] <= 12)
            continue;
        FUZZ_RULE(view[2] >= 0 && view[2] < array->n_buffers - 3);
        FUZZ_RULE(view[3] >= 0 && (int64_t)view[3] + view[0] <= sizes[view[2]]);
    }
}

static void check_lists(const struct uva__ipc_type *type,
                        const struct ArrowArray *array, int64_t most)
{
    int64_t before = 0;

    for (int64_t i = 0; i < array->length; i++) {
        const int64_t from = number_at(array->buffers[1], type->width, i);
        const bool is_view = type->kind == UVA__IPC_LIST_VIEW;
        const int64_t size =
            is_view ? number_at(array->buffers[2], type->width, i)
                    : number_at(array->buffers[1], type->width, i + 1) - from;

        FUZZ_RULE(from >= (is_view ? 0 : before));
        FUZZ_RULE(size >= 0 && from + size <= most);
        before = from;
    }
}

static void check_union(const struct uva__ipc_type *type,
                        const struct ArrowArray *array)
{
    for (int64_t i = 0; i < array->length; i++) {
        const char *text = type->text;
        const int8_t wanted = ((const int8_t *)array->buffers[0])[i];
        int64_t child = -1;
        int32_t code;

        for (int64_t at = 0; uva__ipc_type_next_code(&text, &code); at++)
            child = code == wanted ? at : child;
        FUZZ_RULE(child >= 0);
        if (type->kind == UVA__IPC_DENSE_UNION) {
            const int32_t offset = ((const int32_t *)array->buffers[1])[i];

            FUZZ_RULE(offset >= 0 && offset < array->children[child]->length);
        } else {
            FUZZ_RULE(array->children[child]->length >= array->length);
        }
    }
}

static void check_indices(const struct ArrowSchema *schema, int32_t width,
                          const struct ArrowArray *array)
{
    const bool is_unsigned = strchr("CSIL", schema->format[0]) != NULL;

    for (int64_t i = 0; i < array->length; i++) {
        int64_t index = number_at(array->buffers[1], width, i);

        if (is_unsigned && width < 8)
            index &= (INT64_C(1) << 8 * width) - 1;
        FUZZ_RULE(is_null(array, i) ||
                  (index >= 0 && index < array->dictionary->length));
    }
}

static void check_runs(const struct ArrowArray *array, int32_t width)
{
    const struct ArrowArray *ends = array->children[0];
    int64_t last = 0;

    for (int64_t i = 0; i < ends->length; i++) {
        FUZZ_RULE(number_at(ends->buffers[1], width, i) > last);
        last = number_at(ends->buffers[1], width, i);
    }
    FUZZ_RULE(last >= array->length);
    FUZZ_RULE(array->children[1]->length >= ends->length);
}

static void check_runs_of(const struct ArrowSchema *schema,
                          const struct ArrowArray *array)
{
    struct uva__ipc_type ends;

    FUZZ_RULE(uva__ipc_type_read(schema->children[0]->format, &ends) == 0);
    check_runs(array, ends.width);
}

static void check_children(const struct uva__ipc_type *type,
                           const struct ArrowArray *array)
{
    if (type->kind == UVA__IPC_FIXED_LIST)
        FUZZ_RULE(array->length == 0 ||
                  array->children[0]->length / array->length >= type->width);
    for (int64_t i = 0; type->kind == UVA__IPC_STRUCT && i < array->n_children;
         i++)
        FUZZ_RULE(array->children[i]->length >= array->length);
}

/* Reads the buffers of an array. */
static void check_buffers(const struct ArrowSchema *schema,
                          const struct uva__ipc_type *type,
                          const struct ArrowArray *array)
{
    switch (type->kind) {
    case UVA__IPC_BITS:
        touch(array->buffers[1], (array->length + 7) / 8);
        break;
    case UVA__IPC_FIXED:
        touch(array->buffers[1], array->length * type->width);
        if (array->dictionary != NULL)
            check_indices(schema, type->width, array);
        break;
    case UVA__IPC_BINARY:
        check_lists(type, array, INT64_MAX / 2);
        touch(array->buffers[2],
              number_at(array->buffers[1], type->width, array->length));
        break;
    case UVA__IPC_VIEW:
        check_views(array);
        break;
    case UVA__IPC_LIST:
    case UVA__IPC_LIST_VIEW:
        check_lists(type, array, array->children[0]->length);
        break;
    case UVA__IPC_SPARSE_UNION:
    case UVA__IPC_DENSE_UNION:
        check_union(type, array);
        break;
    case UVA__IPC_RUN_END:
        check_runs_of(schema, array);
        break;
    case UVA__IPC_FIXED_LIST:
    case UVA__IPC_STRUCT:
    case UVA__IPC_NULL:
        break;
    }
}

/* Reads a whole array. */
static void check_array(const struct ArrowSchema *schema,
                        const struct ArrowArray *array)
{
    struct uva__ipc_type type;

    FUZZ_RULE(uva__ipc_type_read(schema->format, &type) == 0);
    FUZZ_RULE(array->release != NULL && array->offset == 0);
    FUZZ_RULE(array->length >= 0);
    FUZZ_RULE(array->n_children == schema->n_children);
    FUZZ_RULE((array->dictionary == NULL) == (schema->dictionary == NULL));
    if (uva__ipc_has_validity(type.kind) && array->buffers[0] != NULL)
        touch(array->buffers[0], (array->length + 7) / 8);
    for (int64_t i = 0; i < array->n_children; i++)
        check_array(schema->children[i], array->children[i]);
    if (array->dictionary != NULL)
        check_array(schema->dictionary, array->dictionary);
    check_buffers(schema, &type, array);
    check_children(&type, array);
}

/* ---- the decoder -------------------------------------------------------- */

static void check_error(int code, const struct uva_error *error)
{
    FUZZ_RULE(code == EPROTO || code == ENOTSUP || code == EMSGSIZE ||
              code == EINVAL);
    FUZZ_RULE(code == error->code);
    FUZZ_RULE(strncmp(error->message, "Arrow IPC: ", 11) == 0);
    fuzz_trace("decoder", error->message, code);
}

static void check_item(struct uva__ipc_item *item,
                       const struct ArrowSchema *schema)
{
    struct ArrowDeviceArray batch, both;
    struct uva_error error = {0};
    char *metadata = uva__ipc_item_take_metadata(item);
    size_t size = 0;
    int64_t bytes;
    int code = uva__ipc_item_decode(item, &batch, &error);

    FUZZ_RULE(metadata == NULL || uva_metadata_size(metadata, &size) == 0);
    free(metadata);
    uva__ipc_item_free(item);
    if (code != 0) {
        check_error(code, &error);
        return;
    }
    fuzz_trace("decoder", "batch of", batch.array.length);
    check_array(schema, &batch.array);
    code = uva_array_concat(schema, &batch, 1, LIMIT, &both, &error);
    fuzz_trace("joined", error.message, code);
    FUZZ_RULE(code == 0 || code == EMSGSIZE || code == EOVERFLOW);
    if (code == 0)
        check_array(schema, &both.array);
    FUZZ_RULE(uva_array_size(schema, &batch, &bytes) == 0);
    uva_array_release(&both);
    uva_array_release(&batch);
}

/* Takes a message. Whether there may be more. */
static bool play_message(struct uva__ipc_framer *framer,
                         struct uva__ipc_decoder *decoder,
                         struct ArrowSchema *schema)
{
    struct uva_error error = {0};
    struct uva__message message;
    struct uva__ipc_item *item = NULL;
    int code;

    uva__ipc_framer_take(framer, &message);
    if (schema->release == NULL) {
        code = uva__ipc_decoder_begin(decoder, &message, &error);
        if (code == 0)
            FUZZ_RULE(uva__ipc_decoder_schema(decoder, schema, &error) == 0);
    } else {
        code = uva__ipc_decoder_take(decoder, &message, &item, &error);
    }
    uva__message_fini(&message);
    if (code != 0)
        check_error(code, &error);
    if (item != NULL)
        check_item(item, schema);
    return code == 0;
}

/* Reads a stream. */
static void play_stream(const uint8_t *data, size_t size)
{
    struct uva__ipc_decoder *decoder = uva__ipc_decoder_new(LIMIT);
    struct ArrowSchema schema = {0};
    struct uva_error error = {0};
    struct uva__ipc_framer framer;
    bool goes_on = decoder != NULL;
    size_t at = 0;

    FUZZ_RULE(decoder != NULL);
    uva__ipc_framer_init(&framer, LIMIT);
    while (goes_on && at < size && framer.state < UVA__IPC_FRAMER_FULL) {
        uint8_t *to;
        size_t want;
        int code;

        uva__ipc_framer_want(&framer, &to, &want);
        FUZZ_RULE(want > 0 && want <= LIMIT);
        if (want > size - at)
            want = size - at;
        memcpy(to, data + at, want);
        at += want;
        code = uva__ipc_framer_add(&framer, want, &error);
        if (code != 0)
            check_error(code, &error);
        goes_on = code == 0;
        if (goes_on && framer.state == UVA__IPC_FRAMER_FULL)
            goes_on = play_message(&framer, decoder, &schema);
    }
    if (goes_on && uva__ipc_framer_end(&framer, &error) != 0)
        check_error(error.code, &error);
    uva__ipc_framer_fini(&framer);
    uva_schema_release(&schema);
    uva__ipc_decoder_free(decoder);
}

/* Reads the footer of a file. */
static void play_footer(const uint8_t *data, size_t size)
{
    struct uva__ipc_decoder *decoder = uva__ipc_decoder_new(LIMIT);
    struct uva__ipc_footer footer;
    struct uva_error error = {0};

    FUZZ_RULE(decoder != NULL);
    if (uva__ipc_footer_read(data, size, &footer, &error) == 0) {
        for (size_t i = 0; i < footer.batches.count; i++)
            fuzz_sum +=
                (uint64_t)uva__ipc_place_read(&footer.batches, i).offset;
        if (uva__ipc_decoder_begin_file(decoder, &footer, &error) == 0)
            fuzz_sum++;
    }
    uva__ipc_decoder_free(decoder);
}

/* ---- templates ---------------------------------------------------------- */

struct bytes {
    uint8_t *data; /* owns */
    size_t size;
};

static void bytes_add(struct bytes *bytes, struct uva_part *part)
{
    for (size_t i = 0; i < part->count; i++) {
        const uv_buf_t *buffer = &part->buffers[i];

        FUZZ_RULE(bytes->size + buffer->len <= MOST);
        memcpy(bytes->data + bytes->size, buffer->base, buffer->len);
        bytes->size += buffer->len;
    }
    uva_part_release(part);
}

/* Makes a root of one column, which it takes. */
static void wrap(struct ArrowSchema *schema, struct ArrowDeviceArray *column,
                 struct ArrowSchema *root, struct ArrowDeviceArray *batch)
{
    plain_schema(root, "+s", "", 1);
    *root->children[0] = *schema;
    uva_array_clear(batch);
    batch->device_type = ARROW_DEVICE_CPU;
    batch->device_id = -1;
    plain_array(&batch->array, column->array.length, 1, 1);
    *batch->array.children[0] = column->array;
}

/* Encodes two batches of a type: a longer dictionary is another one. */
static struct bytes template_make(int which)
{
    const struct uva_encode options = {.compression = which / EVERY_TYPES % 3};
    const bool nulls = which / EVERY_TYPES / 3 != 0;
    struct uva__encoder *encoder = NULL;
    struct bytes bytes = {.data = malloc(MOST)};

    FUZZ_RULE(bytes.data != NULL);
    for (int i = 0; i < 2; i++) {
        const struct every_variant variant = {i == 0 ? 5 : 9, 0, nulls};
        struct ArrowSchema schema, root;
        struct ArrowDeviceArray column, batch;
        struct uva_part part = {0};

        every_type(which % EVERY_TYPES, &variant, &schema, &column);
        wrap(&schema, &column, &root, &batch);
        if (i == 0 && uva__encoder_new(&root, &options, &encoder, NULL) == 0) {
            FUZZ_RULE(uva__encoder_begin(encoder, &part) == 0);
            bytes_add(&bytes, &part);
        }
        if (encoder != NULL &&
            uva__encoder_batch(encoder, &batch, &part, NULL) == 0)
            bytes_add(&bytes, &part);
        uva_schema_release(&root);
        uva_array_release(&batch);
    }
    uva__encoder_free(encoder);
    every_type_forget();
    return bytes;
}

/* Changes a template as the rest of the input states. */
static void play_template(int which, struct fuzz_input *in)
{
    static struct bytes templates[TEMPLATES];
    struct bytes *bytes = &templates[which];
    uint8_t *copy;
    size_t size;

    if (bytes->data == NULL)
        *bytes = template_make(which);
    size = bytes->size;
    copy = malloc(size + 1);
    FUZZ_RULE(copy != NULL);
    memcpy(copy, bytes->data, size);
    while (in->size > 0 && size > 8) {
        const size_t at =
            (size_t)(fuzz_byte(in) << 8 | fuzz_byte(in)) % (size - 7);
        const int width = 1 << fuzz_below(in, 4);
        const int64_t value = fuzz_strange(in);

        if (width == 1)
            copy[at] = (uint8_t)value;
        else /* numbers lie where their size divides */
            memcpy(copy + at / (size_t)width * (size_t)width, &value,
                   (size_t)width);
    }
    play_stream(copy, size);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    const int kind = fuzz_byte(&in);

    if (kind < 2) {
        uint8_t *exact = malloc(in.size + 1);

        FUZZ_RULE(exact != NULL);
        if (in.size > 0)
            memcpy(exact, in.data, in.size);
        if (kind == 0)
            play_stream(exact, in.size);
        else
            play_footer(exact, in.size);
        free(exact);
    } else {
        play_template((kind - 2) % TEMPLATES, &in);
    }
    return 0;
}
