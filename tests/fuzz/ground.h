/* SPDX-License-Identifier: Apache-2.0 */
/* Where a script is played: a runtime, memory that can be made to fail, and
 * whoever else goes on meanwhile. There are two, and a scene is the same on
 * both. ground_pump.c turns a real runtime by hand, so that one thing happens
 * at a time, on any build. ground_sim.c is the simulator (sim/engine.h): the
 * script is one fiber of several, and the bytes say who goes on when. */
#ifndef UVA_FUZZ_GROUND_H
#define UVA_FUZZ_GROUND_H

#include <stdbool.h>

#include "fuzz/fuzz_input.h"
#include "uvarrow/runtime.h"

struct ground {
    struct uva_runtime *runtime; /* NULL once it has gone */
    bool closing;                /* it was told to close */
    bool prompt;                 /* all happens on the script's thread, or while
                                    that waits */
};

/* Plays a scene to its end. The first bytes are not for it: they say who goes
 * on when, where that can be said. Four of them: how it is said; two of a seed;
 * of how many pairs the rest consists (struct sim_plan). */
void ground_play(void (*scene)(struct fuzz_input in), struct fuzz_input in);

void ground_open(struct ground *ground);

/* What a script wants of its host. ground_settle() lets others go on until
 * nothing happens by itself; ground_pause() perhaps not so long.
 * ground_enter() has who calls the peer wait while the peer is at work
 * elsewhere, or lets him pass, who then must do nothing but return: false.
 * ground_wait() brackets what may wait for such callers. */
void ground_settle(void *ground);
void ground_pause(void *ground);
bool ground_enter(void *ground);
void ground_leave(void *ground);
void ground_wait(void *ground, bool begins);

/* At the beginning of any callback of the library's: all that it did before is
 * seen by who sees what the callback does; and others may go on first. */
void ground_see(void);

/* Calls `fn` on the loop's thread, perhaps later, while the peer is not at
 * work; or not at all. */
void ground_post(struct ground *ground, void (*fn)(void *ctx), void *ctx);

/* Fails the `n`-th allocation from now on; 0: none. */
void ground_fail(struct ground *ground, int n);

/* Begins to close it, at once. */
void ground_close(struct ground *ground);

/* Closes it, waits until it has gone, and checks that all memory has come
 * back. */
void ground_finish(struct ground *ground);

#endif
