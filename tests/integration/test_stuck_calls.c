/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign code that ignores a cancel: it must not stop other streams. Every
 * source, map and discard here waits for a gate that the test opens at its end,
 * and each wait of the test fails after half a minute. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec/pool.h"
#include "loop/runtime_impl.h"
#include "support/check_suite.h"
#include "support/faulty_allocator.h"
#include "support/lane_fixture.h"
#include "uvarrow/stages.h"
#include "uvarrow/uvarrow.h"

enum { PATIENCE_S = 600, STUCK = 4 };

/* ---- waiting ------------------------------------------------------------ */

static bool taken(sem_t *sem, time_t seconds)
{
    struct timespec until;
    int code;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    while ((code = sem_timedwait(sem, &until)) != 0 && errno == EINTR)
        ;
    return code == 0;
}

static void take(sem_t *sem)
{
    ck_assert_msg(taken(sem, PATIENCE_S), "it does not come");
}

static void take_n(sem_t *sem, int n)
{
    while (n-- > 0)
        take(sem);
}

/* A gate that is closed at first, and opened once for all. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool open;
    sem_t entered; /* posted by each thread that waits at it */
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .opened = PTHREAD_COND_INITIALIZER};

static void gate_wait(void)
{
    sem_post(&gate.entered);
    pthread_mutex_lock(&gate.lock);
    while (!gate.open)
        pthread_cond_wait(&gate.opened, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

static void gate_open(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.opened);
    pthread_mutex_unlock(&gate.lock);
}

/* ---- the log ------------------------------------------------------------ */

static atomic_int infos, warnings; /* lines about threads */

static void log_write(void *ctx, const struct uva_log_record *record)
{
    (void)ctx;
    if (strstr(record->message, "thread written off") != NULL)
        infos++;
    if (record->level == UVA_LOG_WARN)
        warnings++;
}

/* ---- a source that may get stuck ---------------------------------------- */

enum where { NOWHERE, IN_OPEN, IN_SCHEMA, IN_NEXT, IN_RELEASE };

static sem_t released, freed; /* posted by each source */

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void array_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static void null_schema(struct ArrowSchema *out)
{
    *out = (struct ArrowSchema){
        .format = "n", .name = "", .release = schema_release};
}

static void null_array(struct ArrowArray *out)
{
    *out = (struct ArrowArray){
        .length = 1, .null_count = 1, .release = array_release};
}

struct source {
    enum where stuck;
    int left; /* batches */
};

static void pass(const struct source *source, enum where where)
{
    if (source->stuck == where)
        gate_wait();
}

static int source_schema(struct ArrowArrayStream *self, struct ArrowSchema *out)
{
    pass(self->private_data, IN_SCHEMA);
    null_schema(out);
    return 0;
}

static int source_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    struct source *source = self->private_data;

    pass(source, IN_NEXT);
    out->release = NULL;
    if (source->left-- > 0)
        null_array(out);
    return 0;
}

static const char *source_error(struct ArrowArrayStream *self)
{
    (void)self;
    return NULL;
}

static void source_release(struct ArrowArrayStream *self)
{
    pass(self->private_data, IN_RELEASE);
    self->release = NULL;
    sem_post(&released);
}

static int source_open(void *ctx, struct ArrowArrayStream *out,
                       struct uva_error *error)
{
    (void)error;
    pass(ctx, IN_OPEN);
    *out = (struct ArrowArrayStream){source_schema, source_next, source_error,
                                     source_release, ctx};
    return 0;
}

static void source_free(void *ctx)
{
    free(ctx);
    sem_post(&freed);
}

static struct uva_stream *source_stream(struct uva_runtime *runtime,
                                        enum where stuck)
{
    struct source *source = calloc(1, sizeof(*source));
    const struct uva_arrow_source options = {
        .open = source_open, .free_ctx = source_free, .ctx = source};

    source->stuck = stuck;
    source->left = 3;
    return uva_stream_from_arrow_stream(runtime, NULL, &options);
}

/* ---- its consumer ------------------------------------------------------- */

