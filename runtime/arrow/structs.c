/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and copies of the Arrow structs.
 *
 * A copied schema is one block per node. It holds our bookkeeping, and then
 * every object that the node's struct points to, the structs of its children
 * included. A child has a separate block, so that it may be moved out and
 * outlive its parent. Clauses: LC-10. */
#include "arrow/structs.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "uvarrow/arrow.h"

/* ---- checks ------------------------------------------------------------- */

/* A function pointer, and whether it is set. */
struct structs_slot {
    const char *name; /* static */
    bool filled;
};

static int structs_check_slots(const char *what,
                               const struct structs_slot slots[4],
                               struct uva_error *error)
{
    for (int i = 0; i < 4; i++)
        if (!slots[i].filled)
            return uva_error_set(error, EINVAL,
                                 "%s: %s is NULL; fill in all four functions",
                                 what, slots[i].name);
    return 0;
}

static int structs_check_live(const char *what, bool there, bool live,
                              struct uva_error *error)
{
    if (!there)
        return uva_error_set(error, EINVAL, "%s: it is NULL", what);
    if (!live)
        return uva_error_set(
            error, EINVAL, "%s: it is released; give each one away once", what);
    return 0;
}

int uva__structs_check_stream(const struct ArrowArrayStream *stream,
                              struct uva_error *error)
{
    const int code =
        structs_check_live("source", stream != NULL,
                           stream != NULL && stream->release != NULL, error);

    if (code != 0)
        return code;
    return structs_check_slots(
        "source",
        (struct structs_slot[4]){
            {"get_schema", stream->get_schema != NULL},
            {"get_next", stream->get_next != NULL},
            {"get_last_error", stream->get_last_error != NULL},
            {"release", true}},
        error);
}

int uva__structs_check_device_stream(
    const struct ArrowDeviceArrayStream *stream, struct uva_error *error)
{
    const int code =
        structs_check_live("source", stream != NULL,
                           stream != NULL && stream->release != NULL, error);

    if (code != 0)
        return code;
    return structs_check_slots(
        "source",
        (struct structs_slot[4]){
            {"get_schema", stream->get_schema != NULL},
            {"get_next", stream->get_next != NULL},
            {"get_last_error", stream->get_last_error != NULL},
            {"release", true}},
        error);
}

int uva__structs_check_handler(
    const struct ArrowAsyncDeviceStreamHandler *handler,
    struct uva_error *error)
{
    if (handler == NULL)
        return structs_check_live("handler", false, false, error);
    return structs_check_slots(
        "handler",
        (struct structs_slot[4]){
            {"on_schema", handler->on_schema != NULL},
            {"on_next_task", handler->on_next_task != NULL},
            {"on_error", handler->on_error != NULL},
            {"release", handler->release != NULL}},
        error);
}

int uva__structs_check_schema(const struct ArrowSchema *schema,
                              struct uva_error *error)
{
    const int code =
        structs_check_live("schema", schema != NULL,
                           schema != NULL && schema->release != NULL, error);

    if (code == 0 && schema->format == NULL)
        return uva_error_set(error, EINVAL, "schema: format is NULL");
    return code;
}

/* ---- copying a schema --------------------------------------------------- */

/* The block at `private_data` of a copy. */
struct structs_block {
    struct uva_allocator allocator; /* of this block */
    size_t size;                    /* of the whole block: then follow the
                                       children's structs, the dictionary's if
                                       there is one, the pointers to the
                                       children, the metadata, the format, the
                                       name */
};

/* The sizes of one schema node. */
struct structs_need {
    size_t children; /* number of children */
    size_t nodes;    /* children and the dictionary */
    size_t metadata; /* bytes; 0: no metadata */
    size_t format;   /* bytes with the NUL */
    size_t name;     /* bytes with the NUL; 0: no name */
    size_t size;     /* of the whole block */
};

/* The state of a copy in progress. */
struct structs_walk {
    const struct uva_allocator *allocator; /* borrows */
    int depth;                             /* of the current node */
    int64_t nodes;                         /* visited so far */
};

static void structs_release_schema(struct ArrowSchema *schema)
{
    struct structs_block *block = schema->private_data;
    const struct uva_allocator allocator = block->allocator;

    assert(block->size > sizeof(*block));
    for (int64_t i = 0; i < schema->n_children; i++)
        uva_schema_release(schema->children[i]);
    if (schema->dictionary != NULL)
        uva_schema_release(schema->dictionary);
    schema->release = NULL;
    uva__memory_free(&allocator, block, block->size);
}

static int structs_measure(const struct ArrowSchema *schema,
                           struct structs_need *need)
{
    int code;

    if (schema->release == NULL || schema->format == NULL ||
        !uva__structs_children_are_sound(schema->n_children, schema->children))
        return EINVAL;
    code = uva_metadata_size(schema->metadata, &need->metadata);
    if (code != 0)
        return code;
    if (need->metadata <= sizeof(int32_t))
        need->metadata =
            0; /* a block without pairs counts as missing; Clauses: MD-02. */
    need->children = (size_t)schema->n_children;
    need->nodes = need->children + (schema->dictionary != NULL);
    need->format = strlen(schema->format) + 1;
    need->name = schema->name == NULL ? 0 : strlen(schema->name) + 1;
    need->size = sizeof(struct structs_block) + need->metadata + need->format +
                 need->name + need->children * sizeof(void *) +
                 need->nodes * sizeof(struct ArrowSchema);
    return 0;
}

