/* SPDX-License-Identifier: Apache-2.0 */
/* Passes the four calls of a device stream on to a plain one. */
#include "interop/plain_stream.h"

#include <string.h>

static int plain_schema(struct ArrowDeviceArrayStream *self,
                        struct ArrowSchema *out)
{
    struct plain_stream *plain = self->private_data;

    return plain->rows.get_schema(&plain->rows, out);
}

static int plain_next(struct ArrowDeviceArrayStream *self,
                      struct ArrowDeviceArray *out)
{
    struct plain_stream *plain = self->private_data;
    struct ArrowArray array;
    int code;

    /* the library gets the array as the reader left it */
    memcpy(&array, &out->array, sizeof(array));
    code = plain->rows.get_next(&plain->rows, &array);
    if (code == 0) {
        memset(out, 0, sizeof(*out));
        out->device_id = -1;
        out->device_type = ARROW_DEVICE_CPU;
    }
    memcpy(&out->array, &array, sizeof(array));
    return code;
}

static const char *plain_text(struct ArrowDeviceArrayStream *self)
{
    struct plain_stream *plain = self->private_data;

    return plain->rows.get_last_error(&plain->rows);
}

static void plain_release(struct ArrowDeviceArrayStream *self)
{
    struct plain_stream *plain = self->private_data;

    plain->rows.release(&plain->rows);
    if (plain->rows.release != NULL)
        return; /* it has not marked itself, so this stream is not marked */
    if (plain->free_ctx != NULL)
        plain->free_ctx(plain->ctx);
    self->release = NULL;
}

void plain_stream_give(struct plain_stream *plain,
                       struct ArrowDeviceArrayStream *out)
{
    *out = (struct ArrowDeviceArrayStream){.device_type = ARROW_DEVICE_CPU,
                                           .get_schema = plain_schema,
                                           .get_next = plain_next,
                                           .get_last_error = plain_text,
                                           .release = plain_release,
                                           .private_data = plain};
}
