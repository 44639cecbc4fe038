/* SPDX-License-Identifier: Apache-2.0 */
/* A checked stream: the object between a producer and a handler.
 * checked_handler.c has the callbacks, checked_producer.c request and cancel,
 * checked_task.c the tasks, and protocol/checker_state.h the rules.
 * handler_check.c makes and frees it.
 *
 * Its references: its maker's until release (or conclude), a reference for
 * every running call, and one for every task that is not extracted. */
#ifndef UVA_CHECK_CHECKED_STREAM_H
#define UVA_CHECK_CHECKED_STREAM_H

#include "base/slab.h"
#include "check/check_times.h"
#include "check/checked_peer.h"
#include "check/checker_host.h"
#include "check/layout_probe.h"
#include "check/quarantine.h"
#include "check/reporter.h"
#include "check/tree_walk.h"
#include "protocol/checker_state.h"
#include "uvarrow/arrow_abi.h"

struct uva__checked {
    struct ArrowAsyncDeviceStreamHandler handler; /* given to the producer */
    struct ArrowAsyncProducer producer;           /* given to the consumer */
    void *printed_private_data; /* where the layout that the document prints has
                                   private_data: always NULL */
    struct ArrowAsyncDeviceStreamHandler *real; /* owns until release */
    /* borrows: the functions of `handler` */
    const struct ArrowAsyncDeviceStreamHandler *functions;
    /* borrows: private_data of `producer`: an address of layout_probe.h or,
     * without memory for it, the producer's own metadata */
    void *probe_address;
    struct uva__reporter *reporter;      /* owns a hold on its live structs */
    struct uva_allocator allocator;      /* of all memory of the stream */
    struct uva__quarantine *quarantine;  /* owns a reference; may be NULL */
    struct uva__quarantined quarantined; /* its entry there, while idle */
    /* overwritten copies of callback arguments, kept until it is freed */
    struct uva__quarantine copies;
    /* called after the last reference was dropped, and again if a late call
     * came in meanwhile; puts the stream in its quarantine, or frees it.
     * Thread: any */
    void (*on_idle)(struct uva__checked *c);
    struct uva__check_times times; /* completed */
    bool keep;                     /* it is kept until conclude */
    bool printed_layout;           /* the producer's */
    bool fine_clock;               /* the limits need an exact clock */
    struct uva__atomic64 chance; /* random state of the perturbation; 0: off */
    struct uva__checked_peer peer; /* the producer */
    struct ArrowSchema schema;     /* owns: a copy; released if there is no
                                      schema */
    /* the handler's private_data, and the producer's without metadata */
    _Alignas(UVA__LAYOUT_PROBE_SIZE) struct uva__layout_probe probe;
    struct uva__lock lock;
    struct {
        struct uva__checker_state protocol;    /* state of the rules */
        struct uva__active_calls active_calls; /* calls in flight */
        struct uva__slab tasks;                /* of struct uva__checked_task */
        int64_t refs;                          /* references */
        int64_t held;          /* tasks that are not extracted */
        int64_t early_request; /* batches requested before on_schema; -1: a
                                  wrong number */
        bool early_cancel;     /* cancelled before on_schema */
        bool release_due;      /* release waits for calls in flight */
        bool idle;             /* no references; on_idle was called */
        uint64_t releaser;     /* the thread of that release */
    } locked;
};

/* ---- a call ------------------------------------------------------------- */

/* Records a call that begins on this thread and holds a reference; returns the
 * calls around it. `call` has its kind set. A request directly inside a
 * callback becomes a part of that, without a reference. Thread: any. */
struct uva__call_context
uva__checked_enter_locked(struct uva__checked *c,
                          struct uva__active_call *active_call);

/* Records that a call ends, drops the lock and reports `findings`. Makes a
 * release that waited for the call. The stream may be freed. Thread: any. */
void uva__checked_leave_unlock(struct uva__checked *c,
                               struct uva__active_call *active_call,
                               const struct uva__findings *findings);

/* Releases the consumer's handler, inside a call that holds a reference.
 * Thread: any. */
void uva__checked_release_now(struct uva__checked *c);

/* Reports the findings. Calls the user: no lock is held. Thread: any. */
void uva__checked_report_findings(struct uva__checked *c,
                                  const struct uva__findings *findings);

static inline void uva__checked_report_all(struct uva__checked *c,
                                           const struct uva__findings *findings)
{
    if (findings->count > 0)
        uva__checked_report_findings(c, findings);
}

/* Reports one broken rule. Thread: any, with no lock. */
void uva__checked_report(struct uva__checked *c, enum uva__rule rule,
                         int64_t number);

/* ---- helpers ------------------------------------------------------------ */

/* With a perturb_seed: _perturb delays at random, and _chance is true once in
 * `odds` times. Without a producer, they have no effect and return false.
 * Thread: any, with no lock. */
static inline void uva__checked_perturb(struct uva__checked *c)
{
    if (uva__atomic64_peek(&c->chance) != 0)
        uva__reporter_perturb(c->reporter);
}
bool uva__checked_chance(struct uva__checked *c, uint64_t odds);

/* Returns a time to measure from, and the ms that passed since. Thread: any. */
static inline int64_t uva__checked_clock(const struct uva__checked *c)
{
    return uva__checker_host_clock_ns(c->fine_clock);
}

static inline int64_t uva__checked_elapsed_ms(const struct uva__checked *c,
                                              int64_t begun)
{
    const int64_t ns = uva__checked_clock(c) - begun;

    return ns < 1000000 ? 0 : ns / 1000000;
}

/* Checks a metadata block. Returns 0 with its size, 0 without metadata; or an
 * error if it cannot be read. Adds its faults. Thread: any. */
int uva__checked_metadata(const char *block, size_t *size,
                          struct uva__findings *seen);

/* ---- life --------------------------------------------------------------- */

/* Makes one with one reference, by `options` (may be NULL; its ctx is taken)
 * and `times` (borrowed; may be NULL), without tasks, handler and producer,
 * which the caller adds. Takes no argument if it fails. Thread: any. */
UVA_MUST_CHECK int uva__checked_new(const struct uva_check *options,
                                    const struct uva__check_times *times,
                                    void (*on_idle)(struct uva__checked *c),
                                    struct uva__checked **out,
                                    struct uva_error *error);

/* Drops a reference and the lock; after the last, calls on_idle. Thread: any.
 */
void uva__checked_drop_unlock(struct uva__checked *c);

/* Ends its time in quarantine. Returns true if the caller must free it; false
 * if a late call is inside, after which on_idle is called again. Thread: any.
 */
UVA_MUST_CHECK bool uva__checked_expire(struct uva__checked *c);

/* Frees it, and drops its references to the reporter and the quarantine. Its
 * tasks have been freed. Thread: any, when no other thread will touch it. */
void uva__checked_free(struct uva__checked *c);

#endif
