/* SPDX-License-Identifier: Apache-2.0 */
/* A map with the cast of uva_stream_cast(), whose target is made of the schema
 * when that comes. The target is first drawn up as a tree that borrows names
 * and metadata, and then copied. */
#include "plain_types.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/cast.h"
#include "base/memory.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

static const struct {
    const char *from, *to;
} FORMATS[] = {{"vu", "u"}, {"vz", "z"}, {"+vl", "+l"}, {"+vL", "+L"}};

static const char *format_plain(const char *format)
{
    for (size_t i = 0; i < sizeof(FORMATS) / sizeof(*FORMATS); i++)
        if (strcmp(FORMATS[i].from, format) == 0)
            return FORMATS[i].to;
    return format;
}

static bool is_run_ends(const struct ArrowSchema *schema)
{
    return strcmp(schema->format, "+r") == 0 && schema->n_children == 2;
}

/* ---- the target ---------------------------------------------------------- */

static void target_free(struct ArrowSchema *target)
{
    for (int64_t i = 0; i < target->n_children && target->children != NULL;
         i++) {
        if (target->children[i] != NULL)
            target_free(target->children[i]);
        free(target->children[i]);
    }
    free(target->children);
    target->children = NULL;
}

static bool schema_is_plain(const struct ArrowSchema *schema)
{
    if (format_plain(schema->format) != schema->format || is_run_ends(schema))
        return false;
    for (int64_t i = 0; i < schema->n_children; i++)
        if (!schema_is_plain(schema->children[i]))
            return false;
    return schema->dictionary == NULL || schema_is_plain(schema->dictionary);
}

/* Gives the node that has the values of runs, or of a dictionary that is not
 * plain, under the name of the column. */
static struct ArrowSchema node_of(const struct ArrowSchema *in)
{
    struct ArrowSchema node = *in;

    while (is_run_ends(&node) ||
           (node.dictionary != NULL && !schema_is_plain(node.dictionary))) {
        node = is_run_ends(&node) ? *node.children[1] : *node.dictionary;
        node.name = in->name;
        node.flags = in->flags & ~ARROW_FLAG_DICTIONARY_ORDERED;
        node.metadata = in->metadata;
    }
    if (in->dictionary == NULL && is_run_ends(in))
        node.flags |= ARROW_FLAG_NULLABLE; /* a run has no nulls of its own */
    return node;
}

/* Draws up the target; to be freed, also after a failure. */
static int target_make(const struct ArrowSchema *in, struct ArrowSchema *target)
{
    const struct ArrowSchema node = node_of(in);
    int code = 0;

    *target = node;
    target->format = format_plain(node.format);
    target->children = calloc((size_t)node.n_children + 1, sizeof(void *));
    if (target->children == NULL)
        return ENOMEM;
    for (int64_t i = 0; i < node.n_children && code == 0; i++) {
        target->children[i] = calloc(1, sizeof(*target));
        code = target->children[i] != NULL
                   ? target_make(node.children[i], target->children[i])
                   : ENOMEM;
    }
    return code;
}

/* ---- the map ------------------------------------------------------------- */

static int plain_schema(void *ctx, const struct ArrowSchema *in,
                        struct ArrowSchema *out, struct uva_error *error)
{
    const struct uva_allocator zeroes = {0};
    struct uva__cast **cast = ctx;
    struct uva_allocator allocator;
    struct ArrowSchema target;
    int code = target_make(in, &target);

    if (code == 0)
        code = uva_schema_copy(&target, out);
    target_free(&target);
    if (code == 0)
        code = uva__memory_adopt(&zeroes, &allocator);
    return code == 0 ? uva__cast_new(&allocator, in, out, cast, error) : code;
}

static int plain_batch(void *ctx, struct uva_batch *in,
                       struct ArrowDeviceArray *out, struct uva_error *error)
{
    struct uva__cast **cast = ctx;

    return uva__cast_array(*cast, &in->data, out, error);
}

static void plain_free(void *ctx)
{
    struct uva__cast **cast = ctx;

    uva__cast_free(*cast);
    free(cast);
}

int uva__plain_types(struct uva_stream *stream)
{
    struct uva__cast **cast = calloc(1, sizeof(*cast));

    if (cast == NULL)
        return ENOMEM;
    return uva_stream_map(stream, &(struct uva_map){.batch = plain_batch,
                                                    .schema = plain_schema,
                                                    .free_ctx = plain_free,
                                                    .ctx = cast});
}
