/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  the schema arrives on the loop thread; then every batch, on one
 *              worker at a time or on several; the output arrays are freed by
 *              the thread that has written them.
 * What can fail: a type that CSV cannot hold (ENOTSUP, before the first batch),
 *              an array that does not fit its schema (EINVAL), memory.
 * On cancel and close: free_ctx is called after the last batch. */
#include "lines.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "csv.h"
#include "uvarrow/arrow.h"

/* State of the stage. */
struct stage {
    struct ArrowSchema schema; /* owns: a copy, which csv borrows */
    struct uva__csv csv;       /* how to write a row */
    atomic_size_t bytes_hint;  /* size of the largest text so far */
};

/* The output schema, in one allocation. */
struct shape {
    struct ArrowSchema columns[2];   /* released with the root */
    struct ArrowSchema *children[2]; /* points to the two above */
    struct uva__text header;         /* owns; ended by a NUL */
};

/* One output array, in one allocation. */
struct page {
    struct uva__text text;          /* owns */
    int64_t offsets[2];             /* offsets of the one value in text */
    int64_t rows;                   /* value of the other column */
    const void *no_buffers[1];      /* buffers of the root: no bitmap */
    const void *text_buffers[3];    /* bitmap, offsets, data */
    const void *rows_buffers[2];    /* bitmap, data */
    struct ArrowArray columns[2];   /* released with the root */
    struct ArrowArray *children[2]; /* points to the two above */
};

/* ---- the schema --------------------------------------------------------- */

static void column_schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void shape_release(struct ArrowSchema *schema)
{
    struct shape *shape = schema->private_data;
    size_t i;

    assert(schema->release == shape_release);
    for (i = 0; i < 2; i++)
        uva_schema_release(&shape->columns[i]);
    uva__text_fini(&shape->header);
    free(shape);
    schema->release = NULL;
}

/* Gives `out`; takes `shape`. */
static void shape_give(struct shape *shape, struct ArrowSchema *out)
{
    shape->columns[0] = (struct ArrowSchema){.format = "Z",
                                             .name = shape->header.data,
                                             .release = column_schema_release};
    shape->columns[1] = (struct ArrowSchema){
        .format = "l", .name = "rows", .release = column_schema_release};
    shape->children[0] = &shape->columns[0];
    shape->children[1] = &shape->columns[1];
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = 2,
                                .children = shape->children,
                                .release = shape_release,
                                .private_data = shape};
}

static int stage_schema(void *ctx, const struct ArrowSchema *in,
                        struct ArrowSchema *out, struct uva_error *error)
{
    struct stage *stage = ctx;
    struct shape *shape;
    int code;

    assert(stage->schema.release == NULL); /* called once only */
    code = uva_schema_copy(in, &stage->schema);
    if (code == 0)
        code = uva__csv_init(&stage->csv, &stage->schema, error);
    if (code != 0)
        return code;
    shape = calloc(1, sizeof(*shape));
    if (shape == NULL)
        return uva_error_set(error, ENOMEM, "out of memory for the header");
    code = uva__csv_put_header(&stage->csv, &shape->header);
    uva__text_put_char(&shape->header, '\0');
    if (code != 0 || shape->header.failed) {
        uva__text_fini(&shape->header);
        free(shape);
        return uva_error_set(error, ENOMEM, "out of memory for the header");
    }
    shape_give(shape, out);
    return 0;
}

/* ---- a batch ------------------------------------------------------------ */

static void column_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static void page_release(struct ArrowArray *array)
{
    struct page *page = array->private_data;
    size_t i;

    assert(array->release == page_release);
    for (i = 0; i < 2; i++)
        if (page->columns[i].release != NULL)
            page->columns[i].release(&page->columns[i]);
    uva__text_fini(&page->text);
    free(page);
    array->release = NULL;
}

/* Gives `out`; takes `page`. */
static void page_give(struct page *page, struct ArrowArray *out)
{
    page->offsets[1] = (int64_t)page->text.size;
    page->text_buffers[1] = page->offsets;
    page->text_buffers[2] = page->text.data;
    page->rows_buffers[1] = &page->rows;
    page->columns[0] = (struct ArrowArray){.length = 1,
                                           .n_buffers = 3,
                                           .buffers = page->text_buffers,
                                           .release = column_release};
    page->columns[1] = (struct ArrowArray){.length = 1,
                                           .n_buffers = 2,
                                           .buffers = page->rows_buffers,
                                           .release = column_release};
    page->children[0] = &page->columns[0];
    page->children[1] = &page->columns[1];
    *out = (struct ArrowArray){.length = 1,
                               .n_buffers = 1,
                               .n_children = 2,
                               .buffers = page->no_buffers,
                               .children = page->children,
                               .release = page_release,
                               .private_data = page};
}

/* Batches are usually of similar size: with room for the largest so far, the
 * text is seldom reallocated. */
static int stage_write(struct stage *stage, const struct ArrowArray *in,
                       struct page *page, struct uva_error *error)
{
    const size_t hint =
        atomic_load_explicit(&stage->bytes_hint, memory_order_relaxed);
    int code;

    (void)uva__text_room(&page->text, hint);
    code = uva__csv_put_rows(&stage->csv, in, &page->text, error);
    page->rows = in->length;
    if (page->text.size > hint)
        atomic_store_explicit(&stage->bytes_hint,
                              page->text.size + page->text.size / 8,
                              memory_order_relaxed);
    return code;
}

static int stage_batch(void *ctx, struct uva_batch *in,
                       struct ArrowDeviceArray *out, struct uva_error *error)
{
    struct page *page = calloc(1, sizeof(*page));
    struct ArrowArray array;
    int code;

    if (page == NULL)
        return uva_error_set(error, ENOMEM, "out of memory for the text");
    code = stage_write(ctx, &in->data.array, page, error);
    if (code != 0) {
        uva__text_fini(&page->text);
        free(page);
        return code;
    }
    page_give(page, &array);
    uva_array_from_cpu(&array, out);
    return 0;
}

static void stage_free(void *ctx)
{
    struct stage *stage = ctx;

    uva__csv_fini(&stage->csv);
    uva_schema_release(&stage->schema);
    free(stage);
}

int uva__lines_map(struct uva_map *map)
{
    struct stage *stage = calloc(1, sizeof(*stage));

    if (stage == NULL)
        return ENOMEM;
    atomic_init(&stage->bytes_hint, 0);
    *map = (struct uva_map){.batch = stage_batch,
                            .schema = stage_schema,
                            .free_ctx = stage_free,
                            .ctx = stage};
    return 0;
}

/* ---- output ------------------------------------------------------------- */

struct uva__lines uva__lines_read(const struct ArrowArray *array)
{
    const int64_t *offsets = array->children[0]->buffers[1];
    const int64_t *rows = array->children[1]->buffers[1];

    assert(array->length == 1 && array->n_children == 2);
    return (struct uva__lines){.data = array->children[0]->buffers[2],
                               .size = (size_t)offsets[1],
                               .rows = rows[0]};
}

const char *uva__lines_header(const struct ArrowSchema *schema)
{
    return schema->children[0]->name;
}
