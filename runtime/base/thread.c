/* SPDX-License-Identifier: Apache-2.0 */
/* The address of a thread-local variable is the thread's number. */
#include "base/thread.h"

static _Thread_local char mark; /* only its address is used */

uint64_t uva__thread_self(void)
{
    return (uint64_t)(uintptr_t)&mark;
}