struct query {
    struct uva_stream *stream;
    sem_t done;
    enum uva_end end;
    int batches;
};

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct query *query = ctx;

    (void)batch;
    query->batches++;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct query *query = ctx;

    query->end = outcome->end;
    sem_post(&query->done);
}

static void start(struct query *query, struct uva_stream *stream)
{
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = query};

    *query = (struct query){.stream = stream};
    sem_init(&query->done, 0, 0);
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
}

static void cancel(struct query *query)
{
    uva_stream_cancel(query->stream, ECANCELED, "enough");
    take(&query->done);
    ck_assert_int_eq(query->end, UVA_END_CANCELLED);
    uva_stream_release(query->stream);
}

static void completes(struct query *query)
{
    take(&query->done);
    ck_assert_int_eq(query->end, UVA_END_COMPLETE);
    ck_assert_int_eq(query->batches, 3);
    uva_stream_release(query->stream);
}

/* ---- fixture ------------------------------------------------------------ */

static int pools;        /* made by the test */
static sem_t pools_gone; /* posted for each that was freed */

static void on_pool_gone(void *ctx)
{
    sem_post(ctx);
}

static struct uva_workers *pool_new(const struct uva_workers_options *options)
{
    struct uva_workers *workers;

    ck_assert_int_eq(uva_workers_new(options, &workers, NULL), 0);
    workers->freed = on_pool_gone;
    workers->freed_ctx = &pools_gone;
    pools++;
    return workers;
}

static struct uva_runtime *open_on(struct uva_workers *workers)
{
    const struct uva_runtime_options options = {
        .workers = workers, .log = {.write = log_write, .level = UVA_LOG_INFO}};
    struct uva_runtime *runtime;

    ck_assert_int_eq(uva_runtime_open(NULL, &options, &runtime, NULL), 0);
    return runtime;
}

static struct uva_runtime *open_limited(int32_t blocking_threads,
                                        int32_t stuck_threads)
{
    struct uva_workers *workers = pool_new(
        &(struct uva_workers_options){.blocking_threads = blocking_threads});
    struct uva_runtime *runtime;

    uva__workers_limit(workers, 10000, stuck_threads);
    runtime = open_on(workers);
    uva_workers_release(workers);
    return runtime;
}

static struct uva_runtime *open_with(const struct uva_workers_options *options)
{
    struct uva_workers *workers = pool_new(options);
    struct uva_runtime *runtime = open_on(workers);

    uva_workers_release(workers);
    return runtime;
}

static void end(struct uva_runtime *runtime)
{
    (void)uva_runtime_close(runtime, 0, NULL, NULL);
    ck_assert_int_eq(uva_runtime_join(runtime, UVA_FOREVER), 0);
}

static struct uva_runtime_stats stats_of(struct uva_runtime *runtime)
{
    struct uva_runtime_stats stats;

    uva_runtime_get_stats(runtime, &stats);
    return stats;
}

static void set_up(void)
{
    pools = 0;
    sem_init(&pools_gone, 0, 0);
    sem_init(&gate.entered, 0, 0);
    sem_init(&released, 0, 0);
    sem_init(&freed, 0, 0);
}

/* Starts `n` sources that get stuck, and waits until they are. */
static void get_stuck(struct query *queries, int n, struct uva_runtime *runtime,
                      enum where where)
{
    for (int i = 0; i < n; i++)
        start(&queries[i], source_stream(runtime, where));
    take_n(&gate.entered, n);
}

/* ---- the blocking lane -------------------------------------------------- */

/* In open, get_schema and get_next. */
START_TEST(cancelled_calls_that_are_stuck_give_their_places_back)
{
    struct uva_runtime *runtime =
        open_with(&(struct uva_workers_options){.blocking_threads = STUCK});
    struct query stuck[STUCK], healthy;

    get_stuck(stuck, STUCK, runtime, (enum where)_i);
    for (int i = 0; i < STUCK; i++)
        cancel(&stuck[i]);
    start(&healthy, source_stream(runtime, NOWHERE));
    completes(&healthy);
    ck_assert_int_eq(stats_of(runtime).calls_stuck, STUCK);
    ck_assert_int_ge(stats_of(runtime).threads_stuck, 1);
    ck_assert_int_ge(infos, 1);
    ck_assert_int_eq(warnings, 0);
    take(&freed);
    gate_open();
    take_n(&freed, STUCK);
    while (stats_of(runtime).threads_stuck > 0)
        sched_yield();
    ck_assert_int_eq(stats_of(runtime).calls_stuck, 0);
    end(runtime);
}
END_TEST

