/* SPDX-License-Identifier: Apache-2.0 */
/* Turns: sources that may not all be open at one time wait here. Each runtime
 * has turns (`sources_open`), and uva_turns_new() makes more, of which others
 * are part by uva_turns_within(). Everything happens on the loop thread.
 *
 * A source that is opened ahead has batches that are only wanted after those of
 * other sources, and is open until then. So it never gets the last turn, for
 * which one of these may have to wait. A source that is needed gets its turn
 * before it; and each of them in the order in which it began to be needed. */
#ifndef UVA_LOOP_TURNS_H
#define UVA_LOOP_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct uva__rt;
struct uva_turns;

/* How many there are, and what waits for one. All zeroes but for `limit`. */
struct uva__turns {
    int32_t limit; /* of the runtime's, 0: there is no limit */
    int32_t taken;
    int32_t ahead;            /* of these, taken ahead */
    struct uva__list waiting; /* of struct uva__turn: those that are needed */
    struct uva__list later;   /* of struct uva__turn: those that wait ahead */
    struct uva__turn *hold;   /* borrows: what all turns here need: one of
                                 the outer turns; NULL: nothing */
};

/* What takes turns. */
struct uva__turn {
    struct uva__link link;
    struct uva__turns *of;     /* borrows */
    struct uva_turns *own;     /* counts: what it is part of, and what limits
                                  its time to wait; or NULL */
    void (*begin)(void *ctx);  /* its turn has come */
    void (*expire)(void *ctx); /* it has waited too long, and does not wait any
                                  more; with `own` */
    void *ctx;                 /* borrows */
    uint64_t due_ns;           /* when it has waited too long, once needed */
    bool ahead;                /* it is not needed so far; set before it is
                                  taken */
    bool waits;                /* is in a list */
    bool has;                  /* it is its turn */
};

/* Takes a turn. False if it has to wait: then begin or expire is called later,
 * unless it is ended before. */
bool uva__turns_take(struct uva__turn *turn);

/* It is needed from now on, and was not before. */
void uva__turns_need(struct uva__turn *turn);

/* Gives the turn back, or stops to wait for it. No effect on one that neither
 * waits nor has it. */
void uva__turns_end(struct uva__turn *turn);

/* Of uva_turns_new(): counts a reference; whether they are those of `rt`; the
 * turns themselves. Thread: any. */
struct uva_turns *uva__turns_acquire(struct uva_turns *turns);
bool uva__turns_are_of(const struct uva_turns *turns, const struct uva__rt *rt);
struct uva__turns *uva__turns_of(struct uva_turns *turns);

/* For texts: what waits, where the turns have no text of their own, and how
 * long it does at most. Borrows. */
const char *uva__turns_name(const struct uva_turns *turns, const char *name);
int64_t uva__turns_wait_ms(const struct uva_turns *turns);

#endif
