/* SPDX-License-Identifier: Apache-2.0 */
/* A hundred sources, of which at most eight are open at one time: the rest wait
 * for a permit, without a thread.
 *
 *     $ ./06_permits
 *     100 sources, 1000 rows, at most 8 open at one time
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "data.h"

static atomic_int open_now, open_most;

/* A reader as libraries have it, of one batch: it blocks. */
static int reader_schema(struct ArrowArrayStream *self, struct ArrowSchema *out)
{
    (void)self;
    return data_schema(8, out);
}

static int reader_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    struct ArrowDeviceArray batch;

    out->release = NULL;
    if (self->private_data == NULL)
        return 0;
    self->private_data = NULL;
    return data_make(8, 0, 10, &batch) != 0 ? ENOMEM
                                            : uva_array_to_cpu(&batch, out);
}

static const char *reader_error(struct ArrowArrayStream *self)
{
    (void)self;
    return NULL;
}

static void reader_release(struct ArrowArrayStream *self)
{
    self->release = NULL;
}

static int reader_open(void *ctx, struct ArrowArrayStream *out,
                       struct uva_error *error)
{
    const struct timespec time = {.tv_nsec = 2000000};
    const int now = atomic_fetch_add(&open_now, 1) + 1;

    (void)error;
    if (now > atomic_load(&open_most))
        atomic_store(&open_most, now);
    (void)nanosleep(&time, NULL);
    *out = (struct ArrowArrayStream){.get_schema = reader_schema,
                                     .get_next = reader_next,
                                     .get_last_error = reader_error,
                                     .release = reader_release,
                                     .private_data = ctx};
    return 0;
}

static void reader_free(void *ctx)
{
    (void)ctx;
    (void)atomic_fetch_sub(&open_now, 1);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    *(int64_t *)ctx += batch->data.array.length;
    return 0;
}

int main(void)
{
    struct uva_permits *permits = NULL;
    struct uva_runtime *rt;
    struct uva_error error;
    int64_t rows = 0;
    int code = uva_runtime_open(NULL, NULL, &rt, &error);

    if (code == 0)
        code = uva_permits_new(rt, 8, 0, &permits, &error);
    for (int i = 0; i < 100 && code == 0; i++) {
        struct uva_stream *s = uva_stream_from_arrow_stream(
            rt, NULL,
            &(struct uva_arrow_source){.open = reader_open,
                                       .free_ctx = reader_free,
                                       .ctx = &rows,
                                       .name = "reader",
                                       .permits = permits});

        code = uva_stream_for_each(
            s, &(struct uva_consumer){.on_batch = on_batch, .ctx = &rows},
            &error);
        uva_stream_release(s);
    }
    uva_permits_release(permits); /* the sources keep theirs */
    if (code != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    code = uva_runtime_join(rt, UVA_FOREVER);
    printf("100 sources, %" PRId64 " rows, at most %d open at one time\n", rows,
           atomic_load(&open_most));
    return code;
}
