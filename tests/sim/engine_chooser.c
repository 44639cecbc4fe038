/* SPDX-License-Identifier: Apache-2.0 */
/* Four ways to choose. The exhaustive one remembers the choices of the last
 * schedule and takes the next branch at its last fork; states seen are kept in
 * a hash table. */
#include "sim/engine_chooser.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHANGES = 16, /* maximum number of priority changes */
    RUN = 2000,   /* steps that one actor may run in a row */
    WAY = 1 << 16 /* maximum number of forks of a schedule */
};

struct fork {
    uint32_t taken, width;
};

/* The only chooser of the program. */
static struct {
    struct sim_plan plan;
    uint64_t random;
    uint64_t fingerprint;
    int64_t step;

    /* for SIM_PCT */
    int64_t priority[SIM_ACTORS]; /* 0: not drawn so far */
    int met[SIM_ACTORS];          /* actors with a priority */
    int met_count;
    int64_t change_at[CHANGES];
    int64_t lowest;

    /* for SIM_PCT and SIM_TOLD */
    int last;   /* the last actor */
    int on_end; /* its steps in a row */

    /* for SIM_TOLD */
    size_t script_at;
    int64_t script_step; /* step at which the next pair applies */

    /* for SIM_EXHAUSTIVE */
    struct fork way[WAY];
    int length, at;
    uint64_t *seen; /* owns: open addressing, 0: empty */
    size_t room, used;
} chooser;

uint64_t sim_mix_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint64_t piece;

    for (; size >= sizeof(piece); size -= sizeof(piece), at += sizeof(piece)) {
        memcpy(&piece, at, sizeof(piece));
        hash = sim_mix(hash, piece);
    }
    for (; size > 0; size--)
        hash = sim_mix(hash, *at++);
    return hash;
}

/* ---- random numbers ----------------------------------------------------- */

static uint64_t chooser_random(void)
{
    chooser.random += UINT64_C(0x9e3779b97f4a7c15);
    return sim_mix(chooser.random, 0);
}

/* Returns a random step below 2^5 to 2^16, with each power as likely, because
 * the length of the schedule is not known. */
static int64_t chooser_some_step(void)
{
    return (int64_t)(chooser_random() %
                     (UINT64_C(1) << (5 + chooser_random() % 12)));
}

/* Reads the first byte of the next pair: small numbers are exact, large ones
 * are scaled. */
static void chooser_listen(void)
{
    const struct sim_plan *plan = &chooser.plan;
    int64_t wait;

    chooser.script_step = INT64_MAX;
    if (chooser.script_at + 2 > plan->script_size)
        return;
    wait = plan->script[chooser.script_at];
    chooser.script_step =
        chooser.step + (wait < 128 ? wait : 128 + (wait - 128) * 32);
}

void sim_chooser_begin(const struct sim_plan *plan)
{
    chooser.plan = *plan;
    chooser.random = sim_mix(plan->seed, 1);
    chooser.fingerprint = 0;
    chooser.step = 0;
    chooser.at = 0;
    chooser.last = -1;
    chooser.lowest = 0;
    chooser.script_at = 0;
    chooser_listen();
    while (chooser.met_count > 0)
        chooser.priority[chooser.met[--chooser.met_count]] = 0;
    for (int i = 0; i < CHANGES; i++)
        chooser.change_at[i] = plan->scheduler == SIM_PCT && i < plan->depth - 1
                                   ? chooser_some_step()
                                   : -1;
}

/* ---- priorities --------------------------------------------------------- */

static int64_t chooser_priority(int actor)
{
    if (chooser.priority[actor] == 0) {
        chooser.met[chooser.met_count++] = actor;
        chooser.priority[actor] = 1 + (int64_t)(chooser_random() >> 2);
    }
    return chooser.priority[actor];
}

static int chooser_highest(const int *actors, int count)
{
    int best = actors[0];

    for (int i = 1; i < count; i++) {
        if (chooser_priority(actors[i]) > chooser_priority(best))
            best = actors[i];
    }
    return best;
}

/* Returns whether the actor has run for long: it may be waiting for another one
 * in a loop. */
static bool chooser_is_tired(int actor)
{
    chooser.on_end = actor == chooser.last ? chooser.on_end + 1 : 0;
    chooser.last = actor;
    return chooser.on_end >= RUN;
}

static bool chooser_changes_now(int actor)
{
    if (chooser_is_tired(actor))
        return true;
    for (int i = 0; i < chooser.plan.depth - 1 && i < CHANGES; i++) {
        if (chooser.change_at[i] == chooser.step)
            return true;
    }
    return false;
}

void sim_chooser_demote(int actor)
{
    (void)chooser_priority(actor); /* so that it is reset with the rest */
    chooser.priority[actor] = --chooser.lowest;
}

