/* SPDX-License-Identifier: Apache-2.0 */
/* Start, wait, report: the three steps of every program with one stream. */
#include "run.h"

#include <stdio.h>

int run_to_end(struct uva_runtime *rt, struct uva_stream *s,
               const struct uva_consumer *consumer)
{
    struct uva_error error;
    int code = uva_stream_for_each(s, consumer, &error);

    uva_runtime_join(rt, UVA_FOREVER); /* the stream has ended */
    if (code == 0)
        code = uva_stream_status(s, &error);
    if (code != 0)
        fprintf(stderr, "%s\n", error.message);
    uva_stream_release(s);
    return code != 0;
}
