/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's number is its fiber's plus one. The engine holds the library's
 * thread-local data: uva__thread_self() is replaced, because the address of a
 * thread-local variable is the same in all fibers. */
#define _GNU_SOURCE
#include "sim/fake_threads.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/engine.h"
#include "sim/fake_uv.h"

enum { THREADS = 512 };

static struct {
    bool created[THREADS];  /* fibers that are threads */
    bool unjoined[THREADS]; /* threads that are not joined or detached */
    int64_t made, fail_at;
    int64_t rung; /* broadcasts of all conditions */
} threads;

static __thread char mark;  /* one for each real thread */
static const char *playing; /* the mark of the thread that runs the schedules */

void fake_threads_begin(int64_t fail_at)
{
    memset(&threads, 0, sizeof(threads));
    playing = &mark;
    threads.fail_at = fail_at;
}

bool fake_threads_may_fail(void)
{
    return threads.fail_at != 0;
}

bool fake_threads_have_failed(void)
{
    return threads.fail_at != 0 && threads.made >= threads.fail_at;
}

void fake_threads_check(void)
{
    for (int i = 0; i < THREADS; i++)
        if (threads.unjoined[i])
            sim_fail("thread %d was neither joined nor detached", i);
}

/* ---- replacements of pthread functions ---------------------------------- */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*run)(void *), void *ctx);
int __wrap_pthread_join(pthread_t thread, void **out);
int __wrap_pthread_detach(pthread_t thread);
pthread_t __wrap_pthread_self(void);
int __wrap_pthread_setcancelstate(int state, int *before);
int __wrap_pthread_setname_np(pthread_t thread, const char *name);
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *before);
int __wrap_sched_getaffinity(pid_t process, size_t size, cpu_set_t *set);
pid_t __wrap_getpid(void);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_nanosleep(const struct timespec *pause, struct timespec *left);
int __wrap_sched_yield(void);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_broadcast(pthread_cond_t *cond);
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __real_pthread_cond_broadcast(pthread_cond_t *cond);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*run)(void *), void *ctx);
int __real_pthread_detach(pthread_t thread);
pthread_t __real_pthread_self(void);
int __real_pthread_sigmask(int how, const sigset_t *set, sigset_t *before);
pid_t __real_getpid(void);
int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __real_nanosleep(const struct timespec *pause, struct timespec *left);

/* The program outside of schedules, and other threads of linked libraries, use
 * the real functions. */
static bool is_real(void)
{
    return sim_self() < 0 || playing != &mark;
}

struct birth {
    void *(*run)(void *);
    void *ctx;
};

static struct birth births[THREADS]; /* in order of creation */

/* Registers a thread; called by the thread and by its creator, in either
 * order. */
static void thread_note(int fiber)
{
    if (fiber >= THREADS)
        sim_fail("too many fibers");
    if (!threads.created[fiber])
        threads.created[fiber] = threads.unjoined[fiber] = true;
}

static void thread_main(void *arg)
{
    const struct birth *birth = arg;

    thread_note(sim_self());
    (void)birth->run(birth->ctx);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*run)(void *), void *ctx)
{
    struct birth *birth;
    int fiber;

    if (is_real())
        return __real_pthread_create(thread, how, run, ctx);
    sim_point();
    if (++threads.made == threads.fail_at)
        return EAGAIN;
    if (threads.made > THREADS)
        sim_fail("too many threads");
    birth = &births[threads.made - 1];
    *birth = (struct birth){run, ctx};
    fiber = sim_spawn("thread", thread_main, birth);
    thread_note(fiber);
    *thread = (pthread_t)fiber + 1;
    sim_point(); /* it may be over before this returns */
    return 0;
}

static void thread_settle(pthread_t thread, const char *what)
{
    if (thread == 0 || thread > THREADS || !threads.unjoined[thread - 1])
        sim_fail("a thread is %s that is none any more", what);
    threads.unjoined[thread - 1] = false;
}

static bool thread_is_over(void *arg)
{
    return sim_is_over((int)(intptr_t)arg - 1);
}

int __wrap_pthread_join(pthread_t thread, void **out)
{
    (void)out;
    thread_settle(thread, "joined");
    if ((int)thread == sim_self() + 1)
        sim_fail("a thread joins itself");
    sim_wait(thread_is_over, (void *)(intptr_t)thread);
    return 0;
}

int __wrap_pthread_detach(pthread_t thread)
{
    if (is_real())
        return __real_pthread_detach(thread);
    thread_settle(thread, "detached");
    return 0;
}

pthread_t __wrap_pthread_self(void)
{
    return is_real() ? __real_pthread_self() : (pthread_t)(sim_self() + 1);
}

/* ---- locks of peers ----------------------------------------------------- */

/* Peers make no calls while they hold one, so no other fiber ever finds it
 * taken; but where they wait, other fibers must run. */
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (!is_real()) {
        sim_point();
        sim_flush();
    }
    return __real_pthread_mutex_lock(mutex);
}

static bool bell_has_rung(void *arg)
{
    return *(const int64_t *)arg != threads.rung;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    int64_t seen = threads.rung;

    if (is_real())
        return __real_pthread_cond_wait(cond, mutex);
    (void)pthread_mutex_unlock(mutex);
    sim_wait(bell_has_rung, &seen);
    return __real_pthread_mutex_lock(mutex);
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
    if (is_real())
        return __real_pthread_cond_broadcast(cond);
    sim_flush();
    threads.rung++;
    return 0;
}

/* ---- the rest ----------------------------------------------------------- */

int __wrap_pthread_setcancelstate(int state, int *before)
{
    (void)state;
    if (before != NULL)
        *before = PTHREAD_CANCEL_ENABLE;
    return 0;
}

int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
    (void)thread;
    (void)name;
    return 0;
}

int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    return is_real() ? __real_pthread_sigmask(how, set, before) : 0;
}

/* One number on every machine, so that a seed replays on every machine. */
int __wrap_sched_getaffinity(pid_t process, size_t size, cpu_set_t *set)
{
    (void)process;
    memset(set, 0, size);
    CPU_SET(0, set);
    CPU_SET(1, set);
    return 0;
}

pid_t __wrap_getpid(void)
{
    return is_real() ? __real_getpid() : 4711;
}

/* The clock that the library reads; a fuzzer's alarm, which may run at any
 * point, reads the real one. Threads of a simulation use no CPU time. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    const bool steady =
        clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE;
    uint64_t now;

    if (!is_real() && clock == CLOCK_THREAD_CPUTIME_ID) {
        *out = (struct timespec){0};
        return 0;
    }
    if (is_real() || !steady)
        return __real_clock_gettime(clock, out);
    now = fake_uv_hrtime();
    out->tv_sec = (time_t)(now / 1000000000);
    out->tv_nsec = (long)(now % 1000000000);
    return 0;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

int __wrap_nanosleep(const struct timespec *pause, struct timespec *left)
{
    if (is_real())
        return __real_nanosleep(pause, left);
    (void)sim_wait_until(never, NULL,
                         sim_now_ns() + (uint64_t)pause->tv_nsec +
                             1000000000 * (uint64_t)pause->tv_sec);
    return 0;
}

int __wrap_sched_yield(void)
{
    sim_point();
    return 0;
}
