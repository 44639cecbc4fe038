/* SPDX-License-Identifier: Apache-2.0 */
/* The tables Schema, Field, Type and DictionaryEncoding, read into structs that
 * live as long as this takes; the plan copies them. Tables may refer to each
 * other in circles, or all to the same one: the depth is limited, and so is the
 * memory, which each table takes anew wherever it is found. */
#include "io/ipc_read_schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/byte_order.h"
#include "io/ipc_read_header.h"
#include "uvarrow/arrow.h"

enum { MOST_DEPTH = 60, MOST_FORMAT = 1024, MOST_ZONE = 256 };

/* A field. */
struct schema_node {
    struct ArrowSchema schema; /* first; has no memory: see the blocks */
    int64_t id;                /* of its dictionary */
};

/* The values of dictionaries, in the order of the plan. */
struct schema_queue {
    const struct schema_node **items; /* owns: fields with a dictionary */
    size_t count;
};

struct schema_reader {
    struct uva__ipc_block *blocks; /* owns: the memory of the whole schema */
    int64_t left;                  /* bytes that may be taken */
    size_t n_dictionaries;
    const char *name;        /* borrows: of the field in work */
    struct uva_error *error; /* borrows */
};

static int schema_fail(const struct schema_reader *r, int code,
                       const char *what)
{
    return uva_error_set(r->error, code, "field '%.64s': %s",
                         r->name == NULL ? "" : r->name, what);
}

/* Takes memory. Its code is in `*code` if there is none. */
static void *schema_room(struct schema_reader *r, size_t size, int *code)
{
    void *room;

    r->left -= (int64_t)size + 64;
    if (r->left < 0) {
        *code = uva_error_set(r->error, EMSGSIZE,
                              "the schema is too large (max_bytes)");
        return NULL;
    }
    room = uva__ipc_block_new(&r->blocks, size);
    if (room == NULL)
        *code = uva_error_set(r->error, ENOMEM, "out of memory");
    return room;
}

