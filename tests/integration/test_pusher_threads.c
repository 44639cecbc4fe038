/* SPDX-License-Identifier: Apache-2.0 */
/* Batches pushed by threads that wait for room: order, fairness, and that no
 * thread is left waiting. The queue counts the threads that wait, so that no
 * case depends on time. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

#include "base/memory.h"
#include "loop/loop.h"
#include "source/push_queue.h"
#include "stage/limit.h"
#include "stream/slots.h"
#include "stream/window.h"
#include "support/check_suite.h"
#include "support/plain_tree.h"
#include "support/push_fixture.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

static struct push_fixture p;

/* ---- writers ------------------------------------------------------------ */

/* A thread that pushes `count` batches, from `first` on, until a push fails. */
struct writer {
    pthread_t thread;
    struct uva__push_queue *queue; /* NULL: the fixture's pusher */
    int64_t first, count;
    int64_t timeout_ms;
    int64_t done; /* batches that were pushed */
    int code;     /* code of the last push */
    atomic_bool over;
};

/* The time limit of the first wait of a writer. */
static _Thread_local bool is_writer;
static atomic_bool waits;
static atomic_llong first_limit_ms;

bool __real_uva__futex_wait(struct uva__futex *futex, uint32_t seen,
                            int64_t ms);
bool __wrap_uva__futex_wait(struct uva__futex *futex, uint32_t seen,
                            int64_t ms);

bool __wrap_uva__futex_wait(struct uva__futex *futex, uint32_t seen, int64_t ms)
{
    if (is_writer && !atomic_load(&waits)) {
        atomic_store(&first_limit_ms, ms);
        atomic_store(&waits, true);
    }
    return __real_uva__futex_wait(futex, seen, ms);
}

static int writer_push(struct writer *w, struct ArrowDeviceArray *array)
{
    bool first;

    if (w->queue != NULL)
        return uva__push_queue_push(w->queue, array, array->array.length, NULL,
                                    w->timeout_ms, &first);
    return uva_pusher_push(p.pusher, array, NULL, w->timeout_ms);
}

static void *writer_run(void *ctx)
{
    struct writer *w = ctx;
    struct ArrowDeviceArray array;

    is_writer = true;
    while (w->code == 0 && w->done < w->count) {
        batch_make(&array, w->first + w->done);
        w->code = writer_push(w, &array);
        ck_assert(!uva_array_is_live(&array) ||
                  (w->queue != NULL && w->code != 0 && w->code != EAGAIN));
        uva_array_release(&array);
        w->done += w->code == 0 || w->code == EAGAIN;
    }
    atomic_store(&w->over, true);
    loop_nudge(&p.loop);
    return NULL;
}

static void writer_start(struct writer *w)
{
    ck_assert_int_eq(pthread_create(&w->thread, NULL, writer_run, w), 0);
}

static bool is_over(void *ctx)
{
    return atomic_load(&((struct writer *)ctx)->over);
}

/* Turns the loop until the thread has ended. Returns its last code. */
static int writer_join(struct writer *w)
{
    loop_until(&p.loop, is_over, w);
    ck_assert_int_eq(pthread_join(w->thread, NULL), 0);
    return w->code;
}

/* ---- threads and a stream ----------------------------------------------- */

enum { WRITERS = 4, EACH = 300 };

static int64_t next_of[WRITERS];

static void ck_order(struct recording_consumer *c, struct uva_batch *batch)
{
    int64_t n = batch->data.array.length;

    (void)c;
    ck_assert_int_eq(n % EACH, next_of[n / EACH]++);
}