/* Copies `size` bytes to `*at` and moves `*at` past them; NULL for 0 bytes. */
static char *structs_put(char **at, const char *bytes, size_t size)
{
    char *const here = *at;

    if (size == 0)
        return NULL;
    memcpy(here, bytes, size);
    *at += size;
    return here;
}

/* Fills `out` from a cleared block. The structs of its children stay released.
 */
static void structs_lay_out(struct structs_block *block,
                            const struct ArrowSchema *schema,
                            const struct structs_need *need,
                            struct ArrowSchema *out)
{
    struct ArrowSchema *nodes = (struct ArrowSchema *)(void *)(block + 1);
    struct ArrowSchema **children = (void *)(nodes + need->nodes);
    char *text = (char *)(children + need->children);

    *out = (struct ArrowSchema){.flags = schema->flags,
                                .n_children = schema->n_children,
                                .release = structs_release_schema,
                                .private_data = block};
    if (need->children != 0)
        out->children = children;
    for (size_t i = 0; i < need->children; i++)
        children[i] = &nodes[i];
    if (schema->dictionary != NULL)
        out->dictionary = &nodes[need->children];
    out->metadata = structs_put(&text, schema->metadata, need->metadata);
    out->format = structs_put(&text, schema->format, need->format);
    out->name = structs_put(&text, schema->name, need->name);
    assert(text == (char *)block + need->size);
}

static int structs_copy_below(struct structs_walk *walk,
                              const struct ArrowSchema *schema,
                              struct ArrowSchema *out);

/* Copies one node and all nodes below it. `out` is not written before the
 * node's own block is allocated; from then on it can be released. */
static int structs_copy_node(struct structs_walk *walk,
                             const struct ArrowSchema *schema,
                             struct ArrowSchema *out)
{
    struct structs_need need;
    struct structs_block *block;
    int code;

    if (schema == NULL || walk->depth > UVA__STRUCTS_MAX_DEPTH ||
        walk->nodes++ >= UVA__STRUCTS_MAX_NODES)
        return EINVAL;
    code = structs_measure(schema, &need);
    if (code != 0)
        return code;
    block = uva__memory_new(walk->allocator, need.size);
    if (block == NULL)
        return ENOMEM;
    block->allocator = *walk->allocator;
    block->size = need.size;
    structs_lay_out(block, schema, &need, out);
    return structs_copy_below(walk, schema, out);
}

static int structs_copy_below(struct structs_walk *walk,
                              const struct ArrowSchema *schema,
                              struct ArrowSchema *out)
{
    int code = 0;

    walk->depth++;
    for (int64_t i = 0; i < out->n_children && code == 0; i++)
        code = structs_copy_node(walk, schema->children[i], out->children[i]);
    if (code == 0 && schema->dictionary != NULL)
        code = structs_copy_node(walk, schema->dictionary, out->dictionary);
    walk->depth--;
    return code;
}

int uva__structs_copy_schema(const struct uva_allocator *allocator,
                             const struct ArrowSchema *schema,
                             struct ArrowSchema *out)
{
    struct structs_walk walk = {.allocator = allocator};
    struct ArrowSchema copy = {0};
    const int code = structs_copy_node(&walk, schema, &copy);

    if (code != 0)
        uva_schema_release(&copy);
    *out = copy;
    return code;
}

static bool text_is_like(const char *copy, const char *text)
{
    if (copy == NULL || text == NULL)
        return copy == text;
    return strcmp(copy, text) == 0;
}

static bool metadata_is_like(const char *copy, const char *block)
{
    size_t size, expected;
    int code;

    if (copy == NULL || block == NULL)
        return copy == block;
    if (uva_metadata_size(block, &size) != 0)
        return false;
    code = uva_metadata_size(copy, &expected);
    assert(code == 0);
    (void)code;
    return size == expected && memcmp(copy, block, size) == 0;
}

/* The copy is a finite tree within the limits, so a schema like it is, too. */
bool uva__structs_is_like(const struct ArrowSchema *copy,
                          const struct ArrowSchema *schema)
{
    if (schema == NULL || schema->release == NULL || schema->format == NULL ||
        schema->n_children != copy->n_children ||
        schema->flags != copy->flags ||
        (copy->n_children > 0 && schema->children == NULL) ||
        (copy->dictionary == NULL) != (schema->dictionary == NULL) ||
        strcmp(copy->format, schema->format) != 0 ||
        !text_is_like(copy->name, schema->name) ||
        !metadata_is_like(copy->metadata, schema->metadata))
        return false;
    for (int64_t i = 0; i < copy->n_children; i++)
        if (!uva__structs_is_like(copy->children[i], schema->children[i]))
            return false;
    return copy->dictionary == NULL ||
           uva__structs_is_like(copy->dictionary, schema->dictionary);
}

int uva_schema_copy(const struct ArrowSchema *schema, struct ArrowSchema *out)
{
    struct uva_allocator allocator;
    const int code = uva__memory_adopt(&(struct uva_allocator){0}, &allocator);

    assert(code == 0);
    (void)code;
    return uva__structs_copy_schema(&allocator, schema, out);
}
