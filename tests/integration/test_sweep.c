/* SPDX-License-Identifier: Apache-2.0 */
/* Every scenario again and again, with the first allocation failing, then the
 * second, and so on until none does: each time an error is told, nothing is
 * lost, and every block comes back. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "support/fake_source.h"
#include "support/loop_rig.h"
#include "support/recording_handler.h"
#include "uvarrow/uvarrow.h"

enum { BATCHES = 70, FAILURES_MAX = 400 };

struct scene {
    struct loop_rig rig;
    struct fake_source fake;
    struct recording_handler handler;
    struct uva_stream *stream;
    char metadata[256]; /* of the batches of tasks: more than a slot holds */
    atomic_long freed;  /* times a map's ctx was */
    int64_t maps;       /* that were given away */
    int64_t batches;
    int answers; /* of next that were batches */
    int done;
    struct uva_outcome outcome;
};

/* ---- sources ------------------------------------------------------------ */

static void from_stream(struct scene *s)
{
    struct uva_blocking_source how = fake_source_how(&s->fake);
    struct ArrowArrayStream plain;

    fake_source_plain(&s->fake, &plain);
    s->stream = uva_stream_from_blocking_cpu(s->rig.runtime, &plain, &how);
}

static int open_plain(void *ctx, struct ArrowArrayStream *out,
                      struct uva_error *error)
{
    (void)error;
    fake_source_plain(ctx, out);
    return 0;
}

static void from_hook(struct scene *s)
{
    struct uva_blocking_source how = fake_source_how(&s->fake);

    how.open = open_plain;
    s->stream = uva_stream_from_blocking_cpu(s->rig.runtime, NULL, &how);
}

static void from_quick_stream(struct scene *s)
{
    struct uva_blocking_source how = fake_source_how(&s->fake);
    struct ArrowDeviceArrayStream device;

    how.on_loop = true;
    how.interrupt = NULL;
    fake_source_device(&s->fake, ARROW_DEVICE_CPU, &device);
    s->stream = uva_stream_from_blocking(s->rig.runtime, &device, &how);
}

static void from_tasks(struct scene *s)
{
    s->fake.metadata = s->metadata;
    struct uva_task_source source = fake_source_tasks(&s->fake);

    s->stream = uva_stream_from_tasks(s->rig.runtime, &source);
}

/* ---- stages ------------------------------------------------------------- */

static int pass(void *ctx, struct uva_batch *in, struct ArrowDeviceArray *out,
                struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    return 0;
}

static void pass_free(void *ctx)
{
    atomic_fetch_add(&((struct scene *)ctx)->freed, 1);
}

static void no_stage(struct scene *s)
{
    (void)s;
}

static void all_stages(struct scene *s)
{
    struct uva_map map = {
        .batch = pass, .free_ctx = pass_free, .ctx = s, .on_loop = true};

    (void)uva_stream_set_name(s->stream, "swept");
    (void)uva_stream_map(s->stream, &map);
    (void)uva_stream_parallel(s->stream, &(struct uva_parallel){.workers = 2});
    (void)uva_stream_map(s->stream, &map);
    (void)uva_stream_limit(s->stream, BATCHES - 1);
    s->maps = 2;
}

/* ---- consumers ---------------------------------------------------------- */

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct scene *s = ctx;

    (void)batch;
    s->batches++;
    if (s->batches % 7 != 0)
        return 0;
    uva_stream_resume(s->stream);
    return EAGAIN; /* and the same one again */
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct scene *s = ctx;

    s->done++;
    s->outcome = *outcome;
}

static int to_for_each(struct scene *s, struct uva_error *error)
{
    struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = s};

    return uva_stream_for_each(s->stream, &consumer, error);
}

static void answer(void *ctx, struct uva_batch *batch,
                   const struct uva_outcome *outcome)
{
    struct scene *s = ctx;

    if (batch == NULL) {
        on_done(ctx, outcome);
        return;
    }
    s->batches++;
    if (uva_stream_next(s->stream, answer, s, NULL) != 0)
        s->done = -1;
}

static int to_next(struct scene *s, struct uva_error *error)
{
    return uva_stream_next(s->stream, answer, s, error);
}

static int to_handler(struct scene *s, struct uva_error *error)
{
    struct uva_drive how = {.on_done = on_done, .ctx = s};

    return uva_stream_drive(s->stream, &s->handler.handler, &how, error);
}

static int to_worker(struct scene *s, struct uva_error *error)
{
    struct uva_drive how = {.on_done = on_done, .ctx = s, .on_worker = true};

    return uva_stream_drive(s->stream, &s->handler.handler, &how, error);
}

