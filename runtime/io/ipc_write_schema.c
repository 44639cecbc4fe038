/* SPDX-License-Identifier: Apache-2.0 */
/* The schema as tables: Field, Type, DictionaryEncoding and KeyValue. */
#include "io/ipc_write_schema.h"

#include <stdlib.h>
#include <string.h>

#include "io/byte_order.h"
#include "uvarrow/arrow.h"

/* A vector of places that are known from the last to the first. */
static size_t ipc_schema_places(struct uva__flatbuffer *flat,
                                const size_t *places, size_t count)
{
    uva__flatbuffer_align(flat, 4, 0);
    for (size_t i = count; i > 0; i--)
        uva__flatbuffer_put_place(flat, places[i - 1]);
    return uva__flatbuffer_end_vector(flat, count);
}

/* Makes room for places. NULL without memory. */
static size_t *ipc_schema_room(struct uva__flatbuffer *flat, size_t count)
{
    size_t *places = malloc((count + 1) * sizeof(*places));

    if (places == NULL)
        flat->failed = true;
    return places;
}

/* ---- metadata ----------------------------------------------------------- */

static size_t ipc_schema_pair(struct uva__flatbuffer *flat,
                              const struct uva_pair *pair)
{
    const size_t value =
        uva__flatbuffer_string(flat, pair->value, (int64_t)pair->value_size);
    const size_t key =
        uva__flatbuffer_string(flat, pair->key, (int64_t)pair->key_size);

    uva__flatbuffer_begin_table(flat, 2);
    uva__flatbuffer_set_place(flat, 0, key);
    uva__flatbuffer_set_place(flat, 1, value);
    return uva__flatbuffer_end_table(flat);
}

/* Writes a block of metadata, which was checked. 0: there is none. */
static size_t ipc_schema_metadata(struct uva__flatbuffer *flat,
                                  const char *block)
{
    struct uva_metadata_at at = {0};
    struct uva_pair pair;
    size_t count = 0, *places, place;

    while (uva_metadata_next(block, &at, &pair) == 0)
        count++;
    if (count == 0)
        return 0;
    places = ipc_schema_room(flat, count);
    if (places == NULL)
        return 0;
    at = (struct uva_metadata_at){0};
    for (size_t i = 0; uva_metadata_next(block, &at, &pair) == 0; i++)
        places[i] = ipc_schema_pair(flat, &pair);
    place = ipc_schema_places(flat, places, count);
    free(places);
    return place;
}

/* ---- types -------------------------------------------------------------- */

/* The codes of a union's children. 0 for other types. */
static size_t ipc_schema_codes(struct uva__flatbuffer *flat,
                               const struct uva__ipc_type *type)
{
    const char *text = type->text;
    int32_t codes[UVA__IPC_MOST_CODES + 1]; /* one after the last */
    size_t count = 0;

    if (type->tag != UVA__IPC_TAG_UNION)
        return 0;
    while (uva__ipc_type_next_code(&text, &codes[count]))
        count++;
    uva__flatbuffer_align(flat, 4, 0);
    for (size_t i = count; i > 0; i--)
        uva__flatbuffer_put(flat, 4, (uint64_t)codes[i - 1]);
    return uva__flatbuffer_end_vector(flat, count);
}

static size_t ipc_schema_zone(struct uva__flatbuffer *flat,
                              const struct uva__ipc_type *type)
{
    if (type->tag != UVA__IPC_TAG_TIMESTAMP || type->text[0] == '\0')
        return 0;
    return uva__flatbuffer_string(flat, type->text, -1);
}

/* Writes the table of a type. */
static size_t ipc_schema_type(struct uva__flatbuffer *flat,
                              const struct ArrowSchema *schema,
                              struct uva__ipc_type *type)
{
    const int8_t *const sizes = uva__ipc_parameters[type->tag];
    const size_t codes = ipc_schema_codes(flat, type);
    const size_t zone = ipc_schema_zone(flat, type);

