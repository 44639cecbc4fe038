/* SPDX-License-Identifier: Apache-2.0 */
/* The address of a thread-local variable is the thread's number. */
#define _GNU_SOURCE
#include "base/thread.h"

#include <signal.h>
#include <stddef.h>

static _Thread_local char mark; /* only its address is used */

uint64_t uva__thread_self(void)
{
    return (uint64_t)(uintptr_t)&mark;
}

static void signals_block(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS,  SIGFPE,
                                 SIGILL,  SIGTRAP, SIGSYS};
    sigset_t set;

    (void)sigfillset(&set);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        (void)sigdelset(&set, faults[i]);
    (void)pthread_sigmask(SIG_SETMASK, &set, before);
}

/* The new thread inherits the mask, so there is no moment at which it could
 * take a signal. */
int uva__thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
    sigset_t before;
    int code;

    signals_block(&before);
    code = pthread_create(thread, NULL, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}
