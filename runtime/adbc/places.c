/* SPDX-License-Identifier: Apache-2.0 */
/* The order of the states, and how long they last, is a table. */
#include "adbc/places.h"

#include <uv.h>

enum {
    CANCEL_MS = 300, /* for the call of a query that was cancelled */
    END_MS = 2000    /* for a reset and a close */
};

/* The states that do not last. */
static const struct {
    uint32_t limit_ms;               /* 0: it is not for a fixed time */
    enum uva__connection_state then; /* after that */
} states[UVA__CONNECTION_STATES] = {
    [UVA__CONNECTION_IDLE] = {0, UVA__CONNECTION_CLOSING},
    [UVA__CONNECTION_CANCELLED] = {CANCEL_MS, UVA__CONNECTION_STUCK},
    [UVA__CONNECTION_ENDING] = {END_MS, UVA__CONNECTION_STUCK},
    [UVA__CONNECTION_CLOSING] = {END_MS, UVA__CONNECTION_LEFT},
};

/* ---- counts -------------------------------------------------------------- */

int32_t uva__places_written_off(const struct uva__places *p)
{
    return p->counts[UVA__CONNECTION_STUCK] + p->counts[UVA__CONNECTION_LEFT];
}

/* How many of those have lost their place. */
static int32_t places_replaced(const struct uva__places *p)
{
    const int32_t off = uva__places_written_off(p);

    return off < p->stuck_connections ? off : p->stuck_connections;
}

bool uva__places_have_room(const struct uva__places *p)
{
    int32_t all = 0;

    for (int i = 0; i < UVA__CONNECTION_STATES; i++)
        all += p->counts[i];
    return all < p->connections + places_replaced(p);
}

int32_t uva__places_permits(const struct uva__places *p)
{
    return p->connections + places_replaced(p) -
           p->counts[UVA__CONNECTION_LEFT];
}

/* ---- states -------------------------------------------------------------- */

static void places_link(struct uva__places *p, struct uva__connection *c)
{
    struct uva__connection **head = &p->of[c->state];

    c->since_ns = uv_hrtime();
    c->next = *head;
    c->at = head;
    if (c->next != NULL)
        c->next->at = &c->next;
    *head = c;
    p->counts[c->state]++;
}

static void places_unlink(struct uva__places *p, struct uva__connection *c)
{
    *c->at = c->next;
    if (c->next != NULL)
        c->next->at = c->at;
    p->counts[c->state]--;
}

void uva__places_add(struct uva__places *p, struct uva__connection *c)
{
    places_link(p, c);
}

void uva__places_move(struct uva__places *p, struct uva__connection *c,
                      enum uva__connection_state state)
{
    places_unlink(p, c);
    c->state = state;
    places_link(p, c);
}

void uva__places_remove(struct uva__places *p, struct uva__connection *c)
{
    places_unlink(p, c);
}

/* ---- time ---------------------------------------------------------------- */

bool uva__places_is_old(const struct uva__places *p,
                        const struct uva__connection *c)
{
    return uv_hrtime() - c->born_ns >= p->max_age_ns;
}

uint64_t uva__places_due(const struct uva__places *p,
                         const struct uva__connection *c)
{
    const uint64_t idle = c->since_ns + p->idle_ns,
                   old = c->born_ns + p->max_age_ns;

    if (c->state == UVA__CONNECTION_IDLE)
        return idle < old ? idle : old;
    return states[c->state].limit_ms > 0
               ? c->since_ns + (uint64_t)states[c->state].limit_ms * 1000000
               : UINT64_MAX;
}

struct uva__connection *uva__places_first_due(const struct uva__places *p,
                                              uint64_t *due_ns)
{
    struct uva__connection *first = NULL, *c;

    *due_ns = UINT64_MAX;
    for (int i = 0; i < UVA__CONNECTION_STATES; i++)
        for (c = p->of[i]; c != NULL; c = c->next)
            if (uva__places_due(p, c) < *due_ns) {
                *due_ns = uva__places_due(p, c);
                first = c;
            }
    return first;
}

enum uva__connection_state uva__places_when_due(const struct uva__connection *c)
{
    return states[c->state].then;
}
