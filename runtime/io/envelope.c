/* SPDX-License-Identifier: Apache-2.0 */
/* One column of large binary. A struct behind the offsets has the message: not
 * private_data, because other code may put its own there. */
#include "io/envelope.h"

#include <stdlib.h>

#include "uvarrow/arrow.h"

struct envelope {
    int64_t offsets[2];          /* first: of the row */
    struct uva__message message; /* owns */
    struct ArrowArray column;
    struct ArrowArray *columns[1];
    const void *buffers[3];
    const void *no_bitmap[1];
};

static void envelope_keep(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

int uva__envelope_schema(struct ArrowSchema *out)
{
    struct ArrowSchema column = {
        .format = "Z", .name = "message", .release = envelope_keep};
    struct ArrowSchema *columns[] = {&column};
    struct ArrowSchema root = {.format = "+s",
                               .name = "",
                               .n_children = 1,
                               .children = columns,
                               .release = envelope_keep};

    const int code = uva_schema_copy(&root, out);

    uva_schema_release(&column);
    uva_schema_release(&root);
    return code;
}

/* The column goes with the batch. */
static void envelope_release_column(struct ArrowArray *array)
{
    array->release = NULL;
}

static void envelope_release(struct ArrowArray *array)
{
    struct envelope *envelope = array->private_data;

    array->release = NULL;
    if (envelope->column.release != NULL)
        envelope->column.release(&envelope->column);
    uva__message_fini(&envelope->message);
    free(envelope);
}

int uva__envelope_new(struct uva__message *message,
                      struct ArrowDeviceArray *out)
{
    struct envelope *envelope = calloc(1, sizeof(*envelope));
    const struct uva__blob *blob =
        message->body == NULL ? message->head : message->body;
    struct ArrowArray root;

    if (envelope == NULL)
        return ENOMEM;
    envelope->message = *message;
    *message = (struct uva__message){0};
    envelope->offsets[1] = (int64_t)blob->size;
    envelope->buffers[1] = envelope->offsets;
    envelope->buffers[2] = blob->bytes;
    envelope->columns[0] = &envelope->column;
    envelope->column = (struct ArrowArray){.length = 1,
                                           .n_buffers = 3,
                                           .buffers = envelope->buffers,
                                           .release = envelope_release_column};
    root = (struct ArrowArray){.length = 1,
                               .n_buffers = 1,
                               .buffers = envelope->no_bitmap,
                               .n_children = 1,
                               .children = envelope->columns,
                               .release = envelope_release,
                               .private_data = envelope};
    uva_array_from_cpu(&root, out);
    return 0;
}

struct uva__message *uva__envelope_message(const struct ArrowDeviceArray *batch)
{
    const void *offsets = batch->array.children[0]->buffers[1];

    return &((struct envelope *)(uintptr_t)offsets)->message;
}
