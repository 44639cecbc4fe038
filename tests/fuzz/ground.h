/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime that is turned by hand, for what must come out the same each time:
 * lanes' jobs run on the caller's thread, one by one, and guests only while the
 * caller waits for them. */
#ifndef UVA_FUZZ_PUMP_H
#define UVA_FUZZ_PUMP_H

#include <stdbool.h>

#include "support/faulty_allocator.h"
#include "uvarrow/runtime.h"

struct pump {
    struct uva_runtime *runtime;    /* NULL once it has gone */
    struct faulty_allocator memory; /* of the runtime */
    struct uva_runtime_stats stats; /* at the end, before it was closed */
    bool closing;                   /* it was told to close */
    bool gone;                      /* it has */
};

void pump_open(struct pump *pump);

/* What a script wants of its host: turns it until nothing happens by itself;
 * has guests wait while the caller or another guest is at work; lets them pass,
 * who then must not do much, where those wait for them. */
void pump_settle(void *pump);
bool pump_enter(void *pump);
void pump_leave(void *pump);
void pump_wait(void *pump, bool begins);

/* Fails the `n`-th allocation from now on; 0: none. */
void pump_fail(struct pump *pump, int n);

/* Begins to close it, at once. */
void pump_close(struct pump *pump);

/* Closes it, turns it until it has gone, and checks that all memory has come
 * back. */
void pump_finish(struct pump *pump);

#endif
