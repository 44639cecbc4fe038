/* SPDX-License-Identifier: Apache-2.0 */
/* The sink of a stream that a thread reads from and blocks on: the loop puts
 * tasks into a ring, and publishes them by the burst; the reader takes every
 * published task, and extracts them one by one. The reader is one thread at a
 * time, and never a loop thread. */
#ifndef UVA_SINK_TASK_RING_H
#define UVA_SINK_TASK_RING_H

#include "base/parker.h"
#include "sink/sink.h"
#include "stream/inlet.h"

/* The loop's reports to the reader: bits of `events`. */
enum uva__task_ring_event {
    UVA__TASK_RING_SCHEMA = 1,    /* the schema is known */
    UVA__TASK_RING_END = 2,       /* no task follows those in the ring */
    UVA__TASK_RING_FAILED = 4,    /* the same, and the inlet has the reason */
    UVA__TASK_RING_CANCELLED = 8, /* tasks in the ring are not valid any more */
    UVA__TASK_RING_RELEASED = 16, /* the producer has released the inlet */
    UVA__TASK_RING_DIRECT = 32,   /* all tasks are of ours, as the producer
                                     calls the inlet itself; with the schema */
    UVA__TASK_RING_TASK = 64, /* the reader has a task; never set in `events` */

    UVA__TASK_RING_BAD = UVA__TASK_RING_FAILED | UVA__TASK_RING_CANCELLED
};

/* One slot of the ring. */
struct uva__task_ring_slot {
    struct ArrowAsyncTask task; /* takes; the thread that takes it out extracts
                                   it */
    int64_t bytes;              /* of its data, as far as known */
};

struct uva__task_ring_options {
    void *reserved; /* NULL */
    struct uva_window window;
};

/* How much was taken out of the ring, in all. */
struct uva__task_ring_taken {
    uint64_t tasks, bytes;
};

/* Freed with the stream, on which the reader holds a reference. */
struct uva__task_ring {
    struct uva__sink sink;     /* first */
    struct uva__inlet inlet;   /* its failure is final after FAILED and after
                                  CANCELLED */
    struct uva_stream *stream; /* borrows: it owns us */
    struct uva__task_ring_options options;
    ArrowDeviceType device_type;      /* of the stream */
    struct uva__task_ring_slot *ring; /* owns; a slot is the loop's until it is
                                         published, and again once it is taken
                                       */
    uint64_t ring_mask;               /* its size, a power of two, less one */
    struct uva__atomic64 events;      /* by the loop, under the lock */

    _Alignas(64) struct uva__parker parker; /* the reader, while it waits */
    struct uva__lock lock;
    struct {
        uint64_t put;                      /* tasks put in, in all */
        uint64_t refill_at;                /* tasks taken when the loop is woken
                                              to request more */
        struct uva__task_ring_taken taken; /* by the reader */
        uint64_t kept; /* tasks before the tasks that a cancel drops */
        bool awaited;  /* the loop is woken when all is taken */
        bool ended;    /* the reader knows how the stream ended */
    } locked;

    _Alignas(64) struct {                  /* the loop thread's alone */
        struct uva__share share;           /* of the tasks in the ring */
        uint64_t put, bytes;               /* tasks and bytes put in, in all */
        uint64_t requested;                /* batches, in all */
        struct uva__task_ring_taken taken; /* when last read; the same for: */
        uint64_t kept;
        uint64_t events; /* that were noted */
        int delays;      /* runs that have published nothing
                          */
        bool paused;     /* the producer offers no task */
        bool ended;      /* `locked.ended`, when last read */
        bool done;       /* the stream is marked as done */
    } loop;

    _Alignas(64) struct {                  /* the reading thread's alone */
        struct uva__task_ring_taken taken; /* in all */
        uint64_t put;                      /* tasks it may take, in all */
        uint64_t refill_at;                /* as above, when last read */
        const char *text;                  /* borrows: of the last call; or NULL
                                            */
        struct uva__failure outcome; /* owns: the failure, with the stream's
                                        name in its text; code 0: success */
    } reader;
};

/* Starts `stream` with a ring of `window` (NULL: the default), and gives the
 * reader its end, until uva__task_ring_release(). 0; EINVAL, ENOMEM, or as
 * uva__stream_start(). Thread: builder. */
UVA_MUST_CHECK int uva__task_ring_start(struct uva_stream *stream,
                                        const struct uva_window *window,
                                        struct uva__task_ring **out,
                                        struct uva_error *error);

/* Gives a copy of the schema, when it is known; `out` is released on failure.
 * This and the next two return 0 or a code, which `reader.text`
 * describes. Thread: reader. */
UVA_MUST_CHECK int uva__task_ring_schema(struct uva__task_ring *task_ring,
                                         struct ArrowSchema *out);

/* Waits for the next batch and gives it; at the end, `out` is cleared, as on
 * failure. Thread: reader. */
UVA_MUST_CHECK int uva__task_ring_next(struct uva__task_ring *task_ring,
                                       struct ArrowDeviceArray *out);

/* Ends the stream, as its reader cannot use a batch. Returns how it ended:
 * `code`, unless it had ended before. Thread: reader. */
int uva__task_ring_refuse(struct uva__task_ring *task_ring, int code,
                          const char *text);

/* Ends the reading; cancels the stream, unless it is over. Does not wait.
 * Thread: any. */
void uva__task_ring_release(struct uva__task_ring *task_ring);

#endif
