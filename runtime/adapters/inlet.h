/* SPDX-License-Identifier: Apache-2.0 */
/* Our handler at a foreign producer, which may call it on any thread, in any
 * order, and break any rule. What to make of each call is decided by
 * core/consumer_state; its tasks wait in an adapters/depot. The feed that hands
 * these on, on the loop, is adapters/from_async.c.
 *
 * Counted by the feed, by the peer until its release, and by every thread of
 * ours that is inside one of its methods: none waits for another to free it.
 * After a stop it is an orphan: it discards what still comes, on the peer's
 * thread, and dies with the peer's release. The peer is home once it has
 * released and nobody is inside a function of it, start included: then free_ctx
 * is called. One that never comes home keeps the inlet, and its ctx, for ever.
 */
#ifndef UVA_ADAPTERS_INLET_H
#define UVA_ADAPTERS_INLET_H

#include "adapters/depot.h"
#include "core/consumer_state.h"
#include "stream/feed.h"
#include "uvarrow/stream.h"

/* What the peer said, for the loop. */
struct uva__inlet_news {
    struct ArrowSchema schema;   /* gives, if live */
    ArrowDeviceType device_type; /* with the schema */
    char *metadata;              /* gives: the producer's; or NULL */
    size_t metadata_size;        /* of that, in bytes */
    struct uva__list queue;      /* gives: parcels, in order */
    int64_t count;               /* how many */
    struct uva__failure failure; /* gives; code 0: none */
    bool ended;                  /* no parcel comes after those */
};

struct uva__inlet {
    struct uva__feed feed;                        /* first */
    struct ArrowAsyncDeviceStreamHandler handler; /* at the peer */
    struct uva_async_source how;                  /* owns its ctx */
    struct uva__depot depot;                      /* owns: its tasks */
    struct uva__word home;    /* 1: free_ctx has been called */
    struct uva__word below;   /* the thread in whose extraction the peer has
                                 released (AT-23), or 0 */
    struct uva__node node;    /* posted when there is news; counted by feed,
                                 peer, jobs and posts */
    struct uva_job starter;   /* guests, each of them once: inside start */
    struct uva_job requester; /* ...where no callback will; again and again */
    struct uva_job canceller; /* ...calls cancel */
    struct uva_job sweeper;   /* ...discards what was not handed on */
    struct uva_job farewell;  /* ...calls free_ctx */
    struct uva__signal left;  /* raised when a method returns that a terminal
                                 callback waits for */
    int64_t patience_ms;      /* how long it waits */

    struct {                    /* the loop thread's alone */
        struct uva__list ready; /* parcels to be taken; then the sweeper's */
        int64_t taken;          /* of these, not yet told to the state */
        int64_t ordinal;        /* of the next one */
        bool started;           /* the peer has a count */
        bool stopped;           /* nothing more is wanted */
        bool homing;            /* a close waits for the peer a while */
    } loop;

    struct uva__lock lock;
    struct {
        struct uva__consumer_state state;    /* the rules */
        struct uva__inlet_news news;         /* since the last look */
        struct ArrowAsyncProducer *producer; /* borrows, until a terminal
                                                callback; or NULL */
        uint64_t requesting; /* the thread inside request, or 0 */
        uint64_t cancelling; /* the thread inside cancel, or 0 */
        int32_t inside;      /* threads of ours inside start and those */
        int32_t waiting;     /* callbacks that wait for these */
        bool left_behind;    /* one of these, after patience_ms */
        bool requester_out;  /* its job is under way */
        bool canceller_out;  /* its job was sent */
        bool start_returned; /* start was called, and is over */
        bool touched;        /* a callback has been made */
        bool cut_off;        /* let go without a word: start may say why */
        bool told;           /* a failure is in the news, or was */
        bool stopped;        /* the feed wants nothing more */
        bool abandoned;      /* then, and the peer had not ended */
        bool given_back;     /* the peer's count */
        bool leaving;        /* free_ctx is somebody's to call */
    } locked;
};

/* Sets up the handler; `how` is filled in. The feed has the one count. Thread:
 * any. */
void uva__inlet_init(struct uva__inlet *inlet);

/* Counts; the last release frees it. Thread: any. */
void uva__inlet_acquire(struct uva__inlet *inlet);
void uva__inlet_release(struct uva__inlet *inlet);

/* Calls free_ctx, and has the loop told; `_elsewhere`: on a guest thread, as
 * the caller may be the peer itself, or the loop. Once. Thread: guest; any. */
void uva__inlet_farewell(struct uva__inlet *inlet);
void uva__inlet_farewell_elsewhere(struct uva__inlet *inlet);

/* Notes that `taken` parcels were handed on, and gives what is new. Returns
 * whether a requester is to be sent, and in `cancel` whether a canceller is.
 * Thread: loop. */
bool uva__inlet_look(struct uva__inlet *inlet, int64_t taken,
                     struct uva__inlet_news *news, bool *cancel);

/* Nothing more is wanted; appends to `rest` what was queued. Returns whether a
 * canceller is to be sent. Thread: loop. */
bool uva__inlet_stop(struct uva__inlet *inlet, int64_t taken,
                     struct uva__list *rest);

/* Notes that the caller has extracted, or discarded, one of the tasks.
 * Thread: any that holds a count. */
void uva__inlet_extracted(struct uva__inlet *inlet);

/* Notes a loss that ends the stream. Thread: any that holds a count. */
void uva__inlet_fault(struct uva__inlet *inlet, int code);

/* Whether start is to be called: no, once stopped, and then the peer is home.
 * Then, what start returned. Thread: guest. */
bool uva__inlet_hand_over(struct uva__inlet *inlet);
void uva__inlet_started(struct uva__inlet *inlet, int code,
                        const struct uva_error *error);

/* Calls request until a callback can go on with that; calls cancel, if it may
 * still be called. Thread: guest. */
void uva__inlet_request(struct uva__inlet *inlet);
void uva__inlet_cancel(struct uva__inlet *inlet);

#endif
