/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads may return a moment after the runtime has closed. The fixture
 * waits without a limit for their releases, because Check limits the time of
 * each test. */
#include "support/fixture.h"

#include <check.h>
#include <sched.h>
#include <string.h>

#include "support/soft_memory.h"

/* ---- opening and closing ------------------------------------------------ */

void fixture_open(struct fixture *f, int64_t batches)
{
    fixture_open_with(f, batches, &(struct uva_runtime_options){0});
}

static void ends_open(struct fixture *f, int64_t batches)
{
    fake_source_init(&f->fake, batches);
    f->options = fake_source_options(&f->fake);
    recording_init(&f->got);
    f->open = true;
}

void fixture_open_with(struct fixture *f, int64_t batches,
                       const struct uva_runtime_options *options)
{
    memset(f, 0, sizeof(*f));
    loop_open_with(&f->loop, options);
    ends_open(f, batches);
}

void fixture_open_beside(struct fixture *f, int64_t batches,
                         const struct fixture *other)
{
    memset(f, 0, sizeof(*f));
    f->shares = true;
    f->loop.runtime = other->loop.runtime;
    ends_open(f, batches);
}

static void device_armed(void *ctx)
{
    loop_nudge(ctx);
}

void fixture_device(struct fixture *f, enum soft_mode mode)
{
    struct uva_error error;

    soft_device_init(&f->device, mode);
    f->device.armed = device_armed;
    f->device.ctx = &f->loop;
    f->has_device = true;
    ck_assert_int_eq(uva_device_register(f->loop.runtime, ARROW_DEVICE_EXT_DEV,
                                         soft_device_ops(&f->device),
                                         &f->device, &error),
                     0);
}

void fixture_open_device(struct fixture *f, enum soft_mode mode,
                         int64_t batches)
{
    fixture_open(f, batches);
    fixture_device(f, mode);
}

void fixture_release(struct fixture *f)
{
    uva_stream_release(f->stream);
    f->stream = NULL;
}

void fixture_drop(struct fixture *f)
{
    uva_stream_drop(f->stream);
    f->stream = NULL;
    f->got.silent = true;
}

/* The device thread may end after the runtime, or still be busy with a copy. */
static void device_close(struct fixture *f)
{
    while (atomic_load(&f->device.loads) != atomic_load(&f->device.unloads))
        (void)sched_yield();
    ck_assert(!atomic_load(&f->device.wrong_thread));
    ck_assert_int_eq(atomic_load(&f->device.events_live), 0);
    ck_assert_int_eq(soft_memory_live(), 0);
    soft_device_fini(&f->device);
}

void fixture_close(struct fixture *f)
{
    fixture_close_counted(f, f->readers + atomic_load(&f->fake.opened),
                          f->contexts);
}

void fixture_close_now(struct fixture *f)
{
    if (!f->open)
        return;
    fixture_release(f);
    if (f->loop.runtime != NULL)
        loop_close_runtime(&f->loop, 0);
    ck_assert_int_eq(atomic_load(&f->fake.live), 0);
    fixture_close(f);
}

static void runtime_close(struct fixture *f)
{
    if (f->loop.runtime != NULL)
        loop_close_runtime(&f->loop, 0);
    while (faulty_allocator_live(&f->loop.memory) != 0)
        (void)sched_yield();
    loop_close(&f->loop);
}

void fixture_close_counted(struct fixture *f, long released, long freed)
{
    long was_released, was_freed;

    if (!f->open)
        return;
    f->open = false;
    fixture_release(f);
    if (!f->shares)
        runtime_close(f);
    while (atomic_load(&f->fake.live) != 0 ||
           atomic_load(&f->fake.freed) < freed)
        (void)sched_yield();
    was_released = atomic_load(&f->fake.released);
    was_freed = atomic_load(&f->fake.freed);
    ck_assert_int_eq(f->got.wrong, 0);
    ck_assert_int_eq(was_released,
                     released == ANY_COUNT ? was_released : released);
    ck_assert_int_eq(was_freed, freed);
    fake_source_fini(&f->fake);
    if (f->has_device)
        device_close(f);
}

/* ---- sources ------------------------------------------------------------ */

struct uva_stream *fixture_blocking(struct fixture *f)
{
    struct ArrowArrayStream source;
    struct uva_stream *stream;

    fake_source_plain(&f->fake, &source);
    f->readers++;
    f->contexts++;
    stream =
        uva_stream_from_arrow_stream(f->loop.runtime, &source, &f->options);
    ck_assert(source.release == NULL);
    return stream;
}

struct uva_stream *fixture_tasks(struct fixture *f)
{
    struct uva_task_source source = fake_source_tasks(&f->fake);

    source.permits = f->options.permits;
    f->contexts++;
    return uva_stream_from_tasks(f->loop.runtime, &source);
}

static int open_plain(void *ctx, struct ArrowArrayStream *out,
                      struct uva_error *error)
{
    struct fake_source *fake = ctx;

