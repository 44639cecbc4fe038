/* SPDX-License-Identifier: Apache-2.0 */
/* The one thread that talks to the libraries of devices: all runtimes on the
 * same workers share it. It runs errands, in the order in which they were sent,
 * and asks after chores until they are over, in gaps that grow with their age.
 * What those are about is devices/watch.c's business. */
#ifndef UVA_DEVICES_SERVICE_H
#define UVA_DEVICES_SERVICE_H

#include <pthread.h>

#include "core/gate.h"
#include "core/list.h"
#include "core/mpsc.h"
#include "core/sleeper.h"
#include "uvarrow/base.h"

/* Something to be done once; part of what it is about. It may be sent again
 * once `run` was entered. */
struct uva__errand {
    struct uva__link link;                   /* among those sent */
    void (*run)(struct uva__errand *errand); /* may free it */
};

/* Something to be asked after until it is over. All zeroes but the
 * functions. */
struct uva__chore {
    struct uva__link link; /* among those that are not over */
    uint64_t begun_ns;     /* when it came here */
    uint64_t due_ns;       /* when it is asked after next */
    bool listed;           /* is among them */
    bool backed; /* somebody else will say when: asked only to be safe */
    /* True: it is over; `finish` follows soon, and no look. */
    bool (*look)(struct uva__chore *chore, uint64_t age_ns);
    /* tells of it, and may free it */
    void (*finish)(struct uva__chore *chore);
};

/* All zeroes, but for its functions, is one without a thread. */
struct uva__service {
    /* called before there is a thread, and as its last act; likewise by who
     * sends: counts the struct around this. Any thread */
    void (*begin)(struct uva__service *service);
    void (*end)(struct uva__service *service);
    /* called by the thread when all was run: lets go of what only it touches.
     * May get stuck */
    void (*clear)(struct uva__service *service);
    struct uva__mpsc sent;       /* errands that wait to be run */
    struct uva__sleeper sleeper; /* the thread */
    struct uva__gate door;   /* who is sending; shut: nobody does any more */
    struct uva__word over;   /* 1: all was run and cleared */
    struct uva__signal gone; /* raised then */
    struct {
        struct uva__lock lock;
        pthread_t thread; /* if started */
        bool started;     /* there is one */
        bool ended;       /* none is started any more */
    } locked;
    struct uva__list chores; /* the thread's alone */
};

/* Makes sure that there is a thread. 0; EAGAIN if the system gives none;
 * ESHUTDOWN once it was ended. Thread: any. */
UVA_MUST_CHECK int uva__service_start(struct uva__service *service);

/* Has `errand` run, later; there is a thread. False: it ends, and the errand is
 * the caller's. Thread: any. */
UVA_MUST_CHECK bool uva__service_send(struct uva__service *service,
                                      struct uva__errand *errand);

/* The same, but does not wake the thread: for tidying up behind a chore that it
 * asks after. Thread: any. */
UVA_MUST_CHECK bool uva__service_leave(struct uva__service *service,
                                       struct uva__errand *errand);

/* Has `chore` asked after from now on; at once if it is so already.
 * Thread: service. */
void uva__service_ask(struct uva__service *service, struct uva__chore *chore);

/* Shuts the door, once: the thread runs what was sent, asks after every chore
 * once more, which must then be over, and ends. Waits for that, but for a
 * second at most: a foreign call may be stuck in it, and the thread then ends
 * in its own time. Thread: any, also the service. */
void uva__service_end(struct uva__service *service);

/* Whether the caller is its thread. Thread: any. */
bool uva__service_is_here(struct uva__service *service);

/* Whether it is to end: then a chore that is asked must be over.
 * Thread: service. */
bool uva__service_is_ending(struct uva__service *service);

#endif
