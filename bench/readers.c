/* SPDX-License-Identifier: Apache-2.0 */
/* Two hundred slow readers: streams with 100 batches of 128 KiB each. Their
 * consumers take one batch, with EAGAIN. Prints how much more
 * memory the process has resident than without streams; `window` is the number
 * of streams, `more` the budget of the runtime in MiB. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

enum { BATCH = 128 << 10, BATCHES = 100, SETTLE_MS = 300 };

/* ---- a source of large batches ------------------------------------------- */

struct block {
    const void *buffers[2];
    char data[BATCH];
};

static void block_release(struct ArrowArray *array)
{
    free(array->private_data);
    array->release = NULL;
}

static int source_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    int64_t *left = stream->private_data;
    struct block *block;

    memset(out, 0, sizeof(*out));
    if ((*left)-- == 0)
        return 0;
    block = malloc(sizeof(*block));
    bench_check(block != NULL, "memory");
    memset(block->data, 1, sizeof(block->data)); /* so that it is resident */
    block->buffers[0] = NULL;
    block->buffers[1] = block->data;
    *out = (struct ArrowArray){.length = BATCH / 8,
                               .n_buffers = 2,
                               .buffers = block->buffers,
                               .release = block_release,
                               .private_data = block};
    return 0;
}

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static int source_schema(struct ArrowArrayStream *stream,
                         struct ArrowSchema *out)
{
    (void)stream;
    *out = (struct ArrowSchema){
        .format = "l", .name = "", .release = schema_release};
    return 0;
}

static const char *source_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return NULL;
}

static void source_release(struct ArrowArrayStream *stream)
{
    free(stream->private_data);
    stream->release = NULL;
}

static struct uva_stream *source_open(struct uva_runtime *runtime)
{
    int64_t *left = malloc(sizeof(*left));
    struct ArrowArrayStream stream = {source_schema, source_next, source_error,
                                      source_release, left};

    bench_check(left != NULL, "memory");
    *left = BATCHES;
    return uva_stream_from_arrow_stream(runtime, &stream, NULL);
}

/* ---- readers ------------------------------------------------------------- */

struct reader {
    struct uva_stream *stream; /* owns a reference */
};

static int64_t stopped; /* readers that have stopped */

static int reader_on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    (void)batch;
    stopped++;
    return EAGAIN;
}

static double resident_mib(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;

    bench_check(file != NULL && fscanf(file, "%*s %ld", &pages) == 1, "statm");
    (void)fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static void readers_print(const struct bench_case *self,
                          struct uva_runtime *runtime, double before)
{
    struct uva_runtime_stats stats;
    char name[64];

    uva_runtime_get_stats(runtime, &stats);
    (void)snprintf(name, sizeof(name), "%s/resident", self->name);
    bench_print(name, resident_mib() - before, "MiB");
    (void)snprintf(name, sizeof(name), "%s/held", self->name);
    bench_print(name, (double)stats.memory_held / (1 << 20), "MiB");
}

/* Turns the loop until all have stopped, and a while longer, so that every
 * source has read as far ahead as it may. */
static void readers_stop(struct host *host, int64_t count)
{
    uint64_t until;

    while (stopped < count)
        (void)uv_run(&host->loop, UV_RUN_ONCE);
    for (until = uv_hrtime() + SETTLE_MS * (uint64_t)1000000;
         uv_hrtime() < until; (void)usleep(1000))
        (void)uv_run(&host->loop, UV_RUN_NOWAIT);
}

static double run_readers(const struct bench_case *self,
                          const struct bench_how *how)
{
    const struct uva_runtime_options options = {.memory_bytes =
                                                    (int64_t)self->more << 20};
    struct reader *readers = calloc((size_t)self->window, sizeof(*readers));
    struct host host = {.how = how};
    double before;

    bench_check(
        readers != NULL && uv_loop_init(&host.loop) == 0 &&
            uva_runtime_open(&host.loop, &options, &host.runtime, NULL) == 0,
        "open");
    stopped = 0;
    before = resident_mib();
    for (int32_t i = 0; i < self->window; i++) {
        readers[i].stream = source_open(host.runtime);
        bench_check(uva_stream_for_each(
                        readers[i].stream,
                        &(struct uva_consumer){.on_batch = reader_on_batch,
                                               .ctx = &readers[i]},
                        NULL) == 0,
                    "for_each");
    }
    readers_stop(&host, self->window);
    readers_print(self, host.runtime, before);
    for (int32_t i = 0; i < self->window; i++) {
        uva_stream_cancel(readers[i].stream, 0, NULL);
        uva_stream_release(readers[i].stream);
    }
    (void)uva_runtime_close(host.runtime, 0, NULL, NULL);
    (void)uv_run(&host.loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&host.loop);
    free(readers);
    return 0;
}

static const struct bench_case cases[] = {
    {"readers/200/limit", 0, run_readers, 200, 64, BENCH_PRINTS},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