static void run_writers(int64_t timeout_ms)
{
    struct writer writers[WRITERS];

    memset(next_of, 0, sizeof(next_of));
    memset(writers, 0, sizeof(writers));
    p.consumer.quiet = true;
    p.consumer.on_batch = ck_order;
    for (int i = 0; i < WRITERS; i++) {
        writers[i].first = (int64_t)i * EACH;
        writers[i].count = EACH;
        writers[i].timeout_ms = timeout_ms;
        writer_start(&writers[i]);
    }
    push_start(&p);
    for (int i = 0; i < WRITERS; i++)
        ck_assert_int_eq(writer_join(&writers[i]), 0);
    push_end(&p);
    push_await_done(&p);
    ck_assert_int_eq(p.consumer.taken, WRITERS * EACH);
    ck_assert_str_eq(p.consumer.transcript, "schema complete");
    push_close(&p);
}

START_TEST(threads_that_wait_keep_their_order_and_lose_nothing)
{
    push_open(&p, 3, 0);
    run_writers(UVA_FOREVER);
}
END_TEST

START_TEST(a_window_of_one_lets_all_threads_through)
{
    push_open(&p, 1, 0);
    run_writers(60000);
}
END_TEST

START_TEST(a_window_of_bytes_lets_all_threads_through)
{
    push_open(&p, 0, 2000);
    run_writers(UVA_FOREVER);
}
END_TEST

static sem_t room;

static void post_room(struct push_fixture *s)
{
    (void)s;
    (void)sem_post(&room);
}

static void *push_by_room(void *ctx)
{
    struct writer *w = ctx;
    struct ArrowDeviceArray array;

    for (; w->done < w->count; w->done++) {
        batch_make(&array, 1);
        w->code = writer_push(w, &array);
        if (w->code == EAGAIN)
            while (sem_wait(&room) != 0)
                ;
        else
            ck_assert_int_eq(w->code, 0);
    }
    atomic_store(&w->over, true);
    loop_nudge(&p.loop);
    return NULL;
}

START_TEST(a_thread_that_heeds_on_room_never_waits_in_vain)
{
    struct writer w = {.count = 2000};

    ck_assert_int_eq(sem_init(&room, 0, 0), 0);
    push_open(&p, 4, 0);
    p.on_callback = post_room;
    p.consumer.quiet = true;
    p.consumer.transcript[0] = '\0';
    push_start(&p);
    ck_assert_int_eq(pthread_create(&w.thread, NULL, push_by_room, &w), 0);
    while (!is_over(&w)) {
        loop_turn(&p.loop);
        p.consumer.transcript_size = 0; /* too many words for a transcript */
    }
    ck_assert_int_eq(pthread_join(w.thread, NULL), 0);
    recording_await(&p.consumer, &p.loop, 2000);
    push_close(&p);
}
END_TEST

START_TEST(a_stream_that_runs_keeps_the_loop_alive_for_its_writers)
{
    struct writer w = {.count = 100, .timeout_ms = UVA_FOREVER};

    push_open(&p, 2, 0);
    ck_assert_int_eq(uva__stream_limit(p.stream, 100), 0);
    p.consumer.quiet = true;
    push_start(&p);
    uv_unref((uv_handle_t *)&p.loop.keep);
    writer_start(&w);
    (void)uv_run(&p.loop.uv, UV_RUN_DEFAULT);
    ck_assert_str_eq(p.consumer.transcript, "schema complete gone");
    uv_ref((uv_handle_t *)&p.loop.keep);
    ck_assert_int_eq(writer_join(&w), 0);
    push_close(&p);
}
END_TEST

/* Starts a writer on a full window, where it probably sleeps. */
static void start_one_too_many(struct writer *w)
{
    *w = (struct writer){.count = 3, .timeout_ms = UVA_FOREVER};
    writer_start(w);
}

static void run_cancelled(void)
{
    struct writer w[2];

    push_open(&p, 1, 0);
    p.consumer.appetite = 0;
    push_start(&p);
    start_one_too_many(&w[0]);
    start_one_too_many(&w[1]);
    loop_settle(&p.loop);
    uva_stream_cancel(p.stream, 0, NULL);
    ck_assert_int_eq(writer_join(&w[0]), EPIPE);
    ck_assert_int_eq(writer_join(&w[1]), EPIPE);
    push_close(&p);
}

