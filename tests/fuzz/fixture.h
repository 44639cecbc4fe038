/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a script: a runtime, memory that can be made to fail, and
 * the other threads. There are two: fixture_sim.c is in the simulator
 * (sim/engine.h), where the script is one fiber of several, and the bytes
 * decide which one runs next; fixture_real.c has a real runtime and real
 * threads. */
#ifndef UVA_FUZZ_FIXTURE_H
#define UVA_FUZZ_FIXTURE_H

#include <stdbool.h>

#include "fuzz/fuzz_input.h"
#include "uvarrow/runtime.h"

struct fixture {
    struct uva_runtime *runtime; /* NULL once it is gone */
    bool closing;                /* its close was requested */
};

/* Plays a scenario to its end. The first bytes are not for the scenario: they
 * control the scheduler, if there is one. The first four are its kind, two
 * bytes of seed, and the number of pairs that follow (struct sim_plan). */
void fixture_play(void (*scenario)(struct fuzz_input in), struct fuzz_input in);

void fixture_open(struct fixture *fixture);

/* Callbacks of the script's host. fixture_settle() lets others run until
 * all wait; fixture_pause() may return earlier. fixture_enter() makes a thread
 * that calls the peer wait while the peer runs on another thread. If the wait
 * could deadlock, it returns false, and the caller must only return.
 * fixture_wait() surrounds calls that may wait for such callers. */
void fixture_settle(void *fixture);
void fixture_pause(void *fixture);
bool fixture_enter(void *fixture);
void fixture_leave(void *fixture);
void fixture_wait(void *fixture, bool begins);

/* Call it first in every callback of the library: makes all earlier stores
 * visible together with the callback's, and lets others run before. */
void fixture_see(void);

/* Calls `fn` on the loop thread, perhaps later, while the peer is not running;
 * or not at all. */
void fixture_post(struct fixture *fixture, void (*fn)(void *ctx), void *ctx);

/* Makes the `n`-th allocation from now on fail; 0: no failure. */
void fixture_fail(struct fixture *fixture, int n);

/* Begins to close the runtime, without grace. */
void fixture_close(struct fixture *fixture);

/* Closes it, waits until it is gone, and checks that all memory was freed. */
void fixture_finish(struct fixture *fixture);

#endif