    (void)error;
    fake_source_plain(fake, out);
    atomic_fetch_add(&fake->opened, 1);
    return 0;
}

struct uva_stream *fixture_hook(struct fixture *f)
{
    f->options.open = open_plain;
    f->contexts++;
    return uva_stream_from_arrow_stream(f->loop.runtime, NULL, &f->options);
}

struct uva_stream *fixture_on_loop(struct fixture *f)
{
    struct ArrowDeviceArrayStream device;

    f->options.on_loop = true;
    f->options.interrupt = NULL;
    fake_source_device(&f->fake, ARROW_DEVICE_CPU, &device);
    f->contexts++;
    return uva_stream_from_device_stream(f->loop.runtime, &device, &f->options);
}

struct uva_stream *fixture_device_stream(struct fixture *f)
{
    struct ArrowDeviceArrayStream source;

    soft_device_stream(&f->device, &f->fake, &source);
    return uva_stream_from_device_stream(f->loop.runtime, &source, NULL);
}

struct uva_stream *fixture_arrays(struct fixture *f,
                                  struct ArrowDeviceArray *arrays, int count)
{
    struct ArrowSchema schema;

    fake_source_schema(&f->fake, &schema);
    return uva_stream_from_arrays(f->loop.runtime, &schema, arrays,
                                  (size_t)count);
}

const struct fixture_source fixture_sources[FIXTURE_SOURCES] = {
    [SOURCE_BLOCKING] = {"blocking", fixture_blocking},
    [SOURCE_TASKS] = {"tasks", fixture_tasks},
    [SOURCE_HOOK] = {"hook", fixture_hook},
    [SOURCE_ON_LOOP] = {"on loop", fixture_on_loop},
};

/* ---- running ------------------------------------------------------------ */

void fixture_start(struct fixture *f)
{
    recording_start(&f->got, f->stream);
}

int fixture_try(struct fixture *f, struct uva_error *error)
{
    const struct uva_consumer table = recording_table(&f->got);

    return uva_stream_for_each(f->stream, &table, error);
}

int fixture_await(struct fixture *f)
{
    recording_await_done(&f->got, &f->loop);
    ck_assert_int_eq(f->got.wrong, 0);
    return f->got.outcome.error.code;
}

int fixture_run(struct fixture *f)
{
    fixture_start(f);
    return fixture_await(f);
}

void fixture_ready(struct fixture *f, struct uva_stream *stream,
                   const struct uva_ready *options)
{
    f->stream = stream;
    ck_assert_int_eq(uva_stream_ready(stream, options), 0);
}

void fixture_completes(struct fixture *f, int64_t batches)
{
    ck_assert_int_eq(fixture_run(f), 0);
    ck_assert_int_eq(f->got.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(f->got.batches, batches);
}

int fixture_consume(struct fixture *f, struct uva_stream *stream)
{
    recording_consume(&f->got, stream);
    return fixture_await(f);
}

void fixture_await_gate(struct fixture *f)
{
    while (!fake_source_is_waiting(&f->fake)) {
        (void)uv_run(&f->loop.uv, UV_RUN_NOWAIT);
        (void)sched_yield();
    }
}

void fixture_refused(struct fixture *f, struct uva_stream *stream, int code,
                     const char *text)
{
    const struct uva_consumer table = recording_table(&f->got);
    struct uva_error first = {0}, second = {0};

    ck_assert_ptr_nonnull(stream);
    ck_assert_int_eq(uva_stream_status(stream, &first), code);
    text_contains(first.message, text);
    ck_assert_int_eq(uva_stream_for_each(stream, &table, &second), code);
    ck_assert_int_eq(second.code, code);
    ck_assert_str_eq(first.message, second.message);
    uva_stream_release(stream);
    ck_assert_int_eq(f->got.done, 0);
}

void fixture_on_answer(void *ctx, struct ArrowDeviceArray *array,
                       const struct uva_error *error)
{
    struct fixture *f = ctx;

    (void)array;
    ck_assert(uva_runtime_on_loop(f->loop.runtime));
    f->answer = *error;
    f->answers++;
}

void fixture_on_answer_release(void *ctx, struct ArrowDeviceArray *array,
                               const struct uva_error *error)
{
    fixture_on_answer(ctx, array, error);
    uva_array_release(array);
}

void fixture_wait(struct fixture *f, struct ArrowDeviceArray *array,
                  int64_t timeout_ms)
{
    ck_assert_int_eq(uva_array_wait(f->loop.runtime, array, timeout_ms,
                                    fixture_on_answer_release, f),
                     0);
}

struct answers {
    struct fixture *fixture;
    int wanted;
};

static bool has_answers(void *ctx)
{
    const struct answers *a = ctx;

    return a->fixture->answers >= a->wanted;
}

int fixture_await_answers(struct fixture *f, int n)
{
    struct answers a = {f, n};

    loop_until(&f->loop, has_answers, &a);
    ck_assert_int_eq(f->answers, n);
    return f->answer.code;
}
