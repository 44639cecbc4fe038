/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs that break no rule, with a thread for the producer and several for the
 * consumer, which request, extract, discard, cancel and refuse at random:
 * no breach is reported, and everything is released. With the perturbation too.
 */
#include <check.h>
#include <pthread.h>
#include <string.h>

#include "support/check_fixture.h"
#include "support/check_suite.h"

enum { WORKERS = 3, QUEUE = 256, STREAMS = 60 };

/* The options of one stream. */
struct plan {
    int batches;      /* batches of the producer */
    int window;       /* batches that the consumer requests at first */
    int cancel_at;    /* the task at which it cancels; negative: never */
    int refuse_at;    /* the task that it refuses; negative: never */
    int error_at;     /* the batch that the producer fails at; negative:
                         never */
    uint64_t perturb; /* the seed; 0: no perturbation */
};

static struct pair {
    struct check_fixture fixture; /* for its report and its handler */
    struct plan plan;
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t changed;
    int64_t demand; /* the producer's */
    bool cancelled;
    struct ArrowAsyncTask queue[QUEUE]; /* the consumer's */
    int queued, taken, inside;
    bool is_held, over;
    int seen; /* tasks offered: no lock, as callbacks come one at a time */
} pair;

static void lock(void)
{
    (void)pthread_mutex_lock(&pair.lock);
}

static void unlock(void)
{
    (void)pthread_cond_broadcast(&pair.changed);
    (void)pthread_mutex_unlock(&pair.lock);
}

static void wait(void)
{
    (void)pthread_cond_wait(&pair.changed, &pair.lock);
}

/* ---- the producer ------------------------------------------------------- */

static void on_request(struct check_fixture *s, int64_t n)
{
    (void)s;
    lock();
    pair.demand += n;
    unlock();
}

static void on_cancel(struct check_fixture *s)
{
    (void)s;
    lock();
    pair.cancelled = true;
    unlock();
}

/* Waits for demand. False when it was cancelled. */
static bool may_offer(void)
{
    bool cancelled;

    lock();
    while (pair.demand == 0 && !pair.cancelled)
        wait();
    cancelled = pair.cancelled;
    pair.demand -= !cancelled;
    unlock();
    return !cancelled;
}

/* False if the stream is over without an end. */
static bool produce_batches(void)
{
    for (int i = 0; i < pair.plan.batches; i++) {
        if (i == pair.plan.error_at) {
            check_fixture_error(&pair.fixture, EIO, "the source is gone");
            return false;
        }
        if (!may_offer() || check_fixture_task(&pair.fixture) != 0)
            return false;
    }
    return true;
}

static void *produce(void *arg)
{
    if (check_fixture_schema(&pair.fixture) == 0 && produce_batches())
        (void)check_fixture_end(&pair.fixture);
    check_fixture_release(&pair.fixture);
    return arg;
}

/* ---- the consumer ------------------------------------------------------- */

/* Calls the producer, unless the stream has ended. */
static void call(int64_t n)
{
    struct ArrowAsyncProducer *peer = pair.fixture.peer;
    bool goes;

    lock();
    goes = !pair.is_held;
    pair.inside += goes;
    unlock();
    if (!goes)
        return;
    if (n > 0)
        peer->request(peer, n);
    else
        peer->cancel(peer);
    lock();
    pair.inside--;
    unlock();
}

static int on_schema(struct check_fixture *s, struct ArrowSchema *schema)
{
    uva_schema_move(schema, &s->schema);
    s->peer = s->inner.producer;
    call(pair.plan.window);
    return 0;
}

static int on_task(struct check_fixture *s, struct ArrowAsyncTask *task)
{
    const int i = pair.seen++;

    (void)s;
    if (i == pair.plan.refuse_at) {
        uva_task_discard(task);
        return EIO;
    }
    if (i == pair.plan.cancel_at)
        call(0);
    lock();
    pair.queue[pair.queued++] = *task;
    unlock();
    return 0;
}

static void hold_calls(void)
{
    lock();
    pair.is_held = true;
    while (pair.inside > 0)
        wait();
    unlock();
}

static int on_end(struct check_fixture *s)
{
    (void)s;
    hold_calls();
    return 0;
}

static void on_error(struct check_fixture *s, int code, const char *message,
                     const char *metadata)
{
    (void)s;
    (void)metadata;
    ck_assert_int_eq(code, EIO);
    ck_assert_str_eq(message, "the source is gone");
    hold_calls();
}

