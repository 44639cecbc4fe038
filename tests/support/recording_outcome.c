/* SPDX-License-Identifier: Apache-2.0 */
/* Counters are atomic, because the loop may run on a thread of the library. */
#include "support/recording_outcome.h"

#include <check.h>
#include <sched.h>
#include <stdio.h>

static int on_schema(void *ctx, const struct uva_stream_info *info)
{
    struct recording_outcome *o = ctx;

    ck_assert_ptr_nonnull(info->schema);
    ck_assert_int_eq(atomic_load(&o->done), 0);
    o->thread = pthread_self();
    atomic_fetch_add(&o->schemas, 1);
    return o->schema_code;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct recording_outcome *o = ctx;
    long ordinal = atomic_fetch_add(&o->batches, 1);

    ck_assert_int_eq(atomic_load(&o->done), 0);
    o->thread = pthread_self();
    if (o->on_batch != NULL)
        o->on_batch(o, batch);
    if (o->batch_code != 0 && ordinal >= o->batch_from &&
        (o->batch_to == 0 || ordinal < o->batch_to))
        return o->batch_code;
    atomic_fetch_add(&o->rows, (long)batch->data.array.length);
    atomic_fetch_add(&o->tagged, batch->metadata != NULL);
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct recording_outcome *o = ctx;

    ck_assert_int_eq((outcome->error.code == 0),
                     (outcome->end == UVA_END_COMPLETE));
    o->thread = pthread_self();
    o->end = outcome->end;
    o->code = outcome->error.code;
    o->delivered = outcome->batches;
    (void)snprintf(o->message, sizeof(o->message), "%s",
                   outcome->error.message);
    if (o->on_done != NULL)
        o->on_done(o, outcome);
    atomic_fetch_add(&o->done, 1);
}

struct uva_consumer recording_outcome_table(struct recording_outcome *o)
{
    return (struct uva_consumer){.on_schema = on_schema,
                                 .on_batch = on_batch,
                                 .on_done = on_done,
                                 .ctx = o};
}

void recording_outcome_start(struct recording_outcome *o,
                             struct uva_stream *stream)
{
    const struct uva_consumer table = recording_outcome_table(o);
    struct uva_error error = {0};
    int code = uva_stream_for_each(stream, &table, &error);

    ck_assert_msg(code == 0, "start: %d %s", code, error.message);
    uva_stream_release(stream);
}

void recording_outcome_await(struct recording_outcome *o)
{
    while (atomic_load(&o->done) == 0)
        (void)sched_yield();
}

void await_count(atomic_long *counter, long n)
{
    while (atomic_load(counter) < n)
        (void)sched_yield();
}
