/* SPDX-License-Identifier: Apache-2.0 */
/* Several Arrow files become one CSV, on standard output: one after the
 * other, with the types of the first, in batches of 64 Ki rows. Two files are
 * open at one time, so that the next one is there when its turn comes.
 *
 *     $ cc join_files.c print.c \
 *          $(pkg-config --cflags --libs uvarrow-io libuv)
 *     $ ./a.out flights.arrow flights.arrow | wc -l
 *     673553
 */
#include <stdio.h>
#include <uv.h>

#include "print.h"

enum { MOST = 64, ROWS = 1 << 16 };

int main(int argc, char **argv)
{
    struct uva_stream *files[MOST];
    struct uva_runtime *rt;
    const int count = argc - 1;

    if (count < 1 || count > MOST ||
        uva_runtime_open(uv_default_loop(), NULL, &rt, NULL) != 0)
        return fprintf(stderr, "usage: %s FILE...\n", argv[0]), 2;
    for (int i = 0; i < count; i++)
        files[i] = uva_stream_from_file(rt, argv[1 + i], NULL);
    uva_stream_concat(files[0], &files[1], (size_t)count - 1,
                      &(struct uva_merge){.cast = true, .open_at_once = 2});
    uva_stream_rebatch(files[0], &(struct uva_rebatch){.rows = ROWS});
    return print_to_end(rt, files[0], UVA_FORMAT_CSV);
}