static void on_release(struct check_fixture *s)
{
    (void)s;
    hold_calls();
    lock();
    pair.over = true;
    unlock();
}

/* The next task; NULL when no more will come. */
static struct ArrowAsyncTask *next(void)
{
    struct ArrowAsyncTask *task = NULL;

    lock();
    while (pair.taken == pair.queued && !pair.over)
        wait();
    if (pair.taken < pair.queued)
        task = &pair.queue[pair.taken++];
    unlock();
    return task;
}

static void *consume(void *arg)
{
    struct ArrowAsyncTask *task;
    struct ArrowDeviceArray array;
    int count = 0;

    while ((task = next()) != NULL) {
        call(1);
        if (count++ % 3 == 0)
            uva_task_discard(task);
        else if (uva_task_extract(task, &array) == 0)
            uva_array_release(&array);
    }
    return arg;
}

/* ---- both --------------------------------------------------------------- */

static void pair_init(const struct plan *plan)
{
    const struct uva_check options = {.perturb_seed = plan->perturb};

    memset(&pair, 0, sizeof(pair));
    (void)pthread_mutex_init(&pair.lock, NULL);
    (void)pthread_cond_init(&pair.changed, NULL);
    pair.plan = *plan;
    check_fixture_init(&pair.fixture, &options);
    pair.fixture.on_schema = on_schema;
    pair.fixture.on_task = on_task;
    pair.fixture.on_end = on_end;
    pair.fixture.on_error = on_error;
    pair.fixture.on_release = on_release;
    pair.fixture.on_request = on_request;
    pair.fixture.on_cancel = on_cancel;
}

static void pair_run(const struct plan *plan)
{
    pthread_t producer, workers[WORKERS];

    pair_init(plan);
    ck_assert_int_eq(pthread_create(&producer, NULL, produce, NULL), 0);
    for (int i = 0; i < WORKERS; i++)
        ck_assert_int_eq(pthread_create(&workers[i], NULL, consume, NULL), 0);
    (void)pthread_join(producer, NULL);
    for (int i = 0; i < WORKERS; i++)
        (void)pthread_join(workers[i], NULL);
    uva_schema_release(&pair.fixture.schema);
    ck_assert_int_eq(check_fixture_conclude(&pair.fixture), 0);
    ck_assert_str_eq(check_fixture_breaches(&pair.fixture), "");
    ck_assert_int_eq(atomic_load(&pair.fixture.released), 1);
    check_fixture_fini(&pair.fixture);
    ck_assert_int_eq(check_fixture_live(), 0);
}

static const struct plan PLANS[] = {
    {.batches = 40,
     .window = 4,
     .cancel_at = -1,
     .refuse_at = -1,
     .error_at = -1},
    {.batches = 40,
     .window = 40,
     .cancel_at = 7,
     .refuse_at = -1,
     .error_at = -1},
    {.batches = 40,
     .window = 2,
     .cancel_at = -1,
     .refuse_at = 9,
     .error_at = -1},
    {.batches = 40,
     .window = 9,
     .cancel_at = -1,
     .refuse_at = -1,
     .error_at = 20},
    {.batches = 0,
     .window = 1,
     .cancel_at = -1,
     .refuse_at = -1,
     .error_at = -1},
    {.batches = 30,
     .window = 3,
     .cancel_at = 12,
     .refuse_at = 12,
     .error_at = 13},
};

enum { PLAN_COUNT = sizeof(PLANS) / sizeof(PLANS[0]) };

START_TEST(lawful_pairs_on_many_threads_bring_no_report)
{
    for (int i = 0; i < STREAMS; i++)
        pair_run(&PLANS[_i]);
}
END_TEST

START_TEST(lawful_pairs_bring_no_report_when_perturbed)
{
    struct plan plan = PLANS[_i];

    for (int i = 0; i < STREAMS / 4; i++) {
        plan.perturb = (uint64_t)i + 1;
        pair_run(&plan);
    }
}
END_TEST

int main(void)
{
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 60);
    tcase_add_loop_test(all, lawful_pairs_on_many_threads_bring_no_report, 0,
                        PLAN_COUNT);
    tcase_add_loop_test(all, lawful_pairs_bring_no_report_when_perturbed, 0,
                        PLAN_COUNT);
    return suite_main("handler_threads", NULL, NULL, all, NULL);
}
