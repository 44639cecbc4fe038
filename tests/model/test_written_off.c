/* SPDX-License-Identifier: Apache-2.0 */
/* exec/lane.c and pool.c, unchanged: a lane of one thread with a
 * job that was given up, and a job that waits for the thread. A job that does
 * not return costs its thread, so that the other one runs; its thread counts
 * again when it returns after all; and at the end every thread has ended.
 *
 * The mutants replace a function that one file calls in another, through the
 * linker (--wrap), or their surroundings. */
#include "exec/pool.h"

#include <check.h>

#include "base/thread.h"
#include "base/time_limits.h"
#include "model/explore.h"

enum { ARENA = 4096, THREADS = 2 };

enum mutant {
    NONE,
    IS_NOT_FOUND,
    IS_GIVEN_UP_TWICE,
    NEVER_COUNTS_AGAIN,
    DOES_NOT_LOOK,
    GIVES_UP_BEFORE_IT_MARKS,
    IS_NOT_TRIED_AGAIN
};

enum kind {
    RETURNS,  /* the job that is given up returns at once */
    IS_STUCK, /* it returns once the other one has run */
    BLOCKS    /* so, and its thread does not count meanwhile */
};

struct thread {
    void *(*run)(void *arg);
    void *arg;
    int fiber;
};

static struct {
    struct uva__jobs jobs;
    struct uva__job first, second;
    struct uva__atomic64 given_up; /* 1: the first job is to look */
    struct uva__atomic64 ran;      /* jobs that have returned */
    struct uva__atomic64 second_ran;
    struct uva__atomic64 posted; /* 1: there is news */
    uint64_t ended;              /* how often the workers were freed */
    struct thread threads[THREADS];
    uint64_t started; /* threads */
    uint64_t now_ns;
    struct explore_arena arena;
    _Alignas(64) char bytes[ARENA];
} world;

static enum mutant mutant; /* mutant of the case */
static enum kind kind;     /* of the case */

/* ---- threads ------------------------------------------------------------ */

int __wrap_uva__platform_start_thread(pthread_t *thread,
                                      void *(*run)(void *arg), void *arg);
int __wrap_pthread_join(pthread_t thread, void **out);
int __wrap_pthread_detach(pthread_t thread);
pthread_t __wrap_pthread_self(void);
int __wrap_pthread_setname_np(pthread_t thread, const char *name);
uint64_t __wrap_uva__clock_ns(void);

static void thread_run(void *arg)
{
    struct thread *thread = arg;

    thread->fiber = sim_self();
    (void)thread->run(thread->arg);
}

int __wrap_uva__platform_start_thread(pthread_t *thread,
                                      void *(*run)(void *arg), void *arg)
{
    struct thread *at = &world.threads[world.started];

    if (world.started++ == THREADS)
        sim_fail("more threads than one in place of the stuck one");
    *at = (struct thread){.run = run, .arg = arg};
    *thread = (pthread_t)(uintptr_t)(sim_spawn("worker", thread_run, at) + 1);
    return 0;
}

static bool thread_is_over(void *arg)
{
    return sim_is_over(*(int *)arg);
}

int __wrap_pthread_join(pthread_t thread, void **out)
{
    int fiber = (int)(uintptr_t)thread - 1;

    (void)out;
    sim_wait(thread_is_over, &fiber);
    return 0;
}

int __wrap_pthread_detach(pthread_t thread)
{
    (void)thread;
    sim_fail("a thread is detached");
}

pthread_t __wrap_pthread_self(void)
{
    return (pthread_t)(uintptr_t)(sim_self() + 1);
}

int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
    (void)thread;
    (void)name;
    return 0;
}

uint64_t __wrap_uva__clock_ns(void)
{
    return world.now_ns;
}

/* ---- mutants ------------------------------------------------------------ */

struct uva__worker *
__real_uva__pool_class_find_locked(const struct uva__pool_class *pool_class,
                                   const struct uva__job *job);
struct uva__worker *
__wrap_uva__pool_class_find_locked(const struct uva__pool_class *pool_class,
                                   const struct uva__job *job);
void __real_uva__worker_give_up_locked(struct uva__worker *worker);
void __wrap_uva__worker_give_up_locked(struct uva__worker *worker);

struct uva__worker *
__wrap_uva__pool_class_find_locked(const struct uva__pool_class *pool_class,
                                   const struct uva__job *job)
{
    return mutant == IS_NOT_FOUND
               ? NULL
               : __real_uva__pool_class_find_locked(pool_class, job);
}

