/* SPDX-License-Identifier: Apache-2.0 */
/* The counted half of a runtime: what threads may reach at any time, also after
 * the loop has let go of it. The inbox through which they wake the loop, the
 * descriptor that does so, memory, log, and the counts of what is under way.
 * The other half, which only the loop thread touches, is uv/loop.c. */
#ifndef UVA_UV_HUB_H
#define UVA_UV_HUB_H

#include "core/gate.h"
#include "uv/counts.h"
#include "uv/inbox.h"
#include "uv/lane.h"
#include "uvarrow/runtime.h"

struct uva__hub;
/* What a file of a higher floor keeps with the hub; the first member of more.
 */
struct uva__annex {
    /* frees it; the last call, any thread */
    void (*free)(struct uva__hub *hub, struct uva__annex *annex);
    /* the loop detaches, and visits no node any more; on the loop. NULL: the
     * annex has nothing to do then */
    void (*detach)(struct uva__hub *hub, struct uva__annex *annex);
};

/* The annexes of a hub, one of each kind, in the order in which they are
 * detached and freed. */
enum uva__annex_kind {
    UVA__ANNEX_CHECKS,   /* checks in quarantine: stream/checked.c */
    UVA__ANNEX_DISCARDS, /* the discard queue: stream/discard.c */
    UVA__ANNEX_DRIVEN,   /* handlers in use: adapters/driven_handlers.c */
    UVA__ANNEX_SLOTS,    /* tasks and producers: stream/stock.c */
    UVA__ANNEX_KINDS
};

/* Called once when the loop detaches from the hub, while it is registered. */
struct uva__detach_hook {
    void (*run)(struct uva__detach_hook *hook);
    struct uva__detach_hook *next, *before; /* borrow: the hub's list */
};

/* See the top. Fields in the first part never change once it is open. */
struct uva__hub {
    struct uva_allocator allocator; /* for all of the runtime's memory */
    struct uva_log log;             /* `write` may be NULL */
    struct uva__word *alive;        /* owns: a page that a fork clears */
    int wake_fd;                    /* owns: an eventfd */
    bool checked;                   /* the checker is on every hop */

    struct uva__word refs;    /* the runtime, streams, and who may be late */
    struct uva__gate owed;    /* what is to the user; shut: closing */
    struct uva__gate abroad;  /* jobs not home; shut: no more */
    struct uva__word leaving; /* of these, on their last lines */
    struct uva__counts counts;
    struct uva__jobs jobs; /* the workers' side of this runtime */
    struct uva__shared annex[UVA__ANNEX_KINDS]; /* owns; uva__hub_annex() */

    struct uva__inbox inbox; /* what threads have posted */
    struct uva__word turn;   /* the thread inside a turn, or 0 */
    struct uva__word home;   /* the loop thread, as far as known */
    struct uva__node closer; /* posted by a close */

    struct {                       /* the loop thread's alone */
        struct uva__list queue;    /* nodes to be visited */
        struct uva_runtime *shell; /* borrows; NULL once detached */
        int64_t owed;              /* reasons to keep the loop alive */
        int32_t quantum;           /* batches in one visit */
        int32_t spent;             /* batches in this turn */
        int32_t budget;            /* of those */
        int64_t homing;            /* sources on their way home, not stuck */
        struct uva__detach_hook *detach_hooks; /* borrows */
    } loop;
};

/* Makes a hub with one count. 0; ENOMEM or what the system said. Thread: any.
 */
UVA_MUST_CHECK int uva__hub_new(const struct uva_runtime_options *options,
                                struct uva__hub **out);

/* Counts; the last release frees it, on that thread. Thread: any. */
struct uva__hub *uva__hub_acquire(struct uva__hub *hub);
void uva__hub_release(struct uva__hub *hub);

/* Gives the annex of one kind, which `make` makes at first need; NULL without
 * memory. Thread: any. */
