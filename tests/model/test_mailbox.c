/* SPDX-License-Identifier: Apache-2.0 */
/* loop/mailbox.h: two threads publish and post, while a loop reads and sleeps.
 * A wake-up is lost if the loop sleeps without having read everything. */
#include "loop/mailbox.h"

#include <check.h>

#include "model/explore.h"

enum { POSTERS = 2 };

static const uint64_t posts[POSTERS] = {2, 1};

enum mutant {
    NONE,
    LOOKS_BEFORE_UNCLAIM,
    SLEEPS_WITHOUT_A_CHECK,
    DISARMS_AFTER_THE_CHECK,
    POSTS_BEFORE_IT_PUBLISHES
};

struct poster {
    struct uva__wakeup wakeup;
    struct uva__atomic64 published; /* published by this thread */
    uint64_t seen;                  /* read by the loop */
};

static struct {
    struct uva__mailbox mailbox;
    struct uva__atomic64 descriptor;
    struct poster posters[POSTERS];
    struct uva__atomic64 over; /* posting threads that are done */
} world;

static enum mutant mutant; /* mutant of the case */

static void poster_post(struct poster *poster)
{
    if (!uva__mailbox_claim(&poster->wakeup))
        return;
    sim_plain(&poster->wakeup.in_mailbox);
    if (uva__mailbox_put(&world.mailbox, &poster->wakeup) == UVA__MAILBOX_WAKE)
        uva__atomic64_add(&world.descriptor, 1);
}

static void poster_run(void *arg)
{
    struct poster *poster = arg;

    for (uint64_t i = 1; i <= posts[poster - world.posters]; i++) {
        if (mutant == POSTS_BEFORE_IT_PUBLISHES)
            poster_post(poster);
        uva__atomic64_store(&poster->published, i);
        if (mutant != POSTS_BEFORE_IT_PUBLISHES)
            poster_post(poster);
    }
    uva__atomic64_add(&world.over, 1);
}

static void loop_check(struct uva__wakeup *wakeup)
{
    struct poster *poster = uva__container_of(wakeup, struct poster, wakeup);

    sim_plain(&wakeup->in_mailbox);
    if (mutant == LOOKS_BEFORE_UNCLAIM)
        poster->seen = uva__atomic64_load(&poster->published);
    uva__mailbox_unclaim(wakeup);
    if (mutant != LOOKS_BEFORE_UNCLAIM)
        poster->seen = uva__atomic64_load(&poster->published);
}

static bool loop_may_sleep(void)
{
    bool empty;

    switch (mutant) {
    case SLEEPS_WITHOUT_A_CHECK:
        uva__atomic64_exchange(&world.mailbox.armed, 0);
        return true;
    case DISARMS_AFTER_THE_CHECK:
        empty = uva__mpsc_is_empty(&world.mailbox.posted);
        uva__atomic64_exchange(&world.mailbox.armed, empty ? 0 : 1);
        return empty;
    default:
        return uva__mailbox_disarm(&world.mailbox);
    }
}

static void loop_turn(void)
{
    struct uva__wakeup *wakeup, *next;

    do
        for (wakeup = uva__mailbox_take(&world.mailbox); wakeup != NULL;
             wakeup = next) {
            next = uva__mailbox_next(wakeup);
            loop_check(wakeup);
        }
    while (!loop_may_sleep());
}

static bool loop_is_called(void *arg)
{
    (void)arg;
    return uva__atomic64_load(&world.descriptor) != 0 ||
           uva__atomic64_load(&world.over) == POSTERS;
}

static void loop_run(void *arg)
{
    do {
        sim_wait(loop_is_called, arg);
        if (uva__atomic64_exchange(&world.descriptor, 0) != 0)
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
    return world.mailbox.posted.newest.pointer == NULL ? NULL
                                                       : "a wake-up is left";
}

static const struct explore_kernel kernel = {
    .name = "mailbox",
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
        [SLEEPS_WITHOUT_A_CHECK] = "sleeps without another look",
        [DISARMS_AFTER_THE_CHECK] = "disarms after the last look",
        [POSTS_BEFORE_IT_PUBLISHES] = "posts before it publishes",
    };

    for (mutant = 1; mutant <= POSTS_BEFORE_IT_PUBLISHES; mutant++)
        explore_finds(&kernel, names[mutant]);
}
END_TEST

START_TEST(its_words_must_be_exchanged)
{
    mutant = NONE;
    explore_finds_spoiled(&kernel, &world.mailbox.armed, SIM_SPLIT,
                          "armed is loaded and stored");
    explore_finds_spoiled(&kernel, &world.mailbox.posted.newest, SIM_SPLIT,
                          "the newest is loaded and stored");
    explore_finds_spoiled(&kernel, &world.posters[0].wakeup.posted, SIM_SPLIT,
                          "posted is loaded and stored");
    explore_finds_spoiled(&kernel, &world.posters[0].wakeup.posted, SIM_PEEK,
                          "posted is looked at before it is exchanged");
}
END_TEST

START_TEST(no_wake_up_is_lost_in_weak_memory)
{
    static const struct {
        const void *word;
        const char *unacquired, *unreleased;
    } words[] = {
        {&world.mailbox.armed, "the loop disarms without an acquire",
         "a post arms without a release"},
        {&world.mailbox.posted.newest, "the newest is taken without an acquire",
         "the newest is put without a release"},
        {&world.posters[0].wakeup.posted,
         "a claim is cleared without an acquire",
         "a claim is made without a release"},
    };

    explore_holds_weak(&kernel, 3);
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        explore_finds_weak(&kernel, words[i].word, SIM_UNACQUIRED,
                           words[i].unacquired);
        explore_finds_weak(&kernel, words[i].word, SIM_UNRELEASED,
                           words[i].unreleased);
    }
    explore_finds_weak(&kernel, &world.posters[0].wakeup.posted, SIM_PEEK,
                       "a claim is looked at before it is made");
    explore_finds_weak(&kernel, &world.mailbox.armed, SIM_PEEK,
                       "armed is looked at before it is exchanged");
}
END_TEST

int main(void)
{
    return explore_main("mailbox", no_wake_up_is_lost, its_mutants_are_found,
                        its_words_must_be_exchanged,
                        no_wake_up_is_lost_in_weak_memory, NULL);
}
