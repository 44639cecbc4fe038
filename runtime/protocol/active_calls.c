/* SPDX-License-Identifier: Apache-2.0 */
/* A list of the few calls in flight, the newest first. */
#include "protocol/active_calls.h"

#include <stddef.h>

bool uva__active_calls_calls_beside(
    const struct uva__active_calls *active_calls,
    const struct uva__active_call *active_call)
{
    const struct uva__active_call *e;

    for (e = active_calls->newest; e != NULL; e = e->next)
        if ((e->call == UVA__CALL_REQUEST || e->call == UVA__CALL_CANCEL) &&
            !e->inside && e->thread != active_call->thread)
            return true;
    return false;
}

bool uva__active_calls_hold_release(
    const struct uva__active_calls *active_calls, uint64_t thread)
{
    const struct uva__active_call *e;

    for (e = active_calls->newest; e != NULL; e = e->next)
        if (uva__call_is_callback(e->call) || uva__active_call_is_on(e, thread))
            return true;
    return false;
}
