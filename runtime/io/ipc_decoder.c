/* SPDX-License-Identifier: Apache-2.0 */
/* schema -> (dictionary | delta | batch)*
 *
 * A dictionary is kept as the arrays that came for it: the first, and the
 * deltas, which are joined when a batch needs them. Batches share the arrays,
 * so a replacement leaves earlier batches as they are. Fields with the same id
 * have one dictionary, the first field's.
 *
 * A dictionary whose values have dictionaries of their own may come before
 * these, as Java writes it: its message is kept until a batch needs it. */
#include "io/ipc_decoder.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/ipc_compress.h"
#include "io/ipc_read_body.h"
#include "io/ipc_read_schema.h"
#include "uvarrow/arrow.h"

#define DEFAULT_BYTES (INT64_C(256) << 20)

/* How much more a file may have in memory by default: data that compresses
 * well. */
enum { FILE_TIMES = 16 };

/* The size of the structs of an array, for each of its fields. */
enum { FIELD_BYTES = 256 };

/* A dictionary of the plan. */
struct decoder_dictionary {
    int64_t id;
    int32_t first;                   /* index of the first one with that id */
    struct ArrowDeviceArray *arrays; /* owns, and each of them */
    size_t count;                    /* number of arrays; 0: not received */
    size_t most;                     /* room for them */
    int64_t bytes;                   /* of all arrays */
    bool has_come;                   /* or deltas of it */
    struct uva__ipc_item *waiting;   /* owns: came before the dictionaries of
                                        its values; or NULL */
};

/* Where a dictionary is in the plan. */
struct decoder_id {
    int64_t id;
    int32_t at;
};

struct uva__ipc_decoder {
    int64_t max_bytes;
    bool is_default; /* the limit */
    bool is_turned;  /* see struct uva__ipc_input */
    struct uva__ipc_plan plan;
    struct decoder_dictionary *dictionaries; /* owns: one each of the plan */
    struct decoder_id *ids;                  /* owns: of each, in order */
    int64_t bytes;                           /* of all dictionaries */
};

struct uva__ipc_item {
    const struct uva__ipc_decoder *decoder; /* borrows */
    struct uva__message message;            /* owns */
    struct uva__ipc_head head;              /* borrows from the message */
    struct uva__ipc_parts parts;            /* of a batch; borrows, too */
    struct ArrowDeviceArray *values;        /* owns: one each of the plan */
    char *metadata;                         /* owns; may be NULL */
    bool is_delta;   /* of a dictionary: its values follow earlier ones */
    bool is_waiting; /* the dictionary owns it */
};

static int decoder_no_memory(struct uva_error *error)
{
    return uva_error_set(error, ENOMEM, "out of memory");
}

/* ---- open and close ----------------------------------------------------- */

struct uva__ipc_decoder *uva__ipc_decoder_new(int64_t max_bytes)
{
    struct uva__ipc_decoder *decoder = calloc(1, sizeof(*decoder));

    if (decoder == NULL)
        return NULL;
    decoder->is_default = max_bytes == 0;
    decoder->max_bytes = max_bytes == 0 ? DEFAULT_BYTES : max_bytes;
    return decoder;
}

void uva__ipc_decoder_fit(struct uva__ipc_decoder *decoder, int64_t size)
{
    const int64_t most =
        size > INT64_MAX / FILE_TIMES ? INT64_MAX : size * FILE_TIMES;

    if (decoder->is_default && decoder->max_bytes < most)
        decoder->max_bytes = most;
}

int64_t uva__ipc_decoder_limit(const struct uva__ipc_decoder *decoder)
{
    return decoder->max_bytes;
}

static void decoder_clear(struct uva__ipc_decoder *decoder,
                          struct decoder_dictionary *dictionary)
{
    for (size_t i = 0; i < dictionary->count; i++)
        uva_array_release(&dictionary->arrays[i]);
    dictionary->count = 0;
    decoder->bytes -= dictionary->bytes;
    dictionary->bytes = 0;
}

void uva__ipc_decoder_free(struct uva__ipc_decoder *decoder)
{
    if (decoder == NULL)
        return;
    for (int32_t i = 0;
         decoder->dictionaries != NULL && i < decoder->plan.n_dictionaries;
         i++) {
        decoder_clear(decoder, &decoder->dictionaries[i]);
        free(decoder->dictionaries[i].arrays);
        uva__ipc_item_free(decoder->dictionaries[i].waiting);
    }
    free(decoder->dictionaries);
    free(decoder->ids);
    uva__ipc_plan_fini(&decoder->plan);
    free(decoder);
}

