/* SPDX-License-Identifier: Apache-2.0 */
/* Start, wait, report: the three steps of a program with one stream. */
#include "print.h"

#include <stdio.h>
#include <uv.h>

static void on_done(void *ctx, const struct uva_outcome *outcome, int64_t bytes)
{
    (void)bytes;
    *(int *)ctx = outcome->error.code;
    if (outcome->error.code != 0) /* the text begins with the stream's name */
        fprintf(stderr, "%s\n", outcome->error.message);
}

int print_to_end(struct uva_runtime *rt, struct uva_stream *s,
                 enum uva_format format)
{
    uv_loop_t *loop = uva_runtime_loop(rt);
    struct uva_outcome failed = {.end = UVA_END_FAILED};
    int code = 0;
    const struct uva_write to = {
        .encode.format = format, .on_done = on_done, .ctx = &code};

    if (uva_stream_write_file(s, 1, &to, &failed.error) != 0)
        on_done(&code, &failed, 0);
    uva_stream_release(s);        /* it runs to its end */
    uv_run(loop, UV_RUN_DEFAULT); /* until the stream has ended */
    uva_runtime_close(rt, 0, NULL, NULL);
    uv_run(loop, UV_RUN_DEFAULT); /* until the runtime is closed */
    return code != 0;
}
