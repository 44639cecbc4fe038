/* SPDX-License-Identifier: Apache-2.0 */
/* A program without a loop: the runtime starts a thread. The program waits
 * until a query has given a number of rows, and then stops the query:
 *
 *     example_host_thread DRIVER URI SQL ROWS */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "database.h"
#include "tell.h"

/* Shared by the thread of the runtime and the main thread. */
struct count {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t rows;
    bool done;
    struct uva_outcome outcome; /* valid once done */
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

    pthread_mutex_lock(&count->lock);
    count->done = true;
    count->outcome = *outcome;
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
    struct uva_consumer to = {
        .on_batch = on_batch, .on_done = on_done, .ctx = &count};
    struct uva_runtime *rt;
    struct uva_stream *s;
    struct uva_error error;

    if (argc != 5)
        return fprintf(stderr, "usage: %s DRIVER URI SQL ROWS\n", argv[0]), 2;
    if (uva_runtime_open(NULL, NULL, &rt, &error) != 0)
        return tell(&error);
    s = database_query(rt, argv[1], argv[2],
                       &(struct uva_adbc_query){.sql = argv[3]});
    if (uva_stream_for_each(s, &to, &error) != 0)
        return tell(&error);
    count_until(&count, atoll(argv[4]));
    uva_stream_cancel(s, 0, "so many rows are enough"); /* from any thread */
    uva_stream_release(s);
    uva_runtime_join(rt, UVA_FOREVER); /* until the stream has ended */
    puts(count.outcome.end == UVA_END_COMPLETE ? "complete"
                                               : count.outcome.error.message);
    return count.outcome.end != UVA_END_COMPLETE &&
           count.outcome.end != UVA_END_CANCELLED;
}