static void schema_keep(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static struct schema_node *schema_node(struct schema_reader *r, int *code)
{
    struct schema_node *node = schema_room(r, sizeof(*node), code);

    if (node != NULL)
        *node = (struct schema_node){
            .schema = {.format = "", .name = "", .release = schema_keep}};
    return node;
}

/* Copies a string, which in a schema ends at its first NUL: the rest of one
 * with such a byte would be lost. The error names it as `what`. */
static int schema_text(struct schema_reader *r, const struct uva__table *table,
                       size_t slot, const char *what, const char **out)
{
    struct uva__vector text;
    int code = 0;
    char *copy;

    if (!uva__table_vector(table, slot, 1, &text))
        return schema_fail(r, EPROTO, "a malformed text");
    copy = schema_room(r, text.count + 1, &code);
    if (copy == NULL)
        return code;
    if (text.count > 0)
        memcpy(copy, text.items, text.count);
    copy[text.count] = '\0';
    *out = copy;
    if (strlen(copy) == text.count)
        return 0;
    return uva_error_set(r->error, ENOTSUP,
                         "field '%.64s': its %s has a NUL character behind "
                         "'%.64s', which the C data interface cannot express",
                         r->name, what, copy);
}

static int schema_metadata(struct schema_reader *r,
                           const struct uva__table *table, size_t slot,
                           const char **out)
{
    struct uva__vector pairs;
    char *block, *copy;
    size_t size = 0;
    int code;

    if (!uva__table_vector(table, slot, 4, &pairs))
        return schema_fail(r, EPROTO, "malformed metadata");
    code = uva__ipc_metadata_read(table, &pairs, &r->left, &block, &size,
                                  r->error);
    if (code != 0 || block == NULL)
        return code;
    copy = schema_room(r, size, &code);
    if (copy != NULL)
        *out = memcpy(copy, block, size);
    free(block);
    return code;
}

/* ---- types -------------------------------------------------------------- */

/* Defaults of parameters. */
static void schema_defaults(struct uva__ipc_type *type)
{
    switch (type->tag) {
    case UVA__IPC_TAG_DECIMAL:
        type->numbers[2] = 128;
        break;
    case UVA__IPC_TAG_TIME:
        type->numbers[1] = 32;
        type->numbers[0] = 1;
        break;
    case UVA__IPC_TAG_DATE:
    case UVA__IPC_TAG_DURATION:
        type->numbers[0] = 1;
        break;
    default:
        break;
    }
}

static bool schema_numbers(const struct uva__table *table,
                           struct uva__ipc_type *type)
{
    const int8_t *sizes = uva__ipc_parameters[type->tag];

    schema_defaults(type);
    for (size_t i = 0; i < 3 && sizes[i] != 0; i++) {
        uint64_t value = (uint64_t)type->numbers[i];

        if (!uva__table_number(table, i, sizes[i], &value))
            return false;
        type->numbers[i] = (int32_t)value;
    }
    return true;
}

/* The codes of a union: 0, 1 and so on if they are not written. False if their
 * number is not the number of children. */
static bool schema_codes(const struct uva__table *table, int32_t *codes,
                         size_t n_children)
{
    struct uva__vector vector;

    if (!uva__table_vector(table, 1, 4, &vector) ||
        (vector.items != NULL && vector.count != n_children) ||
        n_children > UVA__IPC_MOST_CODES)
        return false;
    for (size_t i = 0; i < n_children; i++)
        codes[i] = vector.items == NULL
                       ? (int32_t)i
                       : (int32_t)uva__table_load(vector.items + 4 * i, 4);
    return true;
}

/* Reads the table of a type, and its codes if it is a union. */
static int schema_type(struct schema_reader *r, const struct uva__table *table,
                       struct ArrowSchema *schema, struct uva__ipc_type *type,
                       int32_t *codes)
{
    if (table->at == 0 || !schema_numbers(table, type))
        return schema_fail(r, EPROTO, "a malformed type");
    if (type->tag == UVA__IPC_TAG_UNION &&
        !schema_codes(table, codes, (size_t)schema->n_children))
        return schema_fail(r, EPROTO, "malformed codes of a union");
    if (type->tag == UVA__IPC_TAG_TIMESTAMP)
        return schema_text(r, table, 1, "time zone", &type->text);
    if (type->tag == UVA__IPC_TAG_MAP) {
        if (type->numbers[0] != 0)
            schema->flags |= ARROW_FLAG_MAP_KEYS_SORTED;
        type->numbers[0] = 0;
    }
    return 0;
}

/* Reads the table of a type into a format. */
static int schema_format(struct schema_reader *r,
                         const struct uva__table *table, uint64_t tag,
                         struct ArrowSchema *schema)
{
    struct uva__ipc_type type = {.tag = (enum uva__ipc_tag)tag, .text = ""};
    int32_t codes[UVA__IPC_MOST_CODES] = {0};
    char format[MOST_FORMAT], *copy;
    int code;

    if (tag < UVA__IPC_TAG_NULL || tag > UVA__IPC_TAG_LARGE_LIST_VIEW)
        return schema_fail(r, ENOTSUP, "an unknown type");
    code = schema_type(r, table, schema, &type, codes);
    if (code != 0)
        return code;
    if (strlen(type.text) > MOST_ZONE ||
        uva__ipc_type_write(&type, codes, (int32_t)schema->n_children, format,
                            sizeof(format)) != 0)
        return schema_fail(r, EPROTO, "impossible parameters of its type");
    copy = schema_room(r, strlen(format) + 1, &code);
    if (copy != NULL)
        schema->format = memcpy(copy, format, strlen(format) + 1);
    return code;
}

/* ---- fields ------------------------------------------------------------- */

static int schema_field(struct schema_reader *r, const struct uva__table *table,
                        int depth, struct schema_node *node);

/* Reads the children in a slot. */
static int schema_children(struct schema_reader *r,
                           const struct uva__table *table, size_t slot,
                           int depth, struct ArrowSchema *schema)
{
    struct uva__vector vector;
    int code = 0;

    if (!uva__table_vector(table, slot, 4, &vector))
        return schema_fail(r, EPROTO, "malformed children");
    if (vector.count > 0 && depth >= MOST_DEPTH)
        return schema_fail(r, EPROTO, "nested too deeply");
    schema->children =
        schema_room(r, vector.count * sizeof(*schema->children), &code);
    for (size_t i = 0; i < vector.count && code == 0; i++) {
        struct schema_node *node = schema_node(r, &code);
        struct uva__table child;

        if (node == NULL)
            break;
        if (!uva__table_item(table, &vector, i, &child))
            return schema_fail(r, EPROTO, "a malformed child");
        schema->children[i] = &node->schema;
        schema->n_children = (int64_t)i + 1;
        code = schema_field(r, &child, depth + 1, node);
    }
    return code;
}

/* Reads how a field refers to its dictionary: the part read so far becomes the
 * type of the values. */
static int schema_encoding(struct schema_reader *r,
                           const struct uva__table *encoding,
                           struct schema_node *node)
{
    struct ArrowSchema *schema = &node->schema;
    struct uva__table index;
    uint64_t id = 0, is_ordered = 0, kind = 0;
    struct schema_node *values;
    int code = 0;

    if (!uva__table_number(encoding, 0, 8, &id) ||
        !uva__table_child(encoding, 1, &index) ||
        !uva__table_number(encoding, 2, 1, &is_ordered) ||
        !uva__table_number(encoding, 3, 2, &kind) || kind != 0)
        return schema_fail(r, EPROTO, "a malformed dictionary");
    values = schema_node(r, &code);
    if (values == NULL)
        return code;
    values->schema.format = schema->format;
    values->schema.children = schema->children;
    values->schema.n_children = schema->n_children;
    values->schema.flags =
        (schema->flags & ARROW_FLAG_MAP_KEYS_SORTED) | ARROW_FLAG_NULLABLE;
    schema->flags &= ~(int64_t)ARROW_FLAG_MAP_KEYS_SORTED;
    if (is_ordered != 0)
        schema->flags |= ARROW_FLAG_DICTIONARY_ORDERED;
    schema->children = NULL;
    schema->n_children = 0;
    schema->dictionary = &values->schema;
    schema->format = "i";
    node->id = (int64_t)id;
    r->n_dictionaries++;
    return index.at == 0 ? 0
                         : schema_format(r, &index, UVA__IPC_TAG_INT, schema);
}

static int schema_field(struct schema_reader *r, const struct uva__table *table,
                        int depth, struct schema_node *node)
{
    struct ArrowSchema *schema = &node->schema;
    struct uva__table type, encoding;
    uint64_t is_nullable = 0, tag = 0;
    int code;

    r->name = "";
    code = schema_text(r, table, 0, "name", &schema->name);
    r->name = schema->name;
    if (code == 0 && (!uva__table_number(table, 1, 1, &is_nullable) ||
                      !uva__table_number(table, 2, 1, &tag) ||
                      !uva__table_child(table, 3, &type) ||
                      !uva__table_child(table, 4, &encoding)))
        code = schema_fail(r, EPROTO, "a malformed field");
    if (code == 0)
        code = schema_children(r, table, 5, depth, schema);
    r->name = schema->name;
    if (code == 0)
        code = schema_metadata(r, table, 6, &schema->metadata);
    if (is_nullable != 0)
        schema->flags |= ARROW_FLAG_NULLABLE;
    if (code == 0)
        code = schema_format(r, &type, tag, schema);
    if (code == 0 && encoding.at != 0)
        code = schema_encoding(r, &encoding, node);
    return code;
}

/* ---- dictionaries ------------------------------------------------------- */

/* Finds the fields with a dictionary, in the order of the plan; those in its
 * values come later. */
static void schema_find(const struct ArrowSchema *schema,
                        struct schema_queue *queue)
{
    if (schema->dictionary != NULL)
        queue->items[queue->count++] = (const struct schema_node *)schema;
    for (int64_t i = 0; i < schema->n_children; i++)
        schema_find(schema->children[i], queue);
}

/* Gives the ids of all dictionaries. */
static int schema_ids(const struct schema_reader *r,
                      const struct ArrowSchema *root, int64_t **ids)
{
    struct schema_queue queue = {0};

    queue.items = calloc(r->n_dictionaries + 1, sizeof(*queue.items));
    *ids = calloc(r->n_dictionaries + 1, sizeof(**ids));
    if (queue.items == NULL || *ids == NULL) {
        free(queue.items);
        free(*ids);
        *ids = NULL;
        return uva_error_set(r->error, ENOMEM, "out of memory");
    }
    schema_find(root, &queue);
    for (size_t i = 0; i < queue.count; i++) {
        (*ids)[i] = queue.items[i]->id;
        schema_find(queue.items[i]->schema.dictionary, &queue);
    }
    free(queue.items);
    return 0;
}

/* ---- the schema --------------------------------------------------------- */

static int schema_read(struct schema_reader *r, const struct uva__table *table,
                       struct ArrowSchema *root, bool *is_turned)
{
    uint64_t order = 0;
    int code;

    if (!uva__table_number(table, 0, 2, &order) || order > 1)
        return uva_error_set(r->error, EPROTO, "a malformed schema");
    *is_turned = order != (uint64_t)uva__is_big_endian();
    code = schema_children(r, table, 1, 0, root);
    r->name = "";
    return code == 0 ? schema_metadata(r, table, 2, &root->metadata) : code;
}

int uva__ipc_schema_read(const struct uva__table *table, int64_t most,
                         struct uva__ipc_plan *plan, int64_t **ids,
                         bool *is_turned, struct uva_error *error)
{
    struct ArrowSchema root = {
        .format = "+s", .name = "", .release = schema_keep};
    struct schema_reader r = {.left = most, .error = error};
    int code = schema_read(&r, table, &root, is_turned);

    *ids = NULL;
    *plan = (struct uva__ipc_plan){0};
    if (code == 0)
        code = schema_ids(&r, &root, ids);
    if (code == 0)
        code = uva__ipc_plan_init(plan, &root, error);
    if (code == EINVAL) /* the input is wrong, not the arguments */
        code = error->code = EPROTO;
    uva_schema_release(&root);
    uva__ipc_blocks_free(r.blocks);
    return code;
}
