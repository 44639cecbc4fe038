/* SPDX-License-Identifier: Apache-2.0 */
/* One schedule of the whole product: draws runtimes, chains of streams, peers
 * and faults from the seed, runs them to their end, and checks that no object
 * is left. */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>

/* Runs the schedule of `seed`. Returns NULL if it passed; otherwise a
 * description of the failure, valid until the next call. `aloud`: prints the
 * transcript to standard output. */
const char *scenario_run(uint64_t seed, bool aloud);

#endif
