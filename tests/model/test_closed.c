/* SPDX-License-Identifier: Apache-2.0 */
/* loop/mailbox.h with a close: objects are posted while the loop shuts down.
 * Each is disposed of once, by the posting thread or by the loop. */
#include "loop/mailbox.h"

#include <check.h>

#include "model/explore.h"

enum { POSTERS = 2 };

enum mutant { NONE, LOOKS_AT_CLOSED_FIRST, CLOSES_AFTER_IT_TOOK };

struct zombie {
    struct uva__wakeup node;
    uint64_t disposed; /* how often each was disposed of */
};

static struct {
    struct uva__mailbox mailbox;
    struct zombie zombies[POSTERS];
} world;

static enum mutant mutant; /* mutant of the case */

static void dispose(void)
{
    struct uva__wakeup *node, *next;

    for (node = uva__mailbox_take(&world.mailbox); node != NULL; node = next) {
        next = uva__mailbox_next(node);
        sim_plain(node);
        uva__mailbox_unclaim(node);
        uva__container_of(node, struct zombie, node)->disposed++;
    }
}

static void zombie_run(void *arg)
{
    struct zombie *zombie = arg;
    const bool was_closed = mutant == LOOKS_AT_CLOSED_FIRST &&
                            uva__mailbox_is_closed(&world.mailbox);
    enum uva__mailbox_then then;

    if (!uva__mailbox_claim(&zombie->node))
        return;
    sim_plain(&zombie->node);
    then = uva__mailbox_put(&world.mailbox, &zombie->node);
    if (mutant == LOOKS_AT_CLOSED_FIRST ? was_closed
                                        : then == UVA__MAILBOX_DISPOSE)
        dispose();
}

static void loop_run(void *arg)
{
    (void)arg;
    if (mutant == CLOSES_AFTER_IT_TOOK)
        dispose();
    uva__mailbox_close(&world.mailbox);
    if (mutant != CLOSES_AFTER_IT_TOOK)
        dispose();
}

static void first(void *arg)
{
    sim_spawn("loop", loop_run, arg);
    for (int i = 0; i < POSTERS; i++)
        sim_spawn("zombie", zombie_run, &world.zombies[i]);
}

static const char *wrong(void)
{
    for (int i = 0; i < POSTERS; i++) {
        if (world.zombies[i].disposed != 1)
            return world.zombies[i].disposed == 0 ? "a wake-up is lost"
                                                  : "a wake-up is disposed of "
                                                    "twice";
    }
    return NULL;
}

static const struct explore_kernel kernel = {
    .name = "closed",
    .memory = &world,
    .size = sizeof(world),
    .first = first,
    .wrong = wrong,
};

START_TEST(each_node_is_disposed_of_once)
{
    explore_holds(&kernel);
}
END_TEST

START_TEST(its_mutants_are_found)
{
    mutant = LOOKS_AT_CLOSED_FIRST;
    explore_finds(&kernel, "looks at closed before it puts");
    mutant = CLOSES_AFTER_IT_TOOK;
    explore_finds(&kernel, "closes after it took what was there");
    mutant = NONE;
    explore_finds_spoiled(&kernel, &world.mailbox.posted.newest, SIM_SPLIT,
                          "the newest is loaded and stored");
}
END_TEST

START_TEST(each_node_is_disposed_of_once_in_weak_memory)
{
    explore_holds_weak(&kernel, 0);
    explore_finds_weak(&kernel, &world.mailbox.posted.newest, SIM_UNACQUIRED,
                       "the newest is exchanged without an acquire");
    explore_finds_weak(&kernel, &world.mailbox.posted.newest, SIM_UNRELEASED,
                       "the newest is exchanged without a release");
}
END_TEST

int main(void)
{
    return explore_main("closed", each_node_is_disposed_of_once,
                        its_mutants_are_found,
                        each_node_is_disposed_of_once_in_weak_memory, NULL);
}
