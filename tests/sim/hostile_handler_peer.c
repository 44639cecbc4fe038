/* SPDX-License-Identifier: Apache-2.0 */
/* The reference consumer at a driven stream, in most cases as a mutant that
 * breaks one clause. The protocol checker stands in between until the end
 * (`keep`), so that it receives late calls, and knows which objects are never
 * given back. */
#include <stdint.h>
#include <string.h>

#include "sim/arena.h"
#include "sim/engine.h"
#include "sim/hostile.h"
#include "sim/hosts.h"
#include "sim/peers.h"
#include "uvarrow/check.h"

enum { HOSTILES = 4 };

static struct hostile_handler {
    struct reference_consumer consumer;
    struct ArrowAsyncDeviceStreamHandler *checked; /* NULL: not started */
    struct uva_stream *dropped; /* to drop at the end; or NULL */
    struct expectation *expectation;
    int steppers; /* fibers that run its steps */
    bool over;    /* these fibers must end */
} hostiles[HOSTILES];
static int hostiles_used;

void hostile_handlers_begin(void)
{
    hostiles_used = 0;
}

/* ---- its steps ---------------------------------------------------------- */

/* All state that may make another step possible. */
struct glance {
    struct hostile_handler *peer;
    struct ArrowSchema *schema;
    struct ArrowAsyncProducer *producer;
    struct ArrowAsyncTask *task;
    unsigned char now[sizeof(((struct reference_consumer *)0)->now)];
};

static void glance_take(struct hostile_handler *peer, struct glance *out)
{
    const struct reference_consumer *c = &peer->consumer;

    out->peer = peer;
    out->schema = c->seen.schema;
    out->producer = c->handler.producer;
    out->task = c->seen.task;
    memcpy(out->now, &c->now, sizeof(out->now));
}

static bool glance_is_old(void *arg)
{
    const struct glance *before = arg;
    struct glance now;

    glance_take(before->peer, &now);
    return before->peer->over || before->schema != now.schema ||
           before->producer != now.producer || before->task != now.task ||
           memcmp(before->now, now.now, sizeof(now.now)) != 0;
}

static void stepper(void *arg)
{
    struct hostile_handler *peer = arg;
    struct glance glance;

    while (!peer->over) {
        peers_dawdle();
        sim_flush(); /* its stores are plain */
        glance_take(peer, &glance);
        if (!reference_consumer_step(&peer->consumer))
            sim_wait(glance_is_old, &glance);
    }
    peer->steppers--;
}

static void breach_note(void *ctx, const struct uva_breach *breach)
{
    (void)ctx;
    expectation_note("checker: %s: %s", breach->clause, breach->message);
}

static void peer_done(void *ctx, const struct uva_outcome *outcome)
{
    struct hostile_handler *peer = ctx;

    uva_stream_drop(peer->dropped);
    expectation_end(peer->expectation, outcome->end, outcome->error.code);
}

/* Returns whether it never extracts the tasks it took. The program must then
 * revoke them, and they must not be touched once the runtime is gone, so this
 * mutant makes no step. A check on the hop would wait for its tasks for ever.
 */
static bool mutant_forgets(const struct reference_mutant *mutant)
{
    return mutant != NULL && (strcmp(mutant->clause, "AT-02") == 0 ||
                              strcmp(mutant->clause, "AT-21") == 0);
}

/* ---- starting ----------------------------------------------------------- */

static struct hostile_handler *peer_new(struct expectation *expectation)
{
    const struct reference_mutant *mutant = hostile_draw(consumer_mutants);
    struct reference_consumer_options how = mutant->pair->consumer;
    struct hostile_handler *peer = &hostiles[hostiles_used++];

    if (peers_chance(4, 5) && !(mutant_forgets(mutant) && hosts_are_checked()))
        how.mutant = mutant;
    memset(peer, 0, sizeof(*peer));
    reference_consumer_init(&peer->consumer, &how);
    peer->expectation = expectation;
    expectation->stalls = true;
    expectation->excuses |= EXCUSE_HOSTILE | EXCUSE_REJECT | EXCUSE_CANCEL;
    expectation_note("chain %d: a handler that breaks %s %s",
                     expectation->number,
                     how.mutant != NULL ? mutant->clause : "nothing; pair of",
                     mutant->variant);
    return peer;
}

static int peer_check(struct hostile_handler *peer)
{
    const struct uva_check check = {
        .report = breach_note,
        .deep = peers_chance(1, 2),
        .keep = true,
        .perturb_seed = peers_chance(1, 4) ? 1 + sim_choose(1000) : 0,
        .allocator = arena_allocator()};

    const int code = uva_check_handler(&peer->consumer.handler, &check,
                                       &peer->checked, NULL);

    if (code != 0)
        peer->checked = NULL;
    return code;
}

int hostile_handler_start(struct uva_stream *stream,
                          struct expectation *expectation)
{
    struct hostile_handler *peer = peer_new(expectation);
    const struct uva_drive options = {
        .on_done = peer_done, .ctx = peer, .on_worker = peers_chance(1, 3)};
    int code = peer_check(peer);

    if (code != 0)
        return code;
    if (mutant_forgets(peer->consumer.how.mutant))
        peer->dropped = uva_stream_acquire(stream);
    code = uva_stream_drive(stream, peer->checked, &options, NULL);
    if (code != 0) {
        uva_stream_release(peer->dropped);
        (void)uva_check_withdraw(peer->checked);
        peer->checked = NULL;
        return code;
    }
    uva_stream_release(stream);
    if (peer->dropped != NULL)
        return 0;
    for (uint64_t n = 1 + sim_choose(2); n > 0; n--) {
        peer->steppers++;
        peers_spawn("hostile handler", stepper, peer);
    }
    return 0;
}

/* ---- the end ------------------------------------------------------------ */

static bool peer_is_left(void *arg)
{
    return ((const struct hostile_handler *)arg)->steppers == 0;
}

void hostile_handlers_conclude(void)
{
    for (int i = 0; i < hostiles_used; i++) {
        struct hostile_handler *peer = &hostiles[i];

        while (peer->steppers > 0 && reference_consumer_step(&peer->consumer))
            ;
        peer->over = true;
        sim_wait(peer_is_left, peer);
        reference_consumer_release(&peer->consumer);
        if (peer->checked != NULL)
            (void)uva_check_conclude(peer->checked);
        reference_consumer_fini(&peer->consumer);
    }
}
