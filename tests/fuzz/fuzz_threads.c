/* SPDX-License-Identifier: Apache-2.0 */
/* Peers at both ends of a stream that call from several threads: a producer
 * that each time calls from another thread, and a handler of which any thread
 * requests, cancels and extracts, at any time that the protocol allows. Their
 * stream is cancelled and looked at meanwhile, and its runtime has its own
 * thread.
 *
 * Input: how the stream is made, then one list of steps for each thread, one
 * byte a step. Each task is extracted once, with its own values; no call comes
 * after the end, or without a request; and whatever was given is released.
 * Which thread is first is up to the system, so an input may have to be played
 * again to fail again; ThreadSanitizer, in its preset, needs no such luck. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "fuzz/fuzz_input.h"
#include "stage/limit.h"
#include "support/fake_source.h"
#include "uvarrow/arrow.h"
#include "uvarrow/uvarrow.h"

enum { THREADS = 3, TASKS = 40, STEPS = 200 };

#ifdef __SANITIZE_THREAD__
enum { ROUNDS = 4 };
#else
enum { ROUNDS = 1 };
#endif

/* ---- the producer ------------------------------------------------------- */

static struct {
    struct fake_source data; /* its schema and batches */
    struct ArrowAsyncProducer object;
    pthread_mutex_t speaking; /* held around each call of the handler */
    /* with that held */
    struct ArrowAsyncDeviceStreamHandler
        *handler; /* borrows; NULL: not started */
    int64_t total, offered;
    bool fails; /* ends with an error */
    bool has_schema, ended, released;
    /* any thread */
    atomic_llong requested;
    atomic_bool cancelled;
    atomic_bool used[TASKS]; /* tasks that were extracted, or refused */
    atomic_int items;        /* tasks that are not */
    atomic_int freed;        /* calls of free_ctx */
} maker;

static void maker_request(struct ArrowAsyncProducer *self, int64_t n)
{
    FUZZ_RULE(self == &maker.object && n > 0);
    atomic_fetch_add(&maker.requested, n);
}

static void maker_cancel(struct ArrowAsyncProducer *self)
{
    FUZZ_RULE(self == &maker.object);
    atomic_store(&maker.cancelled, true);
}

static int item_extract(struct ArrowAsyncTask *task,
                        struct ArrowDeviceArray *out)
{
    atomic_bool *used = task->private_data;

    FUZZ_RULE(!atomic_exchange(used, true));
    if (out != NULL)
        fake_source_batch(&maker.data, used - maker.used, out);
    atomic_fetch_sub(&maker.items, 1);
    return 0;
}

/* A call that is refused ends the stream; its task may have been extracted. */
static void maker_offer(void)
{
    atomic_bool *used = &maker.used[maker.offered++];
    struct ArrowAsyncTask task = {item_extract, used};

    atomic_fetch_add(&maker.items, 1);
    if (maker.handler->on_next_task(maker.handler, &task, NULL) == 0)
        return;
    maker.ended = true;
    if (!atomic_exchange(used, true))
        atomic_fetch_sub(&maker.items, 1);
}

static void maker_begin(void)
{
    struct ArrowSchema schema;

    fake_source_schema(&maker.data, &schema);
    maker.has_schema = true;
    if (maker.handler->on_schema(maker.handler, &schema) != 0)
        maker.ended = true;
}

static void maker_end(void)
{
    maker.ended = true;
    if (maker.fails)
        maker.handler->on_error(maker.handler, EREMOTEIO, "at the end", NULL);
    else
        (void)maker.handler->on_next_task(maker.handler, NULL, NULL);
}

/* Makes the next call that is due, if any. Thread: any. */
static void maker_step(void)
{
    FUZZ_RULE(pthread_mutex_lock(&maker.speaking) == 0);
    if (maker.handler != NULL && !maker.released) {
        if (!maker.has_schema) {
            maker_begin();
        } else if (maker.ended || atomic_load(&maker.cancelled)) {
            maker.released = true;
            maker.handler->release(maker.handler);
        } else if (maker.offered == maker.total) {
            maker_end();
        } else if (atomic_load(&maker.requested) > maker.offered) {
            maker_offer();
        }
    }
    FUZZ_RULE(pthread_mutex_unlock(&maker.speaking) == 0);
}

static int maker_start(void *ctx, struct ArrowAsyncDeviceStreamHandler *handler,
                       struct uva_error *error)
{
    (void)ctx;
    (void)error;
    FUZZ_RULE(pthread_mutex_lock(&maker.speaking) == 0);
    handler->producer = &maker.object;
    maker.handler = handler;
    FUZZ_RULE(pthread_mutex_unlock(&maker.speaking) == 0);
    return 0;
}

static void maker_free(void *ctx)
{
    (void)ctx;
    FUZZ_RULE(atomic_fetch_add(&maker.freed, 1) == 0);
}

/* ---- the handler -------------------------------------------------------- */

