/* SPDX-License-Identifier: Apache-2.0 */
/* The use of a library on top of uvarrow, counting.c: it takes over the stream
 * of its user, and has a callback of its own.
 *
 *     $ cc counting_library.c counting.c integers.c tell.c \
 *          $(pkg-config --cflags --libs uvarrow)
 *     $ UVA_LOG=info ./a.out 2>log
 *     2500 rows
 */
#include <inttypes.h>
#include <stdio.h>

#include "counting.h"
#include "integers.h"
#include "tell.h"

static void on_count(int64_t rows)
{
    printf("%" PRId64 " rows\n", rows);
}

int main(void)
{
    struct uva_runtime *rt;
    struct uva_error error;
    struct uva_stream *s;
    int code;

    if (uva_runtime_open(NULL, NULL, &rt, &error) != 0)
        return tell(&error);
    s = integers_stream(rt, 25, 100);
    code = counting_start(s, on_count, &error);
    uva_stream_release(s);
    uva_runtime_join(rt, UVA_FOREVER);
    return code != 0 ? tell(&error) : 0;
}
