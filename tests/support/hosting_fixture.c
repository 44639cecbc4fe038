/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime uses no allocator of the test. */
#include "support/hosting_fixture.h"

#include <check.h>

void hosting_init(struct hosting_fixture *h)
{
    ck_assert_int_eq(uv_loop_init(&h->loop), 0);
    fake_source_init(&h->fake, HOSTING_BATCHES);
    recording_init(&h->consumer);
    atomic_store(&h->closings, 0);
}

void hosting_fini(struct hosting_fixture *h)
{
    ck_assert_int_eq(uv_loop_close(&h->loop), 0);
    fake_source_fini(&h->fake);
}

void hosting_on_closed(void *ctx)
{
    atomic_fetch_add(&((struct hosting_fixture *)ctx)->closings, 1);
}

void hosting_open_embedded(struct hosting_fixture *h)
{
    ck_assert_int_eq(uva_runtime_open(&h->loop, NULL, &h->rt, NULL), 0);
}

void hosting_close_embedded(struct hosting_fixture *h)
{
    ck_assert_int_eq(uva_runtime_close(h->rt, 0, hosting_on_closed, h), 0);
    (void)uv_run(&h->loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(atomic_load(&h->closings), 1);
}

struct uva_stream *hosting_stream(struct hosting_fixture *h, bool on_loop)
{
    struct uva_arrow_source options = fake_source_options(&h->fake);
    struct ArrowArrayStream source;

    options.on_loop = on_loop;
    fake_source_plain(&h->fake, &source);
    return uva_stream_from_arrow_stream(h->rt, &source, &options);
}

void hosting_start_stream(struct hosting_fixture *h)
{
    recording_consume(&h->consumer, hosting_stream(h, false));
}

void hosting_start_stuck(struct hosting_fixture *h)
{
    struct uva_arrow_source options = fake_source_options(&h->fake);
    struct ArrowArrayStream source;

    options.interrupt = NULL;
    h->fake.gate_at = 0;
    fake_source_plain(&h->fake, &source);
    recording_consume(&h->consumer,
                      uva_stream_from_arrow_stream(h->rt, &source, &options));
}

void hosting_completed(struct hosting_fixture *h)
{
    ck_assert_int_eq(atomic_load(&h->consumer.done), 1);
    ck_assert_int_eq(h->consumer.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(atomic_load(&h->consumer.batches), HOSTING_BATCHES);
    ck_assert_int_eq(atomic_load(&h->consumer.rows), HOSTING_BATCHES * 3);
}

pthread_t hosting_thread(void *(*run)(void *), void *ctx)
{
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, run, ctx), 0);
    return thread;
}
