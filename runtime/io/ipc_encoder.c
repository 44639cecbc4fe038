/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder of Arrow IPC: which messages a batch needs, in order. A batch is
 * encoded into a draft, and only when that is complete does the encoder change:
 * dictionaries count as sent, messages of a file get their places. A failed
 * batch leaves no trace. The parts of a message are in ipc_write_header.h. */
#include "io/ipc_encoder.h"

#include <stdlib.h>
#include <string.h>

#include "io/encoder.h"
#include "io/ipc_compress.h"
#include "io/ipc_dictionary.h"
#include "io/ipc_write_header.h"
#include "io/part.h"
#include "uvarrow/arrow.h"
#include "uvarrow/io.h"

/* A dictionary of the schema. */
struct encoder_dictionary {
    struct uva__ipc_body *last; /* owns: the readers' values; may be NULL */
    struct uva__ipc_body *next; /* owns: their values after this part; NULL: no
                                   change */
};

/* Places of messages in a file. */
struct encoder_places {
    struct uva__ipc_place *items; /* owns */
    size_t count;                 /* number of them */
    size_t most;                  /* room for them */
    size_t added;                 /* of these, in the part in work */
};

struct ipc_encoder {
    struct uva__encoder encoder; /* first */
    enum uva_format format;
    int32_t codec; /* see ipc_compress.h */
    struct uva__ipc_plan plan;
    struct encoder_dictionary *dictionaries; /* owns: one each of the plan */
    struct uva__ipc_body body;               /* of the batch in work */
    struct uva__flatbuffer flat;             /* of the message in work */
    struct uva__part_draft draft;            /* the part in work */
    int64_t offset;                          /* bytes of finished parts */
    struct encoder_places dictionary_places; /* of a file */
    struct encoder_places batch_places;      /* of a file */
};

static const char zeroes[8];
static const char magic[8] = "ARROW1";

static int encoder_no_memory(struct uva_error *error)
{
    return uva_error_set(error, ENOMEM, "out of memory");
}

/* ---- open and close ----------------------------------------------------- */

static void ipc_encoder_free(struct uva__encoder *base)
{
    struct ipc_encoder *encoder = (struct ipc_encoder *)base;

    for (int32_t i = 0;
         encoder->dictionaries != NULL && i < encoder->plan.n_dictionaries; i++)
        free(encoder->dictionaries[i].last);
    free(encoder->dictionaries);
    free(encoder->dictionary_places.items);
    free(encoder->batch_places.items);
    uva__part_fini(&encoder->draft);
    uva__flatbuffer_fini(&encoder->flat);
    uva__ipc_body_fini(&encoder->body);
    uva__ipc_plan_fini(&encoder->plan);
    free(encoder);
}

/* ---- parts -------------------------------------------------------------- */

/* Ends a complete part: its dictionaries count as sent. */
static int encoder_commit(struct ipc_encoder *encoder,
                          struct ArrowDeviceArray *batch, struct uva_part *out)
{
    const int64_t bytes = encoder->draft.bytes;
    const int code = uva__part_finish(&encoder->draft, batch, out);

    if (code != 0)
        return code;
    for (int32_t i = 0; i < encoder->plan.n_dictionaries; i++) {
        struct encoder_dictionary *dictionary = &encoder->dictionaries[i];

        if (dictionary->next != NULL) {
            free(dictionary->last);
            dictionary->last = dictionary->next;
            dictionary->next = NULL;
        }
    }
    encoder->dictionary_places.added = encoder->batch_places.added = 0;
    encoder->offset += bytes;
    return 0;
}

/* Drops a part that cannot be completed. */
static void encoder_revert(struct ipc_encoder *encoder)
{
    uva__part_clear(&encoder->draft);
    for (int32_t i = 0; i < encoder->plan.n_dictionaries; i++) {
        free(encoder->dictionaries[i].next);
        encoder->dictionaries[i].next = NULL;
    }
    encoder->dictionary_places.count -= encoder->dictionary_places.added;
    encoder->batch_places.count -= encoder->batch_places.added;
    encoder->dictionary_places.added = encoder->batch_places.added = 0;
}

/* Adds the header that was written. */
static bool encoder_add_header(struct ipc_encoder *encoder)
{
    const struct uva__flatbuffer *flat = &encoder->flat;

    return !flat->failed &&
           uva__part_copy(&encoder->draft, uva__flatbuffer_bytes(flat),
                          (int64_t)flat->used);
}

/* ---- messages with a body ----------------------------------------------- */

/* Notes where the message lies that is added next. Only a file needs it. */
static bool encoder_add_place(struct ipc_encoder *encoder,
                              struct encoder_places *places, int64_t body_size)
{
    if (encoder->format != UVA_FORMAT_ARROW_FILE)
        return true;
    if (!uva__ipc_grow((void **)&places->items, places->count, &places->most, 1,
                       sizeof(*places->items)))
        return false;
    places->items[places->count++] = (struct uva__ipc_place){
        .offset = encoder->offset + encoder->draft.bytes,
        .head_size = (int32_t)encoder->flat.used,
        .body_size = body_size};
    places->added++;
    return true;
}

