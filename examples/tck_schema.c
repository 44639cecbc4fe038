/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of a subject: one block, with the column in it. */
#include <stdlib.h>

#include "tck_rows.h"

struct heading {
    struct ArrowSchema column;
    struct ArrowSchema *children[1];
};

static void heading_release(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++)
        if (schema->children[i]->release != NULL)
            schema->children[i]->release(schema->children[i]);
    atomic_fetch_sub(&tck_live, schema->n_children); /* the column's are 0 */
    free(schema->private_data);                      /* and NULL */
    schema->release = NULL;
}

int tck_schema(struct ArrowSchema *out)
{
    struct heading *heading = calloc(1, sizeof(*heading));

    if (heading == NULL)
        return ENOMEM;
    heading->children[0] = &heading->column;
    heading->column = (struct ArrowSchema){
        .format = "l", .name = "n", .release = heading_release};
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = 1,
                                .children = heading->children,
                                .private_data = heading,
                                .release = heading_release};
    atomic_fetch_add(&tck_live, 1);
    return 0;
}
