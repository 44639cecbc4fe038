/* SPDX-License-Identifier: Apache-2.0 */
/* A place in the code that is reached only if the library itself has a bug.
 * A fault of foreign code is an error, never this. */
#ifndef UVA_BASE_UNREACHABLE_H
#define UVA_BASE_UNREACHABLE_H

#include <assert.h>

/* Marks a place that cannot be reached; `reason`, a string literal, states why.
 * With assertions on, reaching it ends the program with that text. In a release
 * it has no effect: the compiler makes no assumption, and the code after it
 * runs. So that code must be safe to run: it gives back the counts that were
 * taken, and returns an error where it can. Memory that is not given back, or
 * work that is not done, is the worst it may cause.
 *
 * tests/coverage expects no test to reach it or the code after it in its block.
 * Thread: any. */
#define UVA__UNREACHABLE(reason) assert(!"unreachable: " reason)

#endif
