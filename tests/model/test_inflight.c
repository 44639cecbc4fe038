/* SPDX-License-Identifier: Apache-2.0 */
/* base/inflight.h: threads inside use memory that the last one to leave frees;
 * a closing loop waits until all have left, and is notified. */
#include "base/inflight.h"

#include <check.h>

#include "model/explore.h"

enum { EXTRA_THREADS = 3 };

enum mutant { NONE, LOOKS_AND_THEN_ENTERS, TWO_WORDS, COMPARES_ITS_OWN_COUNT };

static struct {
    struct uva__inflight jobs_in_flight, owed;
    struct uva__atomic64 posted;
    uint64_t used[EXTRA_THREADS]; /* plain memory that each of them uses */
    uint64_t freed;               /* how often it was freed */
    bool waits;                   /* the loop waits */
} world;

static enum mutant mutant; /* mutant of the case */

/* ---- the last one to leave frees ---------------------------------------- */

static bool uncapped_enter(void)
{
    if (mutant != LOOKS_AND_THEN_ENTERS)
        return uva__inflight_join(&world.jobs_in_flight);
    if (uva__inflight_is_drained(&world.jobs_in_flight))
        return false;
    uva__atomic64_add(&world.jobs_in_flight.word, 2);
    return true;
}

/* With two atomics, leaving checks whether it is closed, and closing checks
 * whether it is empty. */
static bool uncapped_leave(void)
{
    if (mutant != TWO_WORDS)
        return uva__inflight_leave(&world.jobs_in_flight) ==
               UVA__INFLIGHT_DRAINED;
    return uva__atomic64_sub(&world.jobs_in_flight.word, 2) == 2 &&
           uva__inflight_is_closed(&world.owed);
}

static bool closer_close(void)
{
    if (mutant != TWO_WORDS)
        return uva__inflight_close(&world.jobs_in_flight) ==
               UVA__INFLIGHT_DRAINED;
    (void)uva__inflight_close(&world.owed);
    return uva__atomic64_load(&world.jobs_in_flight.word) == 0;
}

static void last_one_frees(void)
{
    for (int i = 0; i < EXTRA_THREADS; i++)
        sim_plain(&world.used[i]);
    world.freed++;
}

static void uncapped_run(void *arg)
{
    if (!uncapped_enter())
        return;
    sim_plain(arg);
    sim_point();
    if (world.freed != 0)
        sim_fail("it is used after it was freed");
    if (uncapped_leave())
        last_one_frees();
}

static void closer_run(void *arg)
{
    (void)arg;
    if (closer_close())
        last_one_frees();
}

static void first_out(void *arg)
{
    sim_spawn("closer", closer_run, arg);
    for (int i = 0; i < EXTRA_THREADS; i++)
        sim_spawn("guest", uncapped_run, &world.used[i]);
}

static const char *wrong_out(void)
{
    if (world.freed == 1)
        return NULL;
    return world.freed == 0 ? "nobody frees it" : "it is freed twice";
}

static const struct explore_kernel last_out = {
    .name = "inflight",
    .memory = &world,
    .size = sizeof(world),
    .first = first_out,
    .wrong = wrong_out,
};

/* ---- a close waits for the last one ------------------------------------- */

static void job_run(void *arg)
{
    const bool closing = mutant == COMPARES_ITS_OWN_COUNT &&
                         uva__inflight_is_closed(&world.owed);
    enum uva__inflight_left left;

    (void)arg;
    if (!uva__inflight_join(&world.jobs_in_flight))
        return;
    left = uva__inflight_leave(&world.jobs_in_flight);
    if (left == UVA__INFLIGHT_IDLE &&
        (mutant == COMPARES_ITS_OWN_COUNT
             ? closing
             : uva__inflight_is_closed(&world.owed)))
        uva__atomic64_exchange(&world.posted, 1);
}

static void loop_close(void *arg)
{
    (void)arg;
    (void)uva__inflight_close(&world.owed);
    world.waits = !uva__inflight_is_idle(&world.jobs_in_flight);
}

static void first_close(void *arg)
{
    sim_spawn("loop", loop_close, arg);
    for (int i = 0; i < 2; i++)
        sim_spawn("job", job_run, arg);
}

static const char *wrong_close(void)
{
    return world.waits && world.posted.value == 0 ? "the loop waits for ever"
                                                  : NULL;
}

static const struct explore_kernel closing = {
    .name = "inflight, a close",
    .memory = &world,
    .size = sizeof(world),
    .first = first_close,
    .wrong = wrong_close,
};

START_TEST(the_last_one_out_frees_and_nobody_comes_after)
{
    explore_holds(&last_out);
    mutant = LOOKS_AND_THEN_ENTERS;
    explore_finds(&last_out, "looks, and enters after that");
    mutant = TWO_WORDS;
    explore_finds(&last_out, "inside and shut are two words");
    mutant = NONE;
    explore_finds_spoiled(&last_out, &world.jobs_in_flight, SIM_SPLIT,
                          "the word is loaded and stored");
}
END_TEST

START_TEST(a_close_that_waits_is_delivered)
{
    explore_holds(&closing);
    mutant = COMPARES_ITS_OWN_COUNT;
    explore_finds(&closing, "looks for a close before it leaves");
    mutant = NONE;
    explore_finds_spoiled(&closing, &world.owed, SIM_SPLIT,
                          "what says that it closes is stored");
}
END_TEST

START_TEST(the_last_one_out_frees_in_weak_memory)
{
    explore_holds_weak(&last_out, 0);
    explore_finds_weak(&last_out, &world.jobs_in_flight, SIM_UNACQUIRED,
                       "the last one leaves without an acquire");
    explore_finds_weak(&last_out, &world.jobs_in_flight, SIM_UNRELEASED,
                       "a thread leaves without a release");
}
END_TEST

START_TEST(a_close_that_waits_is_delivered_in_weak_memory)
{
    explore_holds_weak(&closing, 0);
    explore_finds_weak(&closing, &world.owed, SIM_PEEK,
                       "a job that leaves only loads what says that it closes");
    explore_finds_weak(&closing, &world.owed, SIM_UNACQUIRED,
                       "the loop closes without an acquire");
    explore_finds_weak(&closing, &world.owed, SIM_UNRELEASED,
                       "a job looks for a close without a release");
}
END_TEST

int main(void)
{
    return explore_main(
        "inflight", the_last_one_out_frees_and_nobody_comes_after,
        a_close_that_waits_is_delivered, the_last_one_out_frees_in_weak_memory,
        a_close_that_waits_is_delivered_in_weak_memory, NULL);
}