START_TEST(a_cancel_sends_those_who_wait_away)
{
    for (int i = 0; i < 20; i++)
        run_cancelled();
}
END_TEST

START_TEST(a_release_before_the_start_sends_those_who_wait_away)
{
    struct writer w;

    for (int i = 0; i < 20; i++) {
        push_open(&p, 1, 0);
        start_one_too_many(&w);
        if (i % 2 != 0)
            loop_settle(&p.loop);
        push_release(&p);
        ck_assert_int_eq(writer_join(&w), EPIPE);
        push_close(&p);
    }
}
END_TEST

START_TEST(a_close_of_the_runtime_sends_those_who_wait_away)
{
    struct writer w;

    push_open(&p, 1, 0);
    p.consumer.appetite = 0;
    push_start(&p);
    start_one_too_many(&w);
    loop_close_runtime(&p.loop, 0);
    ck_assert_int_eq(writer_join(&w), EPIPE);
    push_close(&p);
}
END_TEST

START_TEST(a_wait_for_a_stream_that_starts_late_ends)
{
    struct writer w;

    push_open(&p, 1, 0);
    start_one_too_many(&w);
    loop_settle(&p.loop);
    push_start(&p);
    ck_assert_int_eq(writer_join(&w), 0);
    push_close(&p);
}
END_TEST

START_TEST(a_wait_ends_with_its_time)
{
    struct writer w = {.count = 2, .timeout_ms = 1};

    push_open(&p, 1, 0);
    writer_start(&w);
    ck_assert_int_eq(writer_join(&w), ETIMEDOUT);
    ck_assert_int_eq(w.done, 1);
    push_close(&p);
}
END_TEST

/* Ends the stream in a way that releases the writers. */
static void end_somehow(unsigned how, bool started)
{
    if (how == 0)
        loop_close_runtime(&p.loop, 0);
    else if (how == 1 && !started)
        push_release(&p);
    else if (how == 1)
        uva_stream_cancel(p.stream, 0, NULL);
    else if (how == 2 && started)
        recording_feed(&p.consumer, 100);
    else if (how == 2)
        uva_stream_drop(p.stream);
    else
        push_end(&p); /* its threads have been joined */
    if (how == 2 && !started)
        p.stream = NULL;
}

/* Runs one stream; the bits of `life` decide the events and their order. */
static void live(unsigned life)
{
    static const int64_t timeouts[] = {UVA_FOREVER, 60000};
    struct writer w[2];
    bool started = life & 1;

    push_open(&p, 1 + (life >> 1 & 1), 0);
    p.consumer.appetite = life >> 2 & 3;
    if (life >> 4 & 1)
        p.consumer.batch_code = EIO;
    if (started)
        push_start(&p);
    for (int i = 0; i < 2; i++) {
        w[i] = (struct writer){.count = 3, .timeout_ms = timeouts[i]};
        writer_start(&w[i]);
    }
    for (unsigned i = 0; i < (life >> 5 & 3); i++)
        (void)uv_run(&p.loop.uv, UV_RUN_NOWAIT);
    end_somehow((life >> 7) % 3, started);
    for (int i = 0; i < 2; i++) {
        int code = writer_join(&w[i]);
        ck_assert(code == EPIPE || (code == 0 && w[i].done == 3));
    }
    end_somehow(3, started);
    push_close(&p);
}

START_TEST(whatever_ends_it_no_writer_is_left_behind)
{
    for (unsigned life = 0; life < 3 << 7; life++) {
        bool looks = life < 1 << 7 && !(life & 1); /* in some of the runs */
        if (!looks || life % 32 == 0)
            live(life);
    }
}
END_TEST

