/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime embedded on a libuv loop that the test's thread turns, with an
 * allocator that fails on request and counts its blocks. */
#ifndef UVA_SUPPORT_LOOP_FIXTURE_H
#define UVA_SUPPORT_LOOP_FIXTURE_H

#include <stdbool.h>
#include <uv.h>

#include "support/faulty_allocator.h"
#include "uvarrow/runtime.h"

struct loop_fixture {
    uv_loop_t uv;
    uv_async_t keep;                /* keeps the loop alive, and wakes it */
    uv_prepare_t prepare;           /* runs before the loop waits */
    int64_t turns;                  /* of the runtime, before loop_turn() */
    struct uva_runtime *runtime;    /* NULL once it has closed */
    struct faulty_allocator memory; /* of the runtime */
};

/* Opens the runtime. No allocation fails before loop_fail(). A turn lasts until
 * its work is done, or enough batches were delivered, unless the options limit
 * its time. */
void loop_open(struct loop_fixture *loop);

/* Opens the runtime with options, of which the fixture replaces the allocator.
 */
void loop_open_with(struct loop_fixture *loop,
                    const struct uva_runtime_options *options);

/* Makes the `n`-th allocation from now on fail; 0: no failure. */
void loop_fail(struct loop_fixture *loop, long n);

/* Turns the loop once. It waits for events unless the runtime has had a turn:
 * libuv runs timers and idle handles before it waits, and the awaited event may
 * come there. */
void loop_turn(struct loop_fixture *loop);

/* Turns the loop until `done` returns true, waiting for events in between. */
void loop_until(struct loop_fixture *loop, bool (*done)(void *ctx), void *ctx);

/* Turns the loop until it has no work left. */
void loop_settle(struct loop_fixture *loop);

/* Wakes the loop, so that loop_until() calls `done` again. Thread: any. */
void loop_nudge(struct loop_fixture *loop);

/* Returns whether a timer of the runtime is running. */
bool loop_has_timer(struct loop_fixture *loop);

/* Turns the loop until a timer is running. The first form calls `fn` before
 * that can fire; in the second, a timer of a few milliseconds may have fired
 * then. */
void loop_at_timer(struct loop_fixture *loop, void (*fn)(void *ctx), void *ctx);
void loop_until_timer(struct loop_fixture *loop);

/* Waits until the loop's clock has advanced by `ms`, without turning the loop.
 */
void loop_pass(struct loop_fixture *loop, int64_t ms);

/* Calls `fn` on the loop thread, outside of a turn of the runtime. */
void loop_call(struct loop_fixture *loop, void (*fn)(void *ctx), void *ctx);

/* Closes the runtime and waits until it is closed. The loop stays open. */
void loop_close_runtime(struct loop_fixture *loop, int64_t grace_ms);

/* Closes the runtime, if it is open, and the loop, and checks that no handle
 * and no block is left. */
void loop_close(struct loop_fixture *loop);

#endif
