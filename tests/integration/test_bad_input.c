/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes of the other side while a stream runs: sources that fail or break
 * the protocol, and consumers that refuse, stall or drop the stream. Each ends
 * with a code and a text that names the mistake, and everything is released
 * exactly once. test_bad_calls.c tests the mistakes that a caller makes before
 * that. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "stream/task.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/native.h"
#include "support/recording_handler.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

enum { BATCHES = 5 };

static struct fixture f;
static struct fake_source *const fake = &f.fake;
static struct recording_consumer *const got = &f.got;
static long releases, frees; /* calls that are expected at the end */
static int map_frees, map_frees_due;

static void set_up(void)
{
    fixture_open(&f, BATCHES);
    releases = frees = 1;
    map_frees = map_frees_due = 0;
}

static void tear_down(void)
{
    fixture_close_counted(&f, releases, frees);
    ck_assert_int_eq(map_frees, map_frees_due);
}

static void run(void)
{
    fixture_consume(&f, fixture_blocking(&f));
}

static void run_tasks(void)
{
    releases = 0;
    fixture_consume(&f, fixture_tasks(&f));
}

static void ck_ended(enum uva_end end, int code, const char *text)
{
    recording_ended(&f.got, end, code, text);
}

/* ---- sources that fail -------------------------------------------------- */

/* A foreign code is passed on as a positive number, as a source may return
 * -code (ER-01). */
static const int codes[] = {EIO, -EPIPE, 100000};

START_TEST(an_error_of_get_schema_ends_the_stream)
{
    fake->schema_code = codes[_i];
    run();
    ck_ended(UVA_END_FAILED, abs(codes[_i]), "the disk is on fire");
    ck_assert_int_eq(got->schemas, 0);
}
END_TEST

START_TEST(an_error_of_get_next_comes_behind_the_batches_before_it)
{
    fake->fail_at = 3;
    fake->fail_code = codes[_i];
    run();
    ck_ended(UVA_END_FAILED, abs(codes[_i]), "the disk is on fire");
    ck_assert_int_eq(got->batches, 3);
    ck_assert_int_eq(got->outcome.batches, 3);
}
END_TEST

static void await_the_end(struct recording_consumer *o, struct uva_batch *batch)
{
    (void)o;
    (void)batch;
    await_count(&fake->released, 1);
}

START_TEST(an_error_that_is_known_before_its_turn_is_not_lost)
{
    got->on_batch = await_the_end;
    fake->batches = 30;
    fake->fail_at = 20;
    run();
    ck_ended(UVA_END_FAILED, EIO, "the disk is on fire");
    ck_assert_int_eq(got->batches, 20);
}
END_TEST

START_TEST(an_error_without_a_message_is_named_by_its_code)
{
    fake->fail_at = 0;
    fake->fail_text = NULL;
    run();
    ck_ended(UVA_END_FAILED, EIO, "EIO");
    ck_assert_int_eq(got->schemas, 1);
    ck_assert_int_eq(got->batches, 0);
}
END_TEST

static int open_fails(void *ctx, struct ArrowArrayStream *out,
                      struct uva_error *error)
{
    struct fake_source *source = ctx;

    (void)out;
    if (source->fail_text != NULL)
        (void)uva_error_set(error, EIO, "%s", source->fail_text);
    return source->open_code;
}

static int open_gives_nothing(void *ctx, struct ArrowArrayStream *out,
                              struct uva_error *error)
{
    (void)ctx;
    (void)out;
    (void)error;
    return 0;
}

static int open_gives_half(void *ctx, struct ArrowArrayStream *out,
                           struct uva_error *error)
{
    (void)error;
    fake_source_plain(ctx, out);
    out->get_next = NULL;
    return 0;
}

static void run_opening(int (*hook)(void *, struct ArrowArrayStream *,
                                    struct uva_error *))
{
    struct uva_arrow_source options = fake_source_options(fake);

    options.open = hook;
    fixture_consume(
        &f, uva_stream_from_arrow_stream(f.loop.runtime, NULL, &options));
}

START_TEST(an_error_of_open_ends_the_stream)
{
    fake->open_code = codes[_i];
    releases = 0;
    run_opening(open_fails);
    ck_ended(UVA_END_FAILED, abs(codes[_i]), "the disk is on fire");
}
END_TEST

