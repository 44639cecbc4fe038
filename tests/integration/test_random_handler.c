/* SPDX-License-Identifier: Apache-2.0 */
/* A driven handler that calls from several threads at once, at random: they
 * request, extract and cancel, while the loop offers tasks and ends the stream.
 * Each task is extracted once, the handler is released once, and no object is
 * left. The seeds are fixed; only the threads' speed differs. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "uvarrow/arrow.h"

enum { TASKS = 24, THREADS = 3, STEPS = 40, ROUNDS = 24 };

static struct fixture f;

static struct {
    struct ArrowAsyncDeviceStreamHandler handler;
    /* a thread calls the producer with this held for reading; the callback
     * after which that must not be called takes it for writing */
    pthread_rwlock_t calling;
    struct ArrowAsyncProducer *producer; /* borrows; NULL: no more calls */
    pthread_mutex_t lock;                /* guards the tasks */
    struct ArrowAsyncTask tasks[TASKS];
    int came, taken; /* tasks that have come; of them, taken to be extracted */
    int schemas, ends, errors, releases; /* calls; the loop thread's */
    atomic_int extracted, failed;
    atomic_int busy; /* threads that run */
} peer;

/* ---- the handler -------------------------------------------------------- */

static void producer_forget(void)
{
    ck_assert_int_eq(pthread_rwlock_wrlock(&peer.calling), 0);
    peer.producer = NULL;
    ck_assert_int_eq(pthread_rwlock_unlock(&peer.calling), 0);
}

static int on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                     struct ArrowSchema *schema)
{
    ck_assert_int_eq(++peer.schemas, 1);
    uva_schema_release(schema);
    ck_assert_int_eq(pthread_rwlock_wrlock(&peer.calling), 0);
    peer.producer = self->producer;
    ck_assert_int_eq(pthread_rwlock_unlock(&peer.calling), 0);
    return 0;
}

static int on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                        struct ArrowAsyncTask *task, const char *metadata)
{
    (void)self;
    (void)metadata;
    ck_assert_int_eq(peer.ends + peer.errors + peer.releases, 0);
    if (task == NULL) {
        peer.ends++;
        producer_forget();
        return 0;
    }
    ck_assert_int_eq(pthread_mutex_lock(&peer.lock), 0);
    ck_assert_int_lt(peer.came, TASKS);
    peer.tasks[peer.came++] = *task;
    ck_assert_int_eq(pthread_mutex_unlock(&peer.lock), 0);
    return 0;
}

static void on_error(struct ArrowAsyncDeviceStreamHandler *self, int code,
                     const char *message, const char *metadata)
{
    (void)self;
    (void)message;
    (void)metadata;
    ck_assert_int_ne(code, 0);
    ck_assert_int_eq(peer.ends + peer.errors++ + peer.releases, 0);
    producer_forget();
}

static void on_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    (void)self;
    ck_assert_int_eq(++peer.releases, 1);
    producer_forget();
}

/* ---- the threads -------------------------------------------------------- */

static void request_or_cancel(bool cancels, int64_t n)
{
    ck_assert_int_eq(pthread_rwlock_rdlock(&peer.calling), 0);
    if (peer.producer != NULL && cancels)
        peer.producer->cancel(peer.producer);
    else if (peer.producer != NULL)
        peer.producer->request(peer.producer, n);
    ck_assert_int_eq(pthread_rwlock_unlock(&peer.calling), 0);
}

/* Extracts a task that no other thread has taken. Returns whether there was
 * one. */
static bool extract_one(void)
{
    struct ArrowAsyncTask task = {0};
    struct ArrowDeviceArray out;
    int code;

    ck_assert_int_eq(pthread_mutex_lock(&peer.lock), 0);
    if (peer.taken < peer.came)
        task = peer.tasks[peer.taken++];
    ck_assert_int_eq(pthread_mutex_unlock(&peer.lock), 0);
    if (task.extract_data == NULL)
        return false;
    code = task.extract_data(&task, &out);
    atomic_fetch_add(code == 0 ? &peer.extracted : &peer.failed, 1);
    if (code == 0)
        uva_array_release(&out);
    return true;
}

static void *thread_run(void *ctx)
{
    unsigned seed = *(const unsigned *)ctx;

    for (int step = 0; step < STEPS; step++) {
        seed = seed * 1103515245u + 12345u;
        switch (seed >> 16 & 7) {
        case 0:
        case 1:
        case 2:
            request_or_cancel(false, 1 + (seed >> 20 & 1));
            break;
        case 3:
            if ((seed >> 20 & 31) == 0)
                request_or_cancel(true, 0);
            (void)sched_yield();
            break;
        default:
            (void)extract_one();
            break;
        }
    }
    atomic_fetch_sub(&peer.busy, 1);
    return NULL;
}

/* ---- the test ----------------------------------------------------------- */

static void set_up(void)
{
    fixture_open(&f, TASKS);
    memset(&peer, 0, sizeof(peer));
    ck_assert_int_eq(pthread_rwlock_init(&peer.calling, NULL), 0);
    ck_assert_int_eq(pthread_mutex_init(&peer.lock, NULL), 0);
    peer.handler =
        (struct ArrowAsyncDeviceStreamHandler){.on_schema = on_schema,
                                               .on_next_task = on_next_task,
                                               .on_error = on_error,
                                               .release = on_release,
                                               .private_data = &peer};
}

static void tear_down(void)
{
    fixture_close(&f);
    ck_assert_int_eq(pthread_rwlock_destroy(&peer.calling), 0);
    ck_assert_int_eq(pthread_mutex_destroy(&peer.lock), 0);
}

static void turn(void)
{
    (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    (void)sched_yield();
}

START_TEST(threads_that_call_at_random_break_nothing)
{
    const struct uva_drive options = {.on_done = recording_on_done,
                                      .ctx = &f.got};
    pthread_t threads[THREADS];
    unsigned seeds[THREADS];

    f.stream = _i & 1 ? fixture_blocking(&f) : fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_drive(f.stream, &peer.handler, &options, NULL),
                     0);
    atomic_store(&peer.busy, THREADS);
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = (unsigned)(_i * THREADS + i + 1) * 2654435761u;
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, thread_run, &seeds[i]), 0);
    }
    while (atomic_load(&peer.busy) > 0)
        turn();
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    while (peer.releases == 0) { /* now completely, unless it was cancelled */
        request_or_cancel(false, 1);
        (void)extract_one();
        turn();
    }
    while (extract_one())
        ;
    ck_assert_int_eq(peer.ends + peer.errors <= 1, true);
    ck_assert_int_eq(atomic_load(&peer.extracted) + atomic_load(&peer.failed),
                     peer.came);
    if (peer.ends == 1)
        ck_assert_int_eq(peer.came, TASKS);
    ck_assert_int_eq(f.got.done, 1);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("handler threads");

    tcase_add_loop_test(tc, threads_that_call_at_random_break_nothing, 0,
                        ROUNDS);
    return suite_main("handler threads", set_up, tear_down, tc, NULL);
}
