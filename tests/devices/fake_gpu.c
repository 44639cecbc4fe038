/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  operations are queued on streams -> the thread of each stream
 *              runs them in order -> a stream that was destroyed drains, and
 *              its thread frees it.
 *
 * Failures:    a poisoned device: no copy is made, waits return, events never
 *              complete, callbacks get the code, host functions are not called.
 */
#define _GNU_SOURCE
#include "devices/fake_gpu.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "devices/fake_control.h"

enum { PAUSE_NS = 50000, UNCALLED = 4096, THREADS = 4096 };
enum { LEGACY = 1, PER_THREAD = 2 }; /* handles */

enum kind {
    RECORD,
    WAIT,
    VALUE,
    CALLBACK,
    HOST,
    COPY,
    STORE,
    SPIN,
    FAIL,
    ALLOC,
    FREE
};

struct event {
    int refs; /* references of its owner and of operations */
    uint64_t recorded, done;
    struct fake_context *context;
};

struct op {
    struct op *next;
    enum kind kind;
    struct event *event; /* holds a reference */
    uint64_t turn;       /* number of the record; or the value */
    fake_callback_fn *callback;
    fake_host_fn *host;
    fake_compute_fn *compute; /* NULL: a plain copy */
    void *target;             /* or the word to write, or the user data */
    const void *source;
    size_t size;
};

struct stream {
    struct op *first, **last;
    uint64_t queued, done;
    bool quitting;
    struct fake_context *context;
};

/* The default stream of one thread in one context. */
struct of_thread {
    struct of_thread *before;
    struct fake_context *context;
    struct stream *stream;
};

/* Guards all streams and events. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static _Thread_local struct of_thread *of_thread; /* of this thread */
static struct of_thread *of_threads[THREADS]; /* of all, so that no thread is
                                                 lost */
static unsigned n_of_threads;
static void *uncalled[UNCALLED]; /* user data of calls that are never made */
static unsigned n_uncalled;