START_TEST(an_error_of_open_without_a_text_has_one)
{
    fake->open_code = ENOENT;
    fake->fail_text = NULL;
    releases = 0;
    run_opening(open_fails);
    ck_ended(UVA_END_FAILED, ENOENT, "o such file");
}
END_TEST

START_TEST(an_open_that_gives_nothing_is_an_error)
{
    releases = 0;
    run_opening(open_gives_nothing);
    ck_ended(UVA_END_FAILED, EINVAL, "source");
}
END_TEST

START_TEST(an_open_that_gives_half_a_stream_is_an_error)
{
    run_opening(open_gives_half);
    ck_ended(UVA_END_FAILED, EINVAL, "get_next");
}
END_TEST

START_TEST(an_error_of_tasks_comes_behind_the_batches_before_it)
{
    fake->fail_at = 3;
    fake->fail_code = codes[_i];
    run_tasks();
    ck_ended(UVA_END_FAILED, abs(codes[_i]), "the disk is on fire");
    ck_assert_int_eq(got->batches, 3);
}
END_TEST

START_TEST(an_error_of_a_task_schema_ends_the_stream)
{
    fake->schema_code = codes[_i];
    run_tasks();
    ck_ended(UVA_END_FAILED, abs(codes[_i]), "the disk is on fire");
}
END_TEST

START_TEST(an_error_of_extract_ends_the_stream)
{
    fake->extract_at = 2;
    fake->fail_code = codes[_i];
    run_tasks();
    ck_ended(UVA_END_FAILED, abs(codes[_i]), "the disk is on fire");
    ck_assert_int_eq(got->batches, 2);
}
END_TEST

static int extract_nothing(void *ctx, void *item, struct ArrowDeviceArray *out,
                           struct uva_error *error)
{
    struct uva_task_source real = fake_source_tasks(ctx);

    (void)out;
    return real.extract(ctx, item, NULL, error);
}

START_TEST(an_extract_that_gives_nothing_broke_the_protocol)
{
    struct uva_task_source source = fake_source_tasks(fake);

    source.extract = extract_nothing;
    releases = 0;
    fixture_consume(&f, uva_stream_from_tasks(f.loop.runtime, &source));
    ck_ended(UVA_END_FAILED, EPROTO, "no array");
}
END_TEST

/* ---- schemas and arrays that are wrong ---------------------------------- */

static void (*bend)(struct ArrowSchema *schema);

static void bend_released(struct ArrowSchema *schema)
{
    uva_schema_release(schema);
}

static void bend_format(struct ArrowSchema *schema)
{
    schema->format = NULL;
}

static void bend_metadata(struct ArrowSchema *schema)
{
    static const int32_t negative = -1;

    schema->metadata = (const char *)&negative;
}

static void bend_huge(struct ArrowSchema *schema)
{
    static const int32_t huge = INT32_MAX;

    schema->metadata = (const char *)&huge;
}

static void bend_count(struct ArrowSchema *schema)
{
    schema->n_children = -1;
}

static void bend_child(struct ArrowSchema *schema)
{
    schema->children[0]->format = NULL;
}

static int bent_get_schema(struct ArrowArrayStream *stream,
                           struct ArrowSchema *out)
{
    fake_source_schema(((struct fake_stream *)stream->private_data)->fake, out);
    bend(out);
    return 0;
}

/* It is copied before the schema is looked at. */
static const char *about(void *ctx, int code)
{
    (void)ctx;
    return code == 0 ? NATIVE_PAIR : NULL;
}

static void run_bent(void (*how_to)(struct ArrowSchema *schema))
{
    struct uva_arrow_source options = fake_source_options(fake);
    struct ArrowArrayStream source;

    bend = how_to;
    options.metadata = about;
    fake_source_plain(fake, &source);
    source.get_schema = bent_get_schema;
    fixture_consume(
        &f, uva_stream_from_arrow_stream(f.loop.runtime, &source, &options));
}