START_TEST(a_release_that_is_stuck_gives_its_place_back)
{
    struct uva_runtime *runtime =
        open_with(&(struct uva_workers_options){.blocking_threads = STUCK});
    struct query stuck[STUCK], healthy;

    get_stuck(stuck, STUCK, runtime, IN_RELEASE);
    start(&healthy, source_stream(runtime, NOWHERE));
    completes(&healthy);
    gate_open();
    for (int i = 0; i < STUCK; i++)
        completes(&stuck[i]);
    take_n(&freed, STUCK + 1);
    end(runtime);
}
END_TEST

START_TEST(stuck_calls_of_a_runtime_that_was_closed_do_not_starve_another)
{
    const struct uva_workers_options options = {.blocking_threads = STUCK};
    struct query stuck[STUCK], healthy;
    struct uva_workers *workers;
    struct uva_runtime *first, *second;

    workers = pool_new(&options);
    first = open_on(workers);
    second = open_on(workers);
    uva_workers_release(workers);
    get_stuck(stuck, STUCK, first, IN_NEXT);
    for (int i = 0; i < STUCK; i++)
        uva_stream_release(stuck[i].stream);
    end(first);
    start(&healthy, source_stream(second, NOWHERE));
    completes(&healthy);
    ck_assert_int_ge(stats_of(second).threads_stuck, 1);
    gate_open();
    take_n(&freed, STUCK + 1);
    end(second);
}
END_TEST

START_TEST(a_stream_that_never_began_is_released_while_others_are_stuck)
{
    struct uva_runtime *runtime =
        open_with(&(struct uva_workers_options){.blocking_threads = STUCK});
    struct query stuck[STUCK], waits;

    get_stuck(stuck, STUCK, runtime, IN_NEXT);
    start(&waits, source_stream(runtime, NOWHERE));
    cancel(&waits);
    take(&freed);
    ck_assert_int_eq(stats_of(runtime).threads_stuck, 0);
    uva_stream_release(source_stream(runtime, NOWHERE)); /* never started */
    take(&freed);
    gate_open();
    for (int i = 0; i < STUCK; i++)
        completes(&stuck[i]);
    take_n(&freed, STUCK);
    end(runtime);
}
END_TEST

START_TEST(beyond_the_limit_sources_wait_and_one_warning_is_logged)
{
    struct uva_runtime *runtime = open_limited(1, 1);
    struct query stuck[2], waits[3];

    get_stuck(&stuck[0], 1, runtime, IN_NEXT);
    cancel(&stuck[0]);
    get_stuck(&stuck[1], 1, runtime, IN_NEXT);
    cancel(&stuck[1]);
    for (int i = 0; i < 3; i++)
        start(&waits[i], source_stream(runtime, NOWHERE));
    while (warnings == 0)
        sched_yield();
    ck_assert_int_eq(stats_of(runtime).threads_stuck, 1);
    cancel(&waits[2]);
    take(&freed);
    gate_open();
    completes(&waits[0]);
    completes(&waits[1]);
    take_n(&freed, 4);
    end(runtime);
    ck_assert_int_eq(warnings, 1);
}
END_TEST

/* One call is stuck on the only thread, which is written off for the next
 * stream, while the allocation number `k` fails. Returns whether no check
 * failed. */