void __wrap_uva__worker_give_up_locked(struct uva__worker *worker)
{
    if (mutant == IS_GIVEN_UP_TWICE && worker->state != UVA__WORKER_WRITTEN_OFF)
        worker->given_up = false;
    __real_uva__worker_give_up_locked(worker);
}

/* The thread of the first job is no longer marked as given up when that
 * returns. */
static void thread_forget(struct uva__worker *worker)
{
    uva__lock_take(&world.jobs.workers->locked.lock);
    worker->given_up = false;
    if (worker->state == UVA__WORKER_WRITTEN_OFF)
        worker->state = UVA__WORKER_RUNNING;
    uva__lock_drop(&world.jobs.workers->locked.lock);
}

/* ---- jobs --------------------------------------------------------------- */

static bool second_has_run(void *arg)
{
    (void)arg;
    return uva__atomic64_load(&world.second_ran) != 0;
}

/* As the job of a reader does, it looks whether it was given up before it was
 * running. */
static void first_run(struct uva__job *job)
{
    sim_plain(job);
    if (mutant != DOES_NOT_LOOK && uva__atomic64_load(&world.given_up) != 0)
        uva__lane_give_up_here();
    if (kind == BLOCKS)
        uva__lane_wait_begin();
    if (kind != RETURNS)
        sim_wait(second_has_run, NULL);
    if (kind == BLOCKS)
        uva__lane_wait_end();
    uva__atomic64_add(&world.ran, 1);
    if (mutant == NEVER_COUNTS_AGAIN)
        thread_forget(uva__pool_class_here());
}

static void second_run(struct uva__job *job)
{
    sim_plain(job);
    uva__atomic64_exchange(&world.second_ran, 1);
    uva__atomic64_add(&world.ran, 1);
}

/* ---- the runtime -------------------------------------------------------- */

/* As a stream does that is cancelled. */
static void loop_give_up(void)
{
    if (mutant != GIVES_UP_BEFORE_IT_MARKS)
        uva__atomic64_exchange(&world.given_up, 1);
    (void)uva__lane_give_up(&world.jobs, UVA_LANE_BLOCKING, &world.first);
    if (mutant == GIVES_UP_BEFORE_IT_MARKS)
        uva__atomic64_exchange(&world.given_up, 1);
}

static void jobs_notify(struct uva__jobs *jobs)
{
    (void)jobs;
    uva__atomic64_exchange(&world.posted, 1);
}

static bool loop_is_woken(void *arg)
{
    (void)arg;
    return uva__atomic64_load(&world.posted) != 0 ||
           uva__atomic64_load(&world.ran) == 2;
}

static bool thread_sleeps(void *arg)
{
    (void)arg;
    return world.jobs.workers->locked.classes[UVA_LANE_BLOCKING]
               .count[UVA__WORKER_ASLEEP] == 1;
}

/* As loop/lane_news.c does: tries again when the limit has passed, here so late
 * that the lane is known to stand, and is not looked at again: each look would
 * multiply the schedules. The start of the first thread is not the subject
 * here.
 */
static void loop_run(void *arg)
{
    const bool at_once = sim_choose(2) == 0;

    if (uva__lane_ensure(&world.jobs, UVA_LANE_BLOCKING) != 0)
        sim_fail("no thread");
    sim_wait(thread_sleeps, arg);
    sim_plain(&world.first);
    sim_plain(&world.second);
    uva__lane_submit(&world.jobs, UVA_LANE_BLOCKING, &world.first);
    if (at_once)
        loop_give_up();
    uva__lane_submit(&world.jobs, UVA_LANE_BLOCKING, &world.second);
    if (!at_once)
        loop_give_up();
    for (;;) {
        sim_wait(loop_is_woken, arg);
        if (uva__atomic64_exchange(&world.posted, 0) == 0)
            break;
        if ((uva__lane_take_news(&world.jobs) & UVA__NEWS_RETRY) == 0 ||
            mutant == IS_NOT_TRIED_AGAIN)
            continue;
        world.now_ns += (uint64_t)UVA__LIMIT_STANDS_LONG_MS * 1000000;
        uva__lane_retry(&world.jobs);
    }
    uva__jobs_fini(&world.jobs);
}

