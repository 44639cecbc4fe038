/* SPDX-License-Identifier: Apache-2.0 */
/* Wraps a blocking stream, of any driver or reader: the loop never waits for
 * it. This one reads the numbers that an instrument writes to a pipe.
 *
 *     $ cc arrow_stream.c integers.c tell.c \
 *         $(pkg-config --cflags --libs uvarrow libuv)
 *     $ (echo 21; echo 23) | ./a.out
 *     it reads 21
 *     it reads 23
 */
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "integers.h"
#include "tell.h"

static int get_schema(struct ArrowArrayStream *self, struct ArrowSchema *out)
{
    (void)self;
    return integers_schema(NULL, out, NULL);
}

static int get_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    struct ArrowDeviceArray batch;
    FILE *pipe = self->private_data;
    int64_t *reading;
    char line[64];

    out->release = NULL;                         /* the end */
    if (fgets(line, sizeof(line), pipe) == NULL) /* waits, on a worker */
        return ferror(pipe) ? EIO : 0;
    reading = integers_new(1, &batch);
    if (reading == NULL)
        return ENOMEM;
    *reading = strtoll(line, NULL, 10);
    return uva_array_to_cpu(&batch, out);
}

static const char *get_last_error(struct ArrowArrayStream *self)
{
    return ferror((FILE *)self->private_data) ? "cannot read" : NULL;
}

static void release(struct ArrowArrayStream *self)
{
    self->release = NULL; /* the pipe is the program's */
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    printf("it reads %lld\n", (long long)*integers_of(&batch->data));
    return 0;
}

int main(void)
{
    struct ArrowArrayStream reader = {get_schema, get_next, get_last_error,
                                      release, stdin};
    int code = 0;
    struct uva_consumer to = {
        .on_batch = on_batch, .on_done = tell_end, .ctx = &code};
    uv_loop_t *loop = uv_default_loop();
    struct uva_runtime *rt;
    struct uva_error error;
    struct uva_stream *s;

    if (uva_runtime_open(loop, NULL, &rt, &error) != 0)
        return tell(&error);
    s = uva_stream_from_arrow_stream(rt, &reader, NULL);
    if (uva_stream_for_each(s, &to, &error) != 0)
        code = tell(&error);
    uva_stream_release(s);
    uva_runtime_close(rt, UVA_FOREVER, NULL, NULL); /* once it has ended */
    uv_run(loop, UV_RUN_DEFAULT);
    return uv_loop_close(loop) != 0 || code != 0;
}
