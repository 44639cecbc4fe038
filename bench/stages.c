/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a stage that does not move data: a chain of arrays in memory and
 * the handler of drive.c, with one more stage between them than the chain
 * `stages/none`. `more` is an enum extra. */
#include <errno.h>

#include "host.h"
#include "taker.h"

enum { WINDOW = 64 };

enum extra {
    EXTRA_NONE,
    EXTRA_TRANSFORM,
    EXTRA_FILTER,
    EXTRA_LIMIT_ROWS,
    EXTRA_MAP_ASYNC,
    EXTRA_MERGE,
    EXTRA_CONCAT
};

static int pass_on(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                   void *emitter, struct uva_error *error)
{
    const int code = emit(emitter, in);

    (void)ctx;
    (void)error;
    return code == EAGAIN ? 0 : code;
}

static int keep_all(void *ctx, const struct uva_batch *batch, uint8_t *bits,
                    struct uva_error *error)
{
    (void)ctx;
    (void)error;
    memset(bits, 0xff, (size_t)(batch->data.array.length + 7) / 8);
    return 0;
}

/* Answers at once. */
static int begin(void *ctx, struct uva_batch *in, struct uva_reply *reply)
{
    (void)ctx;
    uva_reply_give(reply, &in->data, NULL);
    return 0;
}

static struct uva_stream *stream_of(struct host *host, int64_t count)
{
    static struct ArrowDeviceArray arrays[TAKER_AT_ONCE];
    struct ArrowSchema schema;

    for (int64_t i = 0; i < count; i++)
        batch_fill(&arrays[i], i);
    batch_schema(&schema);
    return uva_stream_from_arrays(host->runtime, &schema, arrays,
                                  (size_t)count);
}

/* Merged and concatenated is a stream without batches. */
static int add(struct host *host, struct uva_stream *stream, enum extra extra)
{
    struct uva_stream *other;

    switch (extra) {
    case EXTRA_NONE:
        return 0;
    case EXTRA_TRANSFORM:
        return uva_stream_transform(
            stream, &(struct uva_transform){.batch = pass_on, .on_loop = true});
    case EXTRA_FILTER:
        return uva_stream_filter(
            stream, &(struct uva_filter){.keep = keep_all, .on_loop = true});
    case EXTRA_LIMIT_ROWS:
        return uva_stream_limit_rows(stream, INT64_MAX);
    case EXTRA_MAP_ASYNC:
        return uva_stream_map_async(
            stream, &(struct uva_async_map){.begin = begin, .at_once = 8});
    case EXTRA_MERGE:
        other = stream_of(host, 0);
        return uva_stream_merge(
            stream, &other, 1,
            &(struct uva_merge){.window = {.batches = WINDOW}});
    case EXTRA_CONCAT:
        other = stream_of(host, 0);
        return uva_stream_concat(stream, &other, 1, NULL);
    }
    return EINVAL;
}

static struct uva_stream *
staged_stream(struct host *host, const struct bench_case *self, int64_t count)
{
    struct uva_stream *stream = stream_of(host, count);

    bench_check(add(host, stream, (enum extra)self->more) == 0, "stage");
    return stream;
}

static double run_chain(const struct bench_case *self,
                        const struct bench_how *how)
{
    return taker_run(self, how, staged_stream);
}

static const struct bench_case cases[] = {
    {"stages/none", 1000000, run_chain, WINDOW, EXTRA_NONE, 0},
    {"stages/transform", 1000000, run_chain, WINDOW, EXTRA_TRANSFORM, 0},
    {"stages/filter", 1000000, run_chain, WINDOW, EXTRA_FILTER, 0},
    {"stages/limit_rows", 1000000, run_chain, WINDOW, EXTRA_LIMIT_ROWS, 0},
    {"stages/map_async", 1000000, run_chain, WINDOW, EXTRA_MAP_ASYNC, 0},
    {"stages/merge", 1000000, run_chain, WINDOW, EXTRA_MERGE, 0},
    {"stages/concat", 1000000, run_chain, WINDOW, EXTRA_CONCAT, 0},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
