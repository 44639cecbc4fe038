/* SPDX-License-Identifier: Apache-2.0 */
/* One column of large binary. A struct after the offsets has the message: not
 * private_data, because other code may put its own there. */
#include "io/pushed_message.h"

#include <stdlib.h>

#include "uvarrow/arrow.h"

struct pushed_message {
    int64_t offsets[2];          /* first: of the row */
    struct uva__message message; /* owns */
    struct ArrowArray column;
    struct ArrowArray *columns[1];
    const void *buffers[3];
    const void *no_bitmap[1];
};

static void pushed_message_keep(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

int uva__pushed_message_schema(struct ArrowSchema *out)
{
    struct ArrowSchema column = {
        .format = "Z", .name = "message", .release = pushed_message_keep};
    struct ArrowSchema *columns[] = {&column};
    struct ArrowSchema root = {.format = "+s",
                               .name = "",
                               .n_children = 1,
                               .children = columns,
                               .release = pushed_message_keep};

    const int code = uva_schema_copy(&root, out);

    uva_schema_release(&column);
    uva_schema_release(&root);
    return code;
}

/* The column goes with the batch. */
static void pushed_message_release_column(struct ArrowArray *array)
{
    array->release = NULL;
}

static void pushed_message_release(struct ArrowArray *array)
{
    struct pushed_message *carrier = array->private_data;

    array->release = NULL;
    if (carrier->column.release != NULL)
        carrier->column.release(&carrier->column);
    uva__message_fini(&carrier->message);
    free(carrier);
}

int uva__pushed_message_new(struct uva__message *message,
                            struct ArrowDeviceArray *out)
{
    struct pushed_message *carrier = calloc(1, sizeof(*carrier));
    const struct uva__shared_bytes *shared =
        message->body == NULL ? message->head : message->body;
    struct ArrowArray root;

    if (carrier == NULL)
        return ENOMEM;
    carrier->message = *message;
    *message = (struct uva__message){0};
    carrier->offsets[1] = (int64_t)shared->size;
    carrier->buffers[1] = carrier->offsets;
    carrier->buffers[2] = shared->bytes;
    carrier->columns[0] = &carrier->column;
    carrier->column =
        (struct ArrowArray){.length = 1,
                            .n_buffers = 3,
                            .buffers = carrier->buffers,
                            .release = pushed_message_release_column};
    root = (struct ArrowArray){.length = 1,
                               .n_buffers = 1,
                               .buffers = carrier->no_bitmap,
                               .n_children = 1,
                               .children = carrier->columns,
                               .release = pushed_message_release,
                               .private_data = carrier};
    uva_array_from_cpu(&root, out);
    return 0;
}

struct uva__message *
uva__pushed_message_of(const struct ArrowDeviceArray *batch)
{
    const void *offsets = batch->array.children[0]->buffers[1];

    return &((struct pushed_message *)(uintptr_t)offsets)->message;
}
