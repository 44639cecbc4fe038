/* SPDX-License-Identifier: Apache-2.0 */
/* The trials. For the threads: as many as libuv will start, all alive at once,
 * with stacks as large as libuv's. They end before libuv starts its own; on
 * Linux the system may count a thread that was joined for a moment longer, so
 * it is waited for. */
#define _GNU_SOURCE
#include "loop.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loop/own_loop.h"

/* As libuv has it, in its oldest and newest release. */
enum { THREADS = 4, THREADS_MOST = 1024 };
#define STACK_BYTES ((size_t)8 << 20)

/* A thread that is tried. */
struct trial {
    pthread_t thread;
    pthread_mutex_t *gate; /* borrows: held until all are tried */
    long number;           /* of the thread, as the system has it */
};

/* The process in which libuv has them. A forked child has no threads, and libuv
 * starts new ones there. */
static _Atomic long started_in;

/* How many libuv starts. */
static size_t threads_count(void)
{
    const char *text = getenv("UV_THREADPOOL_SIZE");
    const int count = text == NULL ? THREADS : atoi(text);

    if (count == 0)
        return 1;
    return count < 0 || count > THREADS_MOST ? THREADS_MOST : (size_t)count;
}

static void *trial_run(void *arg)
{
    struct trial *trial = arg;

#if defined(SYS_gettid) && defined(SYS_tgkill)
    trial->number = syscall(SYS_gettid);
#endif
    (void)pthread_mutex_lock(trial->gate);
    (void)pthread_mutex_unlock(trial->gate);
    return NULL;
}

/* Newer versions of libuv give them 8 MiB, older ones the size of the limit. */
static size_t stack_bytes(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_STACK, &limit) != 0 ||
        limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur < STACK_BYTES)
        return STACK_BYTES;
    return limit.rlim_cur;
}

static void trial_end(struct trial *trial)
{
    (void)pthread_join(trial->thread, NULL);
#if defined(SYS_gettid) && defined(SYS_tgkill)
    while (syscall(SYS_tgkill, getpid(), trial->number, 0) == 0)
        (void)sched_yield();
#endif
}

static int threads_try(struct trial *trials, size_t count)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_attr_t how;
    size_t tried = 0;
    int code = pthread_attr_init(&how);

    if (code != 0)
        return code;
    (void)pthread_attr_setstacksize(&how, stack_bytes());
    (void)pthread_mutex_lock(&gate);
    while (tried < count && code == 0) {
        trials[tried].gate = &gate;
        code = pthread_create(&trials[tried].thread, &how, trial_run,
                              &trials[tried]);
        tried += code == 0;
    }
    (void)pthread_mutex_unlock(&gate);
    while (tried > 0)
        trial_end(&trials[--tried]);
    (void)pthread_attr_destroy(&how);
    return code == EAGAIN ? ENOMEM : code;
}

static void nothing_do(uv_work_t *work)
{
    (void)work;
}

static void nothing_done(uv_work_t *work, int code)
{
    (void)code;
    free(work);
}

/* Its first request has libuv start its threads. */
static int threads_start(uv_loop_t *loop)
{
    uv_work_t *work = calloc(1, sizeof(*work));
    int code;

    if (work == NULL)
        return ENOMEM;
    code = -uv_queue_work(loop, work, nothing_do, nothing_done);
    if (code != 0)
        free(work);
    return code;
}

static int threads_ensure(uv_loop_t *loop)
{
    const long process = getpid();
    const size_t count = threads_count();
    struct trial *trials;
    int code;

    if (atomic_load(&started_in) == process)
        return 0;
    trials = calloc(count, sizeof(*trials));
    if (trials == NULL)
        return ENOMEM;
    code = threads_try(trials, count);
    free(trials);
    if (code == 0)
        code = threads_start(loop);
    if (code == 0)
        atomic_store(&started_in, process);
    return code;
}

int uva__loop_open(uv_loop_t *loop, struct uva_error *error)
{
    const int code = uva__own_loop_init(loop);

    return code == 0 ? 0
                     : uva_error_set(error, code, "no event loop: %s",
                                     uv_strerror(-code));
}

int uva__loop_threads(uv_loop_t *loop, struct uva_error *error)
{
    const int code = threads_ensure(loop);

    return code == 0
               ? 0
               : uva_error_set(error, code, "the system gives no threads: %s",
                               uv_strerror(-code));
}
