/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  made with one owner -> each job queue adds one -> the last owner
 *              has the threads leave, joins the last of them (which has joined
 *              the others) and frees.
 *
 * What can fail: nothing, once made.
 *
 * On the end:  threads that stay inside a job for HOME_MS are stuck, and are
 *              abandoned: the last one to come back frees. So is the thread of
 *              the last owner, if it is one of ours. */
#define _GNU_SOURCE
#include "uv/workers.h"

#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "uv/crew.h"

enum {
    IDLE_MS = 10000,
    BLOCKING_CAP = 64,
    HOME_MS = 1000 /* who is not stuck is back within this time */
};

/* ---- making them -------------------------------------------------------- */

static int options_check(const struct uva_workers_options *options,
                         struct uva_error *error)
{
    static void *const zero[4];

    if (memcmp(options->reserved, zero, sizeof(zero)) != 0)
        return uva_error_set(error, EINVAL,
                             "struct uva_workers_options: `reserved` must be "
                             "zero; was the struct cleared?");
    if (options->compute_threads < 0 || options->blocking_threads < 0 ||
        options->idle_ms < 0)
        return uva_error_set(error, EINVAL,
                             "struct uva_workers_options: `compute_threads`, "
                             "`blocking_threads` and `idle_ms` must not be "
                             "negative");
    return 0;
}

int32_t uva__lane_cores(void)
{
    cpu_set_t set;
    long n;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return CPU_COUNT(&set);
    n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int32_t)n : 1;
}

static void caps_init(struct uva_workers *workers,
                      const struct uva_workers_options *options)
{
    struct uva__crew *crews = workers->locked.crews;

    crews[UVA_LANE_COMPUTE].cap = options->compute_threads > 0
                                      ? options->compute_threads
                                      : uva__lane_cores();
    crews[UVA_LANE_BLOCKING].cap = options->blocking_threads > 0
                                       ? options->blocking_threads
                                       : BLOCKING_CAP;
    crews[UVA__LANE_GUEST].cap = INT32_MAX;
}

static void workers_init(struct uva_workers *workers,
                         const struct uva_workers_options *options)
{
    workers->executor = options->executor;
    workers->thread_begin = options->thread_begin;
    workers->thread_end = options->thread_end;
    workers->ctx = options->ctx;
    workers->idle_ms = options->idle_ms > 0 ? options->idle_ms : IDLE_MS;
    workers->process = getpid();
    if (options->name != NULL)
        (void)snprintf(workers->name, sizeof(workers->name), "%s",
                       options->name);
    caps_init(workers, options);
    workers->locked.owners = 1;
}

int uva_workers_new(const struct uva_workers_options *options,
                    struct uva_workers **out, struct uva_error *error)
{
    static const struct uva_workers_options defaults;
    struct uva_allocator allocator;
    struct uva_workers *workers;
    int code;

    if (options == NULL)
        options = &defaults;
    code = options_check(options, error);
    if (code != 0)
        return code;
    if (uva__memory_adopt(&options->allocator, &allocator) != 0)
        return uva_error_set(error, EINVAL,
                             "struct uva_workers_options: `allocator` needs "
                             "both functions or none");
    workers = uva__memory_new(&allocator, sizeof(*workers));
    if (workers == NULL)
        return uva_error_set(error, ENOMEM, "out of memory for workers");
    workers->allocator = allocator;
    workers_init(workers, options);
    *out = workers;
    return 0;
}

bool uva__workers_are_forked(const struct uva_workers *workers)
{
    return getpid() != workers->process;
}

int uva__workers_acquire(struct uva_workers *workers)
{
    if (uva__workers_are_forked(workers))
        return EPERM;
    uva__lock_take(&workers->locked.lock);
    workers->locked.owners++;
    uva__lock_drop(&workers->locked.lock);
    return 0;
}

/* ---- what is kept with them --------------------------------------------- */

/* Of two who make one at once, the later one gives his up. */
struct uva__fixture *uva__workers_fixture(struct uva_workers *workers,
                                          struct uva__fixture *(*make)(void))
{
    struct uva__fixture *fresh, *fixture = uva__shared_load(&workers->fixture);
    void *none = NULL;

    if (fixture != NULL)
        return fixture;
    fresh = make();
    if (fresh == NULL || uva__shared_cas(&workers->fixture, &none, fresh))
        return fresh;
    fresh->end(fresh);
    return none;
}

static void fixture_end(struct uva_workers *workers)
{
    struct uva__fixture *fixture = uva__shared_load(&workers->fixture);

    if (fixture != NULL)
        fixture->end(fixture);
}

/* ---- the end ------------------------------------------------------------ */

/* How many threads there are, and calls that will touch `workers` again. */
static int32_t workers_present_locked(const struct uva_workers *workers)
{
    int32_t n = workers->locked.leaving;

    for (int lane = 0; lane < UVA__LANES; lane++)
        n += workers->locked.crews[lane].threads +
             workers->locked.crews[lane].starting;
    return n;
}

/* Whether the caller, who has just let go, is the one to free. */
bool uva__workers_are_over_locked(const struct uva_workers *workers)
{
    return workers->locked.abandoned && workers_present_locked(workers) == 0;
}

void uva__workers_destroy(struct uva_workers *workers)
{
    const struct uva_allocator allocator = workers->allocator;

    for (int lane = 0; lane < UVA__LANES; lane++)
        assert(uva__word_load(&workers->waiting[lane]) == 0);
    uva__memory_free(&allocator, workers, sizeof(*workers));
}

void uva__workers_join(pthread_t thread)
{
    int before;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    (void)pthread_join(thread, NULL);
    (void)pthread_setcancelstate(before, NULL);
}

static int32_t workers_running_locked(const struct uva_workers *workers)
{
    int32_t n = 0;

    for (int lane = 0; lane < UVA__LANES; lane++)
        n += workers->locked.crews[lane].running;
    return n;
}

/* Returns when all other threads have left, or seem to be stuck in jobs. */
static void workers_await_others(struct uva_workers *workers)
{
    const struct uva__worker *here = uva__crew_here();
    const bool ours = here != NULL && here->workers == workers;
    const bool in_job = ours && here->busy;
    int32_t others, stuck;
    uint32_t seen;

    do {
        uva__lock_take(&workers->locked.lock);
        seen = uva__signal_now(&workers->changed);
        others = workers_present_locked(workers) - ours;
        stuck = workers_running_locked(workers) - in_job;
        uva__lock_drop(&workers->locked.lock);
    } while (others > 0 && uva__signal_wait(&workers->changed, seen,
                                            others > stuck ? -1 : HOME_MS));
}

static void workers_finish(struct uva_workers *workers)
{
    pthread_t last;
    bool joins, over;

    workers_await_others(workers);
    fixture_end(workers);
    uva__lock_take(&workers->locked.lock);
    workers->locked.abandoned = true;
    joins = workers->locked.has_last;
    last = workers->locked.last;
    over = uva__workers_are_over_locked(workers);
    uva__lock_drop(&workers->locked.lock);
    if (joins)
        uva__workers_join(last);
    if (over)
        uva__workers_destroy(workers);
}

void uva_workers_free(struct uva_workers *workers)
{
    bool ends;

    if (workers == NULL || uva__workers_are_forked(workers))
        return;
    uva__lock_take(&workers->locked.lock);
    ends = --workers->locked.owners == 0;
    workers->locked.ending = ends;
    for (int lane = 0; lane < UVA__LANES && ends; lane++)
        uva__crew_rouse_locked(workers, lane);
    uva__lock_drop(&workers->locked.lock);
    if (ends)
        workers_finish(workers);
}
