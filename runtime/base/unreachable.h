/* SPDX-License-Identifier: Apache-2.0 */
/* A place in the code that is reached only if the library itself has a bug.
 * What foreign code can cause is an error, never this. */
#ifndef UVA_BASE_UNREACHABLE_H
#define UVA_BASE_UNREACHABLE_H

#include <assert.h>

/* Marks a place that cannot be reached; `reason`, a string literal, states why.
 * With assertions on, reaching it ends the program with that text. In a release
 * it does nothing: the compiler may assume nothing, and the code behind it
 * runs. So that code must be safe to run: it gives back the counts that were
 * taken, and returns an error where it can. Memory that is not given back, or
 * work that is not done, is the worst it may cause.
 *
 * tests/coverage expects no test to reach it, nor the code behind it in its
 * block. Thread: any. */
#define UVA__UNREACHABLE(reason) assert(!"unreachable: " reason)

#endif