/* Before the start nothing tells it that the runtime is closed. */
START_TEST(who_waits_looks_around_before_the_start_alone)
{
    struct writer w;

    atomic_store(&waits, false);
    push_open(&p, 1, 0);
    p.consumer.appetite = 0;
    if (_i > 0)
        push_start(&p);
    loop_settle(&p.loop);
    start_one_too_many(&w);
    while (!atomic_load(&waits))
        sched_yield();
    if (_i > 0)
        ck_assert_int_lt(atomic_load(&first_limit_ms), 0);
    else
        ck_assert_int_gt(atomic_load(&first_limit_ms), 0);
    end_somehow(1, _i > 0);
    ck_assert_int_eq(writer_join(&w), EPIPE);
    push_close(&p);
}
END_TEST

/* ---- threads that must not wait ----------------------------------------- */

static void push_forever(void *ctx)
{
    struct writer *w = ctx;

    w->count = 1;
    w->timeout_ms = UVA_FOREVER;
    (void)writer_run(w);
}

START_TEST(no_loop_thread_may_wait_inside_a_turn)
{
    struct uva_runtime *other;
    struct writer w = {0};

    push_open(&p, 0, 0);
    ck_assert_int_eq(uva_runtime_open(NULL, NULL, &other, NULL), 0);
    ck_assert_int_eq(uva_runtime_post(other, push_forever, &w), 0);
    ck_assert_int_eq(uva_runtime_join(other, UVA_FOREVER), 0);
    ck_assert_int_eq(w.code, EDEADLK);
    push_close(&p);
}
END_TEST

static int push_in_map(void *ctx, struct uva_batch *in,
                       struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)error;
    push_forever(ctx);
    uva_array_move(&in->data, out);
    return 0;
}

START_TEST(no_compute_worker_may_wait)
{
    struct writer w = {0};
    const struct uva_map map = {.batch = push_in_map, .ctx = &w};

    push_open(&p, 0, 0);
    ck_assert_int_eq(uva_stream_map(p.stream, &map), 0);
    push_start(&p);
    ck_assert_int_eq(push_batch(&p, 5, 0), 0);
    recording_await(&p.consumer, &p.loop, 1);
    ck_assert_int_eq(w.code, EDEADLK);
    push_close(&p);
}
END_TEST

/* ---- closed by both sides ----------------------------------------------- */

static sem_t running, closed;

static void *close_meanwhile(void *ctx)
{
    (void)ctx;
    while (sem_wait(&running) != 0)
        ;
    uva_pusher_close(p.pusher, NULL, NULL);
    (void)sem_post(&closed);
    return NULL;
}

static void close_again(struct push_fixture *s)
{
    (void)sem_post(&running);
    while (sem_wait(&closed) != 0)
        ;
    ck_assert_int_eq(push_batch(s, 1, 0), EPIPE);
    ck_assert_int_eq(push_describe(s), EPIPE);
    push_end(s);
    ck_assert_int_eq(s->freed, 0);
}

static void run_closed_meanwhile(bool gone)
{
    pthread_t thread;

    ck_assert_int_eq(sem_init(&running, 0, 0), 0);
    ck_assert_int_eq(sem_init(&closed, 0, 0), 0);
    push_open(&p, 1, 0);
    p.on_callback = close_again;
    ck_assert_int_eq(pthread_create(&thread, NULL, close_meanwhile, NULL), 0);
    ck_assert_int_eq(push_batch(&p, 1, 0), EAGAIN);
    if (gone)
        push_release(&p);
    else
        push_start(&p);
    loop_settle(&p.loop);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_str_eq(p.consumer.transcript,
                     gone ? "gone" : "schema 1 room complete");
    push_close(&p);
}

START_TEST(closed_by_a_thread_while_on_room_runs_it_stays_good)
{
    run_closed_meanwhile(false);
}
END_TEST

START_TEST(closed_by_a_thread_while_on_gone_runs_it_stays_good)
{
    run_closed_meanwhile(true);
}
END_TEST

/* ---- the queue alone ---------------------------------------------------- */

