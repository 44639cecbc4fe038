/* SPDX-License-Identifier: Apache-2.0 */
/* An ArrowAsyncProducer: drives one handler on the loop thread with batches of
 * one feed, as core/producer_state decides. Its maps are part of the extraction
 * of its tasks.
 *
 * The object is readable under both layouts of the struct in the document: the
 * metadata stands where either has it (G-03). Its memory is type-stable, so a
 * request or cancel that comes too late is counted and does nothing (G-10). */
#ifndef UVA_STREAM_PRODUCER_H
#define UVA_STREAM_PRODUCER_H

#include "core/producer_state.h"
#include "stream/demand.h"
#include "stream/feed.h"
#include "uv/loop.h"
#include "uvarrow/operators.h"

/* One map of a producer, with the schema that goes into it. */
struct uva__mapping {
    struct uva__mapping *next; /* owns: the one that runs after it */
    struct uva_map how;        /* owns its ctx */
    struct ArrowSchema schema; /* owns; once the schema is known */
};

/* What is told to who made the producer. Each may be NULL. On the loop. */
struct uva__producer_hooks {
    /* the last data has been told, and only extraction by others is awaited */
    void (*ended)(void *ctx);
    /* the handler is about to be released */
    void (*releasing)(void *ctx);
    /* it has been; `ctx` is not used any more */
    void (*released)(void *ctx);
    void *ctx;    /* borrows */
    bool relayed; /* the handler hands the producer itself to another one, so a
                     check in front of it would not see all calls */
};

struct uva__producer {
    struct ArrowAsyncProducer abi; /* what the handler sees */
    void *printed_private_data;    /* of the printed layout: always NULL */
    struct uva__word word;         /* see stream/demand.h; from any thread */
    struct uva__word refs;         /* the maker, posts, watched tasks */
    struct uva__node node;         /* posted when there is news */
    struct uva__link rest;         /* while it rests */
    uint64_t retired_ns;           /* since when it rests */

    struct uva__hub *hub;                     /* counts, until its end */
    struct uva__feed *feed;                   /* owns a count, until its end */
    const struct uva__task_owner *task_owner; /* static: what tasks call */
    struct uva__mapping *maps;                /* owns, until its end */
    int64_t limit; /* batches at most; negative: no limit */
    bool dear;     /* extraction may take long */
    bool lazy;     /* extraction may fail */

    struct { /* the loop thread's alone */
        struct ArrowAsyncDeviceStreamHandler *handler; /* until released */
        struct uva__producer_hooks hooks;              /* likewise */
        struct uva__producer_state state;              /* the rules */
        struct uva__failure urgent;     /* told before all else */
        char *metadata;                 /* owns: instead of the feed's */
        size_t metadata_size;           /* of that */
        int refusal;                    /* what the handler answered */
        int64_t told;                   /* batches that it was told of */
        struct uva__list out;           /* tasks offered, in order */
        struct uva__list aside;         /* those held for long */
        int64_t out_count;              /* of both */
        int64_t dropped_count;          /* of these, never offered */
        int64_t head_age;               /* offers since the head's */
        struct uva__timer drain;        /* limits the wait at the end */
        struct uva__detach_hook detach; /* registered while it lingers */
        bool visiting;                  /* visit is on the stack */
        bool stopped;                   /* the feed has been told */
        bool watching;                  /* every task out is watched */
        bool lingering;                 /* released, with tasks out */
        bool asleep;                    /* not begun, or all is over: no
                                           visit has any effect */
    } loop;
};

/* Makes a producer that draws from `feed`, whose count it takes on success.
 * NULL without memory. The maker has one count. Thread: any. */
struct uva__producer *uva__producer_new(struct uva__feed *feed);

/* Adds a map at the end, takes its ctx also on failure. 0 or ENOMEM.
 * Thread: builder. */
UVA_MUST_CHECK int uva__producer_map(struct uva__producer *producer,
                                     const struct uva_map *how);

/* Counts. The maker gives back his count of one that has not begun; of one that
 * has, the producer itself does so when all is over. Thread: any. */
void uva__producer_acquire(struct uva__producer *producer);
void uva__producer_release(struct uva__producer *producer);

/* Begins to drive `handler` (borrows, until its release returns).
 * Thread: loop. */
void uva__producer_begin_driving(struct uva__producer *producer,
                                 struct ArrowAsyncDeviceStreamHandler *handler,
                                 const struct uva__producer_hooks *hooks);

/* The feed, or the owner, has news. Thread: any that holds a count. */
void uva__producer_wake(struct uva__producer *producer);

/* Whoever is behind the handler wants no more: calls the cancel of `seen`, the
 * producer as the handler sees it; where that may not be called yet (AH-04),
 * aborts instead. Thread: loop. */
void uva__producer_quit(struct uva__producer *producer,
                        struct ArrowAsyncProducer *seen);

/* Tells the handler of `failure` before all else, then releases it. Takes it.
 * Thread: loop. */
void uva__producer_abort(struct uva__producer *producer,
                         struct uva__failure *failure);

/* Stops, or goes on, offering tasks, whatever the demand. Thread: loop. */
void uva__producer_hold(struct uva__producer *producer, bool held);

/* The handler, which answers elsewhere, has refused. Thread: loop. */
void uva__producer_refuse(struct uva__producer *producer, int code);

/* Takes back all tasks that the handler holds unextracted (G-16).
 * Thread: loop. */
void uva__producer_reclaim(struct uva__producer *producer);

/* Ends the wait for extraction by others at the end. Thread: loop. */
void uva__producer_hurry(struct uva__producer *producer);

/* Takes over a filled slot that will not be offered. Thread: loop. */
void uva__producer_drop_task(struct uva__producer *producer,
                             struct uva__task *task);

/* Gives a free slot of this producer; NULL without memory. Thread: loop. */
struct uva__task *uva__producer_take_task(struct uva__producer *producer);

/* What its handler is told, or was, as an error. Thread: loop. */
static inline const struct uva__failure *
uva__producer_failure(const struct uva__producer *producer)
{
    return producer->loop.urgent.code != 0 ? &producer->loop.urgent
                                           : &producer->feed->failure;
}

#endif
