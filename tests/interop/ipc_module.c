/* SPDX-License-Identifier: Apache-2.0 */
/* For ipc_tables.py and text_tables.py: encodes a blocking stream of Python's
 * into a file, and decodes a file into a blocking stream. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "uvarrow/arrow.h"
#include "uvarrow/io.h"
#include "uvarrow/sources.h"

/* Python calls these by name. */
int ipc_encode(struct ArrowArrayStream *in, int format, int compression, int fd,
               char *text, int room);
int text_encode(struct ArrowArrayStream *in, int format,
                const struct uva_csv *csv, int fd, char *text, int room);
int ipc_decode(int fd, int need_end_mark, int is_mapped,
               struct ArrowArrayStream *out, char *text, int room);

/* Writes a whole part, and releases it. */
static int ipc_write(struct uva_part *part, int fd)
{
    int64_t bytes = 0;
    int code = 0;

    for (size_t i = 0; i < part->count && code == 0; i++) {
        const uv_buf_t *buffer = &part->buffers[i];

        if (write(fd, buffer->base, buffer->len) != (ssize_t)buffer->len)
            code = EIO;
        bytes += (int64_t)buffer->len;
    }
    if (bytes != part->bytes)
        code = EPROTO;
    uva_part_release(part);
    return code;
}

/* All batches of a stream. */
struct batches {
    struct ArrowDeviceArray *arrays; /* owns */
    size_t count;
};

static int batches_read(struct batches *batches, struct ArrowArrayStream *in)
{
    struct ArrowArray array;
    void *more;
    int code;

    while ((code = in->get_next(in, &array)) == 0 && array.release != NULL) {
        more = realloc(batches->arrays,
                       (batches->count + 1) * sizeof(*batches->arrays));
        if (more == NULL)
            abort();
        batches->arrays = more;
        uva_array_from_cpu(&array, &batches->arrays[batches->count++]);
    }
    return code;
}

/* Takes `in`, and writes it to `fd`; an error's text goes to `text`. */
static int encode(struct ArrowArrayStream *in, const struct uva_encode *options,
                  int fd, char *text, int room)
{
    struct uva_error error = {0};
    struct batches batches = {0};
    struct uva_part part;
    struct ArrowSchema schema = {.release = NULL};
    int code = in->get_schema(in, &schema);

    if (code == 0)
        code = batches_read(&batches, in);
    if (code == 0)
        code = uva_array_encode(&schema, batches.arrays, batches.count, options,
                                &part, &error);
    if (code == 0)
        code = ipc_write(&part, fd);
    for (size_t i = 0; i < batches.count; i++)
        uva_array_release(&batches.arrays[i]);
    free(batches.arrays);
    uva_schema_release(&schema);
    in->release(in);
    (void)snprintf(text, (size_t)room, "%s", error.message);
    return code;
}

int ipc_encode(struct ArrowArrayStream *in, int format, int compression, int fd,
               char *text, int room)
{
    const struct uva_encode options = {.format = (enum uva_format)format,
                                       .compression = compression};

    return encode(in, &options, fd, text, room);
}

int text_encode(struct ArrowArrayStream *in, int format,
                const struct uva_csv *csv, int fd, char *text, int room)
{
    const struct uva_encode options = {.format = (enum uva_format)format,
                                       .csv = *csv};

    return encode(in, &options, fd, text, room);
}

/* Gives the stream of a file, read by a runtime with its own thread, which
 * stays open. */
int ipc_decode(int fd, int need_end_mark, int is_mapped,
               struct ArrowArrayStream *out, char *text, int room)
{
    static struct uva_runtime *runtime;
    const struct uva_ipc_source options = {
        .need_end_mark = need_end_mark != 0, .mmap = is_mapped != 0, .fd = fd};
    struct uva_error error = {0};
    struct uva_stream *stream;
    int code = 0;

    if (runtime == NULL)
        code = uva_runtime_open(NULL, NULL, &runtime, &error);
    if (code == 0) {
        stream = uva_stream_from_file(runtime, NULL, &options);
        code = uva_stream_to_arrow_stream(stream, NULL, out, &error);
        uva_stream_release(stream);
    }
    (void)snprintf(text, (size_t)room, "%s", error.message);
    return code;
}
