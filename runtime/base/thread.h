/* SPDX-License-Identifier: Apache-2.0 */
/* Which thread the caller is, and how the library starts threads of its own.
 * What such a thread does is its owner's business. */
#ifndef UVA_BASE_THREAD_H
#define UVA_BASE_THREAD_H

#include <pthread.h>
#include <stdint.h>

#include "uvarrow/base.h"

/* A number for the calling thread that no other living thread has; never 0. A
 * later thread may get the number of one that has ended. Thread: any. */
uint64_t uva__thread_self(void);

/* Starts a thread that runs `run(arg)` and takes no signals, so that they reach
 * the program's own threads. Signals that report a fault of the thread itself
 * (SIGSEGV and the like) stay open: a JVM or a sanitizer needs them delivered.
 * 0, or the code of pthread_create(). Thread: any. */
UVA_MUST_CHECK int uva__thread_start(pthread_t *thread, void *(*run)(void *arg),
                                     void *arg);

#endif
