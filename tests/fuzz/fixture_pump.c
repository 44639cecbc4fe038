/* SPDX-License-Identifier: Apache-2.0 */
/* Worker jobs run on the caller's thread, one after the other, and extra
 * threads only while the caller waits for them, so the result of an input is
 * reproducible. The workers outlive the runtimes, so no thread is created for
 * each input. */
#include "fuzz/fixture.h"

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "exec/pool.h"
#include "support/faulty_allocator.h"

enum { PUMP_JOBS = 256 };

static struct uva_workers *pump_workers;
static struct uva_job *pump_jobs[PUMP_JOBS]; /* a ring of submitted jobs */
static unsigned pump_first, pump_last;       /* positions in the ring */

static struct faulty_allocator pump_memory; /* memory of the runtime */
static bool pump_gone;                      /* the runtime is gone */

static atomic_bool pump_idle;  /* the caller waits for extra threads */
static atomic_bool pump_taken; /* a pump is running */
static atomic_int pump_waits;  /* calls that may wait for other threads */
static _Thread_local int extra_depth; /* calls entered and not left */

/* ---- jobs --------------------------------------------------------------- */

/* Called by extra threads, too, while the pump waits for them. */
static int pump_submit(void *ctx, enum uva_lane lane, struct uva_job *job)
{
    (void)ctx;
    (void)lane;
    FUZZ_RULE(pump_last - pump_first < PUMP_JOBS);
    pump_jobs[pump_last++ % PUMP_JOBS] = job;
    return 0;
}

static bool pump_run_jobs(void)
{
    const bool some = pump_first != pump_last;

    while (pump_first != pump_last)
        uva_job_run(pump_jobs[pump_first++ % PUMP_JOBS]);
    return some;
}

/* ---- extra threads ------------------------------------------------------ */

static bool extra_threads_are_busy(void)
{
    const struct uva__pool_class *pool_class =
        &pump_workers->locked.classes[UVA__LANE_UNCAPPED];
    bool busy;

    uva__lock_take(&pump_workers->locked.lock);
    busy = pool_class->count[UVA__WORKER_RUNNING] > 0 ||
           uva__atomic64_load(&pump_workers->waiting[UVA__LANE_UNCAPPED]) > 0;
    uva__lock_drop(&pump_workers->locked.lock);
    return busy;
}

static bool pump_await_extra_threads(void)
{
    const bool some = extra_threads_are_busy();

    atomic_store(&pump_idle, true);
    while (extra_threads_are_busy())
        (void)sched_yield();
    atomic_store(&pump_idle, false);
    return some;
}

static bool extra_may_run(void)
{
    bool taken = false;

    return atomic_load(&pump_idle) &&
           atomic_compare_exchange_strong(&pump_taken, &taken, true);
}

bool fixture_enter(void *fixture)
{
    (void)fixture;
    if (uva__pool_class_here() == NULL || extra_depth > 0) {
        extra_depth++;
        return true;
    }
    while (!extra_may_run()) {
        if (atomic_load(&pump_waits) > 0)
            return false;
        (void)sched_yield();
    }
    extra_depth++;
    return true;
}

void fixture_leave(void *fixture)
{
    (void)fixture;
    if (extra_depth > 0 && --extra_depth == 0 && uva__pool_class_here() != NULL)
        atomic_store(&pump_taken, false);
}

void fixture_wait(void *fixture, bool begins)
{
    (void)fixture;
    atomic_fetch_add(&pump_waits, begins ? 1 : -1);
}

void fixture_see(void)
{
}

/* ---- turns -------------------------------------------------------------- */

static bool pump_turn(struct fixture *fixture)
{
    struct pollfd fd = {.fd = uva_runtime_fd(fixture->runtime),
                        .events = POLLIN};

    if (poll(&fd, 1, 0) <= 0)
        return false;
    if (!uva_runtime_turn(fixture->runtime))
        fixture->runtime = NULL;
    return true;
}

void fixture_settle(void *ctx)
{
    struct fixture *fixture = ctx;
    bool some;

    do {
        some = pump_await_extra_threads();
        some = pump_run_jobs() || some;
        some = (fixture->runtime != NULL && pump_turn(fixture)) || some;
    } while (some);
}

void fixture_pause(void *ctx)
{
    fixture_settle(ctx);
}

void fixture_post(struct fixture *fixture, void (*fn)(void *ctx), void *ctx)
{
    (void)fixture;
    fn(ctx);
}

/* ---- its life ----------------------------------------------------------- */

void fixture_play(void (*scenario)(struct fuzz_input in), struct fuzz_input in)
{
    int pairs;

    (void)fuzz_byte(&in);
    (void)fuzz_byte(&in);
    (void)fuzz_byte(&in);
    for (pairs = fuzz_byte(&in); pairs > 0; pairs--) {
        (void)fuzz_byte(&in);
        (void)fuzz_byte(&in);
    }
    scenario(in);
}

void fixture_open(struct fixture *fixture)
{
    const struct uva_workers_options shared = {
        .executor = {.submit = pump_submit}};
    struct uva_runtime_options options = {0};

    if (pump_workers == NULL)
        FUZZ_RULE(uva_workers_new(&shared, &pump_workers, NULL) == 0);
    memset(fixture, 0, sizeof(*fixture));
    fixture->pulls_inline = true;
    pump_gone = false;
    faulty_allocator_init(&pump_memory, 0);
    options.allocator = faulty_allocator_table(&pump_memory);
    options.workers = pump_workers;
    FUZZ_RULE(uva_runtime_open_turned(NULL, NULL, &options, &fixture->runtime,
                                      NULL) == 0);
    fixture_settle(fixture);
}

void fixture_fail(struct fixture *fixture, int n)
{
    const long requested = faulty_allocator_asked(&pump_memory);

    (void)fixture;
    atomic_store(&pump_memory.fail_at, n == 0 ? 0 : requested + n);
}

static void pump_closed(void *ctx)
{
    (void)ctx;
    FUZZ_RULE(!pump_gone);
    pump_gone = true;
}

void fixture_close(struct fixture *fixture)
{
    if (fixture->closing)
        return;
    fixture->closing = true;
    FUZZ_RULE(uva_runtime_close(fixture->runtime, 0, pump_closed, NULL) == 0);
}

void fixture_finish(struct fixture *fixture)
{
    fixture_fail(fixture, 0);
    fixture_close(fixture);
    while (fixture->runtime != NULL || !pump_gone) {
        fixture_settle(fixture);
        (void)sched_yield();
    }
    fixture_settle(fixture);
    FUZZ_RULE(faulty_allocator_live(&pump_memory) == 0);
}
