/* SPDX-License-Identifier: Apache-2.0 */
/* exec/awaited.h, with a queue under a lock as exec/lane.c has it: a job is
 * queued, taken and queued again, while its consumer begins to wait. At the end
 * a job that a consumer waits for is not queued as read-ahead. */
#include "exec/awaited.h"

#include <check.h>

#include "model/explore.h"

enum { TURNS = 2 };

enum mutant { NONE, DECIDES_BEFORE_THE_LOCK, RAISES_NOTHING };

static struct {
    struct uva__atomic64 lock;    /* 1: held */
    struct uva__atomic64 awaited; /* results that the consumer waits for */
    uint64_t done;                /* results that there are */
    bool queued, ahead;           /* the job; under the lock */
} world;

static enum mutant mutant; /* mutant of the case */
static uint64_t gains;     /* results of the job's first turn */

static bool lock_is_free(void *arg)
{
    (void)arg;
    return uva__atomic64_load(&world.lock) == 0;
}

static void lock_take(void)
{
    while (uva__atomic64_exchange(&world.lock, 1) != 0)
        sim_wait(lock_is_free, NULL);
    sim_plain(&world.queued);
}

static void lock_drop(void)
{
    uva__atomic64_exchange(&world.lock, 0);
}

/* ---- the worker --------------------------------------------------------- */

static void job_submit(void)
{
    bool ahead = false;

    if (mutant == DECIDES_BEFORE_THE_LOCK)
        ahead = uva__awaited_submit(&world.awaited, world.done);
    lock_take();
    if (mutant != DECIDES_BEFORE_THE_LOCK)
        ahead = uva__awaited_submit(&world.awaited, world.done);
    world.ahead = ahead;
    world.queued = true;
    lock_drop();
}

static void job_take(void)
{
    lock_take();
    if (world.ahead)
        uva__awaited_run(&world.awaited);
    world.queued = world.ahead = false;
    lock_drop();
}

static void worker_run(void *arg)
{
    (void)arg;
    for (int turn = 0; turn < TURNS; turn++) {
        job_submit();
        if (turn == TURNS - 1)
            return;
        job_take();
        world.done += gains;
    }
}

/* ---- the loop ----------------------------------------------------------- */

static void loop_run(void *arg)
{
    (void)arg;
    if (!uva__awaited_want(&world.awaited, 2) || mutant == RAISES_NOTHING)
        return;
    lock_take();
    if (world.queued && world.ahead)
        world.ahead = uva__awaited_submit(&world.awaited, world.done);
    lock_drop();
}

static void first(void *arg)
{
    world.done = 1;
    sim_spawn("worker", worker_run, arg);
    sim_spawn("loop", loop_run, arg);
}

static const char *wrong(void)
{
    if (world.awaited.value >> AWAITED_SHIFT != 2)
        return "what the consumer waits for is lost";
    if (world.ahead != (world.done >= 2))
        return world.ahead ? "a consumer waits for a job that reads ahead"
                           : "a job that reads ahead goes first";
    return NULL;
}

static struct explore_kernel kernel = {
    .memory = &world,
    .size = sizeof(world),
    .first = first,
    .wrong = wrong,
};

static const struct explore_kernel *kernel_of(uint64_t results)
{
    gains = results;
    kernel.name = results == 0 ? "awaited" : "awaited, a result";
    return &kernel;
}

START_TEST(no_consumer_waits_for_read_ahead)
{
    explore_holds(kernel_of(0));
    explore_holds(kernel_of(1));
}
END_TEST

START_TEST(its_mutants_are_found)
{
    mutant = DECIDES_BEFORE_THE_LOCK;
    explore_finds(kernel_of(0), "decides before it has the lock");
    mutant = RAISES_NOTHING;
    explore_finds(kernel_of(0), "raises nothing");
    mutant = NONE;
}
END_TEST

START_TEST(its_word_must_be_exchanged)
{
    explore_finds_spoiled(kernel_of(0), &world.awaited, SIM_SPLIT,
                          "the word is loaded and stored");
}
END_TEST

START_TEST(no_consumer_waits_in_weak_memory)
{
    explore_holds_weak(kernel_of(0), 0);
    explore_holds_weak(kernel_of(1), 0);
    explore_finds_weak(kernel_of(0), &world.lock, SIM_UNACQUIRED,
                       "the lock is taken without an acquire");
    explore_finds_weak(kernel_of(0), &world.lock, SIM_UNRELEASED,
                       "the lock is dropped without a release");
}
END_TEST

int main(void)
{
    return explore_main("awaited", no_consumer_waits_for_read_ahead,
                        its_mutants_are_found, its_word_must_be_exchanged,
                        no_consumer_waits_in_weak_memory, NULL);
}
