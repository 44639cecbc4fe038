/* SPDX-License-Identifier: Apache-2.0 */
/* A look-up for each batch: keys come in, and prices go on, in order. A look-up
 * takes a while, so begin() only starts it on a worker; three run at once.
 *
 *     $ cc look_up.c integers.c run.c $(pkg-config --cflags --libs uvarrow)
 *     $ ./a.out
 *     the price of 0 is 0
 *     the price of 1 is 1
 *     the price of 2 is 4
 *     the price of 3 is 9
 *     the price of 4 is 16
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "integers.h"
#include "run.h"

struct look_up {
    struct uva_reply *reply;
    int64_t key, *price;
    struct ArrowDeviceArray out; /* `price` is in it */
};

/* On a worker, which may wait: asks the service, and gives the price. */
static void look_up_run(void *ctx)
{
    struct look_up *look_up = ctx;

    (void)usleep((useconds_t)(5 - look_up->key) * 1000); /* as a request does */
    *look_up->price = look_up->key * look_up->key;
    uva_reply_give(look_up->reply, &look_up->out, NULL);
}

/* On the loop thread, which may not wait. */
static int begin(void *rt, struct uva_batch *in, struct uva_reply *reply)
{
    struct look_up *look_up = malloc(sizeof(*look_up));
    int code = ENOMEM;

    if (look_up == NULL)
        return code;
    *look_up = (struct look_up){.reply = reply, .key = *integers_of(&in->data)};
    look_up->price = integers_new(1, &look_up->out);
    if (look_up->price != NULL)
        code =
            uva_runtime_run(rt, UVA_LANE_BLOCKING, look_up_run, free, look_up);
    if (code != 0) {
        uva_array_release(&look_up->out); /* no effect on a cleared one */
        free(look_up);
    }
    return code;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    printf("the price of %" PRId64 " is %" PRId64 "\n", batch->ordinal,
           *integers_of(&batch->data));
    return 0;
}

int main(void)
{
    const struct uva_consumer to = {.on_batch = on_batch};
    struct uva_runtime *rt;
    struct uva_stream *s;

    if (uva_runtime_open(NULL, NULL, &rt, NULL) != 0)
        return 1;
    s = integers_stream(rt, 5, 1); /* keys from 0 to 4 */
    uva_stream_map_async(
        s, &(struct uva_async_map){.begin = begin, .ctx = rt, .at_once = 3});
    return run_to_end(rt, s, &to);
}
