/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of streams share: a runtime that is a guest on a libuv loop, with
 * an allocator that fails on cue and counts its blocks. The test's thread turns
 * the loop. */
#ifndef UVA_SUPPORT_LOOP_RIG_H
#define UVA_SUPPORT_LOOP_RIG_H

#include <stdbool.h>
#include <uv.h>

#include "support/faulty_allocator.h"
#include "uvarrow/runtime.h"

struct loop_rig {
    uv_loop_t loop;
    uv_async_t keep;                /* keeps the loop alive; nudged */
    struct uva_runtime *runtime;    /* NULL once it is gone */
    struct faulty_allocator memory; /* of the runtime */
};

/* Opens the runtime. Nothing fails, until the test says so. */
void loop_rig_open(struct loop_rig *rig);

/* The same with options of the test's own; the allocator is the rig's. */
void loop_rig_open_with(struct loop_rig *rig,
                        const struct uva_runtime_options *how);

/* Fails the `n`-th allocation from now on; 0: none. */
void loop_rig_fail(struct loop_rig *rig, long n);

/* Turns the loop until `done` says so, waiting for events in between. */
void loop_rig_until(struct loop_rig *rig, bool (*done)(void *ctx), void *ctx);

/* Turns the loop until all that can happen by itself has happened. */
void loop_rig_settle(struct loop_rig *rig);

/* Has loop_rig_until() look again. Thread: any. */
void loop_rig_nudge(struct loop_rig *rig);

/* Whether a timer of the runtime's runs. */
bool loop_rig_has_timer(struct loop_rig *rig);

/* Turns the loop until one runs, and has not fired. */
void loop_rig_until_timer(struct loop_rig *rig);

/* Lets so much of the loop's time pass, without turning it. */
void loop_rig_pass(struct loop_rig *rig, int64_t ms);

/* Calls `fn` on the loop thread, outside of a turn of the runtime. */
void loop_rig_call(struct loop_rig *rig, void (*fn)(void *ctx), void *ctx);

/* Closes the runtime and waits until it is gone. The rest of the rig stays. */
void loop_rig_close_runtime(struct loop_rig *rig, int64_t grace_ms);

/* Closes what is still open, and checks that no handle and no block is left. */
void loop_rig_close(struct loop_rig *rig);

#endif