/* ---- the sweep ---------------------------------------------------------- */

struct scenario {
    void (*source)(struct scene *s);
    void (*stages)(struct scene *s);
    int (*start)(struct scene *s, struct uva_error *error);
};

static const struct scenario SCENARIOS[] = {
    {from_stream, no_stage, to_for_each},
    {from_stream, all_stages, to_for_each},
    {from_hook, no_stage, to_next},
    {from_quick_stream, no_stage, to_for_each},
    {from_quick_stream, all_stages, to_handler},
    {from_tasks, no_stage, to_for_each},
    {from_tasks, all_stages, to_next},
    {from_tasks, no_stage, to_handler},
    {from_tasks, all_stages, to_worker},
};

enum { SCENARIO_COUNT = sizeof(SCENARIOS) / sizeof(SCENARIOS[0]) };

static bool is_done(void *ctx)
{
    return ((struct scene *)ctx)->done != 0;
}

static void scene_close(struct scene *s)
{
    uva_stream_release(s->stream);
    loop_rig_fail(&s->rig, 0);
    loop_rig_close_runtime(&s->rig, 0);
    while (faulty_allocator_live(&s->rig.memory) > 0)
        sched_yield(); /* workers may just be leaving */
    recording_handler_fini(&s->handler);
    loop_rig_close(&s->rig);
    ck_assert_int_eq(atomic_load(&s->fake.freed), 1);
    ck_assert_int_eq(atomic_load(&s->freed), s->maps);
    fake_source_fini(&s->fake);
}

static void metadata_make(struct scene *s)
{
    static const char value[200] = "much";
    const struct uva_pair pair = {uva_bytes_of("k"), {value, sizeof(value)}};
    size_t size = sizeof(s->metadata);

    ck_assert_int_eq(uva_metadata_encode(&pair, 1, s->metadata, &size), 0);
}

/* Plays one scenario; tells whether all allocations were granted. */
static bool play(const struct scenario *scenario, long fail_at)
{
    struct uva_error error = {0};
    struct scene s;
    int code;
    bool whole;

    memset(&s, 0, sizeof(s));
    loop_rig_open(&s.rig);
    fake_source_init(&s.fake, BATCHES);
    recording_handler_init(&s.handler, 3, 1);
    metadata_make(&s);
    loop_rig_fail(&s.rig, fail_at);
    scenario->source(&s);
    scenario->stages(&s);
    code = scenario->start(&s, &error);
    if (code == 0)
        loop_rig_until(&s.rig, is_done, &s);
    whole = !faulty_allocator_has_failed(&s.rig.memory);
    if (code != 0) {
        ck_assert_int_ne(error.message[0], 0);
        ck_assert_int_eq(s.done, 0);
    } else if (whole) {
        ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    } else if (s.outcome.end != UVA_END_COMPLETE) {
        ck_assert_int_eq(s.outcome.error.code, ENOMEM);
    }
    scene_close(&s);
    return whole;
}

START_TEST(every_allocation_may_fail)
{
    long i = 1;

    while (!play(&SCENARIOS[_i], i))
        ck_assert_int_lt(i++, FAILURES_MAX);
    ck_assert_int_gt(i, 5); /* it did allocate */
}
END_TEST

START_TEST(opening_a_runtime_may_fail_at_every_allocation)
{
    struct faulty_allocator memory;
    struct uva_runtime_options options = {0};
    struct uva_runtime *runtime = NULL;
    struct uva_error error = {0};
    uv_loop_t loop;
    long i;

    ck_assert_int_eq(uv_loop_init(&loop), 0);
    for (i = 1; runtime == NULL; i++) {
        faulty_allocator_init(&memory, i);
        options.allocator = faulty_allocator_table(&memory);
        if (uva_runtime_open(&loop, &options, &runtime, &error) == 0)
            break;
        ck_assert_int_eq(error.code, ENOMEM);
        ck_assert_int_ne(error.message[0], 0);
        (void)uv_run(&loop, UV_RUN_DEFAULT);
        ck_assert_int_eq(faulty_allocator_live(&memory), 0);
    }
    ck_assert_int_gt(i, 2);
    uva_runtime_close(runtime, 0, NULL, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    ck_assert_int_eq(faulty_allocator_live(&memory), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sweep");
    TCase *tc = tcase_create("allocations");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, every_allocation_may_fail, 0, SCENARIO_COUNT);
    tcase_add_test(tc, opening_a_runtime_may_fail_at_every_allocation);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
