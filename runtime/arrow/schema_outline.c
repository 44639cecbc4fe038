/* SPDX-License-Identifier: Apache-2.0 */
/* A schema is walked twice: to measure it, and to fill the block. */
#include "arrow/schema_outline.h"

#include <errno.h>
#include <string.h>

#include "arrow/structs.h"
#include "uvarrow/arrow.h"

/* ---- measuring ---------------------------------------------------------- */

static int outline_measure_node(struct uva__schema_outline *outline,
                                const struct ArrowSchema *schema, int depth)
{
    size_t metadata;
    int code = 0;

    if (schema == NULL || depth > UVA__STRUCTS_MAX_DEPTH ||
        outline->nodes++ >= UVA__STRUCTS_MAX_NODES || schema->release == NULL ||
        schema->format == NULL ||
        !uva__structs_children_are_sound(schema->n_children, schema->children))
        return EINVAL;
    if (schema->metadata != NULL)
        code = uva_metadata_size(schema->metadata, &metadata);
    outline->links += (size_t)schema->n_children;
    outline->text += strlen(schema->format) + 1;
    if (schema->name != NULL)
        outline->text += strlen(schema->name) + 1;
    for (int64_t i = 0; i < schema->n_children && code == 0; i++)
        code = outline_measure_node(outline, schema->children[i], depth + 1);
    if (code == 0 && schema->dictionary != NULL)
        code = outline_measure_node(outline, schema->dictionary, depth + 1);
    return code;
}

int uva__schema_outline_measure(struct uva__schema_outline *outline,
                                const struct ArrowSchema *schema)
{
    int code;

    *outline = (struct uva__schema_outline){0};
    code = outline_measure_node(outline, schema, 0);
    outline->nodes -= code == 0;
    return code;
}

/* ---- filling ------------------------------------------------------------ */

/* Where the rest of the block begins. */
struct outline_rest {
    struct ArrowSchema *nodes;
    struct ArrowSchema **links;
    char *text;
};

static void outline_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

/* Most texts have a few bytes. */
static const char *outline_put(struct outline_rest *rest, const char *text)
{
    const char *const here = rest->text;

    while ((*rest->text++ = *text++) != '\0')
        ;
    return here;
}

static void outline_fill_node(struct outline_rest *rest,
                              const struct ArrowSchema *schema,
                              struct ArrowSchema *out)
{
    const int64_t count = schema->n_children;
    struct ArrowSchema **const children = rest->links;

    *out = (struct ArrowSchema){.flags = schema->flags,
                                .n_children = count,
                                .release = outline_release};
    out->format = outline_put(rest, schema->format);
    if (schema->name != NULL)
        out->name = outline_put(rest, schema->name);
    if (count > 0)
        out->children = children;
    rest->links += count;
    for (int64_t i = 0; i < count; i++) {
        children[i] = rest->nodes++;
        outline_fill_node(rest, schema->children[i], children[i]);
    }
    if (schema->dictionary == NULL)
        return;
    out->dictionary = rest->nodes++;
    outline_fill_node(rest, schema->dictionary, out->dictionary);
}

void uva__schema_outline_fill(const struct uva__schema_outline *outline,
                              const struct ArrowSchema *schema, void *block,
                              struct ArrowSchema *out)
{
    struct outline_rest rest = {.nodes = block};

    rest.links = (void *)(rest.nodes + outline->nodes);
    rest.text = (void *)(rest.links + outline->links);
    outline_fill_node(&rest, schema, out);
}
