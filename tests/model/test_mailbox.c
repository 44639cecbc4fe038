/* SPDX-License-Identifier: Apache-2.0 */
/* loop/mailbox.h: two threads publish and post, while a loop reads and sleeps. A
 * wake-up is lost if the loop sleeps without having read everything. */
#include "loop/mailbox.h"

#include <check.h>

#include "model/explore.h"

enum { POSTERS = 2 };

static const uint64_t posts[POSTERS] = {2, 1};

enum mutant {
    NONE,
    LOOKS_BEFORE_UNCLAIM,
    RESTS_WITHOUT_A_LOOK,
    DISARMS_AFTER_THE_LOOK,
    POSTS_BEFORE_IT_PUBLISHES
};

struct poster {
    struct uva__node node;
    struct uva__word published; /* published by this thread */
    uint64_t seen;              /* read by the loop */
};

static struct {
    struct uva__inbox inbox;
    struct uva__word descriptor;
    struct poster posters[POSTERS];
    struct uva__word over; /* posting threads that are done */
} world;

static enum mutant mutant; /* mutant of the case */

static void poster_post(struct poster *poster)
{
    if (uva__inbox_claim(&poster->node) &&
        uva__inbox_put(&world.inbox, &poster->node) == UVA__INBOX_WAKE)
        uva__word_add(&world.descriptor, 1);
}

static void poster_run(void *arg)
{
    struct poster *poster = arg;

    for (uint64_t i = 1; i <= posts[poster - world.posters]; i++) {
        if (mutant == POSTS_BEFORE_IT_PUBLISHES)
            poster_post(poster);
        uva__word_store(&poster->published, i);
        if (mutant != POSTS_BEFORE_IT_PUBLISHES)
            poster_post(poster);
    }
    uva__word_add(&world.over, 1);
}

static void loop_look(struct uva__node *node)
{
    struct poster *poster = uva__container_of(node, struct poster, node);

    if (mutant == LOOKS_BEFORE_UNCLAIM)
        poster->seen = uva__word_load(&poster->published);
    uva__inbox_unclaim(node);
    if (mutant != LOOKS_BEFORE_UNCLAIM)
        poster->seen = uva__word_load(&poster->published);
}

static bool loop_may_sleep(void)
{
    bool empty;

    switch (mutant) {
    case RESTS_WITHOUT_A_LOOK:
        uva__word_exchange(&world.inbox.armed, 0);
        return true;
    case DISARMS_AFTER_THE_LOOK:
        empty = uva__mpsc_is_empty(&world.inbox.posted);
        uva__word_exchange(&world.inbox.armed, empty ? 0 : 1);
        return empty;
    default:
        return uva__inbox_rest(&world.inbox);
    }
}

static void loop_turn(void)
{
    struct uva__node *node, *next;

    do
        for (node = uva__inbox_take(&world.inbox); node != NULL; node = next) {
            next = uva__inbox_next(node);
            loop_look(node);
        }
    while (!loop_may_sleep());
}

static bool loop_is_called(void *arg)
{
    (void)arg;
    return uva__word_load(&world.descriptor) != 0 ||
           uva__word_load(&world.over) == POSTERS;
}

static void loop_run(void *arg)
{
    do {
        sim_wait(loop_is_called, arg);
        if (uva__word_exchange(&world.descriptor, 0) != 0)
            loop_turn();
    } while (world.over.value < POSTERS || world.descriptor.value != 0);
}

static void first(void *arg)
{
    sim_spawn("loop", loop_run, arg);
    for (int i = 0; i < POSTERS; i++)
        sim_spawn("poster", poster_run, &world.posters[i]);
}

static const char *wrong(void)
{
    for (int i = 0; i < POSTERS; i++) {
        if (world.posters[i].seen != posts[i])
            return "a wake-up is lost";
    }
    return world.inbox.posted.newest.pointer == NULL ? NULL : "a node is left";
}

static const struct explore_kernel kernel = {
    .name = "inbox",
    .memory = &world,
    .size = sizeof(world),
    .first = first,
    .wrong = wrong,
};

START_TEST(no_wake_up_is_lost)
{
    explore_holds(&kernel);
}
END_TEST

START_TEST(its_mutants_are_found)
{
    static const char *const names[] = {
        [LOOKS_BEFORE_UNCLAIM] = "looks before it unclaims",
        [RESTS_WITHOUT_A_LOOK] = "sleeps without another look",
        [DISARMS_AFTER_THE_LOOK] = "disarms after the last look",
        [POSTS_BEFORE_IT_PUBLISHES] = "posts before it publishes",
    };

    for (mutant = 1; mutant <= POSTS_BEFORE_IT_PUBLISHES; mutant++)
        explore_finds(&kernel, names[mutant]);
}
END_TEST

START_TEST(its_words_must_be_exchanged)
{
    mutant = NONE;
    explore_finds_spoiled(&kernel, &world.inbox.armed, SIM_SPLIT,
                          "armed is loaded and stored");
    explore_finds_spoiled(&kernel, &world.inbox.posted.newest, SIM_SPLIT,
                          "the newest is loaded and stored");
    explore_finds_spoiled(&kernel, &world.posters[0].node.posted, SIM_SPLIT,
                          "posted is loaded and stored");
    explore_finds_spoiled(&kernel, &world.posters[0].node.posted, SIM_PEEK,
                          "posted is looked at before it is exchanged");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, no_wake_up_is_lost);
    tcase_add_test(tests, its_mutants_are_found);
    tcase_add_test(tests, its_words_must_be_exchanged);
}

int main(void)
{
    return explore_main("inbox", add);
}
