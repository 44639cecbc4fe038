/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread knows of itself: which one it is, and whether it is inside a
 * turn of any runtime. */
#ifndef UVA_UV_TURN_H
#define UVA_UV_TURN_H

#include "uvarrow/base.h"

/* Brackets a turn on the calling thread; they nest over several runtimes. */
void uva__turn_begin(void);
void uva__turn_end(void);

/* How many turns the calling thread is in. */
int uva__turn_depth(void);

/* Nanoseconds of a clock that only goes forwards. */
uint64_t uva__turn_now(void);

/* Writes a log record to standard error, in one go. */
void uva__log_to_stderr(void *ctx, const struct uva_log_record *record);

#endif