/* Adds a buffer, the bytes in front of it, and the padding. */
static bool encoder_add_buffer(struct uva__part_draft *draft,
                               const struct uva__ipc_buffer *buffer)
{
    return (buffer->prefix == NULL ||
            uva__part_borrow(draft, buffer->prefix, 8)) &&
           uva__part_borrow(draft, buffer->data, buffer->size) &&
           uva__part_borrow(draft, zeroes,
                            uva__ipc_message_padding(buffer->size));
}

/* Adds a message, and takes the blocks of `body`. `id`: see uva__ipc_message.
 */
static int encoder_add_message(struct ipc_encoder *encoder,
                               struct uva__ipc_body *body, int64_t id,
                               bool is_delta, struct uva_error *error)
{
    const struct uva__ipc_message message = {
        .dictionary = id, .is_delta = is_delta, .codec = encoder->codec};
    struct encoder_places *places =
        id < 0 ? &encoder->batch_places : &encoder->dictionary_places;
    struct uva__part_draft *draft = &encoder->draft;
    int code = uva__ipc_compress_body(body, encoder->codec, error);
    int64_t size;
    bool complete;

    if (code != 0)
        return code;
    size = uva__ipc_message_body(&encoder->flat, &message, body);
    complete =
        encoder_add_place(encoder, places, size) && encoder_add_header(encoder);
    for (size_t i = 0; i < body->n_buffers && complete; i++)
        complete = encoder_add_buffer(draft, &body->buffers[i]);
    if (!complete)
        return encoder_no_memory(error);
    uva__part_take_blocks(draft, &body->blocks);
    return 0;
}

/* ---- dictionaries ------------------------------------------------------- */

static int encoder_add_uses(struct ipc_encoder *encoder,
                            const struct uva__ipc_body *body, bool *replaced,
                            struct uva_error *error);

/* Sends the values of a dictionary, which are in `body`; a delta: the values
 * that readers do not have. */
static int encoder_send_values(struct ipc_encoder *encoder,
                               const struct uva__ipc_use *use,
                               struct uva__ipc_body *body, bool is_delta,
                               struct uva_error *error)
{
    struct encoder_dictionary *dictionary =
        &encoder->dictionaries[use->dictionary];
    const int32_t field = encoder->plan.dictionaries[use->dictionary].field;
    int code = 0;

    dictionary->next = uva__ipc_dictionary_keep(body);
    if (dictionary->next == NULL)
        return encoder_no_memory(error);
    if (is_delta)
        code = uva__ipc_body_fill(
            body, &encoder->plan, field, use->values, dictionary->last->length,
            use->values->length - dictionary->last->length, error);
    if (code == 0)
        code = encoder_add_message(encoder, body, use->dictionary, is_delta,
                                   error);
    return code;
}

/* Sends a dictionary if readers have another one: the new values, if it only
 * grew; otherwise the whole, which sets `*replaced` if it takes the place of
 * another one. */
static int encoder_send_dictionary(struct ipc_encoder *encoder,
                                   const struct uva__ipc_use *use,
                                   struct uva__ipc_body *body,
                                   bool inner_replaced, bool *replaced,
                                   struct uva_error *error)
{
    const struct uva__ipc_values *values =
        &encoder->plan.dictionaries[use->dictionary];
    const struct uva__ipc_body *last =
        encoder->dictionaries[use->dictionary].last;
    const bool grew =
        last != NULL && !inner_replaced &&
        uva__ipc_dictionary_begins(&encoder->plan, values->field, last, body);

    if (grew && last->length == body->length)
        return 0;
    if (grew && !values->is_nested)
        return encoder_send_values(encoder, use, body, true, error);
    if (last != NULL && encoder->format == UVA_FORMAT_ARROW_FILE)
        return uva_error_set(
            error, ENOTSUP,
            "Arrow IPC: dictionary %d changes from one batch to the next, "
            "which a file cannot express: write a stream",
            (int)use->dictionary);
    *replaced = *replaced || last != NULL;
    return encoder_send_values(encoder, use, body, false, error);
}

/* Adds what has to be sent of a dictionary, after those in its values. */
static int encoder_add_use(struct ipc_encoder *encoder,
                           const struct uva__ipc_use *use, bool *replaced,
                           struct uva_error *error)
{
    const int32_t field = encoder->plan.dictionaries[use->dictionary].field;
    struct uva__ipc_body body = {0};
    bool inner_replaced = false;
    int code = uva__ipc_body_fill(&body, &encoder->plan, field, use->values, 0,
                                  use->values->length, error);

