/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: schema, request, each task extracted at once, the end.
 * What can fail: any failure aborts. */
#include "taker.h"

#include "suite.h"
#include "uvarrow/arrow.h"

static int taker_on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                           struct ArrowSchema *schema)
{
    schema->release(schema);
    self->producer->request(self->producer, ((struct taker *)self)->window);
    return 0;
}

static int taker_on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                              struct ArrowAsyncTask *task, const char *metadata)
{
    struct taker *taker = (struct taker *)self;
    struct ArrowDeviceArray array;

    (void)metadata;
    if (task == NULL)
        return 0;
    bench_check(uva_task_extract(task, &array) == 0, "extract");
    tally_take(&taker->tally, &array.array);
    array.array.release(&array.array);
    if (++taker->taken * 2 >= taker->window) {
        self->producer->request(self->producer, taker->taken);
        taker->taken = 0;
    }
    return 0;
}

static void taker_on_error(struct ArrowAsyncDeviceStreamHandler *self, int code,
                           const char *message, const char *metadata)
{
    (void)self;
    (void)code;
    (void)metadata;
    bench_check(false, message);
}

static void taker_on_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    self->release = NULL;
}

void taker_init(struct taker *taker, int64_t window)
{
    *taker = (struct taker){.abi = {.on_schema = taker_on_schema,
                                    .on_next_task = taker_on_next_task,
                                    .on_error = taker_on_error,
                                    .release = taker_on_release},
                            .window = window};
}
