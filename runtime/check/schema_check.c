/* SPDX-License-Identifier: Apache-2.0 */
/* One walk down a schema. Where a clause is about arrays and a schema can have
 * the same fault, it counts for both. */
#include "check/schema_check.h"

#include <inttypes.h>
#include <string.h>

#include "arrow/format.h"
#include "arrow/structs.h"
#include "uvarrow/arrow.h"

/* ---- metadata ----------------------------------------------------------- */

static void schema_check_metadata(struct uva__tree_walk *walk,
                                  const char *block)
{
    size_t size;
    const int code = uva_metadata_size(block, &size);

    if (code == EMSGSIZE)
        uva__tree_walk_breach(walk, "MD-09",
                              "the schema's metadata is larger than is sane");
    else if (code != 0)
        uva__tree_walk_breach(walk, "MD-05",
                              "the schema's metadata has a negative number");
    else if (size == sizeof(int32_t))
        uva__tree_walk_breach(walk, "MD-02",
                              "the schema's metadata is a block of no pairs");
}

/* ---- one node ----------------------------------------------------------- */

/* Checks the format against the children; `sound`: their number is possible. */
static void schema_check_format(struct uva__tree_walk *walk,
                                const struct ArrowSchema *schema, bool sound)
{
    const char *format = schema->format == NULL ? "NULL" : schema->format;
    struct uva__layout layout;
    const int code = uva__format_read(schema->format, &layout);

    if (code == ENOTSUP) {
        uva__tree_walk_remark(walk, "DA-20", UVA_SEVERITY_NOTE,
                              "format '%.64s' is unknown, and not checked",
                              format);
        return;
    }
    if (code != 0) {
        uva__tree_walk_breach(walk, "DA-20", "format '%.64s' is malformed",
                              format);
        return;
    }
    if (sound && layout.n_children >= 0 &&
        layout.n_children != schema->n_children)
        uva__tree_walk_breach(walk, "DA-20",
                              "%" PRId64 " children; format '%.64s' has %d",
                              schema->n_children, format, layout.n_children);
    if (schema->dictionary != NULL && !layout.index)
        uva__tree_walk_breach(walk, "DA-26",
                              "format '%.64s' indexes no dictionary", format);
}

static void schema_check_node(struct uva__tree_walk *walk,
                              const struct ArrowSchema *schema);

/* Checks a child or, with index -1, the dictionary. */
static void schema_check_below(struct uva__tree_walk *walk, int64_t index,
                               const struct ArrowSchema *child)
{
    if (!uva__tree_walk_enter(walk, index))
        return;
    if (child == NULL || child->release == NULL)
        uva__tree_walk_breach(walk, index < 0 ? "DA-26" : "DA-25",
                              "the schema is %s",
                              child == NULL ? "NULL" : "released");
    else
        schema_check_node(walk, child);
    uva__tree_walk_leave(walk);
}

static void schema_check_node(struct uva__tree_walk *walk,
                              const struct ArrowSchema *schema)
{
    const bool sound =
        uva__structs_children_are_sound(schema->n_children, schema->children);

    schema_check_format(walk, schema, sound);
    schema_check_metadata(walk, schema->metadata);
    if (schema->dictionary != NULL)
        schema_check_below(walk, -1, schema->dictionary);
    if (!sound) {
        uva__tree_walk_breach(walk, "DA-25",
                              "the schema cannot have %" PRId64 " children",
                              schema->n_children);
        return;
    }
    for (int64_t i = 0; i < schema->n_children; i++)
        schema_check_below(walk, i, schema->children[i]);
}

void uva__schema_check(struct uva__tree_walk *walk,
                       const struct ArrowSchema *schema)
{
    uva__tree_walk_begin(walk);
    schema_check_node(walk, schema);
}

/* ---- comparison --------------------------------------------------------- */

/* NULL and "" are equal names. */
static bool schema_equals_text(const char *a, const char *b)
{
    return strcmp(a == NULL ? "" : a, b == NULL ? "" : b) == 0;
}

static bool schema_equals_metadata(const char *a, const char *b)
{
    size_t a_size, b_size;

    if (uva_metadata_size(a, &a_size) != 0 ||
        uva_metadata_size(b, &b_size) != 0)
        return false;
    if (a_size <= sizeof(int32_t) || b_size <= sizeof(int32_t))
        return (a_size <= sizeof(int32_t)) == (b_size <= sizeof(int32_t));
    return a_size == b_size && memcmp(a, b, a_size) == 0;
}

static bool schema_equals_node(const struct ArrowSchema *a,
                               const struct ArrowSchema *b, int depth);

static bool schema_equals_below(const struct ArrowSchema *a,
                                const struct ArrowSchema *b, int depth)
{
    if (a == NULL || b == NULL)
        return a == b;
    if (a->release == NULL || b->release == NULL)
        return false;
    return schema_equals_node(a, b, depth);
}

static bool schema_equals_children(const struct ArrowSchema *a,
                                   const struct ArrowSchema *b, int depth)
{
    if (a->n_children != b->n_children ||
        !uva__structs_children_are_sound(a->n_children, a->children) ||
        !uva__structs_children_are_sound(b->n_children, b->children))
        return false;
    for (int64_t i = 0; i < a->n_children; i++)
        if (!schema_equals_below(a->children[i], b->children[i], depth + 1))
            return false;
    return schema_equals_below(a->dictionary, b->dictionary, depth + 1);
}

static bool schema_equals_node(const struct ArrowSchema *a,
                               const struct ArrowSchema *b, int depth)
{
    return depth <= UVA__STRUCTS_MAX_DEPTH && a->flags == b->flags &&
           schema_equals_text(a->format, b->format) &&
           schema_equals_text(a->name, b->name) &&
           schema_equals_metadata(a->metadata, b->metadata) &&
           schema_equals_children(a, b, depth);
}

bool uva__schema_equals(const struct ArrowSchema *a,
                        const struct ArrowSchema *b)
{
    return schema_equals_node(a, b, 0);
}