static bool write_off_without_memory(long k)
{
    struct faulty_allocator memory;
    struct uva_workers_options few = {.blocking_threads = 1};
    struct uva_runtime_options options = {0};
    struct uva_consumer consumer = {.on_batch = on_batch, .on_done = on_done};
    struct query stuck, next = {0};
    struct uva_error error = {0};
    struct uva_runtime *runtime;
    bool whole;

    faulty_allocator_init(&memory, 0);
    few.allocator = options.allocator = faulty_allocator_table(&memory);
    gate.open = false;
    options.workers = pool_new(&few);
    ck_assert_int_eq(uva_runtime_open(NULL, &options, &runtime, NULL), 0);
    uva_workers_release(options.workers);
    get_stuck(&stuck, 1, runtime, IN_NEXT);
    cancel(&stuck);
    memory.fail_at = atomic_load(&memory.asked) + k;
    next.stream = source_stream(runtime, NOWHERE);
    sem_init(&next.done, 0, 0);
    consumer.ctx = &next;
    if (uva_stream_for_each(next.stream, &consumer, &error) == 0) {
        take(&next.done);
        ck_assert(next.end == UVA_END_COMPLETE ||
                  faulty_allocator_has_failed(&memory));
    } else {
        ck_assert_int_eq(error.code, ENOMEM);
    }
    whole = !faulty_allocator_has_failed(&memory);
    memory.fail_at = 0;
    uva_stream_release(next.stream);
    gate_open();
    take_n(&freed, 2);
    end(runtime);
    while (faulty_allocator_live(&memory) != 0)
        sched_yield();
    return whole;
}

START_TEST(memory_may_lack_while_a_thread_is_written_off)
{
    long k = 1;

    while (!write_off_without_memory(k))
        ck_assert_int_lt(k++, 100);
    ck_assert_int_gt(k, 3);
}
END_TEST

/* ---- the compute lane --------------------------------------------------- */

static int map_stuck(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)error;
    if (ctx != NULL)
        gate_wait();
    uva_array_move(&in->data, out);
    return 0;
}

static struct uva_stream *mapped(struct uva_runtime *runtime, bool stuck)
{
    const struct uva_map map = {.batch = map_stuck,
                                .ctx = stuck ? &gate : NULL};
    struct ArrowDeviceArray arrays[3];
    struct ArrowSchema schema;
    struct ArrowArray array;
    struct uva_stream *stream;

    null_schema(&schema);
    for (int i = 0; i < 3; i++) {
        null_array(&array);
        uva_array_from_cpu(&array, &arrays[i]);
    }
    stream = uva_stream_from_arrays(runtime, &schema, arrays, 3);
    ck_assert_int_eq(uva_stream_map(stream, &map), 0);
    return stream;
}

static int transform_stuck(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                           void *emitter, struct uva_error *error)
{
    int code;

    (void)ctx;
    (void)error;
    gate_wait();
    code = emit(emitter, in);
    return code == EAGAIN ? 0 : code;
}

static struct uva_stream *transformed(struct uva_runtime *runtime)
{
    const struct uva_transform transform = {.batch = transform_stuck};
    struct uva_stream *stream = mapped(runtime, false);

    ck_assert_int_eq(uva_stream_transform(stream, &transform), 0);
    return stream;
}

/* A foreign producer with one task, which gets stuck when it is extracted. */
static struct {
    struct ArrowAsyncProducer object;
    struct ArrowAsyncDeviceStreamHandler *handler;
    sem_t requested, cancelled;
} foreign;

static void foreign_request(struct ArrowAsyncProducer *self, int64_t n)
{
    (void)self;
    (void)n;
    sem_post(&foreign.requested);
}

static void foreign_cancel(struct ArrowAsyncProducer *self)
{
    (void)self;
    sem_post(&foreign.cancelled);
}

static int foreign_extract(struct ArrowAsyncTask *task,
                           struct ArrowDeviceArray *out)
{
    struct ArrowArray array;

    (void)task;
    gate_wait();
    null_array(&array);
    uva_array_from_cpu(&array, out);
    return 0;
}

static void *foreign_run(void *arg)
{
    struct ArrowAsyncTask task = {.extract_data = foreign_extract};
    struct ArrowSchema schema;

    foreign.handler->producer = &foreign.object;
    null_schema(&schema);
    ck_assert_int_eq(foreign.handler->on_schema(foreign.handler, &schema), 0);
    take(&foreign.requested);
    ck_assert_int_eq(
        foreign.handler->on_next_task(foreign.handler, &task, NULL), 0);
    take(&foreign.cancelled);
    foreign.handler->release(foreign.handler);
    return arg;
}

