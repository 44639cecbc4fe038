/* SPDX-License-Identifier: Apache-2.0 */
/* A producer that plays a script to a handler of the subject, and watches what
 * the handler does. It keeps the rules; what it says may be unusual. A script
 * is a line of words, each perhaps with "*n":
 *
 *   schema          on_schema
 *   task            waits for a request, then on_next_task
 *   alien, future, first   likewise, with arrays of that kind (ration.h)
 *   broken          the task's extraction fails with EIO
 *   hollow          its extraction says 0 and gives a released array
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
 *   slow            from here on, some time before each callback
 *   cancelled       waits until it is cancelled
 *   eager           request waits a while for its task to be offered
 *   listen          makes sure that nothing is requested for a while */
#ifndef UVA_TCK_FEEDER_H
#define UVA_TCK_FEEDER_H

#include <pthread.h>

#include "tck/ration.h"

enum { UVA__FEEDER_TASKS = 512 };

struct uva__feeder;

/* One task that was offered. */
struct uva__feeder_task {
    struct uva__feeder *feeder;
    int64_t ordinal;
    enum uva__ration_kind kind;
    bool broken;
    bool hollow;
    struct uva__word spent; /* extracted, discarded, or reclaimed by us */
};

/* Lives as long as its process. */
struct uva__feeder {
    struct uva__trial *trial;
    struct ArrowAsyncProducer object;
    struct ArrowAsyncDeviceStreamHandler *handler; /* borrows */
    int64_t id;                                    /* of the consumer */
    const char *rest;                              /* of the script */
    struct uva__rations books;
    bool threaded, bounces, slow, eager; /* words that were said */
    struct uva__word played;             /* the script is over */
    struct uva__word offered, spent;     /* tasks */
    struct uva__lock lock;               /* over `now` */
    struct {
        int64_t demand;    /* left */
        int64_t requested; /* in all */
        int64_t cancels;
        bool met;      /* on_schema was entered */
        bool ended;    /* NULL or an error has returned */
        bool released; /* release was entered */
        bool refused;
        bool final;               /* inside on_error or release */
        pthread_t final_thread;   /* then: on this thread */
        int64_t inside;           /* calls of request and cancel, running */
        bool calling;             /* a callback runs ... */
        pthread_t calling_thread; /* ... on this thread */
    } now;
    struct uva__feeder_task tasks[UVA__FEEDER_TASKS];
};

/* What came of a script. */
enum uva__fed {
    UVA__FED_NOTHING = 0, /* the subject cannot */
    UVA__FED_WELL,        /* the outcome is known */
    UVA__FED_FOR_EVER     /* there is none, long after release */
};

/* Makes a consumer of the subject, plays it the script, and waits until it
 * knows its outcome and everything given is back. Thread: the case's. */
enum uva__fed uva__feeder_run(struct uva__feeder *feeder,
                              struct uva__trial *trial,
                              enum uva_subject_manner manner, int64_t k,
                              const char *script,
                              struct uva_subject_outcome *outcome);

#endif
