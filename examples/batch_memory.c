/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a file's columns, as a binding needs it to make views of it:
 * each buffer and its size. The batches are asked for, instead of delivered, so
 * the program has no callback; the loop runs when it turns it.
 *
 *     $ cc batch_memory.c tell.c $(pkg-config --cflags --libs uvarrow-io)
 *     $ ./a.out flights.arrow | tail -2
 *     36776 rows: 29 of 43 buffers, 5542689 bytes
 *     19 columns
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#include "tell.h"
#include "uvarrow/io.h"

enum { MOST = 256 };

static int show(const struct uva_batch *batch)
{
    struct uva_buffer buffers[MOST];
    size_t count = MOST, present = 0;
    int64_t bytes = 0;
    int code = uva_array_buffers(batch->schema, &batch->data, buffers, &count);

    if (code == 0) /* all that it keeps alive; uva_array_size(): its rows */
        code = uva_array_memory(batch->schema, &batch->data, &bytes);
    if (code != 0 || count > MOST)
        return code != 0 ? code : EMSGSIZE;
    for (size_t i = 0; i < count; i++)
        present += buffers[i].data != NULL;
    printf("%" PRId64 " rows: %zu of %zu buffers, %" PRId64 " bytes\n",
           batch->data.array.length, present, count, bytes);
    return 0;
}

int main(int argc, char **argv)
{
    struct uva_outcome outcome = {.end = UVA_END_FAILED};
    struct uva_runtime *rt;
    struct uva_stream *s;
    struct uva_batch batch;
    int code;

    if (uva_runtime_open_turned(NULL, NULL, NULL, &rt, &outcome.error) != 0)
        return tell(&outcome.error);
    s = uva_stream_from_file(rt, argc > 1 ? argv[1] : "", NULL);
    code = uva_stream_start_take(s, NULL, NULL, NULL, &outcome.error);
    while (code == 0 || code == EAGAIN) {
        struct pollfd due = {.fd = uva_runtime_fd(rt), .events = POLLIN};

        code = uva_stream_take(s, &batch, &outcome);
        if (code == 0) {
            code = show(&batch);
            uva_array_release(&batch.data);
        } else if (code == EAGAIN && poll(&due, 1, -1) == 1) {
            (void)uva_runtime_turn(rt);
        }
    }
    if (uva_stream_get_info(s) != NULL)
        printf("%" PRId64 " columns\n",
               uva_stream_get_info(s)->schema->n_children);
    code = outcome.error.code != 0 ? tell(&outcome.error) : code != ENOENT;
    uva_stream_release(s);
    uva_runtime_join(rt, 0);
    return code;
}