static struct uva__push_queue queue;
/* Opens a queue on the fixture's runtime. The fixture's own pusher is not used.
 */
static void queue_open_idle(int32_t batches, int32_t refill)
{
    const struct uva_window window = {.batches = batches};

    push_open(&p, 0, 0);
    memset(&queue, 0, sizeof(queue));
    queue.rt = uva__loop_rt(p.loop.runtime);
    ck_assert_int_eq(uva__window_complete(&window, &queue.window), 0);
    queue.window.refill = refill;
}

static void queue_open(int32_t batches, int32_t refill)
{
    queue_open_idle(batches, refill);
    uva__push_queue_start(&queue);
}

static void queue_close(void)
{
    uva__push_queue_shut(&queue);
    push_close(&p);
}

static int queue_push(int64_t length)
{
    struct writer w = {.queue = &queue, .first = length, .count = 1};

    (void)writer_run(&w);
    return w.code;
}

/* Takes `n` batches, as one look of the loop does. Returns the length of the
 * last. */
static int64_t queue_take(int n)
{
    struct uva__task *task;
    int64_t length = -1;

    while (n-- > 0) {
        task = uva__kept_pop(&queue.inbox.ready);
        length = task->array.array.length;
        uva_array_release(&task->array);
        uva__slots_put_task(queue.rt, task, false);
    }
    uva__push_queue_absorb(&queue);
    return length;
}

static int64_t queue_waiting(void)
{
    int64_t waiting;

    uva__lock_take(&queue.lock);
    waiting = queue.locked.waiting;
    uva__lock_drop(&queue.lock);
    return waiting;
}

/* Starts a thread that pushes one batch, and waits until it sleeps or has
 * ended. */
static void start_waiting(struct writer *w, int64_t timeout_ms)
{
    int64_t before = queue_waiting();

    *w = (struct writer){
        .queue = &queue, .first = 9, .count = 1, .timeout_ms = timeout_ms};
    writer_start(w);
    while (queue_waiting() == before && !is_over(w))
        sched_yield();
}

/* Pushes `n` batches, the last of which fills the window. */
static void fill(int n)
{
    while (n-- > 0)
        ck_assert_int_eq(queue_push(1), n > 0 ? 0 : EAGAIN);
    uva__push_queue_absorb(&queue);
}

START_TEST(those_who_wait_are_called_at_the_refill_mark_and_not_before)
{
    struct writer w[2];

    queue_open(4, 1);
    fill(4);
    start_waiting(&w[0], UVA_FOREVER);
    start_waiting(&w[1], UVA_FOREVER);
    queue_take(2);
    ck_assert_int_eq(queue_waiting(), 2);
    queue_take(1);
    ck_assert_int_eq(queue_waiting(), 0);
    ck_assert_int_eq(writer_join(&w[0]), 0);
    ck_assert_int_eq(writer_join(&w[1]), 0);
    uva__push_queue_absorb(&queue);
    ck_assert_int_eq(queue.inbox.ready.count, 3);
    queue_close();
}
END_TEST

/* A push that does not wait hears EAGAIN beside them, also below the window. */
START_TEST(who_waits_is_overtaken_by_those_alone_who_do_not)
{
    struct writer w[2];

    queue_open(4, 1);
    fill(4);
    start_waiting(&w[0], UVA_FOREVER);
    (void)queue_take(2);
    start_waiting(&w[1], UVA_FOREVER);
    ck_assert_int_eq(queue_waiting(), 2);
    ck_assert_int_eq(queue_push(5), EAGAIN);
    uva__push_queue_absorb(&queue);
    ck_assert_int_eq(queue.inbox.ready.count, 3);
    (void)queue_take(2);
    ck_assert(uva__push_queue_has_room(&queue)); /* after the EAGAIN */
    ck_assert_int_eq(writer_join(&w[0]), 0);
    ck_assert_int_eq(writer_join(&w[1]), 0);
    ck_assert_int_eq(queue_take(1), 5);
    queue_close();
}
END_TEST

