/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of libuv, which read and write files and resolve names. libuv
 * starts them together at the first such request of a process, and ends the
 * process where the system refuses one. */
#ifndef UVA_IO_LOOP_THREADS_H
#define UVA_IO_LOOP_THREADS_H

#include <uv.h>

#include "uvarrow/base.h"

/* Has libuv start them, if that was not done in this process, after as many
 * threads were tried. 0: requests to libuv's threads do not end the process.
 * Otherwise ENOMEM or a code of the system, and libuv was not asked.
 * Other threads that begin meanwhile may take the tried resources. Thread:
 * loop. */
UVA_MUST_CHECK int uva__loop_threads_start(uv_loop_t *loop);

#endif
