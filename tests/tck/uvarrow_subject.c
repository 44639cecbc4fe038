/* SPDX-License-Identifier: Apache-2.0 */
/* uvarrow itself as a subject of the test suite, in all three roles.
 * Environment variables choose the source of streams (UVA_SUBJECT_SOURCE:
 * tasks, blocking, arrays, pusher) and the stages (UVA_SUBJECT_CHAIN: one
 * letter each: m map, p parallel, t transform, T transform on the loop
 * thread, f filter, r limit_rows, g merge, c concat, both of one stream, a
 * map_async that is answered by other threads, A the same, answered at once, i
 * timeout, y retry, h throttle, b tee and the second branch is read beside it,
 * as long as a consumer reads the first one, B tee and the second branch
 * leaves, n inspect, w no stage, but a consumer that pauses at each batch, by
 * EAGAIN or by a call, and is resumed later).
 *
 * The first call that needs the runtime opens it; it is never closed. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tck/subject_source.h"

enum { HOUR_MS = 3600000 };

static struct subject_books books;
static struct uva_runtime *runtime;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void runtime_begin(void)
{
    if (uva_runtime_open(NULL, NULL, &runtime, NULL) != 0)
        abort();
}

int32_t uva_subject_version(void)
{
    return UVA_SUBJECT_VERSION;
}

int32_t uva_subject_knows(int32_t what)
{
    return what == UVA_SUBJECT_PLANS     ? UVA_SUBJECT_STUCK
           : what == UVA_SUBJECT_MANNERS ? UVA_SUBJECT_TAKES_BARE
                                         : UVA_SUBJECT_CANNOT;
}

int64_t uva_subject_count(int32_t what)
{
    return atomic_load(what == UVA_SUBJECT_LIVE ? &books.live : &books.made);
}

/* ---- streams ------------------------------------------------------------ */

static int map_through(void *ctx, struct uva_batch *in,
                       struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    return 0;
}

static int transform_through(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                             void *emitter, struct uva_error *error)
{
    const int code = emit(emitter, in);

    (void)ctx;
    (void)error;
    return code == EAGAIN ? 0 : code;
}

static int keep_all(void *ctx, const struct uva_batch *batch, uint8_t *bits,
                    struct uva_error *error)
{
    (void)ctx;
    (void)error;
    memset(bits, 0xff, (size_t)(batch->data.array.length + 7) / 8);
    return 0;
}

/* A result that another thread gives. */
struct answer {
    struct uva_reply *reply;
    struct ArrowDeviceArray result;
};

static void *answer_give(void *arg)
{
    struct answer *answer = arg;

    uva_reply_give(answer->reply, &answer->result, NULL);
    free(answer);
    return NULL;
}

static int begin_answer(void *ctx, struct uva_batch *in,
                        struct uva_reply *reply)
{
    struct answer *answer = malloc(sizeof(*answer));
    pthread_t thread;
    int code;

    (void)ctx;
    if (answer == NULL)
        return ENOMEM;
    answer->reply = reply;
    uva_array_move(&in->data, &answer->result);
    code = pthread_create(&thread, NULL, answer_give, answer);
    if (code != 0) {
        uva_array_release(&answer->result);
        free(answer);
        return code;
    }
    return pthread_detach(thread);
}

static int begin_through(void *ctx, struct uva_batch *in,
                         struct uva_reply *reply)
{
    struct ArrowDeviceArray result;

    (void)ctx;
    uva_array_move(&in->data, &result);
    uva_reply_give(reply, &result, NULL);
    return 0;
}

static struct uva_stream *no_other(void *ctx, const struct uva_outcome *failed,
                                   int32_t attempt, int64_t passed,
                                   int64_t rows)
{
    (void)ctx;
    (void)failed;
    (void)attempt;
    (void)passed;
    (void)rows;
    return NULL;
}

static int branch_on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    (void)batch;
    return 0;
}

/* `beside` (may be NULL) is the group of the branches that are read. */
static void add_tee_read_beside(struct uva_stream *stream,
                                struct uva_group *beside)
{
    const struct uva_consumer consumer = {.on_batch = branch_on_batch};
    struct uva_stream *branch = uva_stream_tee(stream, NULL);

    if ((beside != NULL && uva_group_add(beside, branch) != 0) ||
        uva_stream_for_each(branch, &consumer, NULL) != 0)
        abort();
    uva_stream_release(branch);
}