/* What is pushed after EAGAIN is taken all the same. */
START_TEST(who_does_not_heed_eagain_exceeds_the_window)
{
    queue_open(4, 1);
    fill(4);
    for (int i = 5; i < 10; i++)
        ck_assert_int_eq(queue_push(i), EAGAIN);
    uva__push_queue_absorb(&queue);
    ck_assert_int_eq(queue.inbox.ready.count, 9);
    ck_assert_int_eq(queue_take(7), 7);
    ck_assert(!uva__push_queue_has_room(&queue)); /* above the mark */
    ck_assert_int_eq(queue_take(1), 8);
    ck_assert(uva__push_queue_has_room(&queue));
    ck_assert(!uva__push_queue_has_room(&queue)); /* reported only once */
    ck_assert_int_eq(queue_take(1), 9);
    queue_close();
}
END_TEST

START_TEST(who_gave_up_waiting_holds_nobody_up)
{
    struct writer w;

    queue_open(4, 1);
    fill(4);
    start_waiting(&w, 1);
    ck_assert_int_eq(writer_join(&w), ETIMEDOUT);
    ck_assert_int_eq(queue_waiting(), 0);
    queue_take(2);
    ck_assert_int_eq(queue_push(5), 0);
    queue_close();
}
END_TEST

START_TEST(a_wake_up_for_no_reason_changes_nothing)
{
    struct writer forever, timed;

    queue_open(2, 1);
    fill(2);
    start_waiting(&forever, UVA_FOREVER);
    start_waiting(&timed, 5);
    while (!is_over(&timed))
        uva__futex_raise(&queue.admitted);
    ck_assert_int_eq(writer_join(&timed), ETIMEDOUT);
    ck_assert(!is_over(&forever));
    queue_take(2);
    ck_assert_int_eq(writer_join(&forever), 0);
    queue_close();
}
END_TEST

START_TEST(a_shut_sends_all_away)
{
    struct writer w[3];

    queue_open(1, 0);
    fill(1);
    for (int i = 0; i < 3; i++)
        start_waiting(&w[i], i == 0 ? 60000 : UVA_FOREVER);
    uva__push_queue_shut(&queue);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(writer_join(&w[i]), EPIPE);
    ck_assert_int_eq(queue_push(1), EPIPE);
    queue_close();
}
END_TEST

START_TEST(who_waits_for_a_stream_never_started_sees_the_runtime_go)
{
    struct writer w;

    queue_open_idle(1, 0);
    fill(1);
    start_waiting(&w, UVA_FOREVER);
    (void)uva__rt_acquire(queue.rt);
    loop_close_runtime(&p.loop, UVA_FOREVER);
    ck_assert_int_eq(writer_join(&w), EPIPE);
    uva__push_queue_shut(&queue);
    uva__rt_release(queue.rt);
    push_close(&p);
}
END_TEST

