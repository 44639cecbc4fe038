/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of a chain share the copy and the plan of the schema that its
 * source has: no stage copies or compiles it again. Allocations are counted,
 * since a copy takes a block for each column, and the plan of columns of
 * alternating types one block if there are many. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

enum { COLUMNS = 64, ROWS = 8 };

/* Where the batch comes from. */
enum origin { FROM_ARRAYS, FROM_PUSHER, FROM_ASYNC, ORIGINS };

/* The stages of a chain. */
enum chain { SOURCE_ALONE, ON_LOOP, ON_WORKERS };

static struct loop_fixture loop;
static struct recording_consumer consumer;

static void set_up(void)
{
    loop_open(&loop);
}

static void tear_down(void)
{
    loop_close(&loop);
    ck_assert_int_eq(plain_live(), 0);
}

/* ---- a batch ------------------------------------------------------------- */

/* Every second column is one of texts. */
static void schema_make(struct ArrowSchema *out, const char *name, int columns)
{
    plain_schema(out, "+s", name, columns);
    for (int i = 0; i < columns; i++)
        plain_schema(out->children[i], i % 2 == 0 ? "i" : "u", name, 0);
}

static void batch_fill(struct ArrowDeviceArray *out, int columns)
{
    static const int32_t items[ROWS + 1]; /* the offsets of empty texts, too */

    memset(out, 0, sizeof(*out));
    out->device_type = ARROW_DEVICE_CPU;
    out->device_id = -1;
    plain_array(&out->array, ROWS, 1, columns);
    for (int i = 0; i < columns; i++) {
        plain_array(out->array.children[i], ROWS, 2 + i % 2, 0);
        out->array.children[i]->buffers[1] = items;
    }
}

/* ---- sources ------------------------------------------------------------- */

static struct uva_stream *arrays_open(const char *name, int columns)
{
    struct ArrowSchema schema;
    struct ArrowDeviceArray array;

    schema_make(&schema, name, columns);
    batch_fill(&array, columns);
    return uva_stream_from_arrays(loop.runtime, &schema, &array, 1);
}

static struct uva_stream *pusher_open(const char *name, int columns)
{
    struct uva_pusher *pusher;
    struct uva_stream *stream =
        uva_stream_from_pusher(loop.runtime, NULL, &pusher);
    struct ArrowSchema schema;
    struct ArrowDeviceArray array;

    schema_make(&schema, name, columns);
    batch_fill(&array, columns);
    ck_assert_int_eq(uva_pusher_set_schema(pusher, &schema), 0);
    ck_assert_int_eq(uva_pusher_push(pusher, &array, NULL, 0), 0);
    uva_pusher_close(pusher, NULL, NULL);
    return stream;
}

/* Has another stream send its batch to the handler. */
static int async_start(void *ctx, struct ArrowAsyncDeviceStreamHandler *to,
                       struct uva_error *error)
{
    struct uva_stream *inner = ctx;
    const int code = uva_stream_drive(inner, to, &(struct uva_drive){0}, error);

    uva_stream_release(inner);
    return code;
}

static struct uva_stream *origin_open(enum origin origin, const char *name,
                                      int columns)
{
    switch (origin) {
    case FROM_ARRAYS:
        return arrays_open(name, columns);
    case FROM_PUSHER:
        return pusher_open(name, columns);
    default:
        return uva_stream_from_async(
            loop.runtime,
            &(struct uva_async_source){.start = async_start,
                                       .ctx = arrays_open(name, columns),
                                       .on_loop = true});
    }
}

/* ---- stages -------------------------------------------------------------- */

static int map_same(void *ctx, struct uva_batch *in,
                    struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    ck_assert_str_eq(in->schema->children[0]->format, "i");
    uva_array_move(&in->data, out);
    return 0;
}

static int pass_on(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                   void *emitter, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    ck_assert_str_eq(in->schema->children[0]->format, "i");
    return emit(emitter, in);
}

static int begin(void *ctx, struct uva_batch *in, struct uva_reply *reply)
{
    (void)ctx;
    uva_reply_give(reply, &in->data, NULL);
    return 0;
}

static int keep_all(void *ctx, const struct uva_batch *batch, uint8_t *bits,
                    struct uva_error *error)
{
    (void)ctx;
    (void)batch;
    (void)error;
    bits[0] = 0xff;
    return 0;
}