static void add_map(struct uva_stream *stream)
{
    (void)uva_stream_map(stream, &(struct uva_map){.batch = map_through});
}

static void add_parallel(struct uva_stream *stream)
{
    (void)uva_stream_parallel(stream, NULL);
}

static void add_transform(struct uva_stream *stream)
{
    (void)uva_stream_transform(
        stream, &(struct uva_transform){.batch = transform_through});
}

static void add_transform_on_loop(struct uva_stream *stream)
{
    (void)uva_stream_transform(
        stream,
        &(struct uva_transform){.batch = transform_through, .on_loop = true});
}

static void add_filter(struct uva_stream *stream)
{
    (void)uva_stream_filter(stream, &(struct uva_filter){.keep = keep_all});
}

static void add_limit_rows(struct uva_stream *stream)
{
    (void)uva_stream_limit_rows(stream, INT64_MAX);
}

static void add_merge(struct uva_stream *stream)
{
    (void)uva_stream_merge(stream, NULL, 0, NULL);
}

static void add_concat(struct uva_stream *stream)
{
    (void)uva_stream_concat(stream, NULL, 0, NULL);
}

static void add_map_answered_elsewhere(struct uva_stream *stream)
{
    (void)uva_stream_map_async(
        stream, &(struct uva_async_map){.begin = begin_answer, .at_once = 4});
}

static void add_map_answered_at_once(struct uva_stream *stream)
{
    (void)uva_stream_map_async(
        stream, &(struct uva_async_map){.begin = begin_through, .at_once = 4});
}

static void add_retry(struct uva_stream *stream)
{
    (void)uva_stream_retry(stream, &(struct uva_retry){.again = no_other});
}

static void add_throttle(struct uva_stream *stream)
{
    (void)uva_stream_throttle(
        stream, &(struct uva_throttle){.batches_per_s = 1000000000,
                                       .bytes_per_s = 1000000000000});
}

static void add_timeout(struct uva_stream *stream)
{
    (void)uva_stream_timeout(stream,
                             &(struct uva_timeout){.open_ms = HOUR_MS,
                                                   .between_ms = HOUR_MS,
                                                   .total_ms = HOUR_MS});
}

static void add_tee_left(struct uva_stream *stream)
{
    uva_stream_release(uva_stream_tee(stream, NULL));
}

static void inspect_nothing(void *ctx, const struct uva_trace_event *event)
{
    (void)ctx;
    (void)event;
}

static void add_inspector(struct uva_stream *stream)
{
    (void)uva_stream_inspect(stream,
                             &(struct uva_trace){.event = inspect_nothing});
}

static void add_none(struct uva_stream *stream)
{
    (void)stream;
}

static void (*const stages[128])(struct uva_stream *stream) = {
    ['m'] = add_map,
    ['p'] = add_parallel,
    ['t'] = add_transform,
    ['T'] = add_transform_on_loop,
    ['f'] = add_filter,
    ['r'] = add_limit_rows,
    ['g'] = add_merge,
    ['c'] = add_concat,
    ['a'] = add_map_answered_elsewhere,
    ['A'] = add_map_answered_at_once,
    ['y'] = add_retry,
    ['h'] = add_throttle,
    ['i'] = add_timeout,
    ['B'] = add_tee_left,
    ['n'] = add_inspector,
    ['w'] = add_none,
};

static bool chain_has(char letter)
{
    const char *chain = getenv("UVA_SUBJECT_CHAIN");

    return chain != NULL && strchr(chain, letter) != NULL;
}

static void chain_add(struct uva_stream *stream, struct uva_group *beside)
{
    const char *chain = getenv("UVA_SUBJECT_CHAIN");

    for (; chain != NULL && *chain != '\0'; chain++) {
        if (*chain == 'b')
            add_tee_read_beside(stream, beside);
        else if (*chain > 0 && stages[(int)*chain] != NULL)
            stages[(int)*chain](stream);
        else
            abort(); /* no such letter */
    }
}

/* Returns whether the stages can follow the plan. Sources that extract tasks
 * early cannot play a plan with a task that fails. A branch that is read beside
 * goes on after a cancel, so it cannot play an endless source. */
static bool chain_can(int32_t plan)
{
    const char *chain = getenv("UVA_SUBJECT_CHAIN");

    if (chain == NULL)
        return true;
    if (plan == UVA_SUBJECT_TASK_FAILS)
        return strspn(chain, "minw") == strlen(chain);
    return plan != UVA_SUBJECT_ENDLESS || strchr(chain, 'b') == NULL;
}

