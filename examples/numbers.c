/* SPDX-License-Identifier: Apache-2.0 */
/* A batch is a struct array with one child per column; here both lie in one
 * block of memory. The child may be moved out and outlive its parent, so the
 * block has two references, and dropping the last one frees it. */
#include "numbers.h"

#include <stdatomic.h>
#include <stdlib.h>

/* ---- the schema --------------------------------------------------------- */

struct heading {
    struct ArrowSchema child;
    struct ArrowSchema *children[1]; /* points to `child` */
    atomic_int holders;
    char name[];
};

static void heading_release_child(struct ArrowSchema *schema)
{
    struct heading *heading = schema->private_data;

    schema->release = NULL;
    if (atomic_fetch_sub(&heading->holders, 1) == 1)
        free(heading);
}

static void heading_release(struct ArrowSchema *schema)
{
    struct heading *heading = schema->private_data;

    uva_schema_release(&heading->child);
    heading_release_child(schema);
}

int numbers_schema(const char *name, struct ArrowSchema *out)
{
    struct heading *heading = calloc(1, sizeof(*heading) + strlen(name) + 1);

    if (heading == NULL)
        return ENOMEM;
    memcpy(heading->name, name, strlen(name) + 1);
    atomic_init(&heading->holders, 2);
    heading->children[0] = &heading->child;
    heading->child = (struct ArrowSchema){.format = "g", /* float64 */
                                          .name = heading->name,
                                          .release = heading_release_child,
                                          .private_data = heading};
    *out = (struct ArrowSchema){.format = "+s", /* struct */
                                .name = "",
                                .n_children = 1,
                                .children = heading->children,
                                .release = heading_release,
                                .private_data = heading};
    return 0;
}

/* ---- the data ----------------------------------------------------------- */

struct numbers {
    struct ArrowArray child;
    struct ArrowArray *children[1]; /* points to `child` */
    const void *struct_buffers[1];  /* NULL: no row is null */
    const void *child_buffers[2];   /* NULL: no value is null; then `values` */
    atomic_int holders;
    double values[];
};

static void numbers_release_child(struct ArrowArray *array)
{
    struct numbers *numbers = array->private_data;

    array->release = NULL;
    if (atomic_fetch_sub(&numbers->holders, 1) == 1)
        free(numbers);
}

static void numbers_release(struct ArrowArray *array)
{
    struct numbers *numbers = array->private_data;

    if (numbers->child.release != NULL)
        numbers->child.release(&numbers->child);
    numbers_release_child(array);
}

double *numbers_new(int64_t length, struct ArrowDeviceArray *out)
{
    struct numbers *numbers =
        calloc(1, sizeof(*numbers) + (size_t)length * sizeof(double));
    struct ArrowArray plain;

    if (numbers == NULL)
        return NULL;
    atomic_init(&numbers->holders, 2);
    numbers->children[0] = &numbers->child;
    numbers->child_buffers[1] = numbers->values;
    numbers->child = (struct ArrowArray){.length = length,
                                         .n_buffers = 2,
                                         .buffers = numbers->child_buffers,
                                         .release = numbers_release_child,
                                         .private_data = numbers};
    plain = (struct ArrowArray){.length = length,
                                .n_buffers = 1,
                                .n_children = 1,
                                .buffers = numbers->struct_buffers,
                                .children = numbers->children,
                                .release = numbers_release,
                                .private_data = numbers};
    uva_array_from_cpu(&plain, out);
    return numbers->values;
}

void numbers_cut(struct ArrowDeviceArray *numbers, int64_t length)
{
    numbers->array.length = length;
    numbers->array.children[0]->length = length;
}

const double *numbers_of(const struct ArrowDeviceArray *numbers)
{
    const struct ArrowArray *column = numbers->array.children[0];

    return (const double *)column->buffers[1] + numbers->array.offset +
           column->offset;
}
