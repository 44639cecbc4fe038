/* SPDX-License-Identifier: Apache-2.0 */
/* Who has a reader's source, how many batches may be read, and how far the
 * worker has come, under one lock: so that granting credit and closing cannot
 * race. Used by a reader's loop (source/reader.c) and worker
 * (source/reader_worker.c). */
#ifndef UVA_SOURCE_READER_CREDIT_H
#define UVA_SOURCE_READER_CREDIT_H

#include "base/atomic.h"

/* Who has the source, and reader->worker. */
enum uva__reader_owner {
    UVA__READER_IDLE,    /* no thread: the worker has used its credits */
    UVA__READER_RUNNING, /* the worker, or its job is queued */
    UVA__READER_PAUSED,  /* no thread, until bytes are consumed */
    UVA__READER_CLOSED   /* no thread: the source is closed */
};

enum {
    READER_DESCRIBED = 1, /* the schema can be read */
    READER_ENDED = 2,     /* no batch follows, and the failure can be read */
    READER_CANCELLED = 4  /* no more batches are wanted */
};

/* All zeroes: idle. */
struct uva__reader_credit {
    struct uva__lock lock;
    enum uva__reader_owner owner;
    unsigned facts;   /* bits READER_... */
    uint64_t credits; /* that the worker has not taken */
};

/* Gives the owner, and the facts. Thread: any. */
static inline enum uva__reader_owner
uva__reader_credit_look(struct uva__reader_credit *c, unsigned *facts)
{
    enum uva__reader_owner owner;

    uva__lock_take(&c->lock);
    owner = c->owner;
    *facts = c->facts;
    uva__lock_drop(&c->lock);
    return owner;
}

/* ---- the loop ----------------------------------------------------------- */

/* Grants `n` credits. If `from` has the source, the worker gets it: returns
 * whether the caller has to start it. Thread: loop. */
static inline bool uva__reader_credit_grant(struct uva__reader_credit *c,
                                            enum uva__reader_owner from,
                                            uint64_t n)
{
    bool start;

    uva__lock_take(&c->lock);
    c->credits += n;
    start = c->owner == from;
    if (start)
        c->owner = UVA__READER_RUNNING;
    uva__lock_drop(&c->lock);
    return start;
}

/* Returns who has the source: unless that is the worker, or the source is
 * closed, the caller has to start the worker. Thread: loop. */
static inline enum uva__reader_owner
uva__reader_credit_cancel(struct uva__reader_credit *c)
{
    enum uva__reader_owner owner;

    uva__lock_take(&c->lock);
    c->facts |= READER_CANCELLED;
    owner = c->owner;
    uva__lock_drop(&c->lock);
    return owner;
}

/* ---- the worker, while it has the source -------------------------------- */

/* The next step of the worker. */
enum uva__reader_credit_next {
    UVA__READER_CREDIT_GO,   /* there are credits */
    UVA__READER_CREDIT_IDLE, /* the source was given up */
    UVA__READER_CREDIT_STOP  /* no more batches are wanted */
};

/* Takes all credits, and adds them to its own. Gives the source up without
 * credits; or, if the window is `full`, until bytes are consumed. Thread:
 * worker. */
static inline enum uva__reader_credit_next
uva__reader_credit_refill(struct uva__reader_credit *c, bool full,
                          uint64_t *credits)
{
    enum uva__reader_credit_next next = UVA__READER_CREDIT_GO;

    uva__lock_take(&c->lock);
    *credits += c->credits;
    c->credits = 0;
    if (c->facts & READER_CANCELLED) {
        next = UVA__READER_CREDIT_STOP;
    } else if (full || *credits == 0) {
        c->owner = full ? UVA__READER_PAUSED : UVA__READER_IDLE;
        next = UVA__READER_CREDIT_IDLE;
    }
    uva__lock_drop(&c->lock);
    return next;
}

/* States a fact, and who has the source from then on. Thread: worker. */
static inline void uva__reader_credit_state(struct uva__reader_credit *c,
                                            unsigned fact,
                                            enum uva__reader_owner owner)
{
    uva__lock_take(&c->lock);
    c->facts |= fact;
    c->owner = owner;
    uva__lock_drop(&c->lock);
}

#endif
