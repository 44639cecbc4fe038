/* SPDX-License-Identifier: Apache-2.0 */
/* Drives a foreign handler, of any library in any language. This one takes a
 * sample: it discards every second batch, which is then not even decoded.
 *
 *     $ cc drive_handler.c tell.c $(pkg-config --cflags --libs uvarrow-io)
 *     $ ./a.out flights.arrow
 *     7 batches, 186776 rows seen
 */
#include <stdio.h>

#include "tell.h"
#include "uvarrow/io.h"

struct sample {
    struct ArrowAsyncDeviceStreamHandler handler;
    long long batches, rows;
};

static int on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                     struct ArrowSchema *schema)
{
    schema->release(schema); /* the callee owns the schema */
    self->producer->request(self->producer, 3);
    return 0;
}

static int on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                        struct ArrowAsyncTask *task, const char *metadata)
{
    struct sample *sample = self->private_data;
    struct ArrowDeviceArray batch = {0};
    int code = 0;

    (void)metadata;
    if (task == NULL) /* the end */
        return 0;
    if (sample->batches++ % 2 == 1)
        uva_task_discard(task); /* each task is spent, once */
    else
        code = uva_task_extract(task, &batch);
    sample->rows += batch.array.length;
    uva_array_release(&batch);
    self->producer->request(self->producer, 1); /* one more after this */
    return code;
}

static void on_error(struct ArrowAsyncDeviceStreamHandler *self, int code,
                     const char *message, const char *metadata)
{
    (void)self;
    (void)metadata;
    printf("error %d: %s\n", code, message != NULL ? message : "no reason");
}

static void release(struct ArrowAsyncDeviceStreamHandler *self)
{
    self->release = NULL; /* the last call; a handler on the heap is freed */
}

int main(int argc, char **argv)
{
    struct sample sample = {.handler = {on_schema, on_next_task, on_error,
                                        release, .private_data = &sample}};
    int code = 0;
    struct uva_drive end = {.on_done = tell_end, .ctx = &code};
    struct uva_runtime *rt;
    struct uva_error error;
    struct uva_stream *s;

    if (uva_runtime_open(NULL, NULL, &rt, &error) != 0)
        return tell(&error);
    s = uva_stream_from_file(rt, argc == 2 ? argv[1] : "/dev/stdin", NULL);
    if (uva_stream_drive(s, &sample.handler, &end, &error) != 0)
        code = tell(&error);
    uva_stream_release(s);
    uva_runtime_join(rt, UVA_FOREVER);
    printf("%lld batches, %lld rows seen\n", sample.batches, sample.rows);
    return code;
}
