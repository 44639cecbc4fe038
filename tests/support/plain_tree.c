/* SPDX-License-Identifier: Apache-2.0 */
/* Every vector and every child struct is a separate block, so that a sanitizer
 * detects each use after a free. */
#include "support/plain_tree.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_int plain_nodes;

static void *plain_new(size_t size)
{
    void *block = calloc(1, size + (size == 0));

    if (block == NULL)
        abort();
    return block;
}

static void plain_schema_release(struct ArrowSchema *schema)
{
    const int made = *(int *)schema->private_data;

    for (int i = 0; i < made; i++) {
        struct ArrowSchema *child = schema->children[i];
        if (child != NULL && child->release != NULL)
            child->release(child);
        free(child);
    }
    if (schema->dictionary != NULL && schema->dictionary->release != NULL)
        schema->dictionary->release(schema->dictionary);
    free(schema->dictionary);
    free(schema->children);
    free(schema->private_data);
    memset(schema, 0xDD, sizeof(*schema));
    schema->release = NULL;
    atomic_fetch_sub(&plain_nodes, 1);
}

void plain_schema(struct ArrowSchema *out, const char *format, const char *name,
                  int n_children)
{
    *out = (struct ArrowSchema){.format = format,
                                .name = name,
                                .n_children = n_children,
                                .release = plain_schema_release};
    out->private_data = plain_new(sizeof(int));
    *(int *)out->private_data = n_children;
    if (n_children > 0)
        out->children = plain_new((size_t)n_children * sizeof(void *));
    for (int i = 0; i < n_children; i++)
        out->children[i] = plain_new(sizeof(struct ArrowSchema));
    atomic_fetch_add(&plain_nodes, 1);
}

struct ArrowSchema *plain_schema_dictionary(struct ArrowSchema *schema)
{
    schema->dictionary = plain_new(sizeof(struct ArrowSchema));
    return schema->dictionary;
}

static void plain_array_release(struct ArrowArray *array)
{
    const int made = *(int *)array->private_data;

    for (int i = 0; i < made; i++) {
        struct ArrowArray *child = array->children[i];
        if (child != NULL && child->release != NULL)
            child->release(child);
        free(child);
    }
    if (array->dictionary != NULL && array->dictionary->release != NULL)
        array->dictionary->release(array->dictionary);
    free(array->dictionary);
    free(array->children);
    free((void *)array->buffers);
    free(array->private_data);
    memset(array, 0xDD, sizeof(*array));
    array->release = NULL;
    atomic_fetch_sub(&plain_nodes, 1);
}

void plain_array(struct ArrowArray *out, int64_t length, int n_buffers,
                 int n_children)
{
    *out = (struct ArrowArray){.length = length,
                               .n_buffers = n_buffers,
                               .n_children = n_children,
                               .release = plain_array_release};
    out->private_data = plain_new(sizeof(int));
    *(int *)out->private_data = n_children;
    out->buffers = plain_new((size_t)n_buffers * sizeof(void *));
    if (n_children > 0)
        out->children = plain_new((size_t)n_children * sizeof(void *));
    for (int i = 0; i < n_children; i++)
        out->children[i] = plain_new(sizeof(struct ArrowArray));
    atomic_fetch_add(&plain_nodes, 1);
}

struct ArrowArray *plain_array_dictionary(struct ArrowArray *array)
{
    array->dictionary = plain_new(sizeof(struct ArrowArray));
    return array->dictionary;
}

int plain_live(void)
{
    return atomic_load(&plain_nodes);
}