static int chooser_by_priority(const int *actors, int count)
{
    const int best = chooser_highest(actors, count);

    if (!chooser_changes_now(best))
        return best;
    chooser.on_end = 0;
    sim_chooser_demote(best);
    return chooser_highest(actors, count);
}

/* ---- by bytes ----------------------------------------------------------- */

/* Returns the actor with the smallest number from `least` on, or the smallest
 * of all. */
static int chooser_from(int least, const int *actors, int count)
{
    int best = -1, lowest = actors[0];

    for (int i = 0; i < count; i++) {
        if (actors[i] >= least && (best < 0 || actors[i] < best))
            best = actors[i];
        if (actors[i] < lowest)
            lowest = actors[i];
    }
    return best >= 0 ? best : lowest;
}

static int chooser_by_script(const int *actors, int count)
{
    int actor = chooser_from(chooser.last, actors, count);
    int passed = -1;

    if (chooser.step >= chooser.script_step) {
        passed = chooser.plan.script[chooser.script_at + 1] % count;
        chooser.script_at += 2;
        chooser_listen();
    } else if (chooser_is_tired(actor)) {
        passed = 0;
    }
    for (; passed >= 0; passed--)
        actor = chooser_from(actor + 1, actors, count);
    chooser.on_end = actor == chooser.last ? chooser.on_end : 0;
    chooser.last = actor;
    return actor;
}

/* ---- exhaustive --------------------------------------------------------- */

static uint64_t chooser_branch(uint64_t width)
{
    struct fork *fork = &chooser.way[chooser.at];

    if (chooser.at == chooser.length) {
        assert(chooser.length < WAY);
        chooser.length++;
        *fork = (struct fork){.width = (uint32_t)width};
    }
    assert(fork->width == width); /* else the program is indeterminate */
    chooser.at++;
    return fork->taken;
}

static size_t chooser_place(uint64_t state)
{
    size_t at = state & (chooser.room - 1);

    while (chooser.seen[at] != 0 && chooser.seen[at] != state)
        at = (at + 1) & (chooser.room - 1);
    return at;
}

static void chooser_grow(void)
{
    uint64_t *old = chooser.seen;
    const size_t count = chooser.room;

    chooser.room = count == 0 ? 1 << 12 : 2 * count;
    chooser.seen = calloc(chooser.room, sizeof(*chooser.seen));
    if (chooser.seen == NULL)
        abort();
    for (size_t i = 0; i < count; i++) {
        if (old[i] != 0)
            chooser.seen[chooser_place(old[i])] = old[i];
    }
    free(old);
}

bool sim_chooser_is_new(void)
{
    return chooser.at == chooser.length;
}

bool sim_chooser_was_here(uint64_t state)
{
    size_t at;

    if (2 * chooser.used >= chooser.room)
        chooser_grow();
    state |= state == 0;
    at = chooser_place(state);
    if (chooser.seen[at] == state)
        return true;
    chooser.seen[at] = state;
    chooser.used++;
    return false;
}

bool sim_chooser_next(void)
{
    chooser.length = chooser.at; /* the schedule may have been cut off */
    while (chooser.length > 0) {
        struct fork *last = &chooser.way[chooser.length - 1];

        if (++last->taken < last->width)
            return true;
        chooser.length--;
    }
    sim_chooser_restart();
    return false;
}

void sim_chooser_restart(void)
{
    free(chooser.seen);
    chooser.seen = NULL;
    chooser.room = chooser.used = 0;
    chooser.length = chooser.at = 0;
}

/* ---- interface ---------------------------------------------------------- */

static uint64_t chooser_pick(uint64_t n)
{
    if (n <= 1)
        return 0;
    if (chooser.plan.scheduler == SIM_EXHAUSTIVE)
        return chooser_branch(n);
    return chooser_random() % n;
}

int sim_chooser_actor(const int *actors, int count)
{
    int actor;

    if (chooser.plan.scheduler == SIM_PCT)
        actor = chooser_by_priority(actors, count);
    else if (chooser.plan.scheduler == SIM_SCRIPTED)
        actor = chooser_by_script(actors, count);
    else
        actor = actors[chooser_pick((uint64_t)count)];
    chooser.step++;
    chooser.fingerprint = sim_mix(chooser.fingerprint, (uint64_t)actor);
    return actor;
}

uint64_t sim_chooser_number(uint64_t n)
{
    const uint64_t number = chooser_pick(n);

    chooser.fingerprint = sim_mix(chooser.fingerprint, number);
    return number;
}

bool sim_chooser_luck(uint64_t n)
{
    return chooser.plan.scheduler != SIM_EXHAUSTIVE &&
           sim_chooser_number(n) == 0;
}

uint64_t sim_chooser_fingerprint(void)
{
    return chooser.fingerprint;
}
