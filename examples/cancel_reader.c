/* SPDX-License-Identifier: Apache-2.0 */
/* A thread reads a stream with a library that blocks, and the program ends it
 * early: the stream of a reader can be cancelled while its reader waits. A
 * library that does not look at offsets, as arrow-java, gets arrays without.
 *
 *     $ cc cancel_reader.c integers.c tell.c \
 *          $(pkg-config --cflags --libs uvarrow libuv)
 *     $ ./a.out
 *     read 3 rows, then: enough
 */
#include <inttypes.h>
#include <stdio.h>
#include <uv.h>

#include "integers.h"
#include "tell.h"

struct thread {
    struct ArrowArrayStream reader; /* owns */
    uv_sem_t has_rows;
};

/* Any library that takes an ArrowArrayStream. */
static void read_all(void *ctx)
{
    struct thread *t = ctx;
    struct ArrowArray rows = {0};
    int64_t count = 0;

    while (t->reader.get_next(&t->reader, &rows) == 0 && rows.release != NULL) {
        count += rows.length;
        rows.release(&rows);
        uv_sem_post(&t->has_rows);
    }
    printf("read %" PRId64 " rows, then: %s\n", count,
           t->reader.get_last_error(&t->reader));
    t->reader.release(&t->reader);
}

int main(void)
{
    struct ArrowDeviceArray batch;
    struct ArrowSchema schema;
    struct uva_pusher *pusher; /* more may come at any time */
    struct uva_runtime *rt;
    struct uva_error error;
    struct uva_stream *s;
    struct thread t;
    uv_thread_t id;

    if (uva_runtime_open(NULL, NULL, &rt, &error) != 0)
        return tell(&error);
    s = uva_stream_from_pusher(rt, NULL, &pusher);
    uva_stream_without_offsets(s);
    if (integers_schema(NULL, &schema, NULL) != 0 ||
        uva_pusher_set_schema(pusher, &schema) != 0 ||
        integers_new(3, &batch) == NULL ||
        uva_pusher_push(pusher, &batch, NULL, 0) != 0 ||
        uva_stream_to_arrow_stream(s, NULL, &t.reader, &error) != 0)
        return 1;
    uva_stream_release(s); /* the reader keeps it */
    s = uva_stream_of_reader(&t.reader);
    if (uv_sem_init(&t.has_rows, 0) != 0 ||
        uv_thread_create(&id, read_all, &t) != 0)
        return 1;
    uv_sem_wait(&t.has_rows);
    uva_stream_cancel(s, ECANCELED, "enough");
    uva_stream_release(s);
    uv_thread_join(&id);
    uva_pusher_close(pusher, NULL, NULL);
    uv_sem_destroy(&t.has_rows);
    return uva_runtime_join(rt, 0);
}
