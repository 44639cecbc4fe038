/* SPDX-License-Identifier: Apache-2.0 */
/* Broken rules are named only in the runtime's log, so the fixture reads it. */
#include "support/hostile_fixture.h"

#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "loop/loop.h"
#include "uvarrow/arrow.h"

static void append(char *text, size_t size, const char *count)
{
    size_t used = strlen(text);

    ck_assert_uint_lt(used + strlen(count) + 2, size);
    (void)snprintf(text + used, size - used, "%s%s", used > 0 ? " " : "",
                   count);
}

static void hostile_tell(struct hostile_fixture *s, const char *count)
{
    append(s->transcript, sizeof(s->transcript), count);
}

/* Formats the first pair as "key=value". */
static void keep_tag(char *to, size_t size, const char *block)
{
    struct uva_metadata_at at = {0};
    struct uva_pair pair;

    to[0] = '\0';
    if (uva_metadata_next(block, &at, &pair) == 0)
        (void)snprintf(to, size, "%.*s=%.*s", (int)pair.key_size, pair.key,
                       (int)pair.value_size, pair.value);
}

static void on_log(void *ctx, const struct uva_log_record *record)
{
    struct hostile_fixture *s = ctx;

    if (record->clause == NULL)
        return;
    pthread_mutex_lock(&s->lock);
    if (strlen(s->clauses) + 32 < sizeof(s->clauses))
        append(s->clauses, sizeof(s->clauses), record->clause);
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_add(&s->clause_count, 1);
}

/* ---- the consumer ------------------------------------------------------- */

static int on_schema(void *ctx, const struct uva_stream_info *info)
{
    struct hostile_fixture *s = ctx;

    hostile_tell(s, "schema");
    keep_tag(s->about, sizeof(s->about), info->metadata);
    s->kind = info->device_type;
    return 0;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct hostile_fixture *s = ctx;
    const int64_t *values = batch->data.array.children[0]->buffers[1];
    char count[32];

    s->appetite -= s->appetite > 0;
    (void)snprintf(count, sizeof(count), "%lld", (long long)(values[0] / 10));
    if (s->batches < 64)
        hostile_tell(s, count);
    keep_tag(s->tag, sizeof(s->tag), batch->metadata);
    if (s->batches++ == s->stop_at)
        return ECANCELED;
    return s->appetite == 0 ? EAGAIN : 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    static const char *const ends[] = {"complete", "failed", "cancelled",
                                       "rejected"};
    struct hostile_fixture *s = ctx;

    ck_assert(!s->done);
    s->done = true;
    hostile_tell(s, ends[outcome->end]);
    if (outcome->end == UVA_END_FAILED)
        hostile_tell(s, uva_error_name(outcome->error.code));
    if (outcome->end == UVA_END_FAILED)
        keep_tag(s->tag, sizeof(s->tag), outcome->metadata);
    (void)snprintf(s->message, sizeof(s->message), "%s",
                   outcome->error.message);
}

/* ---- the fixture -------------------------------------------------------- */

void hostile_open(struct hostile_fixture *s, const char *script)
{
    const struct uva_log log = {on_log, s, UVA_LOG_WARN};

    memset(s, 0, sizeof(*s));
    s->open = true;
    s->stop_at = s->appetite = -1;
    pthread_mutex_init(&s->lock, NULL);
    loop_open(&s->loop);
    uva__loop_rt(s->loop.runtime)->log = log;
    hostile_producer_init(&s->peer, script);
}

void hostile_make(struct hostile_fixture *s)
{
    const struct uva_async_source source = hostile_producer_source(&s->peer);

    s->stream = uva_stream_from_async(s->loop.runtime, &source);
}

void hostile_start(struct hostile_fixture *s)
{
    const struct uva_consumer consumer = {.on_schema = on_schema,
                                          .on_batch = on_batch,
                                          .on_done = on_done,
                                          .ctx = s};
    struct uva_error error = {0};
    int code = uva_stream_status(s->stream, &error);

    if (code == 0)
        code = uva_stream_for_each(s->stream, &consumer, &error);
    s->done = code != 0;
    ck_assert_msg(code == 0 || faulty_allocator_has_failed(&s->loop.memory),
                  "%d %s", code, error.message);
}

void hostile_begin(struct hostile_fixture *s)
{
    hostile_make(s);
    hostile_start(s);
}

static bool is_done(void *ctx)
{
    return ((struct hostile_fixture *)ctx)->done;
}

void hostile_finish(struct hostile_fixture *s)
{
    loop_until(&s->loop, is_done, s);
}

void hostile_turn(struct hostile_fixture *s)
{
    (void)uv_run(&s->loop.uv, UV_RUN_NOWAIT);
}

void hostile_await(atomic_long *count, long n)
{
    while (atomic_load(count) < n)
        (void)sched_yield();
}

void hostile_turn_until(struct hostile_fixture *s, atomic_long *count, long n)
{
    while (atomic_load(count) < n) {
        hostile_turn(s);
        (void)sched_yield();
    }
}

void hostile_play(struct hostile_fixture *s, bool blind)
{
    hostile_make(s);
    atomic_store(&s->peer.held, blind);
    hostile_start(s);
    if (blind) {
        hostile_turn(s); /* the stream begins, and calls the peer's start */
        atomic_store(&s->peer.held, false);
        hostile_await(&s->peer.played, 1);
    }
    hostile_finish(s);
}

void hostile_close(struct hostile_fixture *s)
{
    if (!s->open)
        return;
    s->open = false;
    uva_stream_release(s->stream);
    if (s->loop.runtime != NULL)
        loop_close_runtime(&s->loop, 0);
    hostile_await(&s->peer.freed, 1);
    while (faulty_allocator_live_bytes(&s->loop.memory) > 0)
        (void)sched_yield();
    hostile_producer_fini(&s->peer);
    loop_close(&s->loop);
    pthread_mutex_destroy(&s->lock);
}

int hostile_never(void *ctx, struct ArrowAsyncDeviceStreamHandler *handler,
                  struct uva_error *error)
{
    (void)ctx;
    (void)handler;
    (void)error;
    ck_abort_msg("must not be started");
    return 0;
}