static void first(void *arg)
{
    sim_spawn("loop", loop_run, arg);
}

/* ---- test programs ------------------------------------------------------ */

/* The last threads have left: counted objects are back. */
static void workers_dealloc(void *arena, void *block, size_t size)
{
    const struct uva_workers *workers = block;
    const struct uva__pool_class *lane =
        &workers->locked.classes[UVA_LANE_BLOCKING];

    if (block == world.jobs.workers) {
        world.ended++;
        if (lane->may_return != 0 || lane->given_up.head != NULL)
            sim_fail("a thread stays given up");
        for (int state = 0; state < UVA__WORKER_STATES; state++)
            if (lane->count[state] != 0)
                sim_fail("a thread stays counted");
    }
    explore_dealloc(arena, block, size);
}

static void prepare(void)
{
    const struct uva_workers_options options = {
        .allocator = {.alloc = explore_alloc,
                      .dealloc = workers_dealloc,
                      .ctx = &world.arena},
        .blocking_threads = 1,
    };
    struct uva_workers *workers;

    world.arena = (struct explore_arena){.bytes = world.bytes,
                                         .size = sizeof(world.bytes)};
    ck_assert_int_eq(uva_workers_new(&options, &workers, NULL), 0);
    uva__workers_limit(workers, 10000, 1);
    ck_assert_int_eq(uva__jobs_init(&world.jobs, workers, NULL, NULL), 0);
    uva_workers_release(workers);
    world.jobs.notify = jobs_notify;
    world.first.run = first_run;
    world.second.run = second_run;
}

static const char *wrong(void)
{
    if (world.ran.value != 2)
        return "a job does not run";
    return world.ended == 1 ? NULL : "the workers are not freed";
}

static struct explore_kernel kernel = {
    .memory = &world,
    .size = sizeof(world),
    .prepare = prepare,
    .first = first,
    .wrong = wrong,
};

static const struct explore_kernel *kernel_of(enum kind of)
{
    static const char *const names[] = {"a job that returns", "a stuck job",
                                        "a stuck job that blocks"};

    kind = of;
    kernel.name = names[of];
    return &kernel;
}

START_TEST(the_other_job_runs_and_every_thread_counts_again)
{
    explore_holds(kernel_of(RETURNS));
    explore_holds(kernel_of(IS_STUCK));
    explore_holds(kernel_of(BLOCKS));
}
END_TEST

static const struct {
    enum mutant mutant;
    enum kind kind;
    const char *what;
} mutants[] = {
    {IS_NOT_FOUND, IS_STUCK, "the thread is not found"},
    {IS_GIVEN_UP_TWICE, IS_STUCK, "it is given up twice"},
    {NEVER_COUNTS_AGAIN, RETURNS, "it never counts again"},
    {NEVER_COUNTS_AGAIN, IS_STUCK, "it never counts again"},
    {NEVER_COUNTS_AGAIN, BLOCKS, "it never counts again"},
    {DOES_NOT_LOOK, IS_STUCK, "the job does not look"},
    {GIVES_UP_BEFORE_IT_MARKS, IS_STUCK, "it is marked too late"},
    {IS_NOT_TRIED_AGAIN, IS_STUCK, "nothing tries again"},
};

START_TEST(its_mutants_are_found)
{
    for (size_t i = 0; i < sizeof(mutants) / sizeof(*mutants); i++) {
        mutant = mutants[i].mutant;
        explore_finds(kernel_of(mutants[i].kind), mutants[i].what);
    }
    mutant = NONE;
}
END_TEST

START_TEST(every_thread_counts_again_in_weak_memory)
{
    const void *lock;

    explore_holds_weak(kernel_of(RETURNS), 2);
    explore_holds_weak(kernel_of(IS_STUCK), 2);
    explore_holds_weak(kernel_of(BLOCKS), 2);
    prepare();
    lock = &world.jobs.workers->locked.lock; /* the arena gives it again */
    explore_finds_weak(kernel_of(RETURNS), lock, SIM_UNACQUIRED,
                       "the lock is taken without an acquire");
    explore_finds_weak(kernel_of(RETURNS), lock, SIM_UNRELEASED,
                       "the lock is dropped without a release");
}
END_TEST

int main(void)
{
    return explore_main(
        "written off", the_other_job_runs_and_every_thread_counts_again,
        its_mutants_are_found, every_thread_counts_again_in_weak_memory, NULL);
}
