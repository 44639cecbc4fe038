/* SPDX-License-Identifier: Apache-2.0 */
/* A queue on its own workers, jobs that can be held, an allocator and a system
 * that fail on cue. */
#define _GNU_SOURCE
#include "support/lane_fixture.h"

#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "exec/pool.h"

char lane_order[200];
static pthread_mutex_t order_lock = PTHREAD_MUTEX_INITIALIZER;

void lane_take(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        ;
}

void lane_take_n(sem_t *sem, int n)
{
    while (n-- > 0)
        lane_take(sem);
}

void lane_post_n(sem_t *sem, int n)
{
    while (n-- > 0)
        sem_post(sem);
}

static void work_run(struct uva__job *job)
{
    struct lane_work *work = uva__container_of(job, struct lane_work, job);
    struct lane_fixture *lanes = work->lanes;

    work->runs++;
    if (work->name != NULL) {
        pthread_mutex_lock(&order_lock);
        strcat(strcat(lane_order, lane_order[0] ? " " : ""), work->name);
        pthread_mutex_unlock(&order_lock);
    }
    sem_post(&lanes->entered);
    if (work->held)
        lane_take(&lanes->leave);
    sem_post(&lanes->done);
}

struct lane_work lane_work(struct lane_fixture *lanes, bool held,
                           const char *name)
{
    return (struct lane_work){
        .job.run = work_run, .lanes = lanes, .held = held, .name = name};
}

void lane_share(struct lane_fixture *lanes, struct uva_workers *workers)
{
    struct uva_allocator none = {0};

    lane_order[0] = '\0';
    sem_init(&lanes->entered, 0, 0);
    sem_init(&lanes->leave, 0, 0);
    sem_init(&lanes->done, 0, 0);
    ck_assert_int_eq(uva__jobs_init(&lanes->jobs, workers, &none, "lanes"), 0);
}

void lane_open(struct lane_fixture *lanes,
               const struct uva_workers_options *options)
{
    lane_open_limited(lanes, options, 10000, 256);
}

void lane_open_limited(struct lane_fixture *lanes,
                       const struct uva_workers_options *options,
                       int32_t idle_ms, int32_t stuck_threads)
{
    struct uva_workers *workers;

    ck_assert_int_eq(uva_workers_new(options, &workers, NULL), 0);
    uva__workers_limit(workers, idle_ms, stuck_threads);
    lane_share(lanes, workers);
    uva_workers_release(workers);
}

void lane_close(struct lane_fixture *lanes)
{
    uva__jobs_fini(&lanes->jobs);
    sem_destroy(&lanes->entered);
    sem_destroy(&lanes->leave);
    sem_destroy(&lanes->done);
}

int64_t lane_threads(struct lane_fixture *lanes, enum uva_lane lane)
{
    int64_t n[2];

    uva__lane_count(&lanes->jobs, &n[UVA_LANE_COMPUTE], &n[UVA_LANE_BLOCKING]);
    return n[lane];
}

void lane_await_threads(struct lane_fixture *lanes, enum uva_lane lane,
                        int64_t n)
{
    while (lane_threads(lanes, lane) != n)
        sched_yield();
}

static int lane_sleepers(struct lane_fixture *lanes, int lane)
{
    struct uva_workers *workers = lanes->jobs.workers;
    int n;

    uva__lock_take(&workers->locked.lock);
    n = workers->locked.classes[lane].count[UVA__WORKER_ASLEEP];
    uva__lock_drop(&workers->locked.lock);
    return n;
}

void lane_await_sleepers(struct lane_fixture *lanes, int lane, int n)
{
    while (lane_sleepers(lanes, lane) != n)
        sched_yield();
}

int lane_value(sem_t *sem)
{
    int n;

    sem_getvalue(sem, &n);
    return n;
}

static void *memory_alloc(void *ctx, size_t size, size_t align)
{
    struct lane_memory *memory = ctx;
    void (*hook)(void *ctx) = memory->hook;

    (void)align;
    if (hook != NULL) {
        memory->hook = NULL;
        hook(memory->hook_ctx);
    }
    if (memory->left == 0)
        return NULL;
    if (memory->left > 0)
        memory->left--;
    memory->live++;
    return malloc(size);
}

static void memory_dealloc(void *ctx, void *block, size_t size)
{
    struct lane_memory *memory = ctx;

    (void)size;
    free(block);
    memory->live--;
}

struct uva_allocator lane_allocator(struct lane_memory *memory)
{
    memory->left = -1;
    return (struct uva_allocator){memory_alloc, memory_dealloc, memory};
}

/* Has `n` threads of the blocking lane each run a job at the same moment. */
void lane_burst(struct lane_fixture *lanes, int n)
{
    struct lane_work works[8];

    ck_assert_int_le(n, 8);
    for (int i = 0; i < n; i++) {
        works[i] = lane_work(lanes, true, NULL);
        uva__lane_submit(&lanes->jobs, UVA_LANE_BLOCKING, &works[i].job);
    }
    lane_take_n(&lanes->entered, n);
    lane_post_n(&lanes->leave, n);
    lane_take_n(&lanes->done, n);
}

void lane_await_no_memory(struct lane_memory *memory)
{
    while (memory->live > 0)
        sched_yield();
}

_Thread_local int lane_hooked;

void lane_hook_begin(void *ctx, enum uva_lane lane)
{
    struct lane_hooks *hooks = ctx;

    if (lane_hooked++ == 0)
        hooks->begun[lane]++;
}

void lane_hook_end(void *ctx, enum uva_lane lane)
{
    struct lane_hooks *hooks = ctx;

    if (lane_hooked++ == 1)
        hooks->ended[lane]++;
}
