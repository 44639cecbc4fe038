/* SPDX-License-Identifier: Apache-2.0 */
/* Step 3 of docs/tutorial.md: a pause after the first batch, a cancel after the
 * third.
 *
 *     $ cc step3_control.c thermometer.c readings.c show.c \
 *         $(pkg-config --cflags --libs uvarrow libuv)
 *     $ seq 201 240 | ./a.out
 *     4 readings from 20.1
 *     the loop does other work
 *     4 readings from 20.5
 *     4 readings from 20.9
 *     cancelled: that is enough
 */
#include <uv.h>

#include "show.h"
#include "thermometer.h"

static uv_idle_t other_work;

static void on_idle(uv_idle_t *idle)
{
    printf("the loop does other work\n");
    uva_stream_resume(idle->data);
    uv_close((uv_handle_t *)idle, NULL);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)show_batch(ctx, batch);
    if (batch->ordinal == 0) {
        uva_stream_pause(batch->stream); /* the source waits soon, too */
        other_work.data = batch->stream;
        uv_idle_start(&other_work, on_idle);
    } else if (batch->ordinal == 2) {
        uva_stream_cancel(batch->stream, ECANCELED, "that is enough");
    }
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    uva_stream_release(ctx);
    printf("%s: %s\n",
           outcome->end == UVA_END_CANCELLED ? "cancelled" : "not cancelled",
           outcome->error.message);
}

int main(void)
{
    struct uva_consumer to = {.on_batch = on_batch, .on_done = on_done};
    struct ArrowArrayStream source;
    struct uva_runtime *rt;
    struct uva_error error;

    if (uva_runtime_open(uv_default_loop(), NULL, &rt, &error) != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    thermometer_open(stdin, &source);
    to.ctx = uva_stream_from_arrow_stream(rt, &source, NULL);
    uv_idle_init(uv_default_loop(), &other_work);
    if (uva_stream_for_each(to.ctx, &to, &error) != 0)
        fprintf(stderr, "%s\n", error.message);
    uva_runtime_close(rt, UVA_FOREVER, NULL, NULL);
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
