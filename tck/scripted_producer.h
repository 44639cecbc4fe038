/* SPDX-License-Identifier: Apache-2.0 */
/* A scripted producer: plays a script to a handler of the subject and observes
 * what the handler does. It keeps the rules, but its data and errors may be
 * unusual. A script is a line of words, each optionally followed by "*n":
 *
 *   schema          on_schema
 *   task            waits for a request, then on_next_task
 *   alien, future, first   as task, with arrays of that kind (ration.h)
 *   broken          the task's extraction fails with EIO
 *   hollow          its extraction returns 0 and a released array
 *   tagged          a task with metadata, at an odd address
 *   smudged         a task with malformed metadata
 *   leftover        a task if there is still demand; nothing otherwise
 *   end             on_next_task(NULL)
 *   error           on_error(EIO, "the feeder failed", NULL)
 *   error-N         on_error(N); error-mute: EIO without a message;
 *                   error-tagged: EIO with metadata {"tck": "a\0b\0c"}
 *   release         release
 *   thread          the rest is played on a thread of its own
 *   bounce          from here on, each callback on a new thread
 *   slow            from here on, a pause before each callback
 *   cancelled       waits until it is cancelled
 *   eager           request waits a while for its task to be offered
 *   listen          checks that nothing is requested for a while */
#ifndef UVA_TCK_FEEDER_H
#define UVA_TCK_FEEDER_H

#include <pthread.h>

#include "tck/guarded_data.h"

enum { UVA__FEEDER_TASKS = 512 };

struct uva__feeder;

/* One task that was offered. */
struct uva__feeder_task {
    struct uva__feeder *feeder;
    int64_t ordinal;
    enum uva__ration_kind kind;
    bool broken;
    bool hollow;
    struct uva__word spent; /* extracted, discarded, or revoked */
};

/* Lives as long as its process. */
struct uva__feeder {
    struct uva__trial *trial;
    struct ArrowAsyncProducer object;
    struct ArrowAsyncDeviceStreamHandler *handler; /* borrows */
    int64_t id;       /* the subject's number for this consumer */
    const char *rest; /* the words not played so far */
    struct uva__rations books;
    bool threaded, bounces, slow, eager; /* how the rest is played */
    struct uva__word played;             /* the script has been played */
    struct uva__word offered, spent;     /* counts of tasks */
    struct uva__lock lock;               /* guards `now` */
    struct {
        int64_t demand;    /* requested and not offered */
        int64_t requested; /* requested in total */
        int64_t cancels;
        bool met;      /* on_schema was called */
        bool ended;    /* NULL or an error has returned */
        bool released; /* release was entered */
        bool refused;
        bool final;             /* inside on_error or release ... */
        pthread_t final_thread; /* ... on this thread */
        int64_t inside; /* calls of request and cancel that are running */
        bool calling;   /* a callback is running ... */
        pthread_t calling_thread; /* ... on this thread */
    } now;
    struct uva__feeder_task tasks[UVA__FEEDER_TASKS];
};

/* How playing a script went. */
enum uva__fed {
    UVA__FED_NOTHING = 0, /* the subject cannot play this manner */
    UVA__FED_WELL,        /* the outcome is known */
    UVA__FED_FOR_EVER     /* still no outcome long after release */
};

/* Makes a consumer of the subject, plays the script to it, and waits until the
 * outcome is known and everything given has been returned. Thread: the case's.
 */
enum uva__fed uva__feeder_run(struct uva__feeder *feeder,
                              struct uva__trial *trial,
                              enum uva_subject_manner manner, int64_t k,
                              const char *script,
                              struct uva_subject_outcome *outcome);

#endif