void fake_wake(void)
{
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void fake_drain(void)
{
    pthread_mutex_lock(&lock);
    while (fakegpu_count(FAKE_QUEUED) > 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* No more work runs, as that takes the lock; only after fake_exit(). */
void fake_stop(void)
{
    pthread_mutex_lock(&lock);
}

/* ---- running an operation, with the lock held --------------------------- */

static void event_drop_locked(struct event *event)
{
    if (--event->refs == 0)
        free(event);
}

static void run_value_locked(const struct op *op)
{
    const struct timespec pause = {0, PAUSE_NS};
    _Atomic uint32_t *word = op->target;

    while (fake_sticky() == 0 && atomic_load(word) < op->turn) {
        pthread_mutex_unlock(&lock);
        (void)nanosleep(&pause, NULL);
        pthread_mutex_lock(&lock);
    }
}

/* Returns how many calls of the program wait, of all contexts of the stream's
 * device. */
static int *called_back_of(const struct stream *stream)
{
    return &fake_primary(stream->context->device)->called_back;
}

/* Calls the program back, except for host functions of a poisoned device. The
 * operation leaves the count first, so that the call itself may queue another
 * one. */
static void run_call_locked(struct stream *stream, const struct op *op)
{
    const int code = fake_sticky();

    --*called_back_of(stream);
    if (op->kind == HOST && code != 0) {
        uncalled[n_uncalled++ % UNCALLED] = op->target;
        return;
    }
    pthread_mutex_unlock(&lock);
    fake_calls_back(true);
    fake_count(FAKE_CALLBACKS, 1);
    if (op->kind == HOST)
        op->host(op->target);
    else
        op->callback(stream, code, op->target);
    fake_calls_back(false);
    pthread_mutex_lock(&lock);
}

static void run_record_locked(const struct op *op)
{
    if (fake_sticky() == 0 && op->event->done < op->turn)
        op->event->done = op->turn;
}

static void run_spin_locked(const struct op *op)
{
    const struct timespec pause = {(time_t)(op->turn / 1000000000),
                                   (long)(op->turn % 1000000000)};

    pthread_mutex_unlock(&lock);
    if (fake_sticky() == 0)
        (void)nanosleep(&pause, NULL);
    pthread_mutex_lock(&lock);
}

static void run_copy(const struct op *op)
{
    void *target = fake_memory_bytes(op->target);
    const void *source = fake_memory_bytes(op->source);

    if (fake_sticky() != 0)
        return;
    if (!fake_memory_is_usable(op->target) ||
        !fake_memory_is_usable(op->source))
        fake_count(FAKE_BREACHES, 1);
    if (op->compute != NULL)
        op->compute(target, source, op->size);
    else
        memcpy(target, source, op->size);
}

/* Memory that is not there any more was freed twice. */
static void run_free(const struct op *op)
{
    if (fake_memory_drop(op->target) != 0)
        fake_count(FAKE_BREACHES, 1);
}

static void run_store(const struct op *op)
{
    if (fake_sticky() == 0)
        atomic_store((_Atomic uint32_t *)op->target, (uint32_t)op->turn);
}

static void run_locked(struct stream *stream, const struct op *op)
{
    switch (op->kind) {
    case RECORD:
        run_record_locked(op);
        break;
    case WAIT:
        while (fake_sticky() == 0 && op->event->done < op->turn)
            pthread_cond_wait(&changed, &lock);
        break;
    case VALUE:
        run_value_locked(op);
        break;
    case CALLBACK:
    case HOST:
        run_call_locked(stream, op);
        break;
    case STORE:
        run_store(op);
        break;
    case SPIN:
        run_spin_locked(op);
        break;
    case FAIL:
        fake_fail((int)op->turn);
        break;
    case ALLOC:
        fake_memory_order(op->target, true);
        break;
    case FREE:
        run_free(op);
        break;
    case COPY:
        run_copy(op);
        break;
    }
}

/* ---- streams ------------------------------------------------------------ */

static bool is_call(const struct op *op)
{
    return op->kind == CALLBACK || op->kind == HOST;
}

static void *stream_main(void *arg)
{
    struct stream *stream = arg;
    struct op *op;

    pthread_mutex_lock(&lock);
    while (stream->first != NULL || !stream->quitting) {
        op = stream->first;
        if (op == NULL) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        run_locked(stream, op);
        stream->first = op->next;
        if (stream->first == NULL)
            stream->last = &stream->first;
        stream->done++;
        fake_count(FAKE_ARMED, -is_call(op));
        fake_count(FAKE_QUEUED, -1);
        if (op->event != NULL)
            event_drop_locked(op->event);
        free(op);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    free(stream);
    return NULL;
}

static struct stream *stream_new(struct fake_context *context)
{
    struct stream *stream = calloc(1, sizeof(*stream));
    pthread_t thread;

    assert(stream != NULL);
    stream->last = &stream->first;
    stream->context = context;
    if (pthread_create(&thread, NULL, stream_main, stream) != 0)
        abort();
    pthread_detach(thread);
    return stream;
}

int fake_stream_create_in(struct fake_context *context, void **out)
{
    *out = stream_new(context);
    fake_count(FAKE_STREAMS, 1);
    return 0;
}

int fake_stream_create(void **out)
{
    fake_hold(FAKE_HOLD_CREATE);
    return fake_stream_create_in(fake_current(), out);
}

int fake_stream_destroy(void *handle)
{
    struct stream *stream = handle;

    fake_count(FAKE_STREAMS, -1);
    pthread_mutex_lock(&lock);
    stream->quitting = true;
    pthread_cond_broadcast(&changed);
    while (fake_is(FAKE_DESTROYS) && fakegpu_count(FAKE_QUEUED) > 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return fake_sticky();
}

/* Finds or makes the default stream of this thread in its current context. */
static struct stream *of_thread_find_locked(void)
{
    struct of_thread *found = of_thread;

    while (found != NULL && found->context != fake_current())
        found = found->before;
    if (found != NULL)
        return found->stream;
    found = calloc(1, sizeof(*found));
    assert(found != NULL && n_of_threads < THREADS);
    found->before = of_thread;
    found->context = fake_current();
    found->stream = stream_new(fake_current());
    of_threads[n_of_threads++] = found;
    of_thread = found;
    return found->stream;
}

/* NULL and LEGACY are the legacy default stream of the current context, 2 is
 * the default stream of this thread in it. */
static struct stream *stream_of_locked(void *handle)
{
    struct fake_context *context = fake_current();

    if ((uintptr_t)handle > PER_THREAD)
        return handle;
    if ((uintptr_t)handle == PER_THREAD)
        return of_thread_find_locked();
    if (context->legacy == NULL)
        context->legacy = stream_new(context);
    return context->legacy;
}

/* A call that blocks here is counted, since it must not be made on the device
 * thread. */
static void queue_room_locked(struct stream *stream, const struct op *op)
{
    int *calls = called_back_of(stream);

    if (stream->queued - stream->done >= FAKE_QUEUE ||
        (is_call(op) && *calls >= FAKE_HOST_FUNCTIONS))
        fake_count(FAKE_BREACHES, 1);
    while (stream->queued - stream->done >= FAKE_QUEUE ||
           (is_call(op) && *calls >= FAKE_HOST_FUNCTIONS))
        pthread_cond_wait(&changed, &lock);
    *calls += is_call(op);
    fake_count(FAKE_ARMED, is_call(op));
}

static bool stream_is_unknown(void *handle)
{
    return (uintptr_t)handle == LEGACY && !fake_has_legacy_handle;
}

static int stream_queue(void *handle, const struct op *what)
{
    struct stream *stream;
    struct op *op;

    if (stream_is_unknown(handle))
        return FAKE_INVALID_HANDLE;
    op = malloc(sizeof(*op));
    assert(op != NULL);
    *op = *what;
    pthread_mutex_lock(&lock);
    stream = stream_of_locked(handle);
    if (op->kind == RECORD)
        op->turn = ++op->event->recorded;
    if (op->kind == WAIT)
        op->turn = op->event->recorded;
    if (op->event != NULL)
        op->event->refs++;
    queue_room_locked(stream, op);
    *stream->last = op;
    stream->last = &op->next;
    stream->queued++;
    fake_count(FAKE_QUEUED, 1);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return 0;
}

int fake_stream_synchronize(void *handle)
{
    struct stream *stream;
    uint64_t turn;

    if (stream_is_unknown(handle))
        return FAKE_INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    stream = stream_of_locked(handle);
    turn = stream->queued;
    fake_count(FAKE_DRAINING, 1);
    while (stream->done < turn)
        pthread_cond_wait(&changed, &lock);
    fake_count(FAKE_DRAINING, -1);
    pthread_mutex_unlock(&lock);
    return fake_sticky();
}

int fake_stream_wait(void *stream, void *event)
{
    if (event == NULL)
        return FAKE_INVALID_HANDLE;
    return stream_queue(stream, &(struct op){.kind = WAIT, .event = event});
}

int fake_stream_wait_value(void *stream, void *word, uint32_t value)
{
    return stream_queue(
        stream, &(struct op){.kind = VALUE, .turn = value, .target = word});
}

int fake_stream_store(void *stream, void *word, uint32_t value)
{
    return stream_queue(
        stream, &(struct op){.kind = STORE, .turn = value, .target = word});
}

int fake_stream_spin(void *stream, uint64_t ns)
{
    return stream_queue(stream, &(struct op){.kind = SPIN, .turn = ns});
}

int fake_stream_fail(void *stream, int code)
{
    return stream_queue(stream,
                        &(struct op){.kind = FAIL, .turn = (uint64_t)code});
}

int fake_stream_callback(void *stream, fake_callback_fn *fn, void *user_data)
{
    return stream_queue(
        stream,
        &(struct op){.kind = CALLBACK, .callback = fn, .target = user_data});
}

int fake_stream_host(void *stream, fake_host_fn *fn, void *user_data)
{
    return stream_queue(
        stream, &(struct op){.kind = HOST, .host = fn, .target = user_data});
}

static int stream_copy(void *stream, void *target, const void *source,
                       size_t size)
{
    return stream_queue(stream, &(struct op){.kind = COPY,
                                             .target = target,
                                             .source = source,
                                             .size = size});
}

int fake_stream_upload(void *stream, void *target, const void *source,
                       size_t size)
{
    const bool pinned = fake_memory_is_known(source);
    int code;

    if (!pinned)
        fake_hold(FAKE_HOLD_UPLOAD);
    code = stream_copy(stream, target, source, size);
    return code == 0 && !pinned && fake_is(FAKE_PAGEABLE)
               ? fake_stream_synchronize(stream)
               : code;
}

int fake_stream_download(void *stream, void *target, const void *source,
                         size_t size)
{
    const int code = stream_copy(stream, target, source, size);

    return code == 0 && !fake_memory_is_known(target) && fake_is(FAKE_PAGEABLE)
               ? fake_stream_synchronize(stream)
               : code;
}

int fake_stream_compute(void *stream, fake_compute_fn *fn, void *target,
                        const void *source, size_t size)
{
    return stream_queue(stream, &(struct op){.kind = COPY,
                                             .compute = fn,
                                             .target = target,
                                             .source = source,
                                             .size = size});
}

int fake_peers(int *direct, int device, int peer)
{
    if (fake_primary(device) == NULL || fake_primary(peer) == NULL)
        return FAKE_INVALID_DEVICE;
    *direct = device != peer && getenv("UVA_FAKE_APART") == NULL;
    return 0;
}

int fake_stream_peer(void *stream, void *target, const void *source,
                     size_t size)
{
    fake_count(FAKE_PEER_COPIES, 1);
    return stream_copy(stream, target, source, size);
}

int fake_stream_alloc(void *stream, void **out, size_t size)
{
    const int code = fake_memory_make(out, size, false);

    if (code != 0)
        return code;
    fake_memory_order(*out, false);
    return stream_queue(stream, &(struct op){.kind = ALLOC, .target = *out});
}

int fake_stream_free(void *stream, void *memory)
{
    return stream_queue(stream, &(struct op){.kind = FREE, .target = memory});
}

int fake_stream_context(void *stream, void **out)
{
    *out = (uintptr_t)stream > PER_THREAD ? ((struct stream *)stream)->context
                                          : fake_current();
    return *out != NULL ? 0 : FAKE_INVALID_CONTEXT;
}

/* ---- events ------------------------------------------------------------- */

int fake_event_create(void **out)
{
    struct event *event = calloc(1, sizeof(*event));

    assert(event != NULL);
    event->refs = 1;
    event->context = fake_current();
    fake_count(FAKE_EVENTS, 1);
    *out = event;
    return 0;
}

int fake_event_destroy(void *event)
{
    fake_count(FAKE_EVENTS, -1);
    pthread_mutex_lock(&lock);
    event_drop_locked(event);
    pthread_mutex_unlock(&lock);
    return fake_sticky();
}

/* A green context is a part of its primary context. */
static struct fake_context *root_of(struct fake_context *context)
{
    return context->primary != NULL ? context->primary : context;
}

/* The event must be of the same context as the stream. */
int fake_event_record(void *handle, void *stream)
{
    struct event *event = handle;
    void *context;

    if (event == NULL || fake_stream_context(stream, &context) != 0 ||
        root_of(context) != root_of(event->context))
        return FAKE_INVALID_HANDLE;
    return stream_queue(stream, &(struct op){.kind = RECORD, .event = event});
}

int fake_event_query(void *handle)
{
    struct event *event = handle;
    bool done;

    if (event == NULL)
        return FAKE_INVALID_HANDLE;
    if (event->context != NULL && atomic_load(&event->context->destroyed))
        return FAKE_CONTEXT_DESTROYED;
    pthread_mutex_lock(&lock);
    done = event->done >= event->recorded &&
           !(event->recorded == 0 && fake_is(FAKE_UNRECORDED));
    pthread_mutex_unlock(&lock);
    return done ? 0 : FAKE_NOT_READY;
}

int fake_event_synchronize(void *handle)
{
    struct event *event = handle;
    uint64_t turn;

    pthread_mutex_lock(&lock);
    turn = event->recorded;
    while (fake_sticky() == 0 && event->done < turn)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return fake_sticky();
}
