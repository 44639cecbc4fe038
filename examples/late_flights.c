/* SPDX-License-Identifier: Apache-2.0 */
/* Three columns of an Arrow file, and of these the rows that matter, as JSON. A
 * cast picks the columns, by name and as the types that the filter reads. An
 * inspector behind the filter counts the batches that have passed.
 *
 *     $ cc late_flights.c print.c \
 *          $(pkg-config --cflags --libs uvarrow-io libuv)
 *     $ ./a.out flights.arrow
 *     {"carrier":"HA","flight":51,"dep_delay":1301}
 *     {"carrier":"MQ","flight":3695,"dep_delay":1126}
 *     {"carrier":"MQ","flight":3535,"dep_delay":1137}
 *     in 2 batches
 */
#include <stdio.h>
#include <uv.h>

#include "print.h"

enum { CARRIER, FLIGHT, DELAY, COLUMNS, LATE_MINUTES = 1100 };

static void keep(struct ArrowSchema *schema)
{
    schema->release = NULL; /* no memory to free */
}

#define COLUMN(letter, text)                                                   \
    {                                                                          \
        .format = (letter), .name = (text), .flags = ARROW_FLAG_NULLABLE,      \
        .release = keep                                                        \
    }
static struct ArrowSchema columns[] = {[CARRIER] = COLUMN("u", "carrier"),
                                       [FLIGHT] = COLUMN("l", "flight"),
                                       [DELAY] = COLUMN("l", "dep_delay")};

static int keep_late(void *ctx, const struct uva_batch *batch, uint8_t *bits,
                     struct uva_error *error)
{
    const struct ArrowArray *delays = batch->data.array.children[DELAY];
    const int64_t first = batch->data.array.offset + delays->offset;
    const int64_t *minutes = delays->buffers[1];
    const uint8_t *valid = delays->buffers[0]; /* NULL: without nulls */

    (void)ctx, (void)error;
    for (int64_t i = first; i < first + batch->data.array.length; i++)
        if ((valid == NULL || (valid[i / 8] >> i % 8 & 1) != 0) &&
            minutes[i] >= LATE_MINUTES)
            bits[(i - first) / 8] |= (uint8_t)(1 << (i - first) % 8);
    return 0;
}

static void on_event(void *ctx, const struct uva_trace_event *event)
{
    *(int *)ctx += event->kind == UVA_TRACE_BATCH;
}

int main(int argc, char **argv)
{
    struct ArrowSchema *children[] = {&columns[0], &columns[1], &columns[2]};
    struct ArrowSchema wanted = {.format = "+s",
                                 .name = "",
                                 .n_children = COLUMNS,
                                 .children = children,
                                 .release = keep};
    int code, batches = 0;
    struct uva_runtime *rt;
    struct uva_stream *s;

    if (argc != 2 || uva_runtime_open(uv_default_loop(), NULL, &rt, NULL) != 0)
        return fprintf(stderr, "usage: %s FILE\n", argv[0]), 2;
    s = uva_stream_from_file(rt, argv[1], NULL);
    uva_stream_cast(s, &wanted);
    uva_stream_parallel(s, NULL); /* decodes and casts on several workers */
    uva_stream_filter(s, &(struct uva_filter){.keep = keep_late});
    uva_stream_inspect(s,
                       &(struct uva_trace){.event = on_event, .ctx = &batches});
    code = print_to_end(rt, s, UVA_FORMAT_JSON);
    printf("in %d batches\n", batches);
    return code;
}