    if (type->tag == UVA__IPC_TAG_MAP)
        type->numbers[0] = (schema->flags & ARROW_FLAG_MAP_KEYS_SORTED) != 0;
    uva__flatbuffer_begin_table(flat, 3);
    for (int i = 0; i < 3 && sizes[i] != 0; i++)
        uva__flatbuffer_set(flat, i, sizes[i], (uint64_t)type->numbers[i]);
    uva__flatbuffer_set_place(flat, 1, codes + zone); /* the first or the second
                                                         is 0 */
    return uva__flatbuffer_end_table(flat);
}

/* How a field refers to its dictionary. 0 for a field without one. */
static size_t ipc_schema_encoding(struct uva__flatbuffer *flat,
                                  const struct uva__ipc_field *field)
{
    const struct ArrowSchema *schema = field->schema;
    struct uva__ipc_type index;
    size_t place;

    if (field->dictionary < 0)
        return 0;
    (void)uva__ipc_type_read(schema->format, &index); /* checked by the plan */
    place = ipc_schema_type(flat, schema, &index);
    uva__flatbuffer_begin_table(flat, 3);
    uva__flatbuffer_set(flat, 0, 8, (uint64_t)field->dictionary);
    uva__flatbuffer_set_place(flat, 1, place);
    uva__flatbuffer_set(flat, 2, 1,
                        (schema->flags & ARROW_FLAG_DICTIONARY_ORDERED) != 0);
    return uva__flatbuffer_end_table(flat);
}

/* ---- fields ------------------------------------------------------------- */

static size_t ipc_schema_field(struct uva__flatbuffer *flat,
                               const struct uva__ipc_plan *plan, int32_t at);

/* Writes the children of the field `at`, and the vector of them. */
static size_t ipc_schema_children(struct uva__flatbuffer *flat,
                                  const struct uva__ipc_plan *plan, int32_t at)
{
    const size_t count = (size_t)plan->fields[at].n_children;
    size_t *places = ipc_schema_room(flat, count), place;
    int32_t child = at + 1;

    if (places == NULL)
        return 0;
    for (size_t i = 0; i < count; i++, child = plan->fields[child].next)
        places[i] = ipc_schema_field(flat, plan, child);
    place = ipc_schema_places(flat, places, count);
    free(places);
    return place;
}

/* A field with a dictionary has the type and the children of its values. */
static size_t ipc_schema_field(struct uva__flatbuffer *flat,
                               const struct uva__ipc_plan *plan, int32_t at)
{
    const struct uva__ipc_field *field = &plan->fields[at];
    const struct ArrowSchema *schema = field->schema;
    const int32_t values = field->dictionary < 0
                               ? at
                               : plan->dictionaries[field->dictionary].field;
    const size_t metadata = ipc_schema_metadata(flat, schema->metadata);
    const size_t children = ipc_schema_children(flat, plan, values);
    const size_t encoding = ipc_schema_encoding(flat, field);
    const size_t name = uva__flatbuffer_string(
        flat, schema->name == NULL ? "" : schema->name, -1);
    struct uva__ipc_type type;
    size_t place;

    (void)uva__ipc_type_read(plan->fields[values].schema->format, &type);
    place = ipc_schema_type(flat, plan->fields[values].schema, &type);
    uva__flatbuffer_begin_table(flat, 7);
    uva__flatbuffer_set_place(flat, 0, name);
    uva__flatbuffer_set(flat, 1, 1, (schema->flags & ARROW_FLAG_NULLABLE) != 0);
    uva__flatbuffer_set(flat, 2, 1, type.tag);
    uva__flatbuffer_set_place(flat, 3, place);
    uva__flatbuffer_set_place(flat, 4, encoding);
    uva__flatbuffer_set_place(flat, 5, children);
    uva__flatbuffer_set_place(flat, 6, metadata);
    return uva__flatbuffer_end_table(flat);
}

size_t uva__ipc_schema_write(struct uva__flatbuffer *flat,
                             const struct uva__ipc_plan *plan)
{
    const size_t metadata = ipc_schema_metadata(flat, plan->schema.metadata);
    const size_t fields = ipc_schema_children(flat, plan, 0);

    uva__flatbuffer_begin_table(flat, 4);
    uva__flatbuffer_set(flat, 0, 2, uva__is_big_endian());
    uva__flatbuffer_set_place(flat, 1, fields);
    uva__flatbuffer_set_place(flat, 2, metadata);
    return uva__flatbuffer_end_table(flat);
}
