/* SPDX-License-Identifier: Apache-2.0 */
/* The example of a new stage: skip(n) leaves out the first batches. Everything
 * up to the tests is all that a stage takes which passes batches on. */
#include <check.h>

#include "stage/stage.h"
#include "stream/stream_impl.h"
#include "support/check_suite.h"
#include "uvarrow/uvarrow.h"

struct skip_options {
    int64_t batches;
    void *reserved[4];
};

struct skip {
    struct uva__stage stage; /* first */
    int64_t left;            /* batches still to be left out */
};

static struct skip *skip_of(struct uva__stage *stage)
{
    return uva__container_of(stage, struct skip, stage);
}

static void skip_init(struct uva__stage *stage,
                      const struct uva__stage_setup *setup)
{
    skip_of(stage)->left =
        ((const struct skip_options *)setup->options)->batches;
}

static void skip_task(struct uva__stage *stage, struct ArrowAsyncTask *task,
                      const char *metadata)
{
    struct skip *s = skip_of(stage);

    if (s->left == 0) {
        uva__stage_keep(stage, task, metadata);
        return;
    }
    s->left--;
    uva__intake_come(&stage->in);
    uva__task_drop(task);
}

/* The batches to be left out are requested beside the demand. */
static void skip_pull(struct uva__source *source, int64_t demand)
{
    const struct skip *s = skip_of(uva__stage_of(source));

    uva__stage_pull(source, demand > 0 ? demand + s->left : 0);
}

static int skip_add(struct uva_stream *stream,
                    const struct skip_options *options)
{
    static const struct uva__option_limit limits[] = {
        UVA__LIMIT(skip_options, batches, 0, INT64_MAX / 2), {0}};
    static const struct uva__stage_kind kind = {
        .options = {UVA__OPTIONS(skip_options), .limits = limits},
        .size = sizeof(struct skip),
        .needs = UVA__STAGE_CHEAP,
        .init = skip_init,
        .source = {UVA__STAGE_RELAYS(uva__stage_stop), .name = "skip",
                   .pull = skip_pull, .take = uva__stage_take},
        .task = skip_task,
    };

    return uva__stage_add(stream, &kind, options);
}

/* ---- tests -------------------------------------------------------------- */

enum { BATCHES = 5 };

static void array_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static struct uva_stream *stream_make(struct uva_runtime *runtime)
{
    struct ArrowSchema schema = {
        .format = "n", .name = "", .release = schema_release};
    struct ArrowDeviceArray arrays[BATCHES];
    struct ArrowArray plain;

    for (int i = 0; i < BATCHES; i++) {
        plain = (struct ArrowArray){
            .length = 1, .null_count = 1, .release = array_release};
        uva_array_from_cpu(&plain, &arrays[i]);
    }
    return uva_stream_from_arrays(runtime, &schema, arrays, BATCHES);
}

static int64_t passed; /* batches passed on; -1: not done */

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    (void)batch;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    ck_assert_int_eq(outcome->end, UVA_END_COMPLETE);
    passed = outcome->batches;
}

START_TEST(the_first_batches_are_left_out)
{
    const struct uva_consumer consumer = {.on_batch = on_batch,
                                          .on_done = on_done};
    const int64_t skipped = _i;
    struct uva_runtime *runtime;
    struct uva_stream *stream;

    passed = -1;
    ck_assert_int_eq(uva_runtime_open_turned(NULL, NULL, NULL, &runtime, NULL),
                     0);
    stream = stream_make(runtime);
    ck_assert_int_eq(
        skip_add(stream, &(struct skip_options){.batches = skipped}), 0);
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
    uva_stream_release(stream);
    while (passed < 0)
        ck_assert(uva_runtime_turn(runtime));
    ck_assert_int_eq(uva_runtime_join(runtime, 0), 0);
    ck_assert_int_eq(passed, skipped < BATCHES ? BATCHES - skipped : 0);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("skip");

    tcase_add_loop_test(c, the_first_batches_are_left_out, 0, BATCHES + 2);
    return suite_main("a new stage", NULL, NULL, c, NULL);
}
