/* SPDX-License-Identifier: Apache-2.0 */
/* A queue on workers of its own, jobs that can be held, an allocator and a
 * system that fail on cue. */
#define _GNU_SOURCE
#include "support/lane_rig.h"

#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "exec/pool.h"

char rig_story[200];
static pthread_mutex_t story_lock = PTHREAD_MUTEX_INITIALIZER;

void rig_take(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        ;
}

void rig_take_n(sem_t *sem, int n)
{
    while (n-- > 0)
        rig_take(sem);
}

void rig_post_n(sem_t *sem, int n)
{
    while (n-- > 0)
        sem_post(sem);
}

static void work_run(struct uva_job *job)
{
    struct rig_work *work = uva__container_of(job, struct rig_work, job);
    struct rig *rig = work->rig;

    work->runs++;
    if (work->name != NULL) {
        pthread_mutex_lock(&story_lock);
        strcat(strcat(rig_story, rig_story[0] ? " " : ""), work->name);
        pthread_mutex_unlock(&story_lock);
    }
    sem_post(&rig->entered);
    if (work->held)
        rig_take(&rig->leave);
    sem_post(&rig->done);
}

struct rig_work rig_work(struct rig *rig, bool held, const char *name)
{
    return (struct rig_work){
        .job.run = work_run, .rig = rig, .held = held, .name = name};
}

void rig_share(struct rig *rig, struct uva_workers *workers)
{
    struct uva_allocator none = {0};

    rig_story[0] = '\0';
    sem_init(&rig->entered, 0, 0);
    sem_init(&rig->leave, 0, 0);
    sem_init(&rig->done, 0, 0);
    ck_assert_int_eq(uva__jobs_init(&rig->jobs, workers, &none, "rig"), 0);
}

void rig_open(struct rig *rig, const struct uva_workers_options *options)
{
    struct uva_workers *workers;

    ck_assert_int_eq(uva_workers_new(options, &workers, NULL), 0);
    rig_share(rig, workers);
    uva_workers_free(workers);
}

void rig_close(struct rig *rig)
{
    uva__jobs_fini(&rig->jobs);
    sem_destroy(&rig->entered);
    sem_destroy(&rig->leave);
    sem_destroy(&rig->done);
}

int64_t rig_threads(struct rig *rig, enum uva_lane lane)
{
    int64_t n[2];

    uva__lane_count(&rig->jobs, &n[UVA_LANE_COMPUTE], &n[UVA_LANE_BLOCKING]);
    return n[lane];
}

void rig_await_threads(struct rig *rig, enum uva_lane lane, int64_t n)
{
    while (rig_threads(rig, lane) != n)
        sched_yield();
}

static int rig_sleepers(struct rig *rig, int lane)
{
    struct uva_workers *workers = rig->jobs.workers;
    int n;

    uva__lock_take(&workers->locked.lock);
    n = workers->locked.classes[lane].sleeping;
    uva__lock_drop(&workers->locked.lock);
    return n;
}

void rig_await_sleepers(struct rig *rig, int lane, int n)
{
    while (rig_sleepers(rig, lane) != n)
        sched_yield();
}

int rig_value(sem_t *sem)
{
    int n;

    sem_getvalue(sem, &n);
    return n;
}

/* A default stack that no address space holds makes pthread_create() fail. */
void rig_threads_run_out(bool out)
{
    static pthread_attr_t before;
    pthread_attr_t huge;

    if (!out) {
        ck_assert_int_eq(pthread_setattr_default_np(&before), 0);
        return;
    }
    ck_assert_int_eq(pthread_getattr_default_np(&before), 0);
    ck_assert_int_eq(pthread_getattr_default_np(&huge), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&huge, (size_t)1 << 47), 0);
    ck_assert_int_eq(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
}

static void *memory_alloc(void *ctx, size_t size, size_t align)
{
    struct rig_memory *memory = ctx;
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
    struct rig_memory *memory = ctx;

    (void)size;
    free(block);
    memory->live--;
}

struct uva_allocator rig_allocator(struct rig_memory *memory)
{
    memory->left = -1;
    return (struct uva_allocator){memory_alloc, memory_dealloc, memory};
}

/* Has `n` threads of the blocking lane run a job at the same time. */
void rig_burst(struct rig *rig, int n)
{
    struct rig_work works[8];

    ck_assert_int_le(n, 8);
    for (int i = 0; i < n; i++) {
        works[i] = rig_work(rig, true, NULL);
        uva__lane_submit(&rig->jobs, UVA_LANE_BLOCKING, &works[i].job);
    }
    rig_take_n(&rig->entered, n);
    rig_post_n(&rig->leave, n);
    rig_take_n(&rig->done, n);
}

void rig_await_no_memory(struct rig_memory *memory)
{
    while (memory->live > 0)
        sched_yield();
}

_Thread_local int rig_hooked;

void rig_hook_begin(void *ctx, enum uva_lane lane)
{
    struct rig_hooks *hooks = ctx;

    if (rig_hooked++ == 0)
        hooks->begun[lane]++;
}

void rig_hook_end(void *ctx, enum uva_lane lane)
{
    struct rig_hooks *hooks = ctx;

    if (rig_hooked++ == 1)
        hooks->ended[lane]++;
}
