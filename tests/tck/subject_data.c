/* SPDX-License-Identifier: Apache-2.0 */
/* One block for each schema and each batch, freed with its last part, because
 * children may be moved out. */
#include "tck/subject_data.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct own_schema {
    struct subject_books *books;
    atomic_int parts;
    struct ArrowSchema *children[1];
    struct ArrowSchema n;
};

struct own_batch {
    struct subject_books *books;
    atomic_int parts;
    struct ArrowArray *children[1];
    struct ArrowArray n;
    const void *no_buffers[1];
    const void *buffers[2];
    int64_t values[UVA_SUBJECT_ROWS];
};

static void own_schema_release(struct ArrowSchema *schema)
{
    struct own_schema *own = schema->private_data;

    schema->release = NULL;
    if (schema->n_children > 0 && own->n.release != NULL)
        own->n.release(&own->n);
    if (atomic_fetch_sub(&own->parts, 1) > 1)
        return;
    atomic_fetch_sub(&own->books->live, 1);
    free(own);
}

void subject_schema(struct subject_books *books, struct ArrowSchema *out)
{
    struct own_schema *own = calloc(1, sizeof(*own));

    assert(own != NULL);
    own->books = books;
    atomic_init(&own->parts, 2);
    own->n = (struct ArrowSchema){.format = "l",
                                  .name = "n",
                                  .release = own_schema_release,
                                  .private_data = own};
    own->children[0] = &own->n;
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = 1,
                                .children = own->children,
                                .release = own_schema_release,
                                .private_data = own};
    atomic_fetch_add(&books->live, 1);
}

static void own_batch_release(struct ArrowArray *array)
{
    struct own_batch *own = array->private_data;

    array->release = NULL;
    if (array->n_children > 0 && own->n.release != NULL)
        own->n.release(&own->n);
    if (atomic_fetch_sub(&own->parts, 1) > 1)
        return;
    atomic_fetch_sub(&own->books->live, 1);
    free(own);
}

void subject_batch(struct subject_books *books, int64_t ordinal,
                   struct ArrowDeviceArray *out)
{
    struct own_batch *own = calloc(1, sizeof(*own));

    assert(own != NULL);
    own->books = books;
    atomic_init(&own->parts, 2);
    for (int64_t row = 0; row < UVA_SUBJECT_ROWS; row++)
        own->values[row] = ordinal * UVA_SUBJECT_ROWS + row;
    own->buffers[1] = own->values;
    own->n = (struct ArrowArray){.length = UVA_SUBJECT_ROWS,
                                 .n_buffers = 2,
                                 .buffers = own->buffers,
                                 .release = own_batch_release,
                                 .private_data = own};
    own->children[0] = &own->n;
    memset(out, 0, sizeof(*out));
    out->array = (struct ArrowArray){.length = UVA_SUBJECT_ROWS,
                                     .n_buffers = 1,
                                     .buffers = own->no_buffers,
                                     .n_children = 1,
                                     .children = own->children,
                                     .release = own_batch_release,
                                     .private_data = own};
    out->device_id = -1;
    out->device_type = ARROW_DEVICE_CPU;
    atomic_fetch_add(&books->live, 1);
    atomic_fetch_add(&books->made, 1);
}

const char *subject_tag(char *to, const char *value, size_t size)
{
    const int32_t numbers[] = {1, 3};
    const int32_t length = (int32_t)size;

    memcpy(to, numbers, sizeof(numbers));
    memcpy(to + 8, "tck", 3);
    memcpy(to + 11, &length, sizeof(length));
    memcpy(to + 15, value, size);
    return to;
}

const char *subject_number(char *to, int64_t ordinal)
{
    char number[24];

    (void)snprintf(number, sizeof(number), "%" PRId64, ordinal);
    return subject_tag(to, number, strlen(number));
}