struct uva__annex *
uva__hub_annex(struct uva__hub *hub, enum uva__annex_kind kind,
               struct uva__annex *(*make)(struct uva__hub *hub));

/* Registers `hook` (borrows, until it is removed or run). Thread: loop. */
void uva__hub_add_detach_hook(struct uva__hub *hub,
                              struct uva__detach_hook *hook);
void uva__hub_remove_detach_hook(struct uva__hub *hub,
                                 struct uva__detach_hook *hook);

/* False in a forked child, where nothing may be used (12.11). Thread: any. */
static inline bool uva__hub_is_alive(const struct uva__hub *hub)
{
    return uva__word_peek(hub->alive) != 0;
}

/* A number for the calling thread that no other living one has; never 0.
 * Thread: any. */
uint64_t uva__thread_self(void);

/* Whether the caller is inside a turn of this hub: it then has the loop's
 * fields to itself. Thread: any. */
static inline bool uva__hub_in_turn(const struct uva__hub *hub)
{
    return uva__word_peek(&hub->turn) == uva__thread_self();
}

/* Whether the caller is the loop thread, in a turn or not. Thread: any. */
bool uva__hub_on_loop(const struct uva__hub *hub);

/* Whether the caller may not wait: it is a loop thread, of this hub or inside a
 * turn of any, or a compute worker. Thread: any. */
bool uva__hub_must_not_wait(const struct uva__hub *hub);

/* Has `node` visited on the loop, later, once or more. The caller holds a count
 * on the hub. Thread: any. */
void uva__hub_post(struct uva__hub *hub, struct uva__node *node);

/* Moves what was posted to the run queue. Thread: loop. */
void uva__hub_collect(struct uva__hub *hub);

/* Says that nobody will look any more, and disposes of what was posted.
 * Thread: loop. */
void uva__hub_shut(struct uva__hub *hub);

/* Enters one more thing that is owed to the user: false when closing. What has
 * entered leaves on the loop. Thread: any; leave: loop. */
UVA_MUST_CHECK bool uva__hub_enter(struct uva__hub *hub);
void uva__hub_leave(struct uva__hub *hub);
bool uva__hub_is_closing(struct uva__hub *hub);

/* Whether the loop has let go: nobody will look any more. Thread: any. */
static inline bool uva__hub_is_shut(const struct uva__hub *hub)
{
    return uva__inbox_is_closed(&hub->inbox);
}

/* Brackets the life of a job that works for this hub, from before its submit:
 * begin takes a count on the hub, end gives it back, as the job's last act.
 * begin is false once the workers were let go of: then nothing was begun.
 * Thread: any. */
UVA_MUST_CHECK bool uva__hub_job_begin(struct uva__hub *hub);
void uva__hub_job_end(struct uva__hub *hub);

/* Makes sure that jobs of `lane`, or guests, will be run: uva__lane_ensure()
 * and uva__guest_ensure(), but ESHUTDOWN once the workers were let go of.
 * Thread: any. */
UVA_MUST_CHECK int uva__hub_ensure_lane(struct uva__hub *hub,
                                        enum uva_lane lane);
UVA_MUST_CHECK int uva__hub_ensure_guest(struct uva__hub *hub);

/* How many threads there are now, while the workers are held. Thread: any. */
void uva__hub_count_threads(struct uva__hub *hub, int64_t *compute,
                            int64_t *blocking);

/* Lets the workers go, now or with the last job that comes home: none begins
 * any more. Thread: loop, or before anything was begun. */
void uva__hub_retire(struct uva__hub *hub);

/* Writes one line to the log. `stream` and `clause` may be NULL. Thread: any.
 */
void uva__hub_log(struct uva__hub *hub, enum uva_log_level level,
                  const char *stream, const char *clause, const char *format,
                  ...) UVA_PRINTF(5, 6);

/* Counts a rule that a peer broke, and logs it. Thread: any. */
void uva__hub_breach(struct uva__hub *hub, const char *stream,
                     const char *clause, const char *what);

#endif
