/* SPDX-License-Identifier: Apache-2.0 */
/* The two tables, for schemas and for arrays. A digest changes when the
 * receiver has changed the producer's part. */
#include "check/arrow_node.h"

#include <stddef.h>
#include <string.h>

#include "arrow/structs.h"
#include "uvarrow/arrow.h"

/* ---- digests ------------------------------------------------------------ */

static uint64_t arrow_node_mix(uint64_t digest, uint64_t value)
{
    return (digest ^ value) * UINT64_C(0x100000001B3);
}

static uint64_t arrow_node_mix_pointer(uint64_t digest, const void *pointer)
{
    return arrow_node_mix(digest, (uint64_t)(uintptr_t)pointer);
}

static uint64_t arrow_node_mix_bytes(uint64_t digest, const char *bytes,
                                     size_t size)
{
    digest = arrow_node_mix_pointer(digest, bytes);
    for (size_t i = 0; i < size; i++)
        digest = arrow_node_mix(digest, (unsigned char)bytes[i]);
    return digest;
}

static uint64_t arrow_node_mix_text(uint64_t digest, const char *text)
{
    return arrow_node_mix_bytes(digest, text, text == NULL ? 0 : strlen(text));
}

/* ---- arrays ------------------------------------------------------------- */

static struct uva__arrow_node_view arrow_node_inspect_array(const void *node)
{
    const struct ArrowArray *array = node;
    struct uva__arrow_node_view view = {.release =
                                            (uva__arrow_node_fn)array->release,
                                        .private_data = array->private_data,
                                        .dictionary = array->dictionary};

    if (uva__structs_children_are_sound(array->n_children, array->children))
        view.n_children = array->n_children;
    return view;
}

static void *arrow_node_child_of_array(const void *node, int64_t i)
{
    return ((const struct ArrowArray *)node)->children[i];
}

static void arrow_node_call_array(void *node, uva__arrow_node_fn release)
{
    ((void (*)(struct ArrowArray *))release)(node);
}

static uint64_t arrow_node_digest_array(const void *node)
{
    const struct ArrowArray *array = node;
    const int64_t n_children =
        uva__structs_children_are_sound(array->n_children, array->children)
            ? array->n_children
            : 0;
    uint64_t digest = (uint64_t)array->n_buffers;

    digest = arrow_node_mix_pointer(digest, array->buffers);
    if (array->buffers != NULL && array->n_buffers <= UVA__STRUCTS_MAX_NODES)
        for (int64_t i = 0; i < array->n_buffers; i++)
            digest = arrow_node_mix_pointer(digest, array->buffers[i]);
    digest = arrow_node_mix(digest, (uint64_t)array->n_children);
    digest = arrow_node_mix_pointer(digest, array->children);
    for (int64_t i = 0; i < n_children; i++)
        digest = arrow_node_mix_pointer(digest, array->children[i]);
    return arrow_node_mix_pointer(digest, array->dictionary);
}

const struct uva__arrow_node_ops UVA__ARROW_NODE_ARRAY = {
    .release_at = offsetof(struct ArrowArray, release),
    .private_data_at = offsetof(struct ArrowArray, private_data),
    .inspect = arrow_node_inspect_array,
    .child = arrow_node_child_of_array,
    .call = arrow_node_call_array,
    .digest = arrow_node_digest_array};

/* ---- schemas ------------------------------------------------------------ */

static struct uva__arrow_node_view arrow_node_inspect_schema(const void *node)
{
    const struct ArrowSchema *schema = node;
    struct uva__arrow_node_view view = {.release =
                                            (uva__arrow_node_fn)schema->release,
                                        .private_data = schema->private_data,
                                        .dictionary = schema->dictionary};

    if (uva__structs_children_are_sound(schema->n_children, schema->children))
        view.n_children = schema->n_children;
    return view;
}

static void *arrow_node_child_of_schema(const void *node, int64_t i)
{
    return ((const struct ArrowSchema *)node)->children[i];
}

static void arrow_node_call_schema(void *node, uva__arrow_node_fn release)
{
    ((void (*)(struct ArrowSchema *))release)(node);
}

static uint64_t arrow_node_digest_schema(const void *node)
{
    const struct ArrowSchema *schema = node;
    const int64_t n_children =
        uva__structs_children_are_sound(schema->n_children, schema->children)
            ? schema->n_children
            : 0;
    uint64_t digest =
        arrow_node_mix_text((uint64_t)schema->flags, schema->format);
    size_t size = 0;

    digest = arrow_node_mix_text(digest, schema->name);
    (void)!uva_metadata_size(schema->metadata, &size); /* 0 if malformed */
    digest = arrow_node_mix_bytes(digest, schema->metadata, size);
    digest = arrow_node_mix(digest, (uint64_t)schema->n_children);
    digest = arrow_node_mix_pointer(digest, schema->children);
    for (int64_t i = 0; i < n_children; i++)
        digest = arrow_node_mix_pointer(digest, schema->children[i]);
    return arrow_node_mix_pointer(digest, schema->dictionary);
}

const struct uva__arrow_node_ops UVA__ARROW_NODE_SCHEMA = {
    .release_at = offsetof(struct ArrowSchema, release),
    .private_data_at = offsetof(struct ArrowSchema, private_data),
    .inspect = arrow_node_inspect_schema,
    .child = arrow_node_child_of_schema,
    .call = arrow_node_call_schema,
    .digest = arrow_node_digest_schema};
