/* SPDX-License-Identifier: Apache-2.0 */
/* One stream under watch: what stands between a producer and a handler. Leaves
 * the callbacks to checked_handler.c, request and cancel to checked_producer.c,
 * tasks to checked_task.c, what to make of it all to protocol.h.
 *
 * It is counted: by its maker until release (or conclude), by every call under
 * way, by every task not yet extracted. */
#ifndef UVA_CHECK_CHECKED_STREAM_H
#define UVA_CHECK_CHECKED_STREAM_H

#include "check/bounce.h"
#include "check/checked_peer.h"
#include "check/protocol.h"
#include "check/quarantine.h"
#include "check/signpost.h"
#include "check/tree_walk.h"
#include "check/witness.h"
#include "core/slab.h"
#include "uvarrow/arrow_abi.h"

struct uva__checked {
    struct ArrowAsyncDeviceStreamHandler handler; /* what the producer has */
    struct ArrowAsyncProducer producer;           /* what the consumer has */
    void *printed_private_data;                   /* of the printed layout:
                                                     always NULL */
    struct ArrowAsyncDeviceStreamHandler *real;   /* owns until release */
    const struct ArrowAsyncDeviceStreamHandler *slots; /* borrows: `handler`'s
                                                          functions */
    void *place; /* private_data of `producer`: of a signpost, or the metadata
                    where there is no memory; borrows */
    struct uva__witness *witness;        /* owns a hold */
    struct uva_allocator allocator;      /* of all that is here */
    struct uva__quarantine *quarantine;  /* owns a reference; NULL: none */
    struct uva__quarantined quarantined; /* in that, while idle */
    struct uva__quarantine copies; /* spoilt copies, kept until the stream is
                                      freed, for uses after their call */
    /* called once all references are gone, and again if a late call came in
     * meanwhile; sends it to its quarantine, or frees it. Thread: any */
    void (*on_idle)(struct uva__checked *c);
    int64_t slow_call_ms, slow_extract_ms; /* the limits */
    bool keep;                             /* stays until conclude */
    bool fine_clock;                       /* for limits of few ms */
    struct uva__word chance;       /* of the perturbation; 0: there is none */
    struct uva__checked_peer peer; /* the producer */
    struct ArrowSchema schema;     /* owns: a copy; released: none */
    /* where the handler leads to, and the producer object without metadata */
    _Alignas(UVA__SIGNPOST_SIZE) struct uva__signpost post;
    struct uva__lock lock;
    struct {
        struct uva__protocol protocol; /* the rules */
        struct uva__epochs epochs;     /* calls under way */
        struct uva__slab tasks;        /* of struct uva__checked_task */
        int64_t refs;                  /* who may still touch this */
        int64_t held;                  /* tasks not extracted */
        int64_t early_request;         /* asked for before on_schema */
        bool early_cancel;             /* likewise */
        bool release_due;              /* it waits for calls under way */
        bool idle;                     /* no references; on_idle was called */
        uint64_t releaser;             /* the thread that it came on */
    } locked;
};

/* ---- a call that passes ------------------------------------------------- */

/* Notes that a call begins, on this thread, which then counts; gives the place
 * where it does. `epoch` has its call set. A request directly inside a callback
 * becomes a part of that, and does not count by itself. Thread: any. */
struct uva__place uva__checked_enter_locked(struct uva__checked *c,
                                            struct uva__epoch *epoch);

/* Notes that it ends, drops the lock and tells of `findings`. Makes a release
 * that waited for it. The stream may be gone. Thread: any. */
void uva__checked_leave_unlock(struct uva__checked *c, struct uva__epoch *epoch,
                               const struct uva__findings *findings);

/* Releases the consumer's handler, within a call that counts. Thread: any. */
void uva__checked_release_now(struct uva__checked *c);

/* Tells of what was found. Calls the user: no lock is held. Thread: any. */
void uva__checked_tell_all(struct uva__checked *c,
                           const struct uva__findings *findings);

static inline void uva__checked_tell(struct uva__checked *c,
                                     const struct uva__findings *findings)
{
    if (findings->count > 0)
        uva__checked_tell_all(c, findings);
}

/* Finds one broken rule and tells of it. Thread: any, with no lock. */
void uva__checked_report(struct uva__checked *c, enum uva__rule rule,
                         int64_t number);

/* ---- what all of it needs ----------------------------------------------- */

/* With a perturb_seed: a delay at times; and true once in so many times.
 * Without, nothing and false. Thread: any, with no lock. */
static inline void uva__checked_perturb(struct uva__checked *c)
{
    if (uva__word_peek(&c->chance) != 0)
        uva__witness_perturb(c->witness);
}
bool uva__checked_chance(struct uva__checked *c, uint64_t odds);

/* A time to measure from, and the ms that passed since. Thread: any. */
static inline int64_t uva__checked_clock(const struct uva__checked *c)
{
    return uva__bounce_clock_ns(c->fine_clock);
}

static inline int64_t uva__checked_elapsed_ms(const struct uva__checked *c,
                                              int64_t begun)
{
    const int64_t ns = uva__checked_clock(c) - begun;

    return ns < 1000000 ? 0 : ns / 1000000;
}

/* Judges a metadata block: 0 with its size, 0 for none; or why it is none that
 * can be read. Adds what is wrong. Thread: any. */
int uva__checked_metadata(const char *block, size_t *size,
                          struct uva__findings *seen);

/* ---- life --------------------------------------------------------------- */

/* Makes one with one reference, by `how` (may be NULL; its ctx is taken),
 * without tasks, handler and producer, which the caller adds. Takes nothing if
 * it fails. Thread: any. */
UVA_MUST_CHECK int uva__checked_new(const struct uva_check *how,
                                    void (*on_idle)(struct uva__checked *c),
                                    struct uva__checked **out,
                                    struct uva_error *error);

/* Drops a reference and the lock; after the last, calls on_idle. Thread: any.
 */
void uva__checked_drop_unlock(struct uva__checked *c);

/* Ends its time in quarantine. Returns true if the caller must free it; false
 * if a late call is inside, after which on_idle is called again. Thread: any.
 */
bool uva__checked_is_expired(struct uva__checked *c);

/* Frees it, and drops its references to the witness and the quarantine. Its
 * tasks have been freed. Thread: any, when no other thread will touch it. */
void uva__checked_free(struct uva__checked *c);

#endif