static int foreign_start(void *ctx,
                         struct ArrowAsyncDeviceStreamHandler *handler,
                         struct uva_error *error)
{
    pthread_t thread;

    (void)ctx;
    (void)error;
    foreign.handler = handler;
    ck_assert_int_eq(pthread_create(&thread, NULL, foreign_run, NULL), 0);
    ck_assert_int_eq(pthread_detach(thread), 0);
    return 0;
}

static void foreign_free(void *ctx)
{
    (void)ctx;
    sem_post(&freed);
}

static struct uva_stream *imported(struct uva_runtime *runtime)
{
    const struct uva_async_source source = {.start = foreign_start,
                                            .free_ctx = foreign_free,
                                            .device_type = ARROW_DEVICE_CPU};

    sem_init(&foreign.requested, 0, 0);
    sem_init(&foreign.cancelled, 0, 0);
    foreign.object =
        (struct ArrowAsyncProducer){.device_type = ARROW_DEVICE_CPU,
                                    .request = foreign_request,
                                    .cancel = foreign_cancel};
    return uva_stream_from_async(runtime, &source);
}

static struct uva_stream *computing(struct uva_runtime *runtime, int kind)
{
    return kind == 0   ? mapped(runtime, true)
           : kind == 1 ? transformed(runtime)
                       : imported(runtime);
}

START_TEST(a_call_that_is_stuck_on_the_compute_lane_counts)
{
    struct uva_runtime *runtime = open_with(NULL);
    struct query stuck;

    start(&stuck, computing(runtime, _i));
    take(&gate.entered);
    cancel(&stuck);
    while (stats_of(runtime).calls_stuck == 0)
        sched_yield();
    gate_open();
    while (stats_of(runtime).calls_stuck > 0)
        sched_yield();
    end(runtime);
    ck_assert_int_eq(warnings, 0);
}
END_TEST

static void await_waiting(struct uva_workers *workers)
{
    while (uva__atomic64_load(&workers->waiting[UVA_LANE_COMPUTE]) == 0)
        sched_yield();
}

START_TEST(one_that_has_not_begun_does_not_count)
{
    const struct uva_workers_options one = {.compute_threads = 1};
    struct uva_workers *workers;
    struct uva_runtime *runtime;
    struct query busy, waits;

    workers = pool_new(&one);
    runtime = open_on(workers);
    start(&busy, mapped(runtime, true));
    take(&gate.entered);
    start(&waits, computing(runtime, _i));
    await_waiting(workers);
    cancel(&waits);
    ck_assert_int_eq(stats_of(runtime).calls_stuck, 0);
    gate_open();
    completes(&busy);
    end(runtime);
    uva_workers_release(workers);
}
END_TEST

START_TEST(maps_that_are_stuck_do_not_stop_those_of_other_streams)
{
    struct uva_runtime *runtime =
        open_with(&(struct uva_workers_options){.compute_threads = 2});
    struct query stuck[2], healthy;

    for (int i = 0; i < 2; i++)
        start(&stuck[i], mapped(runtime, true));
    take_n(&gate.entered, 2);
    for (int i = 0; i < 2; i++)
        cancel(&stuck[i]);
    start(&healthy, mapped(runtime, false));
    completes(&healthy);
    ck_assert_int_ge(stats_of(runtime).threads_stuck, 1);
    gate_open();
    end(runtime);
}
END_TEST

/* ---- discards ----------------------------------------------------------- */

enum { ITEMS = 20 };

struct items {
    bool stuck;
    int given;
    atomic_int discarded;
    sem_t freed;
};

static int items_schema(void *ctx, struct ArrowSchema *out,
                        struct uva_error *error)
{
    (void)ctx;
    (void)error;
    null_schema(out);
    return 0;
}

