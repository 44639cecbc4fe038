/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of libuv that would end the process without a word: each is tried
 * first, so that a failure is an error with a text. */
#ifndef UVA_TOOLS_LOOP_H
#define UVA_TOOLS_LOOP_H

#include <uv.h>

#include "uvarrow/base.h"

/* Makes a loop. 0; or an errno, and there is no loop. Thread: any. */
UVA_MUST_CHECK int uva__loop_open(uv_loop_t *loop, struct uva_error *error);

/* Has libuv start its threads, which write files and find hosts, if that was
 * not done in this process. libuv starts them together at the first request,
 * and ends the process where the system refuses one: so as many are tried
 * first. 0; or an errno, and they must not be used. Other threads that begin
 * meanwhile may take the tried resources. Thread: loop. */
UVA_MUST_CHECK int uva__loop_threads(uv_loop_t *loop, struct uva_error *error);

#endif
