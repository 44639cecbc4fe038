/* SPDX-License-Identifier: Apache-2.0 */
/* A list of the few calls in flight, the newest first. */
#include "protocol/active_calls.h"

#include <stddef.h>

bool uva__epochs_calls_beside(const struct uva__epochs *epochs,
                              const struct uva__epoch *epoch)
{
    const struct uva__epoch *e;

    for (e = epochs->newest; e != NULL; e = e->next)
        if ((e->call == UVA__CALL_REQUEST || e->call == UVA__CALL_CANCEL) &&
            !e->inside && e->thread != epoch->thread)
            return true;
    return false;
}

bool uva__epochs_hold_release(const struct uva__epochs *epochs, uint64_t thread)
{
    const struct uva__epoch *e;

    for (e = epochs->newest; e != NULL; e = e->next)
        if (uva__call_is_callback(e->call) || uva__epoch_is_on(e, thread))
            return true;
    return false;
}
