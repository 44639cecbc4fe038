/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  the schema arrives on the loop thread; then every batch, on one
 *              worker at a time or on several; the output arrays are freed by
 *              the thread that has written them.
 * What can fail: a type that text cannot hold (ENOTSUP, before the first
 *              batch), an array that does not fit its schema (EINVAL), memory.
 * On cancel and close: free_ctx is called after the last batch. */
#include "lines.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "uvarrow/arrow.h"

/* State of the stage. */
struct stage {
    struct uva_write options;
    struct uva_encoder *encoder; /* owns; NULL: there is no schema */
};

/* The output schema, in one allocation. */
struct shape {
    struct ArrowSchema columns[2];   /* released with the root */
    struct ArrowSchema *children[2]; /* points to the two above */
    char header[];                   /* ended by a NUL */
};

/* One output array, in one allocation. */
struct page {
    struct uva_encoder_part part;   /* owns: the text, in at most one piece */
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
    free(shape);
    schema->release = NULL;
}

/* Gives `out`; takes `shape`. */
static void shape_give(struct shape *shape, struct ArrowSchema *out)
{
    shape->columns[0] = (struct ArrowSchema){
        .format = "Z", .name = shape->header, .release = column_schema_release};
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

/* Makes the output schema, with the bytes of `header`. */
static int shape_make(const struct uva_encoder_part *header,
                      struct ArrowSchema *out)
{
    const size_t size = (size_t)header->bytes;
    struct shape *shape = calloc(1, sizeof(*shape) + size + 1);

    if (shape == NULL)
        return ENOMEM;
    if (size > 0)
        memcpy(shape->header, header->buffers[0].base, size);
    shape_give(shape, out);
    return 0;
}

static int stage_schema(void *ctx, const struct ArrowSchema *in,
                        struct ArrowSchema *out, struct uva_error *error)
{
    struct stage *stage = ctx;
    struct uva_encoder_part header = {0};
    int code = uva_encoder_new(in, &stage->options, &stage->encoder, error);

    if (code != 0)
        return code;
    code = uva_encoder_begin(stage->encoder, &header);
    if (code == 0)
        code = shape_make(&header, out);
    uva_encoder_part_release(&header);
    return code == 0
               ? 0
               : uva_error_set(error, code, "out of memory for the header");
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
    uva_encoder_part_release(&page->part);
    free(page);
    array->release = NULL;
}

/* Gives `out`; takes `page`. */
static void page_give(struct page *page, struct ArrowArray *out)
{
    assert(page->part.count <= 1);
    page->offsets[1] = page->part.bytes;
    page->text_buffers[1] = page->offsets;
    if (page->part.count > 0)
        page->text_buffers[2] = page->part.buffers[0].base;
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

static int stage_batch(void *ctx, struct uva_batch *in,
                       struct ArrowDeviceArray *out, struct uva_error *error)
{
    struct stage *stage = ctx;
    struct page *page = calloc(1, sizeof(*page));
    struct ArrowArray array;
    int code;

    if (page == NULL)
        return uva_error_set(error, ENOMEM, "out of memory for the text");
    page->rows = in->data.array.length;
    code = uva_encoder_batch(stage->encoder, &in->data, &page->part, error);
    if (code != 0) {
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

    uva_encoder_free(stage->encoder);
    free(stage);
}

int uva__lines_map(const struct uva_write *options, struct uva_map *map)
{
    struct stage *stage = calloc(1, sizeof(*stage));

    if (stage == NULL)
        return ENOMEM;
    stage->options = *options;
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

struct uva_encoder_part uva__lines_take(struct ArrowArray *array)
{
    struct page *page = array->private_data;
    const struct uva_encoder_part part = page->part;

    assert(array->release == page_release);
    page->part = (struct uva_encoder_part){0};
    page->offsets[1] = 0;
    page->text_buffers[2] = NULL;
    return part;
}

const char *uva__lines_header(const struct ArrowSchema *schema)
{
    return schema->children[0]->name;
}