static int items_next(void *ctx, void **item, const char **metadata,
                      struct uva_error *error)
{
    struct items *items = ctx;

    (void)metadata;
    (void)error;
    if (items->given < ITEMS && ++items->given > 0)
        *item = items;
    return 0;
}

static int items_extract(void *ctx, void *item, struct ArrowDeviceArray *out,
                         struct uva_error *error)
{
    struct items *items = ctx;

    (void)item;
    (void)error;
    ck_assert_ptr_null(out);
    if (items->stuck)
        gate_wait();
    items->discarded++;
    return 0;
}

static void items_free(void *ctx)
{
    struct items *items = ctx;

    ck_assert_int_eq(items->discarded, ITEMS);
    sem_post(&items->freed);
}

/* A handler that keeps its tasks. */
struct keeper {
    struct ArrowAsyncDeviceStreamHandler handler;
    sem_t ended;
};

static int keep_schema(struct ArrowAsyncDeviceStreamHandler *self,
                       struct ArrowSchema *schema)
{
    schema->release(schema);
    self->producer->request(self->producer, INT64_MAX);
    return 0;
}

static int keep_task(struct ArrowAsyncDeviceStreamHandler *self,
                     struct ArrowAsyncTask *task, const char *metadata)
{
    struct keeper *keeper = self->private_data;

    (void)metadata;
    if (task == NULL)
        sem_post(&keeper->ended);
    return 0;
}

static void keep_error(struct ArrowAsyncDeviceStreamHandler *self, int code,
                       const char *message, const char *metadata)
{
    (void)self;
    (void)code;
    (void)message;
    (void)metadata;
}

static void keep_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    (void)self;
}

static struct uva_stream *keep_items(struct uva_runtime *runtime,
                                     struct keeper *keeper, struct items *items,
                                     bool stuck)
{
    const struct uva_task_source source = {.schema = items_schema,
                                           .next = items_next,
                                           .extract = items_extract,
                                           .free_ctx = items_free,
                                           .ctx = items};
    struct uva_stream *stream;

    *items = (struct items){.stuck = stuck};
    sem_init(&items->freed, 0, 0);
    keeper->handler = (struct ArrowAsyncDeviceStreamHandler){
        keep_schema, keep_task, keep_error, keep_release, NULL, keeper};
    sem_init(&keeper->ended, 0, 0);
    stream = uva_stream_from_tasks(runtime, &source);
    ck_assert_int_eq(uva_stream_drive(stream, &keeper->handler, NULL, NULL), 0);
    take(&keeper->ended);
    return stream;
}

static struct uva_stream *dropped[3];

static void drop(void *stream)
{
    uva_stream_drop(stream);
}

static void drop_all(void *ctx)
{
    (void)ctx;
    for (int i = 0; i < 3; i++)
        uva_stream_drop(dropped[i]);
}

/* The last stream is dropped when the first two are stuck, or in the same turn.
 */
START_TEST(discards_that_are_stuck_do_not_hold_up_those_of_other_streams)
{
    struct uva_runtime *runtime = open_with(NULL);
    struct keeper keepers[3];
    struct items items[3];

    for (int i = 0; i < 3; i++)
        dropped[i] = keep_items(runtime, &keepers[i], &items[i], i < 2);
    for (int i = 0; i < 2 && _i == 0; i++) {
        ck_assert_int_eq(uva_runtime_post(runtime, drop, dropped[i]), 0);
        take(&gate.entered);
    }
    ck_assert_int_eq(_i == 0 ? uva_runtime_post(runtime, drop, dropped[2])
                             : uva_runtime_post(runtime, drop_all, NULL),
                     0);
    take(&items[2].freed);
    take_n(&gate.entered, _i == 0 ? 0 : 2);
    ck_assert(!taken(&gate.entered, 0)); /* each is stuck on one thread */
    ck_assert_int_eq(items[0].discarded + items[1].discarded, 0);
    gate_open();
    take(&items[0].freed);
    take(&items[1].freed);
    end(runtime);
}
END_TEST

static void note_turn(void *ctx)
{
    sem_post(ctx);
}

