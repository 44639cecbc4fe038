/* SPDX-License-Identifier: Apache-2.0 */
/* A program without a loop: the runtime starts a thread. The program waits
 * until a query has given a number of rows, and then stops the query:
 *
 *     example_host_thread DRIVER URI SQL ROWS */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "database.h"

/* Shared by the thread of the runtime and the main thread. */
struct count {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t rows;
    bool done;
    enum uva_end end; /* valid once done */
};

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct count *count = ctx;

    pthread_mutex_lock(&count->lock);
    count->rows += batch->data.array.length;
    pthread_cond_signal(&count->changed);
    pthread_mutex_unlock(&count->lock);
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct count *count = ctx;

    printf("%s\n",
           outcome->error.code != 0 ? outcome->error.message : "complete");
    pthread_mutex_lock(&count->lock);
    count->done = true;
    count->end = outcome->end;
    pthread_cond_signal(&count->changed);
    pthread_mutex_unlock(&count->lock);
}

static void count_until(struct count *count, int64_t rows)
{
    pthread_mutex_lock(&count->lock);
    while (count->rows < rows && !count->done)
        pthread_cond_wait(&count->changed, &count->lock);
    pthread_mutex_unlock(&count->lock);
}

int main(int argc, char **argv)
{
    struct count count = {.lock = PTHREAD_MUTEX_INITIALIZER,
                          .changed = PTHREAD_COND_INITIALIZER};
    struct uva_runtime *rt;
    struct uva_stream *s;
    struct uva_error error;

    if (argc != 5) {
        fprintf(stderr, "usage: %s DRIVER URI SQL ROWS\n", argv[0]);
        return 2;
    }
    if (uva_runtime_open(NULL, NULL, &rt, &error) != 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    s = database_query(rt, argv[1], argv[2],
                       &(struct uva_adbc_query){.sql = argv[3]});
    if (uva_stream_for_each(s,
                            &(struct uva_consumer){.on_batch = on_batch,
                                                   .on_done = on_done,
                                                   .ctx = &count},
                            &error) != 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }

    count_until(&count, atoll(argv[4]));
    uva_stream_cancel(s, 0, "so many rows are enough"); /* from any thread */
    uva_stream_release(s);
    if (uva_runtime_join(rt, UVA_FOREVER) !=
        0) /* waits for running streams, then closes */
        return 1;
    return count.end != UVA_END_COMPLETE && count.end != UVA_END_CANCELLED;
}