/* Adds stages that measure batches, or hand them to functions; none changes the
 * schema. */
static void chain_add(struct uva_stream *stream, bool on_loop)
{
    const struct uva_map map = {.batch = map_same, .on_loop = on_loop};
    const struct uva_transform transform = {.batch = pass_on,
                                            .on_loop = on_loop};

    ck_assert_int_eq(uva_stream_transform(stream, &transform), 0);
    ck_assert_int_eq(
        uva_stream_map_async(stream, &(struct uva_async_map){.begin = begin}),
        0);
    ck_assert_int_eq(uva_stream_map(stream, &map), 0);
    if (!on_loop)
        ck_assert_int_eq(uva_stream_parallel(stream, NULL), 0);
    ck_assert_int_eq(
        uva_stream_filter(
            stream, &(struct uva_filter){.keep = keep_all, .on_loop = on_loop}),
        0);
    ck_assert_int_eq(
        uva_stream_throttle(stream,
                            &(struct uva_throttle){.bytes_per_s = 1 << 30}),
        0);
}

/* Runs a stream, and gives the allocations that it took. */
static long run(enum origin origin, enum chain chain, const char *name,
                int columns)
{
    const long before = faulty_allocator_asked(&loop.memory);
    struct uva_stream *stream = origin_open(origin, name, columns);

    if (chain != SOURCE_ALONE)
        chain_add(stream, chain == ON_LOOP);
    recording_init(&consumer);
    recording_consume(&consumer, stream);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_COMPLETE, 0, NULL);
    ck_assert_int_eq(consumer.taken, 1);
    loop_settle(&loop);
    return faulty_allocator_asked(&loop.memory) - before;
}

/* ---- tests --------------------------------------------------------------- */

/* Beside what streams of any schema take. */
START_TEST(a_known_schema_is_not_copied_or_compiled)
{
    const enum origin origin = _i % ORIGINS;
    long wide, narrow;

    (void)run(origin, ON_LOOP, "warm", 1);
    narrow = run(origin, ON_LOOP, "warm", 1);
    (void)run(origin, ON_LOOP, "wide", COLUMNS);
    wide = run(origin, ON_LOOP, "wide", COLUMNS);
    if (origin == FROM_ASYNC) /* which starts on a worker thread */
        ck_assert_int_lt(labs(wide - narrow), COLUMNS / 2);
    else
        ck_assert_int_eq(wide, narrow);
}
END_TEST

/* So many allocations as its source does alone. */
START_TEST(a_chain_copies_a_new_schema_once)
{
    const enum origin origin = _i % 2 == 0 ? FROM_ARRAYS : FROM_PUSHER;
    long alone, chain;

    (void)run(origin, ON_LOOP, "warm", COLUMNS);
    alone = run(origin, SOURCE_ALONE, "abcd", COLUMNS);
    alone -= run(origin, SOURCE_ALONE, "abcd", COLUMNS);
    chain = run(origin, ON_LOOP, "efgh", COLUMNS);
    chain -= run(origin, ON_LOOP, "efgh", COLUMNS);
    ck_assert_int_gt(alone, COLUMNS);
    ck_assert_int_eq(chain, alone);
}
END_TEST

/* A few blocks for jobs and slots vary. */
START_TEST(stages_on_workers_copy_nothing)
{
    long wide, narrow;

    (void)run(FROM_ARRAYS, ON_WORKERS, "warm", 1);
    narrow = run(FROM_ARRAYS, ON_WORKERS, "warm", 1);
    (void)run(FROM_ARRAYS, ON_WORKERS, "wide", COLUMNS);
    wide = run(FROM_ARRAYS, ON_WORKERS, "wide", COLUMNS);
    ck_assert_int_lt(labs(wide - narrow), COLUMNS / 2);
}
END_TEST

int main(void)
{
    TCase *tc =
        suite_tests("shared_plan", stages_on_workers_copy_nothing, NULL);

    tcase_add_loop_test(tc, a_known_schema_is_not_copied_or_compiled, 0,
                        ORIGINS);
    tcase_add_loop_test(tc, a_chain_copies_a_new_schema_once, 0, 2);
    return suite_main("shared_plan", set_up, tear_down, tc, NULL);
}
