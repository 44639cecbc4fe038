/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a source that blocks: on the blocking lane, one call at a time, as far
 * ahead of demand as a window allows. What the source is, its user knows:
 * from_blocking, or from_tasks.
 *
 * The loop grants slots; the lane fills them in order. Whoever holds the
 * RUNNING bit of the lane word owns the source and everything under `lane`. */
#ifndef UVA_ADAPTERS_READER_H
#define UVA_ADAPTERS_READER_H

#include "adapters/lane_word.h"
#include "adapters/phase_word.h"
#include "core/shape.h"
#include "stream/feed.h"
#include "stream/producer.h"

struct uva__reader;

/* What one call of next brought: exactly one of the two, or neither at the end.
 */
struct uva__read {
    struct ArrowDeviceArray *array; /* where to put one: in the slot; cleared */
    struct uva__lazy lazy;          /* gives its item, if that is not NULL */
    const char *metadata; /* of the item: borrows, until the next call; or NULL
                           */
};

/* What the user of a reader does, on the lane, one call at a time. */
struct uva__reader_ops {
    const char *name; /* of the feed */
    /* opens the source and gives its schema. 0 or a code, with `error`. */
    int (*open)(struct uva__reader *reader, struct ArrowSchema *schema,
                struct uva_error *error);
    /* reads one batch */
    int (*next)(struct uva__reader *reader, struct uva__read *out,
                struct uva_error *error);
    /* the last of the above: releases the source, also one never opened */
    void (*close)(struct uva__reader *reader);
    /* makes an open or next that waits return; NULL: cannot. On a guest thread,
     * while one of these runs */
    void (*interrupt)(struct uva__reader *reader);
    /* frees the reader's own memory, when nothing of it is used; any thread */
    void (*free)(struct uva__reader *reader,
                 const struct uva_allocator *allocator);
};

struct uva__reader {
    struct uva__feed feed;             /* first */
    const struct uva__reader_ops *ops; /* static */
    struct uva_window window;          /* with its defaults filled in */
    bool quick;                        /* everything runs on the loop thread */
    bool can_interrupt;                /* ops->interrupt has an effect */
    struct uva__node node;             /* posted when the source is closed;
                                          counted by feed, source, interrupt
                                          and posts */
    struct uva_job job;                /* the lane's work */
    struct uva_job breaker;            /* the guest's: interrupts */
    struct uva__task **ring;           /* owns: slots granted, a power of two */
    uint64_t ring_mask;                /* its size less one */

    struct {              /* the loop thread's alone */
        uint64_t granted; /* slots given to the lane, in all */
        uint64_t taken;   /* slots taken back full, in all */
        bool started;     /* the lane has been set off */
        bool asked;       /* somebody has asked for a batch */
        bool stopped;     /* nothing more is wanted */
        bool homing;      /* a close waits for the source a while */
        bool emptied;     /* the slots are back */
    } loop;

    struct uva__word lane_word; /* see adapters/lane_word.h */
    struct uva__phase phase;    /* where the lane is */
    struct uva__word tail;      /* slots filled, in all; by the lane */
    struct uva__word news;      /* END SCHEMA; by the lane */
    struct uva__word eaten;     /* bytes taken, in all; by the loop */
    struct uva__word kept;      /* after a stop the loop discards what is before
                                   this slot, the lane the rest */

    struct {                         /* whoever has RUNNING */
        struct ArrowSchema schema;   /* owns: to check batches with */
        struct uva__shape shape;     /* of batches of that */
        struct ArrowSchema told;     /* gives to the loop, with SCHEMA */
        struct uva__failure failure; /* gives to the loop, with END */
        ArrowDeviceType device_type; /* gives to the loop, with SCHEMA */
        uint64_t credits;            /* slots that may be filled now */
        uint64_t bytes;              /* read, in all */
        uint64_t since_ns;           /* the job's begin */
        int32_t count;               /* batches in this job */
        bool inside;                 /* `phase` says so */
        bool opened;                 /* ops->open has been called */
        bool ended;                  /* nothing more is to be read */
    } lane;
};

/* Sets up a reader in cleared memory. 0; ENOMEM, EAGAIN without a thread for
 * it, EINVAL for a window that makes no sense: nothing is to be undone. The
 * feed holds the one count there is. Thread: any. */
UVA_MUST_CHECK int uva__reader_init(struct uva__reader *reader,
                                    const struct uva__reader_ops *ops,
                                    struct uva__hub *hub,
                                    const struct uva_window *window, bool quick,
                                    bool can_interrupt);

#endif
