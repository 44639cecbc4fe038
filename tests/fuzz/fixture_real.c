/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a script on a real runtime, with threads of its own, so
 * that sanitizers see the real mailbox and the real workers: for the corpora
 * alone, because here the bytes do not decide which thread runs next.
 *
 * The script has the turn, except while it settles or calls something that may
 * wait. A worker that calls the peer waits until it can take the turn. So the
 * peer runs on one thread at a time, as it may expect. The workers outlive the
 * runtimes, so no thread is created for each input. */
#include "fuzz/fixture.h"

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "exec/pool.h"
#include "support/faulty_allocator.h"

static struct {
    struct uva_workers *workers;
    struct faulty_allocator memory; /* of the runtime */
    bool is_closed;                 /* its close was reported */
    pthread_t script;               /* the thread of the script */
    atomic_bool is_free;            /* the script settles */
    atomic_bool is_taken;           /* a worker has the turn */
    atomic_int waits;               /* calls that may wait for workers */
} play;

static _Thread_local int depth; /* calls that this worker entered */

/* ---- the turn ----------------------------------------------------------- */

static bool is_script(void)
{
    return pthread_equal(pthread_self(), play.script) != 0;
}

static bool turn_take(void)
{
    bool taken = false;

    if (!atomic_load(&play.is_free) ||
        !atomic_compare_exchange_strong(&play.is_taken, &taken, true))
        return false;
    if (atomic_load(&play.is_free))
        return true;
    atomic_store(&play.is_taken, false); /* the script was faster */
    return false;
}

bool fixture_enter(void *fixture)
{
    (void)fixture;
    if (is_script())
        return true;
    if (depth == 0) {
        while (!turn_take()) {
            if (atomic_load(&play.waits) > 0)
                return false;
            (void)sched_yield();
        }
    }
    depth++;
    return true;
}

void fixture_leave(void *fixture)
{
    (void)fixture;
    if (!is_script() && depth > 0 && --depth == 0)
        atomic_store(&play.is_taken, false);
}

void fixture_wait(void *fixture, bool begins)
{
    (void)fixture;
    (void)atomic_fetch_add(&play.waits, begins ? 1 : -1);
}

void fixture_see(void)
{
}

/* ---- the workers -------------------------------------------------------- */

static bool lane_is_busy_locked(int lane)
{
    const struct uva__pool_class *threads = &play.workers->locked.classes[lane];

    return threads->count[UVA__WORKER_RUNNING] > 0 ||
           uva__atomic64_load(&play.workers->waiting[lane]) > 0;
}

static bool workers_are_busy(void)
{
    bool busy = false;

    uva__lock_take(&play.workers->locked.lock);
    for (int lane = 0; lane < UVA__LANES; lane++)
        busy = busy || lane_is_busy_locked(lane);
    uva__lock_drop(&play.workers->locked.lock);
    return busy;
}

/* Returns whether any of them had work. */
static bool workers_await(void)
{
    const bool some = workers_are_busy();

    atomic_store(&play.is_free, true);
    while (workers_are_busy())
        (void)sched_yield();
    atomic_store(&play.is_free, false);
    while (atomic_load(&play.is_taken))
        (void)sched_yield();
    return some;
}

/* ---- turns -------------------------------------------------------------- */

static bool loop_turn(struct fixture *fixture)
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
        some = workers_await();
        some = (fixture->runtime != NULL && loop_turn(fixture)) || some;
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

/* Leaves out the bytes for the scheduler. */
void fixture_play(void (*scenario)(struct fuzz_input in), struct fuzz_input in)
{
    int pairs;

    for (int i = 0; i < 3; i++)
        (void)fuzz_byte(&in);
    for (pairs = fuzz_byte(&in); pairs > 0; pairs--) {
        (void)fuzz_byte(&in);
        (void)fuzz_byte(&in);
    }
    scenario(in);
}

void fixture_open(struct fixture *fixture)
{
    struct uva_runtime_options options = {0};

    play.script = pthread_self();
    if (play.workers == NULL)
        FUZZ_RULE(uva_workers_new(NULL, &play.workers, NULL) == 0);
    memset(fixture, 0, sizeof(*fixture));
    play.is_closed = false;
    faulty_allocator_init(&play.memory, 0);
    options.allocator = faulty_allocator_table(&play.memory);
    options.workers = play.workers;
    FUZZ_RULE(uva_runtime_open_turned(NULL, NULL, &options, &fixture->runtime,
                                      NULL) == 0);
    fixture_settle(fixture);
}

void fixture_fail(struct fixture *fixture, int n)
{
    const long requested = faulty_allocator_asked(&play.memory);

    (void)fixture;
    atomic_store(&play.memory.fail_at, n == 0 ? 0 : requested + n);
}

static void on_closed(void *ctx)
{
    (void)ctx;
    FUZZ_RULE(!play.is_closed);
    play.is_closed = true;
}

void fixture_close(struct fixture *fixture)
{
    if (fixture->closing)
        return;
    fixture->closing = true;
    FUZZ_RULE(uva_runtime_close(fixture->runtime, 0, on_closed, NULL) == 0);
}

/* The workers may still release the last of the memory when the runtime has
 * closed. */
void fixture_finish(struct fixture *fixture)
{
    fixture_fail(fixture, 0);
    fixture_close(fixture);
    while (fixture->runtime != NULL || !play.is_closed) {
        fixture_settle(fixture);
        (void)sched_yield();
    }
    fixture_settle(fixture);
    FUZZ_RULE(faulty_allocator_live(&play.memory) == 0);
}
