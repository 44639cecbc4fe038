/* SPDX-License-Identifier: Apache-2.0 */
/* A foreign producer: what our calls of its methods, its calls of our handler
 * and the loop share. The rules are in protocol/consumer_state, the tasks wait in
 * source/pending_tasks; the calls are in source/foreign_calls.c, the handler is in
 * source/foreign_handler.c.
 *
 * References are held by the source, by the producer until its release, and by
 * every thread of ours that is inside one of its methods: no thread waits for
 * another one before it frees the object. The producer is done once it has
 * released the handler and no call into it, start included, is in flight: then
 * free_ctx is called. A producer that is never done keeps the object, and its
 * ctx, for ever. */
#ifndef UVA_ADAPTERS_FOREIGN_STATE_H
#define UVA_ADAPTERS_FOREIGN_STATE_H

#include "source/pending_tasks.h"
#include "protocol/consumer_state.h"
#include "stream/source.h"
#include "uvarrow/stream.h"

/* What the producer has reported since the loop last collected it. */
struct uva__inlet_news {
    struct ArrowSchema schema;   /* gives, if live */
    ArrowDeviceType device_type; /* with the schema */
    char *metadata;              /* gives: the producer's; or NULL */
    size_t metadata_size;        /* of that metadata, in bytes */
    struct uva__list queue;      /* gives: pending tasks, in order */
    int64_t count;               /* number of tasks in `queue` */
    struct uva__failure failure; /* gives; code 0: none */
    bool ended;                  /* no task follows those in `queue` */
};

struct uva__inlet {
    struct uva__feed feed;                        /* first */
    struct ArrowAsyncDeviceStreamHandler handler; /* given to the producer */
    struct uva_async_source how;                  /* owns its ctx */
    struct uva__depot depot;                      /* owns: pending tasks */
    struct uva__word home;  /* 1: free_ctx has been called */
    struct uva__word below; /* the thread that was extracting when the producer
                               has released, or 0 */
    struct uva__node node;  /* posted when `news` has changed */
    struct uva_job starter; /* extra threads, one per job: calls start */
    struct uva_job requester; /* calls request when no callback will do so */
    struct uva_job canceller; /* calls cancel */
    struct uva_job sweeper;   /* discards tasks that were not handed on */
    struct uva_job farewell;  /* calls free_ctx */
    struct uva__signal left;  /* raised when a method returns that a terminal
                                 callback waits for */
    int64_t patience_ms;      /* how long that callback waits */

    struct {                    /* the loop thread's alone */
        struct uva__list ready; /* pending tasks to be taken; after a stop, to
                                   be discarded by `sweeper` */
        int64_t taken;          /* of these, not reported to the rules so far */
        int64_t ordinal;        /* of the next task */
        bool started;           /* the producer holds a reference */
        bool stopped;           /* no more batches are wanted */
        bool homing;            /* a close waits a while for the producer */
    } loop;

    struct uva__lock lock;
    struct {
        struct uva__consumer_state state;    /* the rules */
        struct uva__inlet_news news;         /* not collected by the loop */
        struct ArrowAsyncProducer *producer; /* borrows, until a terminal
                                                callback; or NULL */
        uint64_t requesting; /* the thread inside request, or 0 */
        uint64_t cancelling; /* the thread inside cancel, or 0 */
        int32_t inside;      /* our calls in flight: start, request, cancel */
        int32_t waiting;     /* callbacks that wait for request and cancel */
        bool left_behind;    /* such a wait took longer than patience_ms */
        bool requester_out;  /* the requester job is under way */
        bool canceller_out;  /* the canceller job was submitted */
        bool start_returned; /* start was called, and has returned */
        bool touched;        /* the producer has called the handler */
        bool cut_off;        /* released without an end or error: what start
                                returns may give the reason */
        bool told;           /* a failure was put into `news` */
        bool stopped;        /* the source wants no more batches */
        bool abandoned;      /* the source stopped before the producer ended */
        bool given_back;     /* the producer's reference was dropped */
        bool leaving;        /* one thread was chosen to call free_ctx */
    } locked;
};

/* Initialises what the calls and the handler share; `feed` and `how` are filled
 * in. The source holds the only reference. Thread: any. */
void uva__inlet_state_init(struct uva__inlet *inlet);

/* For uva__node_ops: frees it. Thread: any. */
void uva__inlet_free(struct uva__node *node);

/* Counts references; the last release frees the object. Thread: any. */
void uva__inlet_acquire(struct uva__inlet *inlet);
void uva__inlet_release(struct uva__inlet *inlet);

/* Returns whether the producer is done now; the one caller that gets true calls
 * one of the two below. Thread: any. */
bool uva__inlet_is_home_locked(struct uva__inlet *inlet);

/* Calls free_ctx and wakes the loop, once; `_elsewhere`: on an extra thread,
 * since the caller may be the producer itself, or the loop.
 * Thread: an extra thread; any. */
void uva__inlet_farewell(struct uva__inlet *inlet);
void uva__inlet_farewell_elsewhere(struct uva__inlet *inlet);

/* Counts and logs a rule that the producer broke; NULL: none. Thread: any. */
void uva__peer_side_report(struct uva__inlet *inlet, const char *clause);

/* Puts a failure into the news; the first one counts. `_text` makes the error
 * of a text and, unless that is NULL, a clause; `_cut_off` is for a producer
 * that released without an end or error. Thread: any. */
void uva__peer_side_tell(struct uva__inlet *inlet, int code,
                         const struct uva_error *error, const char *metadata);
void uva__peer_side_tell_text(struct uva__inlet *inlet, int code,
                              const char *text, const char *clause);
void uva__peer_side_tell_cut_off(struct uva__inlet *inlet);

/* Counts a call of ours into the producer; and that it has returned, which
 * wakes the callbacks that wait for that. Thread: any. */
void uva__inlet_frame_begin_locked(struct uva__inlet *inlet);
void uva__inlet_frame_end_locked(struct uva__inlet *inlet);

/* Notes that the producer releases inside an extraction of ours, which has to
 * return before the producer is done. Thread: the one that extracts. */
void uva__inlet_release_below(struct uva__inlet *inlet);

/* Notes that the caller has extracted, or discarded, one of the tasks.
 * Thread: any that holds a reference. */
void uva__inlet_extracted(struct uva__inlet *inlet);

/* Returns how many batches the caller has to request now; 0: none, and there
 * is no end to note. `_end`: request has returned. Thread: any. */
int64_t uva__inlet_request_begin_locked(struct uva__inlet *inlet);
void uva__inlet_request_end_locked(struct uva__inlet *inlet);

/* In a terminal callback, after which no thread may be inside the producer's
 * methods: waits for those that are. Thread: the producer's. */
void uva__inlet_close_gate(struct uva__inlet *inlet);

#endif
