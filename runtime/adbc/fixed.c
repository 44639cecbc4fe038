/* SPDX-License-Identifier: Apache-2.0 */
/* Streams without a driver. The schema and the batch are moved out, as a source
 * reads each of them once. */
#include "adbc/fixed.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct fixed {
    struct ArrowSchema schema; /* owns */
    struct ArrowArray array;   /* owns; released: no batch */
};

static int fixed_get_schema(struct ArrowArrayStream *self,
                            struct ArrowSchema *out)
{
    struct fixed *f = self->private_data;

    *out = f->schema;
    f->schema.release = NULL;
    return 0;
}

static int fixed_get_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    struct fixed *f = self->private_data;

    *out = f->array;
    f->array.release = NULL;
    return 0;
}

static const char *fixed_get_last_error(struct ArrowArrayStream *self)
{
    (void)self;
    return NULL;
}

static void fixed_release(struct ArrowArrayStream *self)
{
    struct fixed *f = self->private_data;

    if (f->schema.release != NULL)
        f->schema.release(&f->schema);
    if (f->array.release != NULL)
        f->array.release(&f->array);
    free(f);
    self->release = NULL;
}

int uva__fixed_new(struct ArrowSchema *schema, struct ArrowArray *array,
                   struct ArrowArrayStream *out)
{
    struct fixed *f = calloc(1, sizeof(*f));

    if (f == NULL) {
        schema->release(schema);
        if (array != NULL)
            array->release(array);
        return ENOMEM;
    }
    f->schema = *schema;
    if (array != NULL)
        f->array = *array;
    *out = (struct ArrowArrayStream){.get_schema = fixed_get_schema,
                                     .get_next = fixed_get_next,
                                     .get_last_error = fixed_get_last_error,
                                     .release = fixed_release,
                                     .private_data = f};
    return 0;
}

/* ---- an empty result ---------------------------------------------------- */

static void schema_on_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static int nothing_get_schema(struct ArrowArrayStream *self,
                              struct ArrowSchema *out)
{
    (void)self;
    *out = (struct ArrowSchema){
        .format = "+s", .name = "", .release = schema_on_release};
    return 0;
}

static int nothing_get_next(struct ArrowArrayStream *self,
                            struct ArrowArray *out)
{
    (void)self;
    out->release = NULL;
    return 0;
}

static void nothing_on_release(struct ArrowArrayStream *self)
{
    self->release = NULL;
}

void uva__fixed_nothing(struct ArrowArrayStream *out)
{
    *out = (struct ArrowArrayStream){.get_schema = nothing_get_schema,
                                     .get_next = nothing_get_next,
                                     .get_last_error = fixed_get_last_error,
                                     .release = nothing_on_release};
}

/* ---- a column of binary ------------------------------------------------- */

/* A schema, in one block. */
struct binary_schema {
    struct ArrowSchema child, *children[1];
};

/* An array, in one block; its data is after the offsets. */
struct binary_array {
    struct ArrowArray child, *children[1];
    const void *buffers[1], *child_buffers[3];
    int32_t offsets[];
};

static void schema_on_free(struct ArrowSchema *schema)
{
    free(schema->private_data);
    schema->release = NULL;
}

static void array_on_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static void array_on_free(struct ArrowArray *array)
{
    if (array->children[0]->release != NULL)
        array->children[0]->release(array->children[0]);
    free(array->private_data);
    array->release = NULL;
}

static void binary_fill_schema(struct binary_schema *s, const char *name,
                               struct ArrowSchema *out)
{
    s->child = (struct ArrowSchema){
        .format = "z", .name = name, .release = schema_on_release};
    s->children[0] = &s->child;
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = 1,
                                .children = s->children,
                                .release = schema_on_free,
                                .private_data = s};
}

static void binary_fill_array(struct binary_array *a,
                              const uint8_t *const *texts, const size_t *sizes,
                              size_t count, struct ArrowArray *out)
{
    char *data = (char *)&a->offsets[count + 1];
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        a->offsets[i] = (int32_t)used;
        if (sizes[i] > 0)
            memcpy(data + used, texts[i], sizes[i]);
        used += sizes[i];
    }
    a->offsets[count] = (int32_t)used;
    a->child_buffers[1] = a->offsets;
    a->child_buffers[2] = data;
    a->child = (struct ArrowArray){.length = (int64_t)count,
                                   .n_buffers = 3,
                                   .buffers = a->child_buffers,
                                   .release = array_on_release};
    a->children[0] = &a->child;
    *out = (struct ArrowArray){.length = (int64_t)count,
                               .n_buffers = 1,
                               .n_children = 1,
                               .buffers = a->buffers,
                               .children = a->children,
                               .release = array_on_free,
                               .private_data = a};
}

/* False if the sum is too large for the offsets. */
static bool sizes_sum(const size_t *sizes, size_t count, size_t *out)
{
    size_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        if (sizes[i] > INT32_MAX - sum)
            return false;
        sum += sizes[i];
    }
    *out = sum;
    return count < INT32_MAX;
}

int uva__fixed_binary(const char *name, const uint8_t *const *texts,
                      const size_t *sizes, size_t count,
                      struct ArrowSchema *schema, struct ArrowArray *array)
{
    struct binary_schema *s;
    struct binary_array *a;
    size_t sum;

    if (!sizes_sum(sizes, count, &sum))
        return EOVERFLOW;
    s = calloc(1, sizeof(*s));
    a = calloc(1, sizeof(*a) + (count + 1) * sizeof(int32_t) + sum + 1);
    if (s == NULL || a == NULL) {
        free(s);
        free(a);
        return ENOMEM;
    }
    binary_fill_schema(s, name, schema);
    binary_fill_array(a, texts, sizes, count, array);
    return 0;
}
