/* SPDX-License-Identifier: Apache-2.0 */
/* loop/mailbox.h as a worker uses it: it fills slots of a ring, publishes their
 * number by a store, and posts. The loop takes them and grants them again, when
 * it is woken, and also between turns if its user takes batches there
 * (uva_stream_take()). */
#include "loop/mailbox.h"

#include <check.h>

#include "model/explore.h"

enum { ROOM = 2, ITEMS = 3 };

enum mutant {
    NONE,
    POSTS_IF_NOT_PENDING,
    POSTS_BEFORE_IT_COUNTS,
    COUNTS_BEFORE_IT_FILLS,
    GRANTS_BEFORE_IT_TAKES
};

static struct {
    struct uva__mailbox mailbox;
    struct uva__wakeup node;
    struct uva__atomic64 descriptor, over;
    struct uva__atomic64 tail, granted;
    uint64_t slots[ROOM]; /* owner of each slot: the loop or the worker */
    uint64_t taken;
} world;

static enum mutant mutant; /* mutant of the case */
static bool takes;         /* the loop takes slots between turns, too */

/* ---- the worker --------------------------------------------------------- */

static void worker_post(void)
{
    if (mutant == POSTS_IF_NOT_PENDING &&
        uva__atomic64_load(&world.node.posted) != 0)
        return;
    if (uva__mailbox_claim(&world.node) &&
        uva__mailbox_put(&world.mailbox, &world.node) == UVA__MAILBOX_WAKE)
        uva__atomic64_add(&world.descriptor, 1);
}

static bool worker_may_fill(void *arg)
{
    return uva__atomic64_load(&world.granted) > *(const uint64_t *)arg;
}

static void worker_fill(uint64_t item)
{
    sim_plain(&world.slots[item % ROOM]);
    if (world.slots[item % ROOM] != 0)
        sim_fail("a slot is filled before it was taken");
    world.slots[item % ROOM] = item + 1;
}

static void worker_run(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < ITEMS; i++) {
        sim_wait(worker_may_fill, &i);
        if (mutant != COUNTS_BEFORE_IT_FILLS)
            worker_fill(i);
        if (mutant == POSTS_BEFORE_IT_COUNTS)
            worker_post();
        uva__atomic64_store(&world.tail, i + 1);
        if (mutant == COUNTS_BEFORE_IT_FILLS) {
            sim_point();
            worker_fill(i);
        }
        if (mutant != POSTS_BEFORE_IT_COUNTS)
            worker_post();
    }
    uva__atomic64_add(&world.over, 1);
}

/* ---- the loop ----------------------------------------------------------- */

static void loop_take(void)
{
    const uint64_t tail = uva__atomic64_load(&world.tail);

    for (; world.taken < tail; world.taken++) {
        if (mutant == GRANTS_BEFORE_IT_TAKES) {
            uva__atomic64_add(&world.granted, 1);
            sim_point();
        }
        sim_plain(&world.slots[world.taken % ROOM]);
        if (world.slots[world.taken % ROOM] != world.taken + 1)
            sim_fail("a slot is taken before it is filled");
        world.slots[world.taken % ROOM] = 0;
        if (mutant != GRANTS_BEFORE_IT_TAKES)
            uva__atomic64_add(&world.granted, 1);
    }
}

static bool loop_is_called(void *arg)
{
    (void)arg;
    return uva__atomic64_load(&world.descriptor) != 0 ||
           uva__atomic64_load(&world.over) != 0;
}

static void loop_run(void *arg)
{
    struct uva__wakeup *node;

    uva__atomic64_add(&world.granted, ROOM);
    do {
        if (takes)
            loop_take();
        sim_wait(loop_is_called, arg);
        if (uva__atomic64_exchange(&world.descriptor, 0) == 0)
            continue;
        do {
            node = uva__mailbox_take(&world.mailbox);
            if (node == NULL)
                continue;
            uva__mailbox_unclaim(node);
            loop_take();
        } while (!uva__mailbox_disarm(&world.mailbox));
    } while (world.over.value == 0 || world.descriptor.value != 0);
}

static void first(void *arg)
{
    sim_spawn("worker", worker_run, arg);
    loop_run(arg);
}

static const char *wrong(void)
{
    return world.taken == ITEMS ? NULL : "a wake-up is lost";
}

static struct explore_kernel kernel = {
    .memory = &world,
    .size = sizeof(world),
    .first = first,
    .wrong = wrong,
};

static const struct explore_kernel *kernel_of(bool between_turns)
{
    takes = between_turns;
    kernel.name = takes ? "ring, taken between turns" : "ring";
    return &kernel;
}

START_TEST(every_slot_is_taken_and_none_too_early)
{
    explore_holds(kernel_of(false));
    explore_holds(kernel_of(true));
}
END_TEST

START_TEST(its_mutants_are_found)
{
    (void)kernel_of(false);
    mutant = POSTS_IF_NOT_PENDING;
    explore_finds(&kernel, "a load of posted follows the store of the tail");
    mutant = POSTS_BEFORE_IT_COUNTS;
    explore_finds(&kernel, "posts before it counts the slot");
    mutant = COUNTS_BEFORE_IT_FILLS;
    explore_finds(&kernel, "counts the slot before it fills it");
    mutant = GRANTS_BEFORE_IT_TAKES;
    explore_finds(&kernel, "grants a slot before it was taken");
    mutant = NONE;
    explore_finds_spoiled(&kernel, &world.node.posted, SIM_SPLIT,
                          "posted is loaded and stored");
}
END_TEST

START_TEST(every_slot_is_taken_in_weak_memory)
{
    explore_holds_weak(kernel_of(true), 0);
    explore_finds_weak(&kernel, &world.tail, SIM_UNACQUIRED,
                       "the slot is taken without an acquire");
    explore_holds_weak(kernel_of(false), 0);
    explore_finds_weak(&kernel, &world.tail, SIM_UNRELEASED,
                       "the slot is counted without a release");
    explore_finds_weak(&kernel, &world.tail, SIM_UNACQUIRED,
                       "the slot is taken without an acquire");
    explore_finds_weak(&kernel, &world.granted, SIM_UNRELEASED,
                       "the slot is granted without a release");
    explore_finds_weak(&kernel, &world.granted, SIM_UNACQUIRED,
                       "the slot is filled without an acquire");
    explore_finds_weak(&kernel, &world.node.posted, SIM_UNRELEASED,
                       "the claim is made without a release");
    explore_finds_weak(&kernel, &world.node.posted, SIM_UNACQUIRED,
                       "the claim is cleared without an acquire");
    explore_finds_weak(&kernel, &world.node.posted, SIM_PEEK,
                       "the claim is looked at before it is made");
}
END_TEST

int main(void)
{
    return explore_main("ring", every_slot_is_taken_and_none_too_early,
                        its_mutants_are_found,
                        every_slot_is_taken_in_weak_memory, NULL);
}
