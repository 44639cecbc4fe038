/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs around the recipes share. The lines of a recipe are in
 * recipe_lines.h, which tests/recipes/run writes: functions, or the body of
 * recipe(), whose last line is RECIPE_END. */
#ifndef TESTS_RECIPE_H
#define TESTS_RECIPE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "integers.h"
#include "uvarrow/uvarrow.h"

/* Opens a runtime on libuv's default loop. */
static inline struct uva_runtime *recipe_open(void)
{
    struct uva_runtime *rt;

    setvbuf(stdout, NULL, _IONBF, 0); /* in the order of errors */
    if (uva_runtime_open(uv_default_loop(), NULL, &rt, NULL) != 0)
        exit(2);
    return rt;
}

/* Runs `s` to its end, closes `rt`, and prints what the stream gave. */
static inline int recipe_end(struct uva_runtime *rt, struct uva_stream *s)
{
    struct integers_sum sum;

    integers_add_up(s, &sum);
    (void)uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    uva_runtime_close(rt, 0, NULL, NULL); /* earlier it would end a retry */
    (void)uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    printf("%lld batches, %lld rows, sum %lld, code %d\n",
           (long long)sum.batches, (long long)sum.rows, (long long)sum.sum,
           sum.code);
    return 0;
}

#endif
