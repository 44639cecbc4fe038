/* SPDX-License-Identifier: Apache-2.0 */
/* Which thread the caller is. base/platform.h starts threads. */
#ifndef UVA_BASE_THREAD_H
#define UVA_BASE_THREAD_H

#include <stdint.h>

/* A number for the calling thread that no other living thread has; never 0. A
 * later thread may get the number of an ended one. Thread: any. */
uint64_t uva__thread_self(void);

#endif
