/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of a pool, by their states: where each may go, how many there
 * may be, and when one has been there for too long. Under the pool's lock.
 *
 *     (new) -> CONNECTING -> USED -> ENDING -> IDLE -> USED, CONNECTING ...
 *                  |          |        |         |
 *                  |          v        |         v
 *                  |      CANCELLED    |      CLOSING -> (gone)
 *                  |        |    |     |         |
 *                  |        |    v     v         |
 *                  |        | ENDING -> (gone)   |
 *                  v        v                    v
 *                LEFT     STUCK -> (gone)      LEFT -> (gone)
 *
 * A connection that is written off, as its call does not return, gives its
 * place to another one, up to a limit: it is gone when the call has returned.
 */
#ifndef UVA_ADBC_PLACES_H
#define UVA_ADBC_PLACES_H

#include "adbc/connection.h"

struct uva__places {
    struct uva__connection *of[UVA__CONNECTION_STATES]; /* owns: the last one
                                                           that came first */
    int32_t counts[UVA__CONNECTION_STATES];
    int32_t connections;       /* at most, but for ... */
    int32_t stuck_connections; /* ... so many that are written off */
    uint64_t idle_ns;          /* how long one may be idle */
    uint64_t max_age_ns;       /* how old one may be that is idle */
};

/* Whether there is a place for one more. */
bool uva__places_have_room(const struct uva__places *places);

/* How many queries may have a permit: as many as there are places, and
 * queries that keep their permit though another has their place. */
int32_t uva__places_permits(const struct uva__places *places);

/* How many connections are written off. */
int32_t uva__places_written_off(const struct uva__places *places);

/* Adds a connection, which is cleared but for its state. */
void uva__places_add(struct uva__places *places,
                     struct uva__connection *connection);

/* The only place where a state changes. */
void uva__places_move(struct uva__places *places,
                      struct uva__connection *connection,
                      enum uva__connection_state state);

/* Takes it out: it is gone. */
void uva__places_remove(struct uva__places *places,
                        struct uva__connection *connection);

/* Whether it is too old to be used again. */
bool uva__places_is_old(const struct uva__places *places,
                        const struct uva__connection *connection);

/* When a connection that is in the state now is to leave it; UINT64_MAX: its
 * state has no limit of time. */
uint64_t uva__places_due(const struct uva__places *places,
                         const struct uva__connection *connection);

/* Gives the connection that is due first, and when; NULL: no connection ever
 * is. */
struct uva__connection *uva__places_first_due(const struct uva__places *places,
                                              uint64_t *due_ns);

/* Where a connection goes that is due. */
enum uva__connection_state
uva__places_when_due(const struct uva__connection *connection);

#endif
