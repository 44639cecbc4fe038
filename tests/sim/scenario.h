/* SPDX-License-Identifier: Apache-2.0 */
/* One schedule of the whole product: draws runtimes, chains of streams, peers
 * and mishaps from the seed, runs them to their end, and looks at the books.
 */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>

/* Runs the schedule of `seed`. NULL: it held; otherwise what did not, good
 * until the next. `aloud`: with its transcript on standard output. */
const char *scenario_run(uint64_t seed, bool aloud);

#endif
