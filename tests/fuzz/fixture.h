/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a script: a runtime, memory that can be made to fail, and
 * the other threads. There are two implementations, and a scene is the same on
 * both. ground_pump.c turns a real runtime by hand, so that one thing happens
 * at a time, on any build. ground_sim.c uses the simulator (sim/engine.h): the
 * script is one fiber of several, and the bytes decide which one runs next. */
#ifndef UVA_FUZZ_GROUND_H
#define UVA_FUZZ_GROUND_H

#include <stdbool.h>

#include "fuzz/fuzz_input.h"
#include "uvarrow/runtime.h"

struct ground {
    struct uva_runtime *runtime; /* NULL once it is gone */
    bool closing;                /* its close was requested */
    bool pulls_inline; /* everything runs on the script's thread, or while it
                          waits */
};

/* Plays a scene to its end. The first bytes are not for the scene: they control
 * the scheduler, if there is one. The first four are its kind, two bytes of
 * seed, and the number of pairs that follow (struct sim_plan). */
void ground_play(void (*scene)(struct fuzz_input in), struct fuzz_input in);

void ground_open(struct ground *ground);

/* Callbacks of the script's host. ground_settle() lets others run until nothing
 * happens by itself; ground_pause() may return earlier. ground_enter() makes a
 * thread that calls the peer wait while the peer runs on another thread. If the
 * wait could deadlock, it returns false, and the caller must do nothing but
 * return. ground_wait() surrounds calls that may wait for such callers. */
void ground_settle(void *ground);
void ground_pause(void *ground);
bool ground_enter(void *ground);
void ground_leave(void *ground);
void ground_wait(void *ground, bool begins);

/* Call it first in every callback of the library: makes all earlier stores
 * visible together with those of the callback, and lets others run before. */
void ground_see(void);

/* Calls `fn` on the loop thread, perhaps later, while the peer is not running;
 * or not at all. */
void ground_post(struct ground *ground, void (*fn)(void *ctx), void *ctx);

/* Makes the `n`-th allocation from now on fail; 0: none. */
void ground_fail(struct ground *ground, int n);

/* Begins to close the runtime, without grace. */
void ground_close(struct ground *ground);

/* Closes it, waits until it is gone, and checks that all memory was freed. */
void ground_finish(struct ground *ground);

#endif