/* ---- the schema --------------------------------------------------------- */

/* Whether the values of two dictionaries have one type. */
static bool decoder_equal(const struct uva__ipc_decoder *decoder, int32_t a,
                          int32_t b)
{
    const struct uva__ipc_field *fields = decoder->plan.fields;
    const struct uva__ipc_field *x =
        &fields[decoder->plan.dictionaries[a].field];
    const struct uva__ipc_field *y =
        &fields[decoder->plan.dictionaries[b].field];
    const int64_t count = x->next - (x - fields);

    if (y->next - (y - fields) != count)
        return false;
    for (int64_t i = 0; i < count; i++) {
        const int64_t inner = x[i].dictionary, other = y[i].dictionary;

        if (x[i].n_children != y[i].n_children ||
            strcmp(x[i].schema->format, y[i].schema->format) != 0 ||
            (inner < 0) != (other < 0) ||
            (inner >= 0 && decoder->dictionaries[inner].id !=
                               decoder->dictionaries[other].id))
            return false;
    }
    return true;
}

static int decoder_compare_ids(const void *a, const void *b)
{
    const struct decoder_id *x = a, *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Finds the first dictionary with an id; -1 if there is none. There may be
 * hundreds of thousands. */
static int32_t decoder_find(const struct uva__ipc_decoder *decoder, int64_t id)
{
    const struct decoder_id *ids = decoder->ids;
    int32_t low = 0, high = decoder->plan.n_dictionaries;

    while (low < high) {
        const int32_t middle = low + (high - low) / 2;

        if (ids[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < decoder->plan.n_dictionaries && ids[low].id == id ? ids[low].at
                                                                   : -1;
}

/* Finds dictionaries with one id. */
static int decoder_match(struct uva__ipc_decoder *decoder,
                         struct uva_error *error)
{
    struct decoder_dictionary *dictionaries = decoder->dictionaries;

    for (int32_t i = 0; i < decoder->plan.n_dictionaries; i++) {
        const int32_t first = decoder_find(decoder, dictionaries[i].id);

        dictionaries[i].first = first;
        if (first < i && !decoder_equal(decoder, first, i))
            return uva_error_set(error, EPROTO,
                                 "dictionary %" PRId64 " has two types",
                                 dictionaries[i].id);
    }
    return 0;
}

/* Makes the dictionaries, with their ids. */
static int decoder_make_dictionaries(struct uva__ipc_decoder *decoder,
                                     const int64_t *ids,
                                     struct uva_error *error)
{
    const size_t count = (size_t)decoder->plan.n_dictionaries;

    decoder->dictionaries = calloc(count + 1, sizeof(*decoder->dictionaries));
    decoder->ids = calloc(count + 1, sizeof(*decoder->ids));
    if (decoder->dictionaries == NULL || decoder->ids == NULL)
        return decoder_no_memory(error);
    for (size_t i = 0; i < count; i++) {
        decoder->dictionaries[i].id = ids[i];
        decoder->ids[i] = (struct decoder_id){ids[i], (int32_t)i};
    }
    qsort(decoder->ids, count, sizeof(*decoder->ids), decoder_compare_ids);
    return decoder_match(decoder, error);
}

static int decoder_read_schema(struct uva__ipc_decoder *decoder,
                               const struct uva__table *table,
                               struct uva_error *error)
{
    int64_t *ids;
    int code = uva__ipc_schema_read(table, decoder->max_bytes, &decoder->plan,
                                    &ids, &decoder->is_turned, error);

    if (code == 0)
        code = decoder_make_dictionaries(decoder, ids, error);
    free(ids);
    return code;
}

int uva__ipc_decoder_begin(struct uva__ipc_decoder *decoder,
                           const struct uva__message *message,
                           struct uva_error *error)
{
    struct uva__ipc_head head;
    int code = uva__ipc_head_read(message->head->bytes, message->head->size,
                                  &head, error);

    if (code == 0 && head.what != UVA__IPC_SCHEMA)
        code = uva_error_set(error, EPROTO, "the first one is not the schema");
    if (code == 0)
        code = decoder_read_schema(decoder, &head.header, error);
    return code == 0 ? 0 : uva__message_fail(message, error);
}

int uva__ipc_decoder_begin_file(struct uva__ipc_decoder *decoder,
                                const struct uva__ipc_footer *footer,
                                struct uva_error *error)
{
    return decoder_read_schema(decoder, &footer->schema, error);
}

int uva__ipc_decoder_schema(const struct uva__ipc_decoder *decoder,
                            struct ArrowSchema *out, struct uva_error *error)
{
    const int code = uva_schema_copy(&decoder->plan.schema, out);

    return code == 0 ? 0 : decoder_no_memory(error);
}

/* ---- values of dictionaries --------------------------------------------- */

/* Makes room for one more array of a dictionary. */
static int decoder_grow(struct decoder_dictionary *dictionary,
                        struct uva_error *error)
{
    return uva__ipc_grow((void **)&dictionary->arrays, dictionary->count,
                         &dictionary->most, 1, sizeof(*dictionary->arrays))
               ? 0
               : decoder_no_memory(error);
}

/* The size of an array with values: its bytes, or the bytes of the body that it
 * borrows from, which may be more; and its structs, however empty it is. */
static int64_t decoder_charge(const struct uva__ipc_decoder *decoder,
                              int32_t at, int64_t bytes,
                              const struct uva__shared_bytes *body)
{
    const struct uva__ipc_field *fields = decoder->plan.fields;
    const int32_t field = decoder->plan.dictionaries[at].field;
    const int64_t size = body == NULL ? 0 : (int64_t)body->size;

    return (bytes > size ? bytes : size) +
           (int64_t)(fields[field].next - field) * FIELD_BYTES;
}

/* Joins the arrays of a dictionary, or makes an empty one. */
static int decoder_settle(struct uva__ipc_decoder *decoder, int32_t at,
                          struct uva_error *error)
{
    struct decoder_dictionary *dictionary = &decoder->dictionaries[at];
    const int32_t field = decoder->plan.dictionaries[at].field;
    const struct uva__ipc_input source = {.plan = &decoder->plan};
    struct ArrowDeviceArray joined;
    int64_t bytes = 0;
    int code;

    if (dictionary->count == 1)
        return 0;
    code = decoder_grow(dictionary, error);
    if (code != 0)
        return code;
    if (dictionary->count == 0) {
        struct ArrowArray empty;

        code = uva__ipc_array_read(&source, field, &empty, error);
        if (code == 0)
            uva_array_from_cpu(&empty, &joined);
    } else {
        code = uva_array_concat(decoder->plan.fields[field].schema,
                                dictionary->arrays, dictionary->count,
                                decoder->max_bytes, &joined, error);
        if (code == EOVERFLOW)
            code = error->code = EPROTO;
    }
    if (code != 0)
        return code;
    (void)!uva_array_memory(decoder->plan.fields[field].schema, &joined,
                            &bytes); /* it fits its schema */
    decoder_clear(decoder, dictionary);
    dictionary->bytes = decoder_charge(decoder, at, bytes, NULL);
    decoder->bytes += dictionary->bytes;
    uva_array_move(&joined, &dictionary->arrays[0]);
    dictionary->count = 1;
    return 0;
}

static int decoder_resume(struct uva__ipc_decoder *decoder, int32_t at,
                          struct uva_error *error);

/* Gives the arrays of the dictionaries that the fields from `at` on have, up to
 * the next that is no child of it. */
static int decoder_share(struct uva__ipc_decoder *decoder, int32_t at,
                         struct ArrowDeviceArray *values,
                         struct uva_error *error)
{
    const struct uva__ipc_field *fields = decoder->plan.fields;
    int code = 0;

    for (int32_t i = at; i < fields[at].next && code == 0; i++) {
        const int32_t dictionary = fields[i].dictionary;
        int32_t first;

        if (dictionary < 0)
            continue;
        first = decoder->dictionaries[dictionary].first;
        code = decoder_resume(decoder, first, error);
        if (code == 0)
            code = decoder_settle(decoder, first, error);
        if (code == 0 &&
            uva_array_share(&decoder->dictionaries[first].arrays[0],
                            &values[dictionary]) != 0)
            code = decoder_no_memory(error);
    }
    return code;
}

/* Keeps an array with values, which it takes, made of `body`. */
static int decoder_keep(struct uva__ipc_decoder *decoder, int32_t at,
                        bool is_delta, struct ArrowDeviceArray *values,
                        const struct uva__shared_bytes *body,
                        struct uva_error *error)
{
    struct decoder_dictionary *dictionary = &decoder->dictionaries[at];
    const int32_t field = decoder->plan.dictionaries[at].field;
    int64_t bytes = 0;
    int code = decoder_grow(dictionary, error);

    if (code == 0)
        code = uva_array_memory(decoder->plan.fields[field].schema, values,
                                &bytes);
    bytes = decoder_charge(decoder, at, bytes, body);
    if (code == 0 && !is_delta)
        decoder_clear(decoder, dictionary);
    if (code == 0 && bytes > decoder->max_bytes - decoder->bytes)
        code = uva_error_set(error, EMSGSIZE,
                             "dictionaries are too large (max_bytes)");
    if (code != 0) {
        uva_array_release(values);
        return code;
    }
    uva_array_move(values, &dictionary->arrays[dictionary->count++]);
    dictionary->bytes += bytes;
    decoder->bytes += bytes;
    return 0;
}

/* ---- items -------------------------------------------------------------- */

void uva__ipc_item_free(struct uva__ipc_item *item)
{
    if (item == NULL)
        return;
    for (int32_t i = 0;
         item->values != NULL && i < item->decoder->plan.n_dictionaries; i++)
        uva_array_release(&item->values[i]);
    free(item->values);
    free(item->metadata);
    uva__message_fini(&item->message);
    free(item);
}

/* Takes the message. */
static struct uva__ipc_item *item_new(const struct uva__ipc_decoder *decoder,
                                      struct uva__message *message)
{
    struct uva__ipc_item *item = calloc(1, sizeof(*item));

    if (item == NULL)
        return NULL;
    item->decoder = decoder;
    item->message = *message;
    *message = (struct uva__message){0};
    item->values =
        calloc((size_t)decoder->plan.n_dictionaries + 1, sizeof(*item->values));
    if (item->values != NULL)
        return item;
    *message = item->message;
    free(item);
    return NULL;
}

int64_t uva__ipc_item_size(const struct uva__ipc_item *item)
{
    const struct uva__message *message = &item->message;

    return (int64_t)message->head->size +
           (message->body == NULL ? 0 : (int64_t)message->body->size);
}

char *uva__ipc_item_take_metadata(struct uva__ipc_item *item)
{
    char *metadata = item->metadata;

    item->metadata = NULL;
    return metadata;
}

/* Makes the array of the parts. */
static int item_read(struct uva__ipc_item *item, int32_t field,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    const struct uva__ipc_decoder *decoder = item->decoder;
    const struct uva__ipc_input source = {.plan = &decoder->plan,
                                          .parts = &item->parts,
                                          .body = item->message.body,
                                          .is_old = item->head.is_old,
                                          .is_turned = decoder->is_turned,
                                          .most = decoder->max_bytes,
                                          .values = item->values};
    struct ArrowArray array;
    const int code = uva__ipc_array_read(&source, field, &array, error);

    if (code == 0)
        uva_array_from_cpu(&array, out);
    return code;
}

bool uva__ipc_item_is_plain(const struct uva__ipc_item *item)
{
    return item->parts.codec == UVA__IPC_PLAIN && !item->decoder->is_turned;
}

int uva__ipc_item_decode(struct uva__ipc_item *item,
                         struct ArrowDeviceArray *out, struct uva_error *error)
{
    const int code = item_read(item, 0, out, error);

    return code == 0 ? 0 : uva__message_fail(&item->message, error);
}

/* ---- messages ----------------------------------------------------------- */

/* Makes the values of a message for the dictionary `at`. */
static int decoder_make_values(struct uva__ipc_decoder *decoder, int32_t at,
                               struct uva__ipc_item *item,
                               struct uva_error *error)
{
    const int32_t field = decoder->plan.dictionaries[at].field;
    struct ArrowDeviceArray values;
    int code = decoder_share(decoder, field, item->values, error);

    if (code == 0)
        code = item_read(item, field, &values, error);
    return code == 0 ? decoder_keep(decoder, at, item->is_delta, &values,
                                    item->message.body, error)
                     : code;
}

/* Whether a dictionary of the values of the dictionary `at` has no values. */
static bool decoder_lacks(const struct uva__ipc_decoder *decoder, int32_t at)
{
    const struct uva__ipc_field *fields = decoder->plan.fields;
    const int32_t field = decoder->plan.dictionaries[at].field;

    for (int32_t i = field; i < fields[field].next; i++)
        if (fields[i].dictionary >= 0 &&
            decoder->dictionaries[decoder->dictionaries[fields[i].dictionary]
                                      .first]
                    .count == 0)
            return true;
    return false;
}

/* Keeps a message for the dictionary `at`, which owns it then; without the room
 * for the values of dictionaries, of which there may be many. */
static int decoder_put_aside(struct uva__ipc_decoder *decoder, int32_t at,
                             struct uva__ipc_item *item,
                             struct uva_error *error)
{
    if (uva__ipc_item_size(item) > decoder->max_bytes - decoder->bytes)
        return uva_error_set(error, EMSGSIZE,
                             "dictionaries are too large (max_bytes)");
    decoder->bytes += uva__ipc_item_size(item);
    free(item->values);
    item->values = NULL;
    item->is_waiting = true;
    decoder->dictionaries[at].waiting = item;
    return 0;
}

/* Makes the values of the message that waits for the dictionary `at`, if there
 * is one. A dictionary of these values that has not come is empty. */
static int decoder_resume(struct uva__ipc_decoder *decoder, int32_t at,
                          struct uva_error *error)
{
    struct uva__ipc_item *item = decoder->dictionaries[at].waiting;
    int code;

    if (item == NULL)
        return 0;
    decoder->dictionaries[at].waiting = NULL;
    decoder->bytes -= uva__ipc_item_size(item);
    item->values =
        calloc((size_t)decoder->plan.n_dictionaries + 1, sizeof(*item->values));
    code = item->values == NULL ? decoder_no_memory(error)
                                : decoder_make_values(decoder, at, item, error);
    if (code != 0)
        code = uva__message_fail(&item->message, error);
    uva__ipc_item_free(item);
    return code;
}

/* Takes values for a dictionary. */
static int decoder_take_values(struct uva__ipc_decoder *decoder,
                               struct uva__ipc_item *item,
                               struct uva_error *error)
{
    struct uva__table batch;
    int64_t id;
    int32_t at;
    int code = uva__ipc_values_read(&item->head.header, &id, &item->is_delta,
                                    &batch, error);

    if (code != 0)
        return code;
    at = decoder_find(decoder, id);
    if (at < 0)
        return uva_error_set(error, EPROTO,
                             "dictionary %" PRId64 " is not in the schema", id);
    if (item->message.is_in_file && !item->is_delta &&
        decoder->dictionaries[at].has_come)
        return uva_error_set(error, EPROTO,
                             "dictionary %" PRId64 " comes twice, which a file "
                             "does not allow",
                             id);
    decoder->dictionaries[at].has_come = true;
    code = uva__ipc_parts_read(&batch, &item->parts, error);
    if (code == 0)
        code = decoder_resume(decoder, at, error);
    if (code != 0)
        return code;
    return decoder_lacks(decoder, at)
               ? decoder_put_aside(decoder, at, item, error)
               : decoder_make_values(decoder, at, item, error);
}

/* Gets an item ready to be decoded. */
static int decoder_take_batch(struct uva__ipc_decoder *decoder,
                              struct uva__ipc_item *item,
                              struct uva_error *error)
{
    const struct uva__ipc_head *head = &item->head;
    int64_t left = decoder->max_bytes;
    size_t size;
    int code = uva__ipc_metadata_read(&head->message, &head->metadata, &left,
                                      &item->metadata, &size, error);

    if (code == 0)
        code = uva__ipc_parts_read(&head->header, &item->parts, error);
    return code == 0 ? decoder_share(decoder, 0, item->values, error) : code;
}

int uva__ipc_decoder_take(struct uva__ipc_decoder *decoder,
                          struct uva__message *message,
                          struct uva__ipc_item **out, struct uva_error *error)
{
    struct uva__ipc_item *item = item_new(decoder, message);
    const struct uva__shared_bytes *shared;
    int code;

    *out = NULL;
    if (item == NULL)
        return decoder_no_memory(error);
    shared = item->message.head;
    code = uva__ipc_head_read(shared->bytes, shared->size, &item->head, error);
    if (code == 0 && item->head.what == UVA__IPC_DICTIONARY)
        code = decoder_take_values(decoder, item, error);
    else if (code == 0 && item->head.what == UVA__IPC_BATCH)
        code = decoder_take_batch(decoder, item, error);
    else if (code == 0)
        code = uva_error_set(error, EPROTO,
                             "neither a batch nor a dictionary (%d)",
                             item->head.what);
    if (code != 0)
        code = uva__message_fail(&item->message, error);
    if (code == 0 && item->head.what == UVA__IPC_BATCH)
        *out = item;
    else if (!item->is_waiting)
        uva__ipc_item_free(item);
    return code;
}
