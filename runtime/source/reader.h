/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a source that blocks: on a worker thread of the blocking lane, one call
 * at a time, as far ahead of demand as a window allows. The kinds of source are
 * in from_arrow_stream and from_tasks.
 *
 * The loop grants credits; the worker fills a slot for each, in order, and puts
 * it into the inbox. It takes empty slots a few at a time, so that a stream
 * that waits for its source does not hold the slots of a whole window. While a
 * thread runs the reader (RUNNING), it owns the source and everything under
 * `worker`: for a source that may run there, that is the loop thread. */
#ifndef UVA_SOURCE_READER_H
#define UVA_SOURCE_READER_H

#include "source/inbox.h"
#include "source/interrupt.h"
#include "source/reader_credit.h"
#include "stream/discard_queue.h"
#include "stream/producer.h"
#include "stream/source_kind.h"

struct uva__reader;

/* The result of one call of next: exactly one member, or none at the end. */
struct uva__read {
    struct ArrowDeviceArray *array; /* the slot for an array; cleared */
    struct uva__lazy lazy;          /* gives its item, if that is not NULL */
    int64_t bytes;        /* that the batch holds at least; 0: not known */
    const char *metadata; /* of the batch: borrows, until the next call; or
                             NULL */
};

/* The functions of a kind of source. The worker calls them, one at a time. */
struct uva__reader_ops {
    const char *call; /* static: of `next`, in trace events */
    /* its batches are needed, and it was not opened: the time that it may wait
     * begins. On the loop thread, once at most. NULL: no action */
    void (*needed)(struct uva__reader *reader);
    /* opens the source and gives its schema. 0 or a code, with `error`. */
    int (*open)(struct uva__reader *reader, struct ArrowSchema *schema,
                struct uva_error *error);
    /* reads one batch; all members but the array, which is cleared, are zeroes.
     * 0; or a positive code with `error`, and they are not looked at */
    int (*next)(struct uva__reader *reader, struct uva__read *out,
                struct uva_error *error);
    /* gives the metadata of the stream, if `code` is 0, or of the failure of
     * the last call: borrows, until the next call; or NULL. May be NULL */
    const char *(*metadata)(struct uva__reader *reader, int code);
    /* gives the rows and the bytes of all batches, after open; 0: not known */
    void (*expect)(struct uva__reader *reader, int64_t *rows, int64_t *bytes);
    /* ends reading, before close, also of a source that was never opened:
     * releases the batches that are read. Returns whether the stream may end
     * before close has returned. NULL: it may not */
    bool (*end)(struct uva__reader *reader);
    /* the last of these calls: releases the source, even if it was never
     * opened */
    void (*close)(struct uva__reader *reader);
    /* makes an open or next that waits return; NULL: not supported. On an extra
     * thread, while another of these runs */
    void (*interrupt)(struct uva__reader *reader);
    /* frees the members of the kind of source, when the reader is not used any
     * more; NULL: no call. Any thread */
    void (*free)(struct uva__reader *reader);
};

/* How far the loop is. */
enum uva__reader_phase {
    UVA__READER_NEW,
    UVA__READER_STARTED,
    UVA__READER_REQUESTED /* a batch has been requested */
};

/* How far the worker is. */
enum uva__reading {
    UVA__READING_NOT,  /* ops->open has not been called */
    UVA__READING_OPEN, /* there may be batches */
    UVA__READING_OVER
};

struct uva__reader {
    struct uva__source source; /* first; its schema is the worker's until
                                  DESCRIBED */
    const struct uva__reader_ops *ops; /* static */
    struct uva__window window;         /* with its defaults filled in */
    bool on_loop;                      /* the loop thread is its worker */
    bool can_interrupt;                /* ops->interrupt has an effect */
    bool is_timed;                     /* its calls are measured */
    struct uva__job job;               /* the worker's: reads */
    uint64_t submitted_ns;           /* when that was submitted; 0: not timed */
    union {                          /* of a cancel, for the extra thread */
        struct uva__job interrupter; /* interrupts a call that runs */
        struct uva__discard rescue;  /* closes a source whose job waits: in no
                                        call then, so it is not interrupted */
    };
    struct uva__inbox inbox; /* batches that were read */
    struct uva__reader_credit credit;

