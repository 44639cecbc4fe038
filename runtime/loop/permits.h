/* SPDX-License-Identifier: Apache-2.0 */
/* Permits to be open, for which sources wait: a semaphore on the loop thread.
 * uva_permits_new() makes them, and uva_permits_within() makes permits that
 * count within these.
 *
 * A source that is opened ahead stays open until the batches of other sources
 * have come. So it never gets the last permit, for which another source may
 * have to wait. Sources that are needed go before it, in the order in which
 * each began to be needed. */
#ifndef UVA_LOOP_PERMITS_H
#define UVA_LOOP_PERMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct uva__rt;
struct uva_permits;

/* A number of permits, and the waits for one. Zeroes, except for `limit`. */
struct uva__permits {
    int32_t limit; /* their number */
    int32_t taken;
    int32_t ahead;            /* of these, taken ahead */
    struct uva__list waiting; /* permits that are needed */
    struct uva__list later;   /* permits that wait ahead */
    struct uva__permit *hold; /* borrows: the outer permit that all permits here
                                 need; may be NULL */
};

/* One permit, taken or waited for. */
struct uva__permit {
    struct uva__link link;
    struct uva__permits *of;   /* borrows */
    struct uva_permits *own;   /* counts: its permits, which limit its time to
                                wait; or NULL */
    void (*begin)(void *ctx);  /* a wait has ended: it is taken */
    void (*expire)(void *ctx); /* it has waited too long, and does not wait any
                                  more; with `own` */
    void *ctx;                 /* borrows */
    uint64_t due_ns;           /* when it has waited too long, once needed */
    bool ahead;                /* it is not needed so far; set before it is
                                  taken */
    bool waits;                /* is in a list */
    bool has;                  /* is taken */
};

/* Takes a permit. False if it has to wait: then begin or expire is called
 * later, unless it is ended before. */
bool uva__permits_take(struct uva__permit *permit);

/* It is needed from now on, and was not before. */
void uva__permits_need(struct uva__permit *permit);

/* Gives the permit back, or ends the wait for it. No effect without either. */
void uva__permits_end(struct uva__permit *permit);

/* Permits of uva_permits_new(): counts a reference; whether `rt` is theirs; the
 * permits inside. Thread: any. */
struct uva_permits *uva__permits_acquire(struct uva_permits *permits);
bool uva__permits_are_of(const struct uva_permits *permits,
                         const struct uva__rt *rt);
struct uva__permits *uva__permits_of(struct uva_permits *permits);

/* For texts: the name of the permits, or else `name`, and the longest wait.
 * Borrows. */
const char *uva__permits_name(const struct uva_permits *permits,
                              const char *name);
int64_t uva__permits_wait_ms(const struct uva_permits *permits);

#endif
