/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer may move the column out of its batch, so the block of memory that
 * both are in has two references. */
#include "tck_rows.h"

#include <stdlib.h>

#include "uvarrow/tck.h"

atomic_llong tck_live;
static atomic_llong made;

struct rows {
    struct ArrowArray column;
    struct ArrowArray *children[1];
    const void *buffers[3]; /* the batch's: no nulls; then the column's */
    atomic_int holders;
    int64_t values[UVA_SUBJECT_ROWS];
};

static void rows_release(struct ArrowArray *array)
{
    struct rows *rows = array->private_data;

    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release != NULL)
            array->children[i]->release(array->children[i]);
    array->release = NULL;
    if (atomic_fetch_sub(&rows->holders, 1) > 1)
        return;
    free(rows);
    atomic_fetch_sub(&tck_live, 1);
}

int tck_batch(int64_t ordinal, struct ArrowDeviceArray *out)
{
    struct rows *rows = calloc(1, sizeof(*rows));
    struct ArrowArray array = {.length = UVA_SUBJECT_ROWS,
                               .private_data = rows,
                               .release = rows_release};

    if (rows == NULL)
        return ENOMEM;
    for (int64_t i = 0; i < UVA_SUBJECT_ROWS; i++)
        rows->values[i] = ordinal * UVA_SUBJECT_ROWS + i;
    atomic_init(&rows->holders, 2);
    rows->buffers[2] = rows->values;
    rows->column = array;
    rows->column.n_buffers = 2;
    rows->column.buffers = &rows->buffers[1];
    rows->children[0] = &rows->column;
    array.n_buffers = array.n_children = 1;
    array.buffers = rows->buffers;
    array.children = rows->children;
    uva_array_from_cpu(&array, out);
    atomic_fetch_add(&tck_live, 1);
    atomic_fetch_add(&made, 1);
    return 0;
}

/* Lets the suite look for leaks, and for batches made in vain. */
int64_t uva_subject_count(int32_t what)
{
    return atomic_load(what == UVA_SUBJECT_LIVE ? &tck_live : &made);
}