/* Returns a stream that follows the plan, with its stages; NULL if it
 * cannot. */
static struct uva_stream *stream_make(int32_t plan, int64_t batches, int64_t at)
{
    const struct subject_plan what = {&books, (enum uva_subject_plan)plan,
                                      batches, at};
    const char *source = getenv("UVA_SUBJECT_SOURCE");
    struct uva_stream *stream;

    (void)pthread_once(&once, runtime_begin);
    if (!chain_can(plan))
        return NULL;
    if (source != NULL && strcmp(source, "blocking") == 0)
        stream = subject_from_device_stream(runtime, &what);
    else if (source != NULL && strcmp(source, "arrays") == 0)
        stream = subject_from_arrays(runtime, &what);
    else if (source != NULL && strcmp(source, "pusher") == 0)
        stream = subject_from_pusher(runtime, &what);
    else
        stream = subject_from_tasks(runtime, &what);
    if (stream != NULL)
        chain_add(stream, NULL);
    return stream;
}

int32_t uva_subject_produce(int32_t plan, int64_t batches, int64_t at,
                            struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct uva_stream *stream = stream_make(plan, batches, at);
    struct uva_drive options = {0};
    char about[64];
    int code;

    if (stream == NULL)
        return UVA_SUBJECT_CANNOT;
    if (plan == UVA_SUBJECT_TAGGED)
        options.metadata = subject_tag(about, "about", 5);
    code = uva_stream_drive(stream, handler, &options, NULL);
    uva_stream_release(stream);
    return code;
}

int32_t uva_subject_open(int32_t plan, int64_t batches, int64_t at,
                         struct ArrowDeviceArrayStream *out)
{
    struct uva_stream *stream = stream_make(plan, batches, at);
    int code;

    if (stream == NULL)
        return UVA_SUBJECT_CANNOT;
    code = uva_stream_to_device_stream(stream, NULL, out, NULL);
    uva_stream_release(stream);
    return code;
}

/* ---- consumers ---------------------------------------------------------- */

/* A consumer: its stream reads from the producer that gets the handler. */
struct consumer {
    enum uva_subject_manner manner;
    int64_t k;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct ArrowAsyncDeviceStreamHandler *handler; /* NULL: not set so far */
    struct uva_group *beside; /* branches that are read as long as it is not
                                 done */
    bool done;
    struct uva_subject_outcome outcome;
};

/* Only stores the handler for the suite, which will call it. */
static int consumer_start(void *ctx,
                          struct ArrowAsyncDeviceStreamHandler *handler,
                          struct uva_error *error)
{
    struct consumer *consumer = ctx;

    (void)error;
    pthread_mutex_lock(&consumer->lock);
    consumer->handler = handler;
    pthread_cond_broadcast(&consumer->changed);
    pthread_mutex_unlock(&consumer->lock);
    return 0;
}

static void report_tag(struct uva_subject_outcome *outcome,
                       const char *metadata)
{
    struct uva_pair tag = {0};

    if (uva_metadata_get(metadata, "tck", &tag) != 0)
        return;
    memcpy(outcome->tag, tag.value, tag.value_size < 64 ? tag.value_size : 64);
    outcome->tag_size = (int64_t)tag.value_size;
}

static int64_t value_in_struct(const struct ArrowArray *array, int64_t row)
{
    const struct ArrowArray *n = array->children[0];

    return ((const int64_t *)n->buffers[1])[array->offset + n->offset + row];
}

static void consumer_resume(void *ctx)
{
    uva_stream_resume(ctx);
    uva_stream_release(ctx);
}

/* Pauses, until the loop has gone round. */
static int consumer_wait(struct uva_stream *stream, int64_t ordinal)
{
    if (!chain_has('w'))
        return 0;
    if (ordinal % 2 == 0)
        uva_stream_pause(stream);
    if (uva_runtime_post(runtime, consumer_resume,
                         uva_stream_acquire(stream)) != 0)
        abort();
    return ordinal % 2 == 0 ? 0 : EAGAIN;
}