    struct {              /* the loop thread's alone */
        uint64_t granted; /* credits, in all */
        uint64_t taken;   /* batches, in all */
        uint64_t bytes;   /* in the batches that were taken */
        int64_t largest;  /* size of the largest batch; -1: no batch so far */
        enum uva__reader_owner owner; /* of the source, at the last look */
        enum uva__reader_phase phase;
        struct uva__hold_up hold_up; /* stopped, and its source is not closed */
        struct uva__permit *permit;  /* owns: to be open; NULL: no limit */
    } loop;

    struct uva__atomic64 awaited;    /* batches; see exec/awaited.h */
    struct uva__atomic64 consumed;   /* bytes consumed, in all; by the loop */
    struct uva__interrupt interrupt; /* whether the worker is in a call */
    struct uva__atomic64 busy_ns;    /* in calls that have ended, if it is
                                        timed; by the worker */
    struct uva__atomic64 busy_since; /* when the present call began; 0: no
                                        call */

    struct { /* of the thread that runs it */
        enum uva__reading reading;
        const struct uva__measure
            *measure; /* borrows: of the source's outline, for its batches */
        struct uva__metadata metadata; /* gives to the loop, with DESCRIBED */
        struct uva__failure failure;   /* gives to the loop, with ENDED */
        ArrowDeviceType device_type;   /* gives to the loop, with DESCRIBED */
        int32_t count;                 /* batches in this job */
        uint64_t credits;              /* batches that may be read now */
        uint64_t bytes;         /* in the batches that were read, in all */
        uint64_t done;          /* batches that were read, in all */
        struct uva__list slots; /* empty slots, taken in advance */
        uint64_t since_ns;      /* the job's begin */
        bool working;           /* counts as a running job */
        bool warned; /* a batch of another device type was reported */
        bool inside; /* entered, as `interrupt` has it */
    } worker;
};

/* The needs of each kind of reader, and the further needs of these options: for
 * the check of a kind. Its object begins with the reader. */
enum { UVA__READER_NEEDS = UVA__SOURCE_SLOTS | UVA__SOURCE_DISCARD };

void uva__reader_require(struct uva__source_setup *setup, bool on_loop,
                         bool can_interrupt);

/* Sets up the rest of a reader. `permits` (NULL: the runtime's) limit how many
 * sources are open. 0 or ENOMEM: then the caller closes the source. The stream
 * holds one reference, the worker the other. Thread: any. */
UVA_MUST_CHECK int uva__reader_init(struct uva__reader *reader,
                                    const struct uva__reader_ops *ops,
                                    const struct uva__source_setup *setup,
                                    bool on_loop, bool can_interrupt,
                                    struct uva_permits *permits);

/* ---- the worker's side, for the loop's: source/reader_worker.c ----------- */

/* Starts the worker. Called by the thread that has made it RUNNING. Thread:
 * any. */
void uva__reader_worker_start(struct uva__reader *reader);

/* Marks a cancel, which the worker checks before and after each call, and has a
 * call in progress interrupted: true if there is one. Thread: loop. */
bool uva__reader_worker_cancel(struct uva__reader *reader);

/* The functions of reader->job and reader->interrupter. */
void uva__reader_worker_run(struct uva__job *job);
void uva__reader_worker_interrupt(struct uva__job *job);

/* No one waits for the source any more: the worker's thread may be written off.
 * If the worker waits for a thread while all are busy, an extra thread closes
 * the source. The caller holds a reference to the reader. Thread: any. */
void uva__reader_worker_give_up(struct uva__reader *reader);

#endif