START_TEST(room_that_others_used_up_is_told_later)
{
    queue_open(4, 1);
    fill(4);
    queue_take(3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(queue_push(1), i < 2 ? 0 : EAGAIN);
    uva__push_queue_absorb(&queue);
    ck_assert(!uva__push_queue_has_room(&queue));
    queue_take(2);
    ck_assert(!uva__push_queue_has_room(&queue));
    queue_take(1);
    ck_assert(uva__push_queue_has_room(&queue));
    ck_assert(!uva__push_queue_has_room(&queue)); /* reported only once */
    queue_close();
}
END_TEST

/* A job on the only thread of the blocking lane waits in the queue, and so lets
 * the next job run. */
struct waiting_job {
    struct uva__job job;
    struct writer *writer;
    sem_t *ran;
};

static void job_wait(struct uva__job *job)
{
    struct waiting_job *w = uva__container_of(job, struct waiting_job, job);

    (void)writer_run(w->writer);
    (void)sem_post(w->ran);
}

static void job_note(struct uva__job *job)
{
    (void)sem_post(uva__container_of(job, struct waiting_job, job)->ran);
}

static void take_sem(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        ;
}

START_TEST(a_wait_on_the_blocking_lane_lets_others_in)
{
    const struct uva_workers_options options = {.blocking_threads = 1};
    struct uva_allocator none = {0};
    struct uva_workers *workers;
    struct uva__jobs jobs;
    sem_t waited, noted;
    struct writer w = {.queue = &queue, .count = 1, .timeout_ms = UVA_FOREVER};
    struct waiting_job first = {{.run = job_wait}, &w, &waited};
    struct waiting_job second = {{.run = job_note}, NULL, &noted};

    (void)sem_init(&waited, 0, 0);
    (void)sem_init(&noted, 0, 0);
    queue_open(1, 0);
    fill(1);
    ck_assert_int_eq(uva_workers_new(&options, &workers, NULL), 0);
    ck_assert_int_eq(uva__jobs_init(&jobs, workers, &none, "test"), 0);
    uva_workers_release(workers);
    ck_assert_int_eq(uva__lane_ensure(&jobs, UVA_LANE_BLOCKING), 0);
    uva__lane_submit(&jobs, UVA_LANE_BLOCKING, &first.job);
    uva__lane_submit(&jobs, UVA_LANE_BLOCKING, &second.job);
    take_sem(&noted);
    queue_take(1);
    take_sem(&waited);
    ck_assert_int_eq(w.code, 0);
    uva__jobs_fini(&jobs);
    queue_close();
}
END_TEST

/* ------------------------------------------------------------------------- */

static TCase *part(Suite *suite, const char *name)
{
    TCase *part = tcase_create(name);

    suite_add_tcase(suite, part);
    return part;
}

static Suite *threads_suite(void)
{
    Suite *suite = suite_create("from_pusher, threads");
    TCase *stream = part(suite, "threads and a stream");
    TCase *not_wait = part(suite, "who may not wait");
    TCase *closing = part(suite, "closing from two sides");
    TCase *alone = part(suite, "the queue alone");

    suite_add(stream, threads_that_wait_keep_their_order_and_lose_nothing,
              a_window_of_one_lets_all_threads_through,
              a_window_of_bytes_lets_all_threads_through,
              a_thread_that_heeds_on_room_never_waits_in_vain,
              a_stream_that_runs_keeps_the_loop_alive_for_its_writers,
              a_cancel_sends_those_who_wait_away,
              a_release_before_the_start_sends_those_who_wait_away,
              a_close_of_the_runtime_sends_those_who_wait_away,
              a_wait_for_a_stream_that_starts_late_ends,
              a_wait_ends_with_its_time,
              whatever_ends_it_no_writer_is_left_behind, NULL);
    suite_add_loops(stream, 0, 2, who_waits_looks_around_before_the_start_alone,
                    NULL);
    suite_add(not_wait, no_loop_thread_may_wait_inside_a_turn,
              no_compute_worker_may_wait, NULL);
    suite_add(closing, closed_by_a_thread_while_on_room_runs_it_stays_good,
              closed_by_a_thread_while_on_gone_runs_it_stays_good, NULL);
    suite_add(alone,
              those_who_wait_are_called_at_the_refill_mark_and_not_before,
              who_waits_is_overtaken_by_those_alone_who_do_not,
              who_does_not_heed_eagain_exceeds_the_window,
              who_gave_up_waiting_holds_nobody_up,
              a_wake_up_for_no_reason_changes_nothing, a_shut_sends_all_away,
              who_waits_for_a_stream_never_started_sees_the_runtime_go,
              room_that_others_used_up_is_told_later,
              a_wait_on_the_blocking_lane_lets_others_in, NULL);
    return suite;
}

int main(void)
{
    return suite_run(threads_suite());
}