static const struct {
    void (*bend)(struct ArrowSchema *schema);
    int code;
} bent[] = {
    {bend_released, EINVAL}, {bend_format, EINVAL}, {bend_metadata, EINVAL},
    {bend_huge, EMSGSIZE},   {bend_count, EINVAL},  {bend_child, EINVAL},
};

START_TEST(a_schema_that_is_wrong_ends_the_stream)
{
    run_bent(bent[_i].bend);
    ck_ended(UVA_END_FAILED, bent[_i].code, "schema");
    ck_assert_int_eq(got->schemas, 0);
}
END_TEST

START_TEST(an_array_that_does_not_fit_the_schema_broke_the_protocol)
{
    fake->wrong_shape = true;
    run();
    ck_ended(UVA_END_FAILED, EPROTO, "batch 0");
    text_contains(got->outcome.error.message, "buffers");
    ck_assert_int_eq(got->batches, 0);
}
END_TEST

static void bend_unknown(struct ArrowSchema *schema)
{
    schema->children[0]->format = "?new";
}

static void size_it(struct recording_consumer *o, struct uva_batch *batch)
{
    int64_t size;

    (void)o;
    ck_assert_int_eq(uva_array_size(batch->schema, &batch->data, &size),
                     ENOTSUP);
}

START_TEST(a_format_unknown_here_passes_but_has_no_size)
{
    got->on_batch = size_it;
    run_bent(bend_unknown);
    ck_ended(UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(got->rows, BATCHES * 3);
}
END_TEST

static void device_stream(struct uva_stream **out)
{
    const struct uva_arrow_source options = fake_source_options(fake);
    struct ArrowDeviceArrayStream source;

    fake_source_device(fake, ARROW_DEVICE_CUDA, &source);
    *out = uva_stream_from_device_stream(f.loop.runtime, &source, &options);
}

START_TEST(data_on_a_device_is_refused_with_advice)
{
    struct uva_stream *stream;

    device_stream(&stream);
    fixture_consume(&f, stream);
    ck_ended(UVA_END_FAILED, ENOTSUP, "uva_stream_transfer()");
    ck_assert_int_eq(got->batches, 0);
}
END_TEST

static void take_outcome(void *ctx)
{
    struct uva_outcome outcome;
    struct uva_batch batch;

    if (uva_stream_take(ctx, &batch, &outcome) == ENOENT)
        recording_on_done(got, &outcome);
}

START_TEST(data_on_a_device_is_refused_by_take_too)
{
    struct uva_stream *stream;

    device_stream(&stream);
    ck_assert_int_eq(
        uva_stream_start_take(stream, NULL, take_outcome, stream, NULL), 0);
    take_outcome(stream);
    fixture_await(&f);
    ck_ended(UVA_END_FAILED, ENOTSUP, "uva_stream_transfer()");
    uva_stream_release(stream);
}
END_TEST

static const int32_t counts[] = {-1, INT32_MAX, INT32_MIN};

START_TEST(a_batch_with_malformed_metadata_comes_without_it)
{
    fake->metadata = (const char *)&counts[_i];
    run_tasks();
    ck_ended(UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(got->batches, BATCHES);
    ck_assert_int_eq(got->tagged, 0);
}
END_TEST

/* ---- maps that fail ----------------------------------------------------- */

static int map_fails(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)out;
    if (in->ordinal == 2)
        return uva_error_set(error, EDOM, "no logarithm of zero");
    uva_array_move(&in->data, out);
    return 0;
}

static int map_gives_nothing(void *ctx, struct uva_batch *in,
                             struct ArrowDeviceArray *out,
                             struct uva_error *error)
{
    (void)ctx;
    (void)in;
    (void)out;
    (void)error;
    return 0;
}

static int map_schema_fails(void *ctx, const struct ArrowSchema *in,
                            struct ArrowSchema *out, struct uva_error *error)
{
    (void)ctx;
    (void)in;
    (void)out;
    return uva_error_set(error, EDOM, "no such column");
}

static int map_schema_gives_nothing(void *ctx, const struct ArrowSchema *in,
                                    struct ArrowSchema *out,
                                    struct uva_error *error)
{
    (void)ctx;
    (void)in;
    (void)out;
    (void)error;
    return 0;
}

static int map_schema_is_bent(void *ctx, const struct ArrowSchema *in,
                              struct ArrowSchema *out, struct uva_error *error)
{
    (void)in;
    (void)error;
    fake_source_schema(ctx, out);
    bend_format(out);
    return 0;
}

static void count_free(void *ctx)
{
    ck_assert_ptr_eq(ctx, fake);
    map_frees++;
}

static void run_mapped(struct uva_map options)
{
    struct uva_stream *stream = fixture_blocking(&f);

    options.ctx = fake;
    options.free_ctx = count_free;
    map_frees_due = 1;
    ck_assert_int_eq(uva_stream_map(stream, &options), 0);
    fixture_consume(&f, stream);
}

START_TEST(an_error_of_a_map_ends_the_stream)
{
    run_mapped((struct uva_map){.batch = map_fails, .on_loop = _i == 1});
    ck_ended(UVA_END_FAILED, EDOM, "no logarithm of zero");
    ck_assert_int_eq(got->batches, 2);
}
END_TEST

START_TEST(a_map_that_gives_nothing_broke_the_protocol)
{
    run_mapped(
        (struct uva_map){.batch = map_gives_nothing, .on_loop = _i == 1});
    ck_ended(UVA_END_FAILED, EPROTO, "map");
}
END_TEST

START_TEST(an_error_of_a_maps_schema_ends_the_stream)
{
    run_mapped((struct uva_map){
        .batch = map_fails, .schema = map_schema_fails, .on_loop = _i == 1});
    ck_ended(UVA_END_FAILED, EDOM, "no such column");
    ck_assert_int_eq(got->schemas, 0);
}
END_TEST

START_TEST(a_maps_schema_that_gives_nothing_broke_the_protocol)
{
    run_mapped((struct uva_map){.batch = map_fails,
                                .schema = map_schema_gives_nothing,
                                .on_loop = _i == 1});
    ck_ended(UVA_END_FAILED, EPROTO, "map");
}
END_TEST

START_TEST(a_maps_schema_without_a_format_ends_the_stream)
{
    run_mapped((struct uva_map){
        .batch = map_fails, .schema = map_schema_is_bent, .on_loop = _i == 1});
    ck_ended(UVA_END_FAILED, EPROTO, "schema");
    ck_assert_int_eq(got->schemas, 0);
}
END_TEST

/* ---- consumers that refuse ---------------------------------------------- */

START_TEST(a_consumer_may_refuse_the_schema)
{
    got->schema_code = _i == 0 ? EDOM : -EDOM;
    run();
    ck_ended(UVA_END_REJECTED, EDOM, "schema");
    ck_assert_int_eq(got->batches, 0);
}
END_TEST

START_TEST(a_consumer_may_refuse_a_batch)
{
    got->batch_code = _i == 0 ? EDOM : -EDOM;
    got->batch_from = 2;
    run();
    ck_ended(UVA_END_REJECTED, EDOM, "");
    ck_assert_int_eq(got->batches, 3);
    ck_assert_int_eq(got->rows, 6);
}
END_TEST

START_TEST(a_consumer_may_have_enough)
{
    got->batch_code = ECANCELED;
    got->batch_from = 1;
    run();
    ck_ended(UVA_END_CANCELLED, ECANCELED, "");
    ck_assert_int_eq(got->batches, 2);
}
END_TEST

static struct uva_stream *held; /* for use in callbacks */

static void resume_it(struct recording_consumer *o, struct uva_batch *batch)
{
    (void)o;
    uva_stream_resume(batch->stream);
}

static void *resume_elsewhere(void *ctx)
{
    uva_stream_resume(ctx);
    return NULL;
}

static void have_it_resumed(struct recording_consumer *o,
                            struct uva_batch *batch)
{
    pthread_t thread;

    (void)o;
    ck_assert_int_eq(
        pthread_create(&thread, NULL, resume_elsewhere, batch->stream), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

START_TEST(a_resume_during_on_batch_is_not_lost)
{
    got->on_batch = _i == 0 ? resume_it : have_it_resumed;
    got->batch_code = EAGAIN;
    got->batch_from = 1;
    got->batch_to = 4;
    run();
    ck_ended(UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(got->batches, BATCHES);
    ck_assert_int_eq(got->rows, BATCHES * 3);
    ck_assert_int_eq(got->outcome.batches, BATCHES);
}
END_TEST

START_TEST(a_stopped_consumer_can_be_cancelled)
{
    got->batch_code = EAGAIN;
    held = fixture_blocking(&f);
    recording_consume(got, uva_stream_acquire(held));
    loop_settle(&f.loop);
    while (got->batches == 0)
        loop_turn(&f.loop);
    uva_stream_cancel(held, EDOM, "nobody resumes it");
    fixture_await(&f);
    ck_ended(UVA_END_CANCELLED, EDOM, "nobody resumes it");
    ck_assert_int_eq(got->batches, 1);
    uva_stream_release(held);
}
END_TEST

/* Waits until all batches have been read, before the first one is accepted. */
static void await_all(void)
{
    await_count(&fake->given, fake->batches);
}

static long cancel_at;

static void cancel_it(struct recording_consumer *o, struct uva_batch *batch)
{
    await_all();
    if (atomic_load(&o->batches) == cancel_at)
        uva_stream_cancel(batch->stream, 0, "seen enough");
}

START_TEST(after_a_cancel_in_on_batch_no_batch_comes)
{
    got->on_batch = cancel_it;
    fake->batches = 30;
    cancel_at = _i;
    run();
    ck_ended(UVA_END_CANCELLED, ECANCELED, "seen enough");
    ck_assert_int_eq(got->batches, cancel_at);
}
END_TEST

static void drop_it(struct recording_consumer *o, struct uva_batch *batch)
{
    (void)o;
    await_all();
    uva_stream_drop(batch->stream);
}

START_TEST(a_drop_in_its_own_on_batch_is_the_end)
{
    const struct uva_consumer table = recording_table(got);

    got->on_batch = drop_it;
    got->batch_code = _i == 0 ? 0 : _i == 1 ? EAGAIN : EDOM;
    held = fixture_blocking(&f);
    ck_assert_int_eq(uva_stream_for_each(held, &table, NULL), 0);
    while (got->batches == 0)
        loop_turn(&f.loop);
    loop_settle(&f.loop);
    await_count(&fake->freed, 1);
    loop_settle(&f.loop);
    ck_assert_int_eq(got->batches, 1);
    ck_assert_int_eq(got->done, 0);
}
END_TEST

static void *drop_elsewhere(void *ctx)
{
    uva_stream_drop(ctx);
    return NULL;
}

START_TEST(a_drop_on_another_thread_is_a_cancel_and_a_release)
{
    const struct uva_consumer table = recording_table(got);
    pthread_t thread;

    fake->gate_at = 1;
    held = fixture_blocking(&f);
    ck_assert_int_eq(uva_stream_for_each(held, &table, NULL), 0);
    while (got->batches == 0)
        loop_turn(&f.loop);
    ck_assert_int_eq(pthread_create(&thread, NULL, drop_elsewhere, held), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    fixture_await(&f);
    ck_ended(UVA_END_CANCELLED, ECANCELED, "dropped");
}
END_TEST

/* ---- handlers that break a rule ----------------------------------------- */

static struct recording_handler handler, other;

static void drive(struct uva_stream *stream)
{
    const struct uva_drive options = {.on_done = recording_on_done, .ctx = got};

    ck_assert_int_eq(uva_stream_drive(stream, &handler.handler, &options, NULL),
                     0);
}

static void drive_to_end(void)
{
    struct uva_stream *stream = fixture_blocking(&f);

    drive(stream);
    uva_stream_release(stream);
    fixture_await(&f);
}

static void request_badly(struct recording_handler *h)
{
    h->handler.producer->request(h->handler.producer, *(int64_t *)h->ctx);
}

START_TEST(a_request_for_nothing_is_an_error)
{
    int64_t wants[] = {0, -1, INT64_MIN};

    recording_handler_init(&handler, 5, 0);
    handler.on_task = request_badly;
    handler.ctx = &wants[_i];
    drive_to_end();
    ck_assert_str_eq(handler.transcript, "schema task error release");
    ck_assert_int_eq(handler.error_code, EINVAL);
    text_contains(handler.message, "request");
    ck_ended(UVA_END_FAILED, EINVAL, "request");
}
END_TEST

START_TEST(a_second_extraction_is_refused_and_touches_nothing)
{
    struct ArrowDeviceArray out, before;
    struct ArrowAsyncTask copy;

    recording_handler_init(&handler, BATCHES + 1, 0);
    handler.hold = true;
    drive_to_end();
    ck_assert_str_eq(handler.transcript,
                     "schema task task task task task end release");
    copy = handler.held[0];
    ck_assert_int_eq(recording_handler_extract(&handler, &handler.held[0]), 0);
    memset(&out, 0x5a, sizeof(out));
    before = out;
    ck_assert_int_eq(copy.extract_data(&copy, &out), EINVAL);
    ck_assert_mem_eq(&out, &before, sizeof(out));
    ck_assert_int_eq(copy.extract_data(&copy, NULL), EINVAL);
    for (int i = 1; i < BATCHES; i++)
        ck_assert_int_eq(recording_handler_extract(&handler, &handler.held[i]),
                         0);
    ck_assert_int_eq(handler.rows, BATCHES * 3);
}
END_TEST

/* The stream is over, so the tasks are watched. */
START_TEST(a_watched_task_is_extracted_once)
{
    struct ArrowAsyncTask *task = handler.held, copy;
    struct ArrowDeviceArray out;

    recording_handler_init(&handler, BATCHES + 1, 0);
    handler.hold = true;
    drive_to_end();
    for (; task < handler.held + BATCHES; task++) {
        copy = *task;
        ck_assert_int_eq(uva_task_extract(task, &out), 0);
        ck_assert_int_eq(out.array.length, 3);
        uva_array_release(&out);
        ck_assert_int_eq(copy.extract_data(&copy, &out), EINVAL);
    }
}
END_TEST

/* A map runs while its task is being extracted. */
static int map_extracts(void *ctx, struct uva_batch *in,
                        struct ArrowDeviceArray *out, struct uva_error *error)
{
    struct ArrowAsyncTask *task = ctx;
    struct ArrowDeviceArray array;

    (void)error;
    ck_assert_int_eq(task->extract_data(task, &array), EINVAL);
    uva_array_move(&in->data, out);
    return 0;
}

START_TEST(a_task_that_is_being_extracted_is_extracted_once)
{
    struct ArrowAsyncTask again;
    struct uva_stream *stream = fixture_blocking(&f);

    recording_handler_init(&handler, BATCHES + 1, 0);
    handler.hold = true;
    ck_assert_int_eq(
        uva_stream_map(stream,
                       &(struct uva_map){.batch = map_extracts, .ctx = &again}),
        0);
    drive(stream);
    uva_stream_release(stream);
    while (handler.held_count < BATCHES)
        loop_turn(&f.loop);
    for (int i = 0; i < BATCHES; i++) {
        again = handler.held[i];
        ck_assert_int_eq(recording_handler_extract(&handler, &handler.held[i]),
                         0);
    }
    fixture_await(&f);
}
END_TEST

START_TEST(a_handler_that_never_requests_can_be_cancelled)
{
    recording_handler_init(&handler, 0, 0);
    held = fixture_blocking(&f);
    drive(held);
    while (strcmp(handler.transcript, "schema") != 0)
        loop_turn(&f.loop);
    loop_settle(&f.loop);
    ck_assert_int_eq(atomic_load(&fake->given), 0);
    uva_stream_cancel(held, EDOM, "nobody asks");
    fixture_await(&f);
    ck_assert_str_eq(handler.transcript, "schema error release");
    ck_assert_int_eq(handler.error_code, EDOM);
    ck_assert_str_eq(handler.message, "nobody asks");
    ck_ended(UVA_END_CANCELLED, EDOM, "nobody asks");
    uva_stream_release(held);
}
END_TEST

START_TEST(a_handler_may_refuse_the_schema)
{
    recording_handler_init(&handler, 1, 1);
    handler.schema_code = EDOM;
    drive_to_end();
    ck_assert_str_eq(handler.transcript, "schema release");
    ck_ended(UVA_END_REJECTED, EDOM, "handler");
}
END_TEST

START_TEST(a_handler_may_refuse_a_task)
{
    recording_handler_init(&handler, 1, 1);
    handler.task_code = EDOM;
    handler.task_code_at = 2;
    drive_to_end();
    ck_assert_str_eq(handler.transcript, "schema task task task release");
    ck_ended(UVA_END_REJECTED, EDOM, "handler");
}
END_TEST

START_TEST(a_handler_in_use_cannot_be_driven_again)
{
    struct uva_error error = {0};
    struct uva_stream *second;

    recording_handler_init(&handler, 0, 0);
    held = fixture_blocking(&f);
    drive(held);
    second = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_drive(second, &handler.handler, NULL, &error),
                     EBUSY);
    text_contains(error.message, "handler");
    recording_handler_init(&other, 0, 0);
    ck_assert_int_eq(uva_stream_drive(second, &other.handler, NULL, NULL), 0);
    uva_stream_cancel(second, 0, NULL);
    uva_stream_release(second);
    uva_stream_cancel(held, 0, NULL);
    fixture_await(&f);
    uva_stream_release(held);
    frees = 2;
}
END_TEST

/* ---- all sources -------------------------------------------------------- */

static TCase *bad_sources(void)
{
    TCase *c = suite_tests(
        "sources", an_error_that_is_known_before_its_turn_is_not_lost,
        an_error_without_a_message_is_named_by_its_code,
        an_error_of_open_without_a_text_has_one,
        an_open_that_gives_nothing_is_an_error,
        an_open_that_gives_half_a_stream_is_an_error,
        an_extract_that_gives_nothing_broke_the_protocol,
        an_array_that_does_not_fit_the_schema_broke_the_protocol,
        a_format_unknown_here_passes_but_has_no_size,
        data_on_a_device_is_refused_with_advice,
        data_on_a_device_is_refused_by_take_too, NULL);
    suite_add_loops(c, 0, 3, an_error_of_get_schema_ends_the_stream,
                    an_error_of_get_next_comes_behind_the_batches_before_it,
                    an_error_of_open_ends_the_stream,
                    an_error_of_tasks_comes_behind_the_batches_before_it,
                    an_error_of_a_task_schema_ends_the_stream,
                    an_error_of_extract_ends_the_stream,
                    a_batch_with_malformed_metadata_comes_without_it, NULL);
    tcase_add_loop_test(c, a_schema_that_is_wrong_ends_the_stream, 0,
                        (int)(sizeof(bent) / sizeof(*bent)));
    return c;
}

static TCase *bad_maps(void)
{
    TCase *c = tcase_create("maps");

    suite_add_loops(c, 0, 2, an_error_of_a_map_ends_the_stream,
                    a_map_that_gives_nothing_broke_the_protocol,
                    an_error_of_a_maps_schema_ends_the_stream,
                    a_maps_schema_that_gives_nothing_broke_the_protocol,
                    a_maps_schema_without_a_format_ends_the_stream, NULL);
    return c;
}

static TCase *bad_consumers(void)
{
    TCase *c = suite_tests("consumers", a_consumer_may_have_enough,
                           a_stopped_consumer_can_be_cancelled,
                           a_drop_on_another_thread_is_a_cancel_and_a_release,
                           a_second_extraction_is_refused_and_touches_nothing,
                           a_watched_task_is_extracted_once,
                           a_task_that_is_being_extracted_is_extracted_once,
                           a_handler_that_never_requests_can_be_cancelled,
                           a_handler_may_refuse_the_schema,
                           a_handler_may_refuse_a_task,
                           a_handler_in_use_cannot_be_driven_again, NULL);
    suite_add_loops(c, 0, 2, a_consumer_may_refuse_the_schema,
                    a_consumer_may_refuse_a_batch,
                    a_resume_during_on_batch_is_not_lost, NULL);
    tcase_add_loop_test(c, after_a_cancel_in_on_batch_no_batch_comes, 1, 10);
    suite_add_loops(c, 0, 3, a_drop_in_its_own_on_batch_is_the_end,
                    a_request_for_nothing_is_an_error, NULL);
    return c;
}

int main(void)
{
    return suite_main("bad_input", set_up, tear_down, bad_sources(), bad_maps(),
                      bad_consumers(), NULL);
}
