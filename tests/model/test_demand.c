/* SPDX-License-Identifier: Apache-2.0 */
/* stream/demand.h with loop/mailbox.h: a handler requests, or cancels, on
 * separate threads, while a dispatcher absorbs that and sleeps. */
#include "stream/demand.h"

#include <check.h>

#include "loop/mailbox.h"
#include "model/explore.h"

enum { REQUESTED = 2 + 3 };

enum mutant { NONE, TWO_WORDS, VISITS_BEFORE_UNCLAIM };

static struct {
    struct uva__atomic64 word, scheduled; /* second atomic of one mutant */
    struct uva__mailbox mailbox;
    struct uva__wakeup node;
    struct uva__atomic64 descriptor, over;
    uint64_t credit; /* credit absorbed */
    bool cancelled, bad;
} world;

static enum mutant mutant; /* mutant of the case */

static void handler_post(void)
{
    if (uva__mailbox_claim(&world.node) &&
        uva__mailbox_put(&world.mailbox, &world.node) == UVA__MAILBOX_WAKE)
        uva__atomic64_add(&world.descriptor, 1);
}

/* Keeps the credit and the scheduled mark in two atomics. */
static void handler_request_by_two(int64_t n)
{
    uva__demand_request(&world.word, n);
    if (uva__atomic64_load(&world.scheduled) == 0 &&
        uva__atomic64_exchange(&world.scheduled, 1) == 0)
        handler_post();
}

static void handler_request(int64_t n)
{
    if (mutant == TWO_WORDS) {
        handler_request_by_two(n);
        return;
    }
    (void)uva__demand_request(&world.word, n);
    handler_post();
}

static void handler_requests(void *arg)
{
    (void)arg;
    handler_request(2);
    uva__atomic64_add(&world.over, 1);
}

static void handler_requests_on(void *arg)
{
    (void)arg;
    handler_request(3);
    handler_request(0);
    uva__atomic64_add(&world.over, 1);
}

static void handler_cancels(void *arg)
{
    (void)arg;
    if (!(uva__demand_cancel(&world.word) & UVA__DEMAND_CANCEL))
        handler_post();
    uva__atomic64_add(&world.over, 1);
}

static void dispatcher_on_wakeup(void)
{
    const uint64_t word = uva__demand_take(&world.word);

    world.credit += word >> UVA__DEMAND_SHIFT;
    world.bad = world.bad || (word & UVA__DEMAND_BAD);
    world.cancelled = world.cancelled || (word & UVA__DEMAND_CANCEL);
    if (mutant == TWO_WORDS)
        uva__atomic64_store(&world.scheduled, 0);
}

static bool loop_is_called(void *arg)
{
    (void)arg;
    return uva__atomic64_load(&world.descriptor) != 0 ||
           uva__atomic64_load(&world.over) == 2;
}

static void loop_run(void *arg)
{
    struct uva__wakeup *node;

    do {
        sim_wait(loop_is_called, arg);
        if (uva__atomic64_exchange(&world.descriptor, 0) == 0)
            continue;
        do {
            node = uva__mailbox_take(&world.mailbox);
            if (node == NULL)
                continue;
            if (mutant == VISITS_BEFORE_UNCLAIM)
                dispatcher_on_wakeup();
            uva__mailbox_unclaim(node);
            if (mutant != VISITS_BEFORE_UNCLAIM)
                dispatcher_on_wakeup();
        } while (!uva__mailbox_disarm(&world.mailbox));
    } while (world.over.value < 2 || world.descriptor.value != 0);
}

/* ---- credits ------------------------------------------------------------ */

static void first_credit(void *arg)
{
    sim_spawn("loop", loop_run, arg);
    sim_spawn("handler", handler_requests, arg);
    sim_spawn("handler 2", handler_requests_on, arg);
}

static const char *wrong_credit(void)
{
    if (world.credit < REQUESTED)
        return "demand is lost";
    if (world.credit > REQUESTED)
        return "demand is taken twice";
    return world.bad ? NULL : "a bad request is lost";
}

static const struct explore_kernel credits = {
    .name = "demand",
    .memory = &world,
    .size = sizeof(world),
    .first = first_credit,
    .wrong = wrong_credit,
};

/* ---- with a cancel ------------------------------------------------------ */

static void first_cancel(void *arg)
{
    sim_spawn("loop", loop_run, arg);
    sim_spawn("handler", handler_requests, arg);
    sim_spawn("canceller", handler_cancels, arg);
}

static const char *wrong_cancel(void)
{
    if (world.credit != 2)
        return "demand is lost";
    return world.cancelled ? NULL : "a cancel is lost";
}

static const struct explore_kernel cancel = {
    .name = "demand, a cancel",
    .memory = &world,
    .size = sizeof(world),
    .first = first_cancel,
    .wrong = wrong_cancel,
};

START_TEST(no_demand_is_lost)
{
    explore_holds(&credits);
    explore_holds(&cancel);
}
END_TEST

START_TEST(its_mutants_are_found)
{
    mutant = TWO_WORDS;
    explore_finds(&credits, "credits and the post are two words");
    mutant = VISITS_BEFORE_UNCLAIM;
    explore_finds(&credits, "looks before it unclaims");
    explore_finds(&cancel, "looks before it unclaims");
    mutant = NONE;
    explore_finds_spoiled(&credits, &world.word, SIM_SPLIT,
                          "the word is loaded and stored");
    explore_finds_spoiled(&cancel, &world.word, SIM_SPLIT,
                          "the word is loaded and stored");
}
END_TEST

START_TEST(no_demand_is_lost_in_weak_memory)
{
    explore_holds_weak(&credits, 3);
    explore_holds_weak(&cancel, 0);
    explore_finds_weak(&credits, &world.node.posted, SIM_UNACQUIRED,
                       "the claim is cleared without an acquire");
    explore_finds_weak(&credits, &world.node.posted, SIM_UNRELEASED,
                       "the claim is made without a release");
    explore_finds_weak(&cancel, &world.node.posted, SIM_PEEK,
                       "the claim is looked at before it is made");
    mutant = TWO_WORDS;
    explore_finds_weak(&credits, NULL, SIM_SOUND,
                       "credits and the post are two words");
    mutant = NONE;
}
END_TEST

int main(void)
{
    return explore_main("demand", no_demand_is_lost, its_mutants_are_found,
                        no_demand_is_lost_in_weak_memory, NULL);
}