static int consumer_on_batch(void *ctx, struct uva_batch *batch)
{
    struct consumer *consumer = ctx;
    struct uva_subject_outcome *outcome = &consumer->outcome;
    const struct ArrowArray *array = &batch->data.array;

    for (int64_t row = 0; row < array->length; row++)
        outcome->sum +=
            array->n_children > 0
                ? value_in_struct(array, row)
                : ((const int32_t *)array->buffers[1])[array->offset + row];
    outcome->rows += batch->data.array.length;
    outcome->batches++;
    report_tag(outcome, batch->metadata);
    if ((consumer->manner == UVA_SUBJECT_CANCELS &&
         batch->ordinal == consumer->k) ||
        consumer->manner == UVA_SUBJECT_HOLDS_AND_CANCELS)
        return ECANCELED; /* at the first batch, so that tasks wait */
    return consumer_wait(batch->stream, batch->ordinal);
}

static void consumer_on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct consumer *consumer = ctx;
    struct uva_subject_outcome *told = &consumer->outcome;

    uva_group_cancel(consumer->beside, 0, NULL);
    uva_group_release(consumer->beside);
    pthread_mutex_lock(&consumer->lock);
    told->end = outcome->end == UVA_END_COMPLETE    ? UVA_SUBJECT_COMPLETE
                : outcome->end == UVA_END_FAILED    ? UVA_SUBJECT_FAILED
                : outcome->end == UVA_END_CANCELLED ? UVA_SUBJECT_CANCELLED
                                                    : UVA_SUBJECT_REFUSED;
    told->code = outcome->error.code;
    if (outcome->end == UVA_END_COMPLETE && outcome->rows != told->rows)
        abort(); /* each row was given to on_batch */
    (void)snprintf(told->message, sizeof(told->message), "%.255s",
                   outcome->error.message);
    report_tag(told, outcome->metadata);
    consumer->done = true;
    pthread_mutex_unlock(&consumer->lock);
}

static int consumer_run(struct consumer *consumer)
{
    const struct uva_consumer callbacks = {.on_batch = consumer_on_batch,
                                           .on_done = consumer_on_done,
                                           .ctx = consumer};
    const bool holds = consumer->manner == UVA_SUBJECT_HOLDS ||
                       consumer->manner == UVA_SUBJECT_HOLDS_AND_CANCELS;
    struct uva_stream *stream = uva_stream_from_async(
        runtime, &(struct uva_async_source){.start = consumer_start,
                                            .ctx = consumer,
                                            .on_loop = !holds});
    int code;

    if (holds)
        (void)uva_stream_parallel(stream, NULL);
    if (uva_group_new(runtime, false, &consumer->beside, NULL) != 0)
        abort();
    chain_add(stream, consumer->beside);
    code = uva_stream_for_each(stream, &callbacks, NULL);
    uva_stream_release(stream);
    return code;
}

int32_t uva_subject_consume(int32_t manner, int64_t k, int64_t *id,
                            struct ArrowAsyncDeviceStreamHandler **handler)
{
    struct consumer *consumer = calloc(1, sizeof(*consumer));
    int code;

    assert(consumer != NULL);
    (void)pthread_once(&once, runtime_begin);
    consumer->manner = (enum uva_subject_manner)manner;
    consumer->k = k;
    (void)pthread_mutex_init(&consumer->lock, NULL);
    (void)pthread_cond_init(&consumer->changed, NULL);
    *id = (int64_t)(intptr_t)consumer;
    /* uvarrow's handlers never refuse, and always request more (G-18, G-39). */
    if (manner == UVA_SUBJECT_REFUSES || manner == UVA_SUBJECT_TAKES_SOME ||
        manner == UVA_SUBJECT_REFUSES_SCHEMA)
        code = UVA_SUBJECT_CANNOT;
    else
        code = consumer_run(consumer);
    pthread_mutex_lock(&consumer->lock);
    while (code == 0 && consumer->handler == NULL)
        pthread_cond_wait(&consumer->changed, &consumer->lock);
    *handler = consumer->handler;
    pthread_mutex_unlock(&consumer->lock);
    return code;
}

int32_t uva_subject_report(int64_t id, struct uva_subject_outcome *out)
{
    struct consumer *consumer = (struct consumer *)(intptr_t)id;
    bool done;

    pthread_mutex_lock(&consumer->lock);
    done = consumer->done;
    if (done) /* another thread may still be writing it */
        *out = consumer->outcome;
    pthread_mutex_unlock(&consumer->lock);
    return done ? 0 : EAGAIN;
}
