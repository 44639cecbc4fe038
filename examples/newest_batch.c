/* SPDX-License-Identifier: Apache-2.0 */
/* The newest batch of a stream is kept for readers, who get it whenever they
 * ask, without a copy, and each release theirs. Plain readers get a plain
 * ArrowArray. While nobody looks, the stream is paused.
 *
 *     $ cc newest_batch.c integers.c \
 *          $(pkg-config --cflags --libs uvarrow libuv)
 *     $ ./a.out
 *     the newest batch begins with 0
 *     the newest batch begins with 300
 */
#include <inttypes.h>
#include <stdio.h>
#include <uv.h>

#include "integers.h"

static struct ArrowDeviceArray newest; /* owns */
static struct uva_stream *s;           /* counts */

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    uva_array_release(&newest);
    uva_array_move(&batch->data, &newest);
    if (batch->ordinal == 0)
        uva_stream_pause(s); /* nobody looks */
    return 0;
}

/* Gives a reader the newest batch. */
static int newest_get(struct ArrowArray *out)
{
    struct ArrowDeviceArray copy;
    int code =
        uva_array_is_live(&newest) ? uva_array_share(&newest, &copy) : ENOENT;

    return code != 0 ? code : uva_array_to_cpu(&copy, out);
}

static int look(void)
{
    struct ArrowArray array;
    const int code = newest_get(&array);

    if (code != 0)
        return code;
    printf("the newest batch begins with %" PRId64 "\n",
           ((const int64_t *)array.buffers[1])[array.offset]);
    array.release(&array);
    return 0;
}

int main(void)
{
    uv_loop_t *loop = uv_default_loop();
    struct uva_runtime *rt;
    int code;

    if (uva_runtime_open(loop, NULL, &rt, NULL) != 0)
        return 1;
    s = integers_stream(rt, 4, 100);
    code = uva_stream_for_each(s, &(struct uva_consumer){.on_batch = on_batch},
                               NULL);
    while (code == 0 && !uva_array_is_live(&newest))
        uv_run(loop, UV_RUN_ONCE);
    if (code == 0)
        code = look();
    uva_stream_resume(s);         /* somebody looks again */
    uv_run(loop, UV_RUN_DEFAULT); /* to the end */
    if (code == 0)
        code = look();
    uva_array_release(&newest);
    uva_stream_release(s);
    uva_runtime_close(rt, 0, NULL, NULL);
    return uv_run(loop, UV_RUN_DEFAULT) != 0 || code != 0;
}
