/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the data of a device that the library does not know, with a back
 * end of the program's own: accelerator.c.
 *
 *     $ cc own_device.c accelerator.c integers.c run.c \
 *         $(pkg-config --cflags --libs uvarrow)
 *     $ ./a.out
 *     the accelerator has made 42
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "accelerator.h"
#include "integers.h"
#include "run.h"

struct job {
    int64_t *result;
    int done; /* the descriptor that reports the end */
};

/* What the device does by itself, some time after the array was passed on. */
static void *device_run(void *ctx)
{
    const struct job *job = ctx;

    *job->result = 42;
    (void)eventfd_write(job->done, 1);
    return NULL;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    printf("the accelerator has made %" PRId64 "\n",
           *integers_of(&batch->data));
    return 0;
}

int main(void)
{
    const struct uva_consumer to = {.on_batch = on_batch};
    struct ArrowDeviceArray batch;
    struct job job = {.result = integers_new(1, &batch),
                      .done = eventfd(0, EFD_CLOEXEC)};
    struct ArrowSchema schema;
    struct uva_runtime *rt;
    struct uva_error error;
    struct uva_stream *s;
    pthread_t device;
    int code;

    if (job.result == NULL || job.done < 0 ||
        uva_runtime_open(NULL, NULL, &rt, NULL) != 0)
        return 1;
    if (uva_device_register(rt, ARROW_DEVICE_EXT_DEV, &accelerator_ops, NULL,
                            &error) != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    batch.device_type = ARROW_DEVICE_EXT_DEV;
    batch.device_id = 0;
    batch.sync_event = &job.done;
    (void)integers_schema(NULL, &schema, NULL);
    s = uva_stream_from_arrays(rt, &schema, &batch, 1);
    uva_stream_ready(s, NULL);
    if (pthread_create(&device, NULL, device_run, &job) != 0)
        return 1;
    code = run_to_end(rt, s, &to);
    (void)pthread_join(device, NULL);
    (void)close(job.done);
    return code;
}
