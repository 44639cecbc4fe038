/* SPDX-License-Identifier: Apache-2.0 */
/* The id of a thread when threads are fibers. */
#include "sim/engine.h"

uint64_t uva__thread_self(void);

/* Never returns 0, which means no thread. */
uint64_t uva__thread_self(void)
{
    return (uint64_t)(sim_self() + 2);
}
