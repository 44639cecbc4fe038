/* SPDX-License-Identifier: Apache-2.0 */
/* No callback may run inside a push, or after free_ctx. */
#include "support/push_fixture.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

static void note_callback(struct push_fixture *p, struct uva_pusher *pusher,
                          const char *word)
{
    ck_assert_ptr_nonnull(pusher);
    ck_assert(uva_runtime_on_loop(p->loop.runtime));
    ck_assert(!p->pushing);
    ck_assert_int_eq(p->freed, 0);
    recording_add(&p->consumer, "%s", word);
    if (p->on_callback != NULL)
        p->on_callback(p);
}

static void on_writable(void *ctx, struct uva_pusher *pusher)
{
    note_callback(ctx, pusher, "room");
}

static void on_closed(void *ctx, struct uva_pusher *pusher)
{
    note_callback(ctx, pusher, "gone");
}

static void free_ctx(void *ctx)
{
    ((struct push_fixture *)ctx)->freed++;
}

struct uva_push_source push_options(struct push_fixture *p)
{
    return (struct uva_push_source){.on_writable = on_writable,
                                    .on_closed = on_closed,
                                    .free_ctx = free_ctx,
                                    .ctx = p};
}

void push_open_bare(struct push_fixture *p, int32_t batches, int64_t bytes)
{
    struct uva_push_source options = push_options(p);

    memset(p, 0, sizeof(*p));
    recording_init(&p->consumer);
    p->consumer.transcribes = true;
    options.window.batches = batches;
    options.window.bytes = bytes;
    loop_open(&p->loop);
    p->stream = uva_stream_from_pusher(p->loop.runtime, &options, &p->pusher);
    ck_assert_ptr_nonnull(p->pusher);
    ck_assert_int_eq(uva_stream_status(p->stream, NULL), 0);
}

void push_open(struct push_fixture *p, int32_t batches, int64_t bytes)
{
    push_open_bare(p, batches, bytes);
    ck_assert_int_eq(push_describe(p), 0);
}

int push_describe(struct push_fixture *p)
{
    struct ArrowSchema schema;
    int code;

    batch_schema(&schema);
    code = uva_pusher_set_schema(p->pusher, &schema);
    ck_assert(!uva_schema_is_live(&schema));
    return code;
}

void push_start(struct push_fixture *p)
{
    recording_start(&p->consumer, p->stream);
}

int push_batch_with(struct push_fixture *p, int64_t length,
                    const char *metadata, int64_t timeout_ms)
{
    struct ArrowDeviceArray array;
    int code;

    batch_make(&array, length);
    p->pushing = true;
    code = uva_pusher_push(p->pusher, &array, metadata, timeout_ms);
    p->pushing = false;
    ck_assert(!uva_array_is_live(&array));
    return code;
}

int push_batch(struct push_fixture *p, int64_t length, int64_t timeout_ms)
{
    return push_batch_with(p, length, NULL, timeout_ms);
}

void push_batches(struct push_fixture *p, int64_t first, int64_t last)
{
    int code;

    for (; first <= last; first++) {
        code = push_batch(p, first, 0);
        ck_assert(code == 0 || (code == EAGAIN && first == last));
    }
}

void push_await_done(struct push_fixture *p)
{
    recording_await_done(&p->consumer, &p->loop);
}

void push_settles(struct push_fixture *p, const char *transcript)
{
    loop_settle(&p->loop);
    ck_assert_str_eq(p->consumer.transcript, transcript);
}

void push_ends(struct push_fixture *p, const char *transcript)
{
    push_await_done(p);
    ck_assert_str_eq(p->consumer.transcript, transcript);
}

void push_end(struct push_fixture *p)
{
    uva_pusher_close(p->pusher, NULL, NULL);
    p->pusher = NULL;
}

void push_release(struct push_fixture *p)
{
    uva_stream_release(p->stream);
    p->stream = NULL;
}

void push_close(struct push_fixture *p)
{
    push_end(p);
    push_release(p);
    loop_close(&p->loop);
    ck_assert_int_eq(p->freed, 1);
    ck_assert_int_eq(plain_live(), 0);
}