static struct {
    struct ArrowAsyncDeviceStreamHandler handler;
    /* a thread calls the producer with this held for reading; the callback
     * after which that must not be called takes it for writing */
    pthread_rwlock_t calling;
    struct ArrowAsyncProducer *producer; /* borrows; NULL: no more calls */
    pthread_mutex_t lock;                /* guards the tasks */
    struct ArrowAsyncTask tasks[TASKS];
    int came, taken; /* tasks that have come; of them, taken to be extracted */
    atomic_bool begun; /* on_schema was called */
    atomic_llong requested;
    atomic_bool seen[TASKS]; /* batches that were extracted */
    atomic_int ends;         /* calls with the end, or an error */
    atomic_int releases;
} taker;

static void producer_set(struct ArrowAsyncProducer *producer)
{
    FUZZ_RULE(pthread_rwlock_wrlock(&taker.calling) == 0);
    taker.producer = producer;
    FUZZ_RULE(pthread_rwlock_unlock(&taker.calling) == 0);
}

static int on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                     struct ArrowSchema *schema)
{
    FUZZ_RULE(taker.producer == NULL);
    uva_schema_release(schema);
    producer_set(self->producer);
    atomic_store(&taker.begun, true);
    return 0;
}

static int on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                        struct ArrowAsyncTask *task, const char *metadata)
{
    (void)self;
    (void)metadata;
    FUZZ_RULE(atomic_load(&taker.ends) + atomic_load(&taker.releases) == 0);
    if (task == NULL) {
        atomic_fetch_add(&taker.ends, 1);
        producer_set(NULL);
        return 0;
    }
    FUZZ_RULE(pthread_mutex_lock(&taker.lock) == 0);
    FUZZ_RULE(taker.came < TASKS && taker.came < atomic_load(&taker.requested));
    taker.tasks[taker.came++] = *task;
    FUZZ_RULE(pthread_mutex_unlock(&taker.lock) == 0);
    return 0;
}

static void on_error(struct ArrowAsyncDeviceStreamHandler *self, int code,
                     const char *message, const char *metadata)
{
    (void)self;
    (void)message;
    (void)metadata;
    FUZZ_RULE(code != 0 && atomic_fetch_add(&taker.ends, 1) == 0);
    producer_set(NULL);
}

static void on_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    (void)self;
    FUZZ_RULE(atomic_fetch_add(&taker.releases, 1) == 0);
    producer_set(NULL);
}

static void taker_request(int64_t n)
{
    FUZZ_RULE(pthread_rwlock_rdlock(&taker.calling) == 0);
    if (taker.producer != NULL) {
        atomic_fetch_add(&taker.requested, n);
        taker.producer->request(taker.producer, n);
    }
    FUZZ_RULE(pthread_rwlock_unlock(&taker.calling) == 0);
}

static void taker_cancel(void)
{
    FUZZ_RULE(pthread_rwlock_rdlock(&taker.calling) == 0);
    if (taker.producer != NULL)
        taker.producer->cancel(taker.producer);
    FUZZ_RULE(pthread_rwlock_unlock(&taker.calling) == 0);
}

static void batch_see(struct ArrowDeviceArray *array)
{
    const struct ArrowArray *column = array->array.children[0];
    const int64_t first = ((const int64_t *)column->buffers[1])[0];

    FUZZ_RULE(first % 10 == 0 && first / 10 < TASKS);
    FUZZ_RULE(!atomic_exchange(&taker.seen[first / 10], true));
    uva_array_release(array);
}

/* Extracts a task that no other thread has taken, or discards it. Returns
 * whether there was one. */
static bool taker_extract(bool discards)
{
    struct ArrowAsyncTask task = {0};
    struct ArrowDeviceArray array;

    FUZZ_RULE(pthread_mutex_lock(&taker.lock) == 0);
    if (taker.taken < taker.came)
        task = taker.tasks[taker.taken++];
    FUZZ_RULE(pthread_mutex_unlock(&taker.lock) == 0);
    if (task.extract_data == NULL)
        return false;
    if (discards)
        uva_task_discard(&task);
    else if (task.extract_data(&task, &array) == 0)
        batch_see(&array);
    return true;
}

/* ---- the stream --------------------------------------------------------- */

static struct {
    struct uva_runtime *runtime;
    struct uva_stream *stream;
    sem_t done; /* posted by on_done */
} owner;

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    (void)outcome;
    FUZZ_RULE(sem_post(&owner.done) == 0);
}

static void owner_look(void)
{
    struct uva_stage_stats stats[8];
    size_t count = 8;
    struct uva_error error;

    FUZZ_RULE(uva_stream_get_stats(owner.stream, stats, &count) == 0);
    (void)uva_stream_status(owner.stream, &error);
}

