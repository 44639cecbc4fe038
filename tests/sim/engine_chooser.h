/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the choices: at random, by random priorities, by given bytes, or each
 * in turn.
 *
 * An actor that may run next is a number: 2 f for the fiber f, 2 f + 1 for its
 * store buffer. */
#ifndef SIM_ENGINE_CHOOSER_H
#define SIM_ENGINE_CHOOSER_H

#include "sim/engine.h"

enum { SIM_ACTORS = 2048 };

/* Starts a schedule; `plan` must stay valid. */
void sim_chooser_begin(const struct sim_plan *plan);

/* Chooses an actor that may run; `count` > 0. */
int sim_chooser_actor(const int *actors, int count);

/* Has all other actors go before this one, where they go by priority. */
void sim_chooser_demote(int actor);

/* Chooses a number from 0 to n - 1. */
uint64_t sim_chooser_number(uint64_t n);
bool sim_chooser_luck(uint64_t n);

/* Returns a hash of all choices so far. */
uint64_t sim_chooser_fingerprint(void);

/* SIM_EXHAUSTIVE: return whether the schedule has left the path of the one
 * before it, and whether the state has been seen. */
bool sim_chooser_is_new(void);
bool sim_chooser_was_here(uint64_t state);

/* SIM_EXHAUSTIVE: moves on to the next schedule, if there is one; or to the
 * first schedule of a new search. */
bool sim_chooser_next(void);
void sim_chooser_restart(void);

/* Mixes two numbers into one. */
static inline uint64_t sim_mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ b) + UINT64_C(0x9e3779b97f4a7c15) + (a << 6);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Mixes bytes into a hash. */
uint64_t sim_mix_bytes(uint64_t hash, const void *bytes, size_t size);

#endif
