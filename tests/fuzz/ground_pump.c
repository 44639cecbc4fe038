/* SPDX-License-Identifier: Apache-2.0 */
/* The workers outlive the runtimes, so that an input costs no thread. */
#include "fuzz/pump.h"

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "fuzz/fuzz_input.h"
#include "uv/crew.h"
#include "uv/workers.h"

enum { PUMP_JOBS = 256 };

static struct uva_workers *pump_workers;
static struct uva_job *pump_jobs[PUMP_JOBS]; /* a ring of those submitted */
static unsigned pump_first, pump_last;       /* of those, in turn */

static atomic_bool pump_idle;         /* the caller waits for guests */
static atomic_bool pump_taken;        /* one of them is at work */
static atomic_int pump_waits;         /* calls that may wait for others */
static _Thread_local int guest_depth; /* calls that entered and not left */

/* ---- jobs --------------------------------------------------------------- */

/* Called by guests too, while the pump waits for them. */
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

/* ---- guests ------------------------------------------------------------- */

static bool guests_are_busy(void)
{
    const struct uva__crew *crew = &pump_workers->locked.crews[UVA__LANE_GUEST];
    bool busy;

    uva__lock_take(&pump_workers->locked.lock);
    busy = crew->running > 0 ||
           uva__word_load(&pump_workers->waiting[UVA__LANE_GUEST]) > 0;
    uva__lock_drop(&pump_workers->locked.lock);
    return busy;
}

static bool pump_await_guests(void)
{
    const bool some = guests_are_busy();

    atomic_store(&pump_idle, true);
    while (guests_are_busy())
        (void)sched_yield();
    atomic_store(&pump_idle, false);
    return some;
}

static bool guest_may_go(void)
{
    bool taken = false;

    return atomic_load(&pump_idle) &&
           atomic_compare_exchange_strong(&pump_taken, &taken, true);
}

bool pump_enter(void *pump)
{
    (void)pump;
    if (uva__crew_here() == NULL || guest_depth > 0) {
        guest_depth++;
        return true;
    }
    while (!guest_may_go()) {
        if (atomic_load(&pump_waits) > 0)
            return false;
        (void)sched_yield();
    }
    guest_depth++;
    return true;
}

void pump_leave(void *pump)
{
    (void)pump;
    if (guest_depth > 0 && --guest_depth == 0 && uva__crew_here() != NULL)
        atomic_store(&pump_taken, false);
}

void pump_wait(void *pump, bool begins)
{
    (void)pump;
    atomic_fetch_add(&pump_waits, begins ? 1 : -1);
}

/* ---- turns -------------------------------------------------------------- */

static bool pump_turn(struct pump *pump)
{
    struct pollfd fd = {.fd = uva_runtime_fd(pump->runtime), .events = POLLIN};

    if (poll(&fd, 1, 0) <= 0)
        return false;
    if (!uva_runtime_turn(pump->runtime))
        pump->runtime = NULL;
    return true;
}

void pump_settle(void *ctx)
{
    struct pump *pump = ctx;
    bool some;

    do {
        some = pump_await_guests();
        some = pump_run_jobs() || some;
        some = (pump->runtime != NULL && pump_turn(pump)) || some;
    } while (some);
}

/* ---- its life ----------------------------------------------------------- */

void pump_open(struct pump *pump)
{
    const struct uva_workers_options how = {
        .executor = {.submit = pump_submit}};
    struct uva_runtime_options options = {.no_thread = true};

    if (pump_workers == NULL)
        FUZZ_RULE(uva_workers_new(&how, &pump_workers, NULL) == 0);
    memset(pump, 0, sizeof(*pump));
    faulty_allocator_init(&pump->memory, 0);
    options.allocator = faulty_allocator_table(&pump->memory);
    options.workers = pump_workers;
    FUZZ_RULE(uva_runtime_open(NULL, &options, &pump->runtime, NULL) == 0);
    pump_settle(pump);
}

void pump_fail(struct pump *pump, int n)
{
    const long asked = faulty_allocator_asked(&pump->memory);

    atomic_store(&pump->memory.fail_at, n == 0 ? 0 : asked + n);
}

static void pump_gone(void *ctx)
{
    struct pump *pump = ctx;

    FUZZ_RULE(!pump->gone);
    pump->gone = true;
}

void pump_close(struct pump *pump)
{
    if (pump->closing)
        return;
    pump->closing = true;
    uva_runtime_get_stats(pump->runtime, &pump->stats);
    FUZZ_RULE(uva_runtime_close(pump->runtime, 0, pump_gone, pump) == 0);
}

void pump_finish(struct pump *pump)
{
    pump_fail(pump, 0);
    pump_close(pump);
    while (pump->runtime != NULL || !pump->gone) {
        pump_settle(pump);
        (void)sched_yield();
    }
    pump_settle(pump);
    FUZZ_RULE(faulty_allocator_live(&pump->memory) == 0);
}