static void owner_start(struct fuzz_input *in)
{
    const int kind = fuzz_byte(in);
    const struct uva_drive drive = {.on_done = on_done,
                                    .on_worker = (kind & 1) != 0};
    const struct uva_async_source source = {
        .start = maker_start,
        .free_ctx = maker_free,
        .window = {.batches = 1 + (kind >> 4 & 7)},
        .on_loop = (kind & 2) != 0};

    maker.total = fuzz_below(in, TASKS + 1);
    maker.fails = (kind & 128) != 0;
    FUZZ_RULE(uva_runtime_open(NULL, NULL, &owner.runtime, NULL) == 0);
    owner.stream = uva_stream_from_async(owner.runtime, &source);
    if ((kind & 4) != 0)
        FUZZ_RULE(uva_stream_parallel(
                      owner.stream, &(struct uva_parallel){.workers = 2}) == 0);
    if ((kind & 8) != 0)
        FUZZ_RULE(uva__stream_limit(owner.stream, TASKS / 2) == 0);
    FUZZ_RULE(uva_stream_drive(owner.stream, &taker.handler, &drive, NULL) ==
              0);
    if (fuzz_below(in, 4) == 0)
        return; /* the threads begin with the stream */
    while (!atomic_load(&taker.begun)) {
        maker_step();
        (void)sched_yield();
    }
}

/* ---- the threads -------------------------------------------------------- */

struct thread {
    pthread_t id;
    struct fuzz_input in;
};

enum action { REQUEST, CANCEL, EXTRACT, DISCARD, HOLD, LOOK, END, SPEAK };

static const enum action actions[16] = {
    REQUEST, REQUEST, REQUEST, REQUEST, CANCEL, EXTRACT, EXTRACT, EXTRACT,
    DISCARD, HOLD,    LOOK,    END,     SPEAK,  SPEAK,   SPEAK,   SPEAK};

static void step(int byte)
{
    const int more = byte >> 4;

    switch (actions[byte & 15]) {
    case REQUEST:
        taker_request(1 + (more & 3));
        break;
    case CANCEL:
        if (more == 15)
            taker_cancel();
        break;
    case EXTRACT:
        (void)taker_extract(false);
        break;
    case DISCARD:
        (void)taker_extract(true);
        break;
    case HOLD:
        uva_stream_release(uva_stream_acquire(owner.stream));
        break;
    case LOOK:
        owner_look();
        break;
    case END:
        if (more == 7)
            uva_stream_cancel(owner.stream, 0, "by a thread");
        break;
    case SPEAK:
        maker_step();
    }
}

static void *thread_run(void *ctx)
{
    struct thread *thread = ctx;

    while (thread->in.size > 0)
        step(fuzz_byte(&thread->in));
    return NULL;
}

/* Divides the rest of the input among the threads. */
static void threads_run(const struct fuzz_input *in)
{
    struct thread threads[THREADS];
    size_t share = in->size / THREADS;

    share = share < STEPS ? share : STEPS;
    for (size_t i = 0; i < THREADS; i++) {
        threads[i].in = (struct fuzz_input){in->data + i * share, share};
        FUZZ_RULE(
            pthread_create(&threads[i].id, NULL, thread_run, &threads[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        FUZZ_RULE(pthread_join(threads[i].id, NULL) == 0);
}

/* ---- one input ---------------------------------------------------------- */

static void begin(void)
{
    memset(&maker, 0, sizeof(maker));
    memset(&taker, 0, sizeof(taker));
    fake_source_init(&maker.data, TASKS);
    maker.object.request = maker_request;
    maker.object.cancel = maker_cancel;
    FUZZ_RULE(pthread_mutex_init(&maker.speaking, NULL) == 0);
    FUZZ_RULE(pthread_mutex_init(&taker.lock, NULL) == 0);
    FUZZ_RULE(pthread_rwlock_init(&taker.calling, NULL) == 0);
    taker.handler =
        (struct ArrowAsyncDeviceStreamHandler){.on_schema = on_schema,
                                               .on_next_task = on_next_task,
                                               .on_error = on_error,
                                               .release = on_release};
    FUZZ_RULE(sem_init(&owner.done, 0, 0) == 0);
}

/* The producer goes on until it is freed: it may have to be cancelled first. */
static void end(void)
{
    uva_stream_cancel(owner.stream, 0, "the end");
    while (sem_trywait(&owner.done) != 0) {
        maker_step();
        (void)sched_yield();
    }
    while (taker_extract(false))
        continue;
    fuzz_trace("threads", "tasks", taker.taken);
    uva_stream_release(owner.stream);
    while (atomic_load(&maker.freed) == 0) {
        maker_step();
        (void)sched_yield();
    }
    FUZZ_RULE(uva_runtime_join(owner.runtime, UVA_FOREVER) == 0);
    FUZZ_RULE(atomic_load(&taker.releases) == 1);
    FUZZ_RULE(maker.released == (maker.handler != NULL));
    FUZZ_RULE(atomic_load(&maker.items) == 0);
    FUZZ_RULE(atomic_load(&maker.data.live) == 0);
    fake_source_fini(&maker.data);
    (void)pthread_mutex_destroy(&maker.speaking);
    (void)pthread_mutex_destroy(&taker.lock);
    (void)pthread_rwlock_destroy(&taker.calling);
    (void)sem_destroy(&owner.done);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct fuzz_input in = {data, size};

        begin();
        owner_start(&in);
        threads_run(&in);
        end();
    }
    return 0;
}