    if (code == 0)
        code = encoder_add_uses(encoder, &body, &inner_replaced, error);
    if (code == 0)
        code = encoder_send_dictionary(encoder, use, &body, inner_replaced,
                                       replaced, error);
    uva__ipc_body_fini(&body);
    return code;
}

/* Adds the dictionaries that a body needs. */
static int encoder_add_uses(struct ipc_encoder *encoder,
                            const struct uva__ipc_body *body, bool *replaced,
                            struct uva_error *error)
{
    int code = 0;

    for (size_t i = 0; i < body->n_uses && code == 0; i++)
        code = encoder_add_use(encoder, &body->uses[i], replaced, error);
    return code;
}

/* ---- the calls ---------------------------------------------------------- */

static int ipc_encoder_begin(struct uva__encoder *base, struct uva_part *out)
{
    struct ipc_encoder *encoder = (struct ipc_encoder *)base;
    bool complete = true;
    int code;

    if (encoder->format == UVA_FORMAT_ARROW_FILE)
        complete =
            uva__part_borrow(&encoder->draft, magic, (int64_t)sizeof(magic));
    uva__ipc_message_schema(&encoder->flat, &encoder->plan);
    complete = complete && encoder_add_header(encoder);
    code = complete ? encoder_commit(encoder, NULL, out) : ENOMEM;
    if (code != 0)
        encoder_revert(encoder);
    return code;
}

static int ipc_encoder_batch(struct uva__encoder *base,
                             struct ArrowDeviceArray *batch,
                             struct uva_part *out, struct uva_error *error)
{
    struct ipc_encoder *encoder = (struct ipc_encoder *)base;
    struct uva__ipc_body *body = &encoder->body;
    bool replaced = false;
    int code = uva__ipc_body_fill(body, &encoder->plan, 0, &batch->array, 0,
                                  batch->array.length, error);

    if (code == 0)
        code = encoder_add_uses(encoder, body, &replaced, error);
    if (code == 0)
        code = encoder_add_message(encoder, body, -1, false, error);
    if (code == 0 && encoder_commit(encoder, batch, out) != 0)
        code = encoder_no_memory(error);
    if (code != 0)
        encoder_revert(encoder);
    uva__ipc_body_clear(body);
    return code;
}

/* Adds the footer of a file. */
static bool encoder_add_footer(struct ipc_encoder *encoder)
{
    struct uva__flatbuffer *flat = &encoder->flat;
    uint8_t size[4];

    uva__ipc_message_footer(
        flat, &encoder->plan, encoder->dictionary_places.items,
        encoder->dictionary_places.count, encoder->batch_places.items,
        encoder->batch_places.count);
    for (int i = 0; i < 4; i++)
        size[i] = (uint8_t)(flat->used >> (8 * i));
    return encoder_add_header(encoder) &&
           uva__part_copy(&encoder->draft, size, (int64_t)sizeof(size)) &&
           uva__part_borrow(&encoder->draft, magic, 6);
}

static int ipc_encoder_end(struct uva__encoder *base, struct uva_part *out)
{
    static const char end[8] = {(char)0xff, (char)0xff, (char)0xff, (char)0xff};
    struct ipc_encoder *encoder = (struct ipc_encoder *)base;
    bool complete;
    int code;

    complete = uva__part_borrow(&encoder->draft, end, (int64_t)sizeof(end));
    if (encoder->format == UVA_FORMAT_ARROW_FILE)
        complete = complete && encoder_add_footer(encoder);
    code = complete ? encoder_commit(encoder, NULL, out) : ENOMEM;
    if (code != 0)
        encoder_revert(encoder);
    return code;
}

static const struct uva__encoder_ops ipc_encoder_ops = {
    .begin = ipc_encoder_begin,
    .batch = ipc_encoder_batch,
    .end = ipc_encoder_end,
    .free = ipc_encoder_free,
};

int uva__ipc_encoder_new(const struct ArrowSchema *schema,
                         const struct uva_encode *options,
                         struct uva__encoder **out, struct uva_error *error)
{
    struct ipc_encoder *encoder = calloc(1, sizeof(*encoder));
    int code;

    if (encoder == NULL)
        return encoder_no_memory(error);
    encoder->encoder.ops = &ipc_encoder_ops;
    encoder->format = options->format;
    encoder->codec = options->compression;
    code = uva__ipc_plan_init(&encoder->plan, schema, error);
    if (code != 0)
        goto fail;
    encoder->dictionaries = calloc((size_t)encoder->plan.n_dictionaries + 1,
                                   sizeof(*encoder->dictionaries));
    if (encoder->dictionaries == NULL) {
        code = encoder_no_memory(error);
        goto fail;
    }
    *out = &encoder->encoder;
    return 0;
fail:
    ipc_encoder_free(&encoder->encoder);
    return code;
}
