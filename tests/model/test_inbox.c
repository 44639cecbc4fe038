/* SPDX-License-Identifier: Apache-2.0 */
/* source/inbox.h with loop/mailbox.h, as a reader's worker uses them: it puts
 * filled slots into the inbox, and posts if that was empty. The loop absorbs
 * them when it is woken, and also between turns if its user takes batches there
 * (uva_stream_take()). The orders that a post needs where something else than
 * an inbox is published are those of test_mailbox and test_demand. */
#include "source/inbox.h"

#include <check.h>

#include "loop/mailbox.h"
#include "model/explore.h"
#include "stream/task.h"

enum { ITEMS = 3 };

enum mutant {
    NONE,
    POSTS_BEFORE_IT_PUTS,
    PUTS_BEFORE_IT_FILLS,
    ABSORBS_BEFORE_IT_UNCLAIMS
};

static struct {
    struct uva__mailbox mailbox;
    struct uva__wakeup node;
    struct uva__inbox inbox;
    struct uva__atomic64 descriptor, over;
    uint64_t contents[ITEMS];      /* plain memory: what the worker filled in */
    struct uva__task slots[ITEMS]; /* of these, the links alone are used */
    uint64_t taken;
} world;

static enum mutant mutant; /* mutant of the case */
static bool takes;         /* the loop absorbs between turns, too */

/* ---- the worker --------------------------------------------------------- */

static void worker_post(void)
{
    if (uva__mailbox_claim(&world.node) &&
        uva__mailbox_put(&world.mailbox, &world.node) == UVA__MAILBOX_WAKE)
        uva__atomic64_add(&world.descriptor, 1);
}

static void worker_fill(uint64_t item)
{
    sim_plain(&world.contents[item]);
    world.contents[item] = item + 1;
}

static void worker_run(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < ITEMS; i++) {
        if (mutant != PUTS_BEFORE_IT_FILLS)
            worker_fill(i);
        if (mutant == POSTS_BEFORE_IT_PUTS) {
            worker_post();
            (void)uva__inbox_put(&world.inbox, &world.slots[i]);
        } else if (uva__inbox_put(&world.inbox, &world.slots[i])) {
            worker_post();
        }
        if (mutant == PUTS_BEFORE_IT_FILLS) {
            sim_point();
            worker_fill(i);
        }
    }
    uva__atomic64_add(&world.over, 1);
}

/* ---- the loop ----------------------------------------------------------- */

/* In place of stream/kept.c: the batch is ready. */
void uva__kept_push(struct uva__kept *kept, struct uva__task *task)
{
    const uint64_t item = (uint64_t)(task - world.slots);

    (void)kept;
    sim_plain(&world.contents[item]);
    if (world.contents[item] != item + 1)
        sim_fail("a slot is taken before it is filled");
    if (item != world.taken++)
        sim_fail("a slot is taken out of order, or twice");
}

static void loop_absorb(void)
{
    (void)uva__inbox_absorb(&world.inbox);
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

    do {
        if (takes)
            loop_absorb();
        sim_wait(loop_is_called, arg);
        if (uva__atomic64_exchange(&world.descriptor, 0) == 0)
            continue;
        do {
            node = uva__mailbox_take(&world.mailbox);
            if (node == NULL)
                continue;
            if (mutant == ABSORBS_BEFORE_IT_UNCLAIMS)
                loop_absorb();
            uva__mailbox_unclaim(node);
            if (mutant != ABSORBS_BEFORE_IT_UNCLAIMS)
                loop_absorb();
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
    kernel.name = takes ? "inbox, absorbed between turns" : "inbox";
    return &kernel;
}

START_TEST(every_slot_is_taken_once_and_in_order)
{
    explore_holds(kernel_of(false));
    explore_holds(kernel_of(true));
}
END_TEST

START_TEST(its_mutants_are_found)
{
    (void)kernel_of(false);
    mutant = POSTS_BEFORE_IT_PUTS;
    explore_finds(&kernel, "posts before it puts the slot");
    mutant = PUTS_BEFORE_IT_FILLS;
    explore_finds(&kernel, "puts the slot before it fills it");
    mutant = ABSORBS_BEFORE_IT_UNCLAIMS;
    explore_finds(&kernel, "absorbs before it clears the claim");
    mutant = NONE;
    explore_finds_spoiled(&kernel, &world.inbox.fresh.newest, SIM_SPLIT,
                          "the inbox is loaded and stored");
}
END_TEST

START_TEST(every_slot_is_taken_in_weak_memory)
{
    explore_holds_weak(kernel_of(true), 0);
    explore_holds_weak(kernel_of(false), 0);
    explore_finds_weak(&kernel, &world.inbox.fresh.newest, SIM_UNRELEASED,
                       "the slot is put without a release");
    explore_finds_weak(&kernel, &world.inbox.fresh.newest, SIM_UNACQUIRED,
                       "the slot is taken without an acquire");
}
END_TEST

int main(void)
{
    return explore_main("inbox", every_slot_is_taken_once_and_in_order,
                        its_mutants_are_found,
                        every_slot_is_taken_in_weak_memory, NULL);
}
