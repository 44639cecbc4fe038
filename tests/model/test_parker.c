/* SPDX-License-Identifier: Apache-2.0 */
/* base/parker.h: a loop puts items into a ring, and a reader takes them and
 * sleeps when there are none. It must not sleep while there is one. */
#include "base/parker.h"

#include <check.h>

#include "model/explore.h"

enum { ITEMS = 2 };

enum mutant {
    NONE,
    LOOKS_BEFORE_IT_BEGINS,
    WAKES_BEFORE_IT_PUTS,
    FORGETS_WHAT
};

static struct {
    struct uva__parker parker;
    struct uva__atomic64 tail;
    uint64_t head; /* position of the reader */
} world;

static enum mutant mutant; /* mutant of the case */

static void loop_run(void *arg)
{
    (void)arg;
    for (uint64_t i = 1; i <= ITEMS; i++) {
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

/* Does what sink/task_ring_reader.c does. */
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
    uva__parker_finish(&world.parker);
}

static void reader_run(void *arg)
{
    (void)arg;
    while (world.head < ITEMS) {
        reader_await();
        world.head++;
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

int main(void)
{
    return explore_main("parker", nobody_sleeps_beside_a_full_ring,
                        its_mutants_are_found, NULL);
}
