/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a stream that a thread reads from and blocks on: the loop puts
 * tasks into a ring, one other thread at a time takes them out and extracts
 * them. This is the loop's half; the reading thread's is
 * sink/task_ring_reader.h. */
#ifndef UVA_ADAPTERS_OUTLET_H
#define UVA_ADAPTERS_OUTLET_H

#include "base/parker.h"
#include "stream/stream_impl.h"

/* What the loop has reported to the reader: bits of `news`. */
enum uva__outlet_news {
    UVA__NEWS_SCHEMA = 1,    /* the schema is known */
    UVA__NEWS_END = 2,       /* no task follows those in the ring */
    UVA__NEWS_FAILED = 4,    /* no task follows, and `failure` has the reason */
    UVA__NEWS_CANCELLED = 8, /* tasks in the ring are not valid any more */
    UVA__NEWS_RELEASED = 16, /* the producer has released the handler */
    UVA__NEWS_TASK = 32,     /* a task is in the ring; never set in `news` */

    UVA__NEWS_BAD = UVA__NEWS_FAILED | UVA__NEWS_CANCELLED
};

/* One place of the ring. */
struct uva__outlet_place {
    struct ArrowAsyncTask task; /* takes; the thread that takes it out extracts
                                   it */
    int64_t bytes;              /* of its data, as far as known */
};

/* Freed with the stream, on which the reader holds a reference. */
struct uva__outlet {
    struct uva__terminal terminal; /* first */
    struct ArrowAsyncDeviceStreamHandler handler;
    struct uva_stream *stream;      /* borrows: it owns us */
    struct uva_window window;       /* with its defaults filled in */
    ArrowDeviceType device_type;    /* of the stream */
    struct uva__outlet_place *ring; /* owns */
    uint64_t ring_mask;             /* its size, a power of two, less one */
    struct uva__failure failure;    /* owns; final behind FAILED, CANCELLED */
    struct uva__word news;          /* by the loop */
    struct uva__word wanted;        /* batches to be requested; by the reader */
    struct uva__word finished;      /* 1: the reader knows how it ended */
    struct uva__word held;          /* 1: the reader wakes the loop when all is
                                       taken */
    struct uva__sleeper sleeper;    /* the reader, while it waits */

    _Alignas(64) struct uva__word tail; /* tasks put in, in all; by the loop */
    struct {                            /* the loop thread's alone */
        int64_t bytes;                  /* put in, in all */
        int64_t taken;                  /* bytes taken, when last looked at */
        uint64_t requested;             /* batches, in all */
        int waits;                      /* visits that have delayed the
                                           wake-up */
        bool rung;                      /* the reader has to be woken */
        bool holding;                   /* the producer offers no task */
        bool cancelled;                 /* a cancel was handled */
        bool released;                  /* the producer has released the
                                           handler */
        bool done;                      /* the stream is marked as done */
    } loop;

    _Alignas(64) struct uva__word head; /* tasks taken, in all; by the reader,
                                           once cancelled also by the loop */
    struct uva__word eaten;             /* bytes taken, in all; by the reader */
    struct {                            /* the reading thread's alone */
        uint64_t asked;                 /* batches requested, in all */
        bool told;                      /* it knows how the stream ended */
        int code;                       /* the outcome; 0: success */
        const char *text;               /* borrows: of the last call; or NULL */
    } reader;
};

/* Starts `stream` with a ring of `window` (NULL: the default), and gives the
 * reader's half, which uva__outlet_release() ends. 0; EINVAL, ENOMEM, or as
 * uva__flow_start(). Thread: builder. */
UVA_MUST_CHECK int uva__outlet_start(struct uva_stream *stream,
                                     const struct uva_window *window,
                                     struct uva__outlet **out,
                                     struct uva_error *error);

/* Releases the reader's half; cancels the stream, unless it is over. Does not
 * wait. Thread: any. */
void uva__outlet_release(struct uva__outlet *outlet);

#endif
