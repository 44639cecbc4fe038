/* SPDX-License-Identifier: Apache-2.0 */
/* base/parker.h: a loop puts items into a ring, and a reader takes them and
 * sleeps when the ring is empty. It must not sleep while there is one. */
#include "base/parker.h"

#include <check.h>

#include "model/explore.h"

enum { ITEMS = 2 };

enum mutant {
    NONE,
    LOOKS_BEFORE_IT_BEGINS,
    WAKES_BEFORE_IT_PUTS,
    FORGETS_WHAT,
    FINISHES_BY_A_STORE
};

static struct {
    struct uva__parker parker;
    struct uva__atomic64 tail;
    uint64_t items[ITEMS]; /* plain memory: one item each */
    uint64_t head;         /* position of the reader */
} world;

static enum mutant mutant; /* mutant of the case */

static void loop_run(void *arg)
{
    (void)arg;
    for (uint64_t i = 1; i <= ITEMS; i++) {
        sim_plain(&world.items[i - 1]);
        if (mutant == WAKES_BEFORE_IT_PUTS)
            uva__parker_unpark(&world.parker);
        uva__atomic64_store(&world.tail, i);
        if (mutant != WAKES_BEFORE_IT_PUTS)
            uva__parker_unpark(&world.parker);
    }
}

static bool reader_has_some(void)
{
    return uva__atomic64_load(&world.tail) != world.head;
}

/* Does the same as sink/task_ring.c. */
static void reader_await(void)
{
    uint32_t seen;
    bool some;

    if (reader_has_some())
        return;
    for (;;) {
        some = mutant == LOOKS_BEFORE_IT_BEGINS && reader_has_some();
        seen = uva__parker_prepare(&world.parker);
        if (mutant != LOOKS_BEFORE_IT_BEGINS)
            some = reader_has_some();
        if (some)
            break;
        if (mutant == FORGETS_WHAT)
            seen = uva__futex_now(&world.parker.wake);
        uva__parker_park(&world.parker, seen);
    }
    if (mutant == FINISHES_BY_A_STORE)
        uva__atomic64_store(&world.parker.sleeping, 0);
    else
        uva__parker_finish(&world.parker);
}

static void reader_run(void *arg)
{
    (void)arg;
    while (world.head < ITEMS) {
        reader_await();
        sim_plain(&world.items[world.head++]);
    }
}

static void first(void *arg)
{
    sim_spawn("loop", loop_run, arg);
    sim_spawn("reader", reader_run, arg);
}

static const char *wrong(void)
{
    return world.head == ITEMS ? NULL : "it has not got all";
}

static const struct explore_kernel kernel = {
    .name = "parker",
    .memory = &world,
    .size = sizeof(world),
    .first = first,
    .wrong = wrong,
};

START_TEST(nobody_sleeps_beside_a_full_ring)
{
    explore_holds(&kernel);
}
END_TEST

START_TEST(its_mutants_are_found)
{
    mutant = LOOKS_BEFORE_IT_BEGINS;
    explore_finds(&kernel, "looks before it says that it will sleep");
    mutant = WAKES_BEFORE_IT_PUTS;
    explore_finds(&kernel, "wakes before it has put the item");
    mutant = FORGETS_WHAT;
    explore_finds(&kernel, "looks at the signal after it looked for an item");
    mutant = NONE;
    explore_finds_spoiled(&kernel, &world.parker.sleeping, SIM_SPLIT,
                          "sleeping is loaded and stored");
    explore_finds_spoiled(&kernel, &world.parker.sleeping, SIM_PEEK,
                          "sleeping is looked at before it is exchanged");
}
END_TEST

START_TEST(nobody_sleeps_in_weak_memory)
{
    explore_holds_weak(&kernel, 0);
    explore_finds_weak(&kernel, &world.parker.sleeping, SIM_UNACQUIRED,
                       "sleeping is exchanged without an acquire");
    explore_finds_weak(&kernel, &world.parker.sleeping, SIM_UNRELEASED,
                       "sleeping is exchanged without a release");
    explore_finds_weak(&kernel, &world.tail, SIM_UNRELEASED,
                       "the item is put without a release");
    explore_finds_weak(&kernel, &world.tail, SIM_UNACQUIRED,
                       "the item is seen without an acquire");
    mutant = FINISHES_BY_A_STORE;
    explore_finds_weak(&kernel, NULL, SIM_SOUND, "sleeping is stored");
    mutant = NONE;
}
END_TEST

int main(void)
{
    return explore_main("parker", nobody_sleeps_beside_a_full_ring,
                        its_mutants_are_found, nobody_sleeps_in_weak_memory,
                        NULL);
}
