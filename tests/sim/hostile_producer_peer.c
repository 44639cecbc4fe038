/* SPDX-License-Identifier: Apache-2.0 */
/* The reference producer as a source, in most cases as a mutant that breaks one
 * clause. The protocol checker stands in between, as it must for an untrusted
 * peer. Memory then stays sound whatever the peer does, and the stream ends
 * somehow, at the latest when the runtime closes. If the peer may make calls
 * after its release, or never releases, the check stays until all is over
 * (`keep`); otherwise it does so now and then. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "sim/arena.h"
#include "sim/engine.h"
#include "sim/hostile.h"
#include "sim/peers.h"
#include "uvarrow/check.h"

enum { HOSTILES = 4 };

static struct hostile_peer {
    struct reference_producer producer;
    struct expectation *expectation;
    struct uva_check check;
    struct ArrowAsyncDeviceStreamHandler *checked; /* NULL: not made so far */
    bool started;                                  /* it has a handler */
    bool freed;                                    /* free_ctx was called */
    bool left; /* its fiber has ended, or was never made */
    bool over; /* the fiber must end */
} hostiles[HOSTILES];
static int hostiles_used;

/* Frees the producers of the schedule before, which is over. */
void hostile_producers_begin(void)
{
    while (hostiles_used > 0)
        reference_producer_fini(&hostiles[--hostiles_used].producer);
}

/* ---- the mutant --------------------------------------------------------- */

/* Returns whether it never releases its handler; or makes callbacks from its
 * methods, and so perhaps after its release, when the handler may be gone. */
static bool mutant_needs_keep(const struct reference_mutant *mutant)
{
    static const char *const clauses[] = {"AB-17", "AP-14", "AP-05", "AP-13",
                                          "AT-23", "TH-08", "TH-09"};

    for (size_t i = 0; i < sizeof(clauses) / sizeof(clauses[0]); i++)
        if (strcmp(mutant->clause, clauses[i]) == 0)
            return true;
    return mutant->point == REFERENCE_AT_RELEASED ||
           strcmp(mutant->variant, "never") == 0;
}

const struct reference_mutant *
hostile_draw(const struct reference_mutant *(*all)(int *count))
{
    const struct reference_mutant *mutants;
    int count;

    mutants = all(&count);
    return &mutants[sim_choose((uint64_t)count)];
}

/* ---- its steps ---------------------------------------------------------- */

/* State that may make another step possible. */
struct glance {
    struct hostile_peer *peer;
    int64_t demand, held;
    bool cancelled, bad_request, spoilt;
};

static struct glance peer_glance(struct hostile_peer *peer)
{
    const struct reference_producer *p = &peer->producer;

    return (struct glance){.peer = peer,
                           .demand = p->now.view.demand,
                           .held = p->now.view.held,
                           .cancelled = p->now.view.cancelled,
                           .bad_request = p->now.view.bad_request,
                           .spoilt = p->now.view.spoilt};
}

static bool glance_is_old(void *arg)
{
    const struct glance *before = arg;
    const struct glance now = peer_glance(before->peer);

    return before->peer->over ||
           reference_producer_over(&before->peer->producer) ||
           before->demand != now.demand || before->held != now.held ||
           before->cancelled != now.cancelled ||
           before->bad_request != now.bad_request ||
           before->spoilt != now.spoilt;
}

static void stepper(void *arg)
{
    struct hostile_peer *peer = arg;
    struct glance glance;

    while (!peer->over && !reference_producer_over(&peer->producer)) {
        peers_dawdle();
        sim_flush(); /* its stores are plain */
        glance = peer_glance(peer);
        if (!reference_producer_step(&peer->producer))
            sim_wait(glance_is_old, &glance);
    }
    peer->left = true;
}

static void breach_note(void *ctx, const struct uva_breach *breach)
{
    (void)ctx;
    expectation_note("checker: %s: %s", breach->clause, breach->message);
}

static int peer_start(void *ctx, struct ArrowAsyncDeviceStreamHandler *handler,
                      struct uva_error *error)
{
    struct ArrowAsyncDeviceStreamHandler *checked;
    struct hostile_peer *peer = ctx;
    int code = uva_check_handler(handler, &peer->check, &checked, error);

    expectation_note("hostile producer: start");
    if (code != 0)
        return code;
    if (peer->started)
        sim_fail("start twice");
    peer->started = true;
    peer->left = false;
    peer->checked = checked;
    reference_producer_start(&peer->producer, checked);
    peers_spawn("hostile producer", stepper, peer);
    return 0;
}

static void peer_free(void *ctx)
{
    struct hostile_peer *peer = ctx;

    if (peer->freed)
        sim_fail("free_ctx twice");
    peer->freed = true;
}

struct uva_stream *hostile_producer_stream(struct uva_runtime *runtime,
                                           struct expectation *expectation)
{
    const struct reference_mutant *mutant = hostile_draw(producer_mutants);
    struct reference_producer_options how = mutant->pair->producer;
    struct hostile_peer *peer = &hostiles[hostiles_used++];
    const struct uva_async_source source = {.start = peer_start,
                                            .free_ctx = peer_free,
                                            .ctx = peer,
                                            .window = peers_window(),
                                            .on_loop = peers_chance(1, 3)};

    if (how.batches < 0)
        how.batches = 5;
    if (peers_chance(4, 5))
        how.mutant = mutant;
    memset(peer, 0, sizeof(*peer));
    reference_producer_init(&peer->producer, &how);
    peer->expectation = expectation;
    peer->left = true;
    peer->check = (struct uva_check){
        .report = breach_note,
        .deep = (mutant->shows & REFERENCE_SHOWS_DEEP) != 0,
        .keep = mutant_needs_keep(mutant) || peers_chance(1, 3),
        .allocator = arena_allocator()};
    expectation->foreign = true;
    expectation->stalls = true;
    expectation->excuses |= EXCUSE_HOSTILE;
    expectation_note("chain %d: a producer that breaks %s %s",
                     expectation->number,
                     how.mutant != NULL ? mutant->clause : "nothing; pair of",
                     mutant->variant);
    return uva_stream_from_async(runtime, &source);
}

/* ---- the end ------------------------------------------------------------ */

static bool peer_is_left(void *arg)
{
    return ((const struct hostile_peer *)arg)->left;
}

void hostile_producers_conclude(void)
{
    for (int i = 0; i < hostiles_used; i++) {
        struct hostile_peer *peer = &hostiles[i];

        peer->over = true;
        sim_wait(peer_is_left, peer);
        if (peer->check.keep && peer->checked != NULL)
            (void)uva_check_conclude(peer->checked);
    }
}
