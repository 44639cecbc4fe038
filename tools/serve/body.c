/* SPDX-License-Identifier: Apache-2.0 */
/* Each part of the encoder becomes one text, and is flushed, so that its rows
 * can be read at once. The end of the stream becomes the last text. */
#include "body.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "compressor.h"
#include "json_array.h"
#include "uvarrow/arrow.h"
#include "uvarrow/io.h"

/* Texts that wait for the connection. */
#define TEXTS_AHEAD 2

/* The stage. */
struct body {
    bool is_array;                      /* of JSON */
    struct uva__json_array array;       /* if so */
    struct uva__compressor *compressor; /* owns; NULL: not compressed */
};

/* ---- the carrier --------------------------------------------------------- */

/* A text, and the buffers of the array that carries it. */
struct carrier {
    const void *buffers[1];      /* the one of a struct */
    struct uva__body_text *text; /* owns */
};

static void carrier_release(struct ArrowArray *array)
{
    struct carrier *carrier = array->private_data;

    uva__body_text_free(carrier->text);
    free(carrier);
    array->release = NULL;
}

void uva__body_text_free(void *ptr)
{
    struct uva__body_text *text = ptr;

    if (text != NULL)
        free(text->buffer.base);
    free(text);
}

struct uva__body_text *uva__body_take(struct ArrowDeviceArray *array)
{
    struct uva__body_text *text;
    struct carrier *carrier;

    if (array->array.release != carrier_release)
        return NULL;
    carrier = array->array.private_data;
    text = carrier->text;
    carrier->text = NULL;
    uva_array_release(array);
    return text;
}

/* Passes on the bytes, which it takes. Returns as a function of a transform. */
static int body_emit(struct uva__bytes *bytes, int64_t rows, uva_emit_fn *emit,
                     void *emitter, struct uva_error *error)
{
    struct uva__body_text *text = calloc(1, sizeof(*text));
    struct carrier *carrier = calloc(1, sizeof(*carrier));
    struct uva_batch out = {.data.device_type = ARROW_DEVICE_CPU,
                            .data.device_id = -1};
    int code;

    if (text == NULL || carrier == NULL) {
        uva__bytes_clear(bytes, 0);
        free(text);
        free(carrier);
        return uva_error_set(error, ENOMEM, "out of memory");
    }
    *text = (struct uva__body_text){
        .buffer = {.base = bytes->data, .len = bytes->size}, .rows = rows};
    carrier->text = text;
    out.data.array = (struct ArrowArray){.n_buffers = 1,
                                         .buffers = carrier->buffers,
                                         .release = carrier_release,
                                         .private_data = carrier};
    code = emit(emitter, &out);
    return code == EAGAIN ? 0 : code;
}

/* ---- the stage ----------------------------------------------------------- */

/* Adds a piece of the text, compressed if that is wanted. */
static int body_write(struct body *body, const char *data, size_t size,
                      struct uva__bytes *out)
{
    return body->compressor != NULL
               ? uva__compressor_add(body->compressor, data, size, out)
               : uva__bytes_add(out, data, size);
}

/* Adds the rows of a part, which it takes. */
static int body_write_array(struct body *body, struct uva_part *part,
                            struct uva__bytes *out)
{
    size_t size;
    char *text = uva__json_array_text(&body->array, part, &size);
    int code;

    if (text == NULL)
        return ENOMEM;
    if (body->compressor == NULL) {
        *out = (struct uva__bytes){text, size, size + 1};
        return 0;
    }
    code = body_write(body, text, size, out);
    free(text);
    return code;
}

/* The same of other text. */
static int body_write_part(struct body *body, struct uva_part *part,
                           struct uva__bytes *out)
{
    int code = 0;

    for (size_t i = 0; i < part->count && code == 0; i++)
        code =
            body_write(body, part->buffers[i].base, part->buffers[i].len, out);
    uva_part_release(part);
    return code;
}

/* Passes on what was written, and the rest of it. */
static int body_end(struct body *body, int code, bool is_last, int64_t rows,
                    struct uva__bytes *bytes, uva_emit_fn *emit, void *emitter,
                    struct uva_error *error)
{
    if (code == 0 && body->compressor != NULL)
        code = uva__compressor_flush(body->compressor, is_last, bytes);
    if (code == 0 && bytes->size > 0)
        return body_emit(bytes, rows, emit, emitter, error);
    uva__bytes_clear(bytes, 0);
    return code == 0 ? 0 : uva_error_set(error, code, "out of memory");
}

static int body_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                      void *emitter, struct uva_error *error)
{
    struct body *body = ctx;
    struct uva__bytes bytes = {0};
    struct uva_part part;
    int code = uva_part_take(&in->data, &part);
    int64_t rows;

    if (code != 0)
        return uva_error_set(error, code, "a batch has no text");
    rows = part.rows;
    code = body->is_array ? body_write_array(body, &part, &bytes)
                          : body_write_part(body, &part, &bytes);
    return body_end(body, code, false, rows, &bytes, emit, emitter, error);
}

static int body_finish(void *ctx, uva_emit_fn *emit, void *emitter,
                       struct uva_error *error)
{
    struct body *body = ctx;
    const char *end = body->is_array ? uva__json_array_end(&body->array) : "";
    struct uva__bytes bytes = {0};
    const int code = body_write(body, end, strlen(end), &bytes);

    return body_end(body, code, true, 0, &bytes, emit, emitter, error);
}

static void body_free(void *ctx)
{
    struct body *body = ctx;

    uva__compressor_free(body->compressor);
    free(body);
}

bool uva__body_is_made(enum uva__rows format, enum uva__coding coding)
{
    return format == UVA__ROWS_ARRAY || coding != UVA__CODING_NONE;
}

int uva__body_add(struct uva_stream *stream, enum uva__rows format,
                  enum uva__coding coding)
{
    struct body *body = calloc(1, sizeof(*body));

    if (body == NULL)
        return ENOMEM;
    body->is_array = format == UVA__ROWS_ARRAY;
    if (coding != UVA__CODING_NONE)
        body->compressor = uva__compressor_new(coding);
    if (coding != UVA__CODING_NONE && body->compressor == NULL) {
        free(body);
        return ENOMEM;
    }
    (void)uva_stream_transform(
        stream, &(struct uva_transform){.batch = body_batch,
                                        .finish = body_finish,
                                        .free_ctx = body_free,
                                        .ctx = body,
                                        .window.batches = TEXTS_AHEAD});
    return 0;
}
