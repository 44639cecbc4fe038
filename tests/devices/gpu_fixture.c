/* SPDX-License-Identifier: Apache-2.0 */
/* The gates are words that streams wait for, so that no case depends on time.
 */
#include "devices/gpu_fixture.h"

#include <check.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

void gpu_fixture_open(struct gpu_fixture *s, const struct vendor_driver *gpu,
                      const struct fake_control *control, int64_t batches)
{
    memset(s, 0, sizeof(*s));
    s->gpu = gpu;
    s->control = control;
    gpu->enter();
    s->words = vendor_host_alloc(GPU_STREAMS * sizeof(*s->words));
    for (int i = 0; i < GPU_STREAMS; i++) {
        s->streams[i] = vendor_stream_new();
        atomic_store(&s->words[i], 0);
    }
    s->idle = vendor_stream_new();
    loop_open(&s->loop);
    fake_source_init(&s->fake, batches);
}

void gpu_fixture_await_end(const struct fake_control *control)
{
    static const int whats[] = {FAKE_EVENTS, FAKE_STREAMS, FAKE_BLOCKS,
                                FAKE_KEPT, FAKE_QUEUED};

    if (control->fakegpu_count == NULL)
        return;
    for (size_t i = 0; i < sizeof(whats) / sizeof(whats[0]); i++)
        while (control->fakegpu_count(whats[i]) != 0)
            (void)sched_yield();
    ck_assert_int_eq(control->fakegpu_count(FAKE_BREACHES), 0);
}

void gpu_fixture_close(struct gpu_fixture *s)
{
    if (s->gpu == NULL)
        return;
    gpu_fixture_pass_all(s);
    loop_close(&s->loop);
    for (int k = 0; k < GPU_BATCHES; k++) /* of a case that has failed */
        uva_array_release(&s->arrays[k]);
    ck_assert(!s->early);
    while (atomic_load(&s->fake.live) != 0)
        (void)sched_yield();
    fake_source_fini(&s->fake);
    for (int i = 0; i < GPU_STREAMS; i++)
        vendor_stream_drain(s->streams[i]);
    for (int k = 0; k < GPU_BATCHES; k++)
        if (s->events[k] != NULL)
            vendor_event_free(s->events[k]);
    for (int i = 0; i < GPU_STREAMS; i++)
        vendor_stream_free(s->streams[i]);
    vendor_stream_free(s->idle);
    vendor_host_free((void *)s->words);
    s->gpu->leave();
    s->gpu = NULL;
    gpu_fixture_await_end(s->control);
}

void gpu_fixture_array(struct gpu_fixture *s, int k,
                       struct ArrowDeviceArray *out)
{
    fake_source_batch(&s->fake, k, out);
    out->device_type = s->gpu->device_type;
    out->device_id = 0;
}

void gpu_fixture_arrays(struct gpu_fixture *s, int count)
{
    const bool each = 2 * count <= GPU_OPERATIONS * GPU_STREAMS;

    for (int k = 0; k < count; k++) {
        void *stream = s->streams[k % GPU_STREAMS];
        if (each || k < GPU_STREAMS)
            s->gpu->stream_gate(stream, &s->words[k % GPU_STREAMS],
                                (uint32_t)(k / GPU_STREAMS) + 1);
        s->events[k] = vendor_event_new();
        vendor_event_record(s->events[k], stream);
        gpu_fixture_array(s, k, &s->arrays[k]);
        s->arrays[k].sync_event = &s->events[k];
    }
}

void gpu_fixture_pass(struct gpu_fixture *s, int k)
{
    atomic_store(&s->words[k % GPU_STREAMS], (uint32_t)(k / GPU_STREAMS) + 1);
}

void gpu_fixture_pass_all(struct gpu_fixture *s)
{
    for (int i = 0; i < GPU_STREAMS; i++)
        atomic_store(&s->words[i], GPU_BATCHES);
}

void gpu_fixture_commands_end(struct gpu_fixture *s, int k)
{
    const long before = atomic_load(&s->fake.live);

    gpu_fixture_array(s, k, &s->arrays[k]);
    uva_array_release_after(s->loop.runtime, &s->arrays[k], s->idle);
    while (atomic_load(&s->fake.live) > before)
        (void)sched_yield();
}

/* ---- streams ------------------------------------------------------------ */

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct gpu_fixture *s = ctx;
    const int64_t k = s->batches++;

    (void)batch;
    if (!s->unwatched)
        s->early |= !s->gpu->event_is_over(s->events[k]);
    return 0;
}

void gpu_fixture_on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct gpu_fixture *s = ctx;

    s->done = true;
    s->outcome = *outcome;
}

struct uva_stream *gpu_fixture_ready(struct gpu_fixture *s, int count,
                                     const struct uva_ready *options)
{
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = gpu_fixture_on_done, .ctx = s};
    struct ArrowSchema schema;
    struct uva_stream *stream;

    fake_source_schema(&s->fake, &schema);
    stream = uva_stream_from_arrays(s->loop.runtime, &schema, s->arrays,
                                    (size_t)count);
    ck_assert_int_eq(uva_stream_ready(stream, options), 0);
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
    return stream;
}

static bool is_done(void *ctx)
{
    return ((struct gpu_fixture *)ctx)->done;
}

void gpu_fixture_until_done(struct gpu_fixture *s)
{
    loop_until(&s->loop, is_done, s);
    s->done = false;
}

/* ---- one array ---------------------------------------------------------- */

static void on_answer(void *ctx, struct ArrowDeviceArray *array,
                      const struct uva_error *error)
{
    struct gpu_fixture *s = ctx;

    (void)array;
    s->answers++;
    s->answer = *error;
    s->done = true;
}

void gpu_fixture_ask(struct gpu_fixture *s, int k, int64_t timeout_ms)
{
    ck_assert_int_eq(uva_array_wait(s->loop.runtime, &s->arrays[k], timeout_ms,
                                    on_answer, s),
                     0);
}