/* Waits until the loop thread has made all calls that were posted before. */
static void await_turn(struct uva_runtime *runtime)
{
    sem_t made;

    sem_init(&made, 0, 0);
    ck_assert_int_eq(uva_runtime_post(runtime, note_turn, &made), 0);
    take(&made);
    sem_destroy(&made);
}

START_TEST(discards_keep_no_more_threads_than_may_be_stuck)
{
    struct uva_runtime *runtime = open_limited(0, 1);
    struct keeper keepers[3];
    struct items items[3];
    int64_t threads;

    for (int i = 0; i < 3; i++)
        dropped[i] = keep_items(runtime, &keepers[i], &items[i], true);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(uva_runtime_post(runtime, drop, dropped[i]), 0);
        take(&gate.entered);
    }
    threads = stats_of(runtime).threads_blocking; /* also of readers */
    ck_assert_int_eq(uva_runtime_post(runtime, drop, dropped[2]), 0);
    await_turn(runtime); /* the loop has dropped it */
    ck_assert_int_eq(stats_of(runtime).threads_blocking, threads);
    ck_assert(!taken(&gate.entered, 0));
    gate_open();
    for (int i = 0; i < 3; i++)
        take(&items[i].freed);
    end(runtime);
}
END_TEST

/* ---- threads ------------------------------------------------------------ */

/* Returns when a job waits for a thread, and no thread is being started. */
static void await_refusal(struct uva_workers *workers)
{
    const struct uva__pool_class *blocking =
        &workers->locked.classes[UVA_LANE_BLOCKING];
    bool refused = false;

    while (!refused) {
        uva__lock_take(&workers->locked.lock);
        refused =
            uva__atomic64_load(&workers->waiting[UVA_LANE_BLOCKING]) > 0 &&
            blocking->count[UVA__WORKER_STARTING] == 0;
        uva__lock_drop(&workers->locked.lock);
        sched_yield();
    }
}

START_TEST(a_thread_that_could_not_be_created_is_tried_again)
{
    struct uva_workers *workers;
    struct uva_runtime *runtime;
    struct query busy, waits;

    workers = pool_new(NULL);
    runtime = open_on(workers);
    get_stuck(&busy, 1, runtime, IN_NEXT);
    lane_threads_run_out(true);
    start(&waits, source_stream(runtime, NOWHERE));
    await_refusal(workers);
    lane_threads_run_out(false);
    completes(&waits);
    gate_open();
    completes(&busy);
    take_n(&freed, 2);
    end(runtime);
    uva_workers_release(workers);
}
END_TEST

/* The process may end while a worker that gave back the last use of a pool
 * still joins the other ones. */
static void tear_down(void)
{
    take_n(&pools_gone, pools);
    sem_destroy(&pools_gone);
    sem_destroy(&gate.entered);
}

int main(void)
{
    TCase *blocking = suite_tests(
        "blocking", a_release_that_is_stuck_gives_its_place_back,
        stuck_calls_of_a_runtime_that_was_closed_do_not_starve_another,
        a_stream_that_never_began_is_released_while_others_are_stuck,
        beyond_the_limit_sources_wait_and_one_warning_is_logged,
        memory_may_lack_while_a_thread_is_written_off, NULL);
    TCase *others =
        suite_tests("others", discards_keep_no_more_threads_than_may_be_stuck,
                    maps_that_are_stuck_do_not_stop_those_of_other_streams,
                    a_thread_that_could_not_be_created_is_tried_again, NULL);

    tcase_add_loop_test(blocking,
                        cancelled_calls_that_are_stuck_give_their_places_back,
                        IN_OPEN, IN_NEXT + 1);
    tcase_add_loop_test(
        others, discards_that_are_stuck_do_not_hold_up_those_of_other_streams,
        0, 2);
    suite_add_loops(others, 0, 2, one_that_has_not_begun_does_not_count, NULL);
    suite_add_loops(others, 0, 3,
                    a_call_that_is_stuck_on_the_compute_lane_counts, NULL);
    return suite_main("stuck_calls", set_up, tear_down, blocking, others, NULL);
}
