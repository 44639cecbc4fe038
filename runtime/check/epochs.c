/* SPDX-License-Identifier: Apache-2.0 */
/* A list of the few calls that are under way, the newest first. */
#include "check/epochs.h"

#include <stddef.h>

static bool epoch_is_on(const struct uva__epoch *epoch, uint64_t thread)
{
    return epoch->thread == thread || uva__word_load(&epoch->runner) == thread;
}

static bool is_next_task(enum uva__call call)
{
    return call == UVA__CALL_TASK || call == UVA__CALL_END;
}

struct uva__place uva__epochs_place(const struct uva__epochs *epochs,
                                    uint64_t thread)
{
    struct uva__place place = {.within = UVA__CALL_NONE};
    const struct uva__epoch *e;

    for (e = epochs->newest; e != NULL; e = e->next) {
        if (!epoch_is_on(e, thread)) {
            if (uva__call_is_callback(e->call) && !is_next_task(place.beside))
                place.beside = e->call;
            continue;
        }
        if (place.within == UVA__CALL_NONE)
            place.within = e->call;
        if (place.callback == UVA__CALL_NONE && uva__call_is_callback(e->call))
            place.callback = e->call;
    }
    return place;
}

void uva__epochs_enter(struct uva__epochs *epochs, struct uva__epoch *epoch)
{
    epoch->next = epochs->newest;
    epochs->newest = epoch;
}

void uva__epochs_leave(struct uva__epochs *epochs, struct uva__epoch *epoch)
{
    struct uva__epoch **at = &epochs->newest;

    while (*at != epoch)
        at = &(*at)->next;
    *at = epoch->next;
}

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
        if (uva__call_is_callback(e->call) || epoch_is_on(e, thread))
            return true;
    return false;
}
