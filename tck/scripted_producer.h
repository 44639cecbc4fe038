/* SPDX-License-Identifier: Apache-2.0 */
/* A scripted producer: plays a script to a handler of the subject and observes
 * the handler. It keeps the rules, but its data and errors may be unusual. A
 * script is a line of words, each optionally followed by "*n":
 *
 *   schema          on_schema
 *   schema-bare     on_schema, for a stream that is no struct
 *   task            waits for a request, then on_next_task
 *   alien, sealed, future, first, sliced   as task, with arrays of that kind
 *                   (guarded_data.h)
 *   bare, end-bare  as task, with an array that is no struct, and as end; both
 *                   are left out if the stream was refused or cancelled
 *   broken          the task's extraction fails with EIO, and leaves rubbish
 *   hollow          its extraction returns 0 and a released array
 *   tagged          a task with metadata, at an odd address
 *   smudged         a task with malformed metadata; smudged-key: with a key
 *                   whose length is negative
 *   leftover        a task if there is still demand; otherwise skipped
 *   end             on_next_task(NULL)
 *   error           on_error(EIO, "the producer failed", NULL)
 *   error-N         on_error(N); error-mute: EIO without a message;
 *                   error-tagged: EIO with metadata {"tck": "a\0b\0c"}
 *   release         release
 *   thread          the rest is played on a separate thread
 *   bounce          from here on, each callback on a new thread, with another
 *                   pthread_t than the callback before
 *   slow            from here on, a pause before each callback
 *   cancelled       waits until it is cancelled
 *   cancelled-error  as cancelled, then on_error(125): inside cancel, unless
 *                   that was called in a callback
 *   unset           the handler has no producer object from here on
 *   eager           request waits a while for its task to be offered
 *   languid         from here on, cancel returns a while after it has an effect
 *   listen          checks that no request comes for a while */
#ifndef UVA_TCK_SCRIPTED_PRODUCER_H
#define UVA_TCK_SCRIPTED_PRODUCER_H

#include <pthread.h>

#include "tck/guarded_data.h"

enum { UVA__SCRIPTED_PRODUCER_TASKS = 512 };

struct uva__sending;
struct uva__scripted_producer;

/* One task that was offered. */
struct uva__scripted_producer_task {
    struct uva__scripted_producer *producer;
    int64_t ordinal;
    enum uva__guarded_data_kind kind;
    bool broken;
    bool hollow;
    struct uva__atomic64 spent; /* extracted, discarded, or revoked */
};

/* The stage of the stream, as the handler has been told. */
enum uva__script_stage {
    UVA__SCRIPT_UNMET = 0, /* no callback has begun */
    UVA__SCRIPT_MET,
    UVA__SCRIPT_ENDED,   /* NULL or an error has returned */
    UVA__SCRIPT_RELEASED /* release has returned */
};

/* The callback that runs. */
enum uva__script_callback {
    UVA__SCRIPT_QUIET = 0,
    UVA__SCRIPT_CALLS,     /* on_schema or on_next_task */
    UVA__SCRIPT_CALLS_LAST /* on_error or release */
};

/* The effect of a cancel outside of callbacks. */
enum uva__script_cancel {
    UVA__SCRIPT_CANCEL_COUNTS = 0,
    UVA__SCRIPT_CANCEL_FAILS, /* the next cancel calls on_error */
    UVA__SCRIPT_CANCEL_FAILED /* a cancel has done so */
};

/* Lives as long as its process. */
struct uva__scripted_producer {
    struct uva__case_run *run;
    struct ArrowAsyncProducer object;
    struct ArrowAsyncDeviceStreamHandler *handler; /* borrows */
    int64_t id;       /* the subject's number for this consumer */
    const char *rest; /* the words not played so far */
    struct uva__guarded_data books;
    bool bounces, slow, eager, languid; /* how the rest is played */
    struct uva__sending *last_sending;  /* borrows; its thread is still there */
    struct uva__atomic64 played;        /* the script has been played */
    struct uva__atomic64 offered, spent; /* counts of tasks */
    struct uva__lock lock;               /* guards `now` */
    struct {
        int64_t demand;    /* requested and not offered */
        int64_t requested; /* requested in total */
        int64_t cancels;
        int64_t inside; /* calls of request and cancel that are running */
        enum uva__script_stage stage;
        enum uva__script_cancel cancel;
        bool refused;
        enum uva__script_callback callback;
        pthread_t thread; /* of that callback */
    } now;
    struct uva__scripted_producer_task tasks[UVA__SCRIPTED_PRODUCER_TASKS];
};

/* How playing a script went. */
enum uva__script_result {
    UVA__SCRIPT_UNSUPPORTED = 0, /* the subject cannot play this manner */
    UVA__SCRIPT_FINISHED,        /* the outcome is known */
    UVA__SCRIPT_HUNG             /* still no outcome long after release */
};

/* Makes a consumer of the subject, plays the script to it, and waits until the
 * outcome is known and everything given has been returned. Thread: the case's.
 */
enum uva__script_result uva__scripted_producer_run(
    struct uva__scripted_producer *producer, struct uva__case_run *run,
    enum uva_subject_manner manner, int64_t k, const char *script,
    struct uva_subject_outcome *outcome);

#endif
