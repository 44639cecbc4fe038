/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that calls the libraries of devices; all runtimes on one set of
 * workers share two: see device/registry.h. It runs commands, in the order in
 * which they were sent, and polls items until they are done, in intervals that
 * grow with their age. The effects of commands and items are left to
 * device/event_wait.c. */
#ifndef UVA_DEVICE_DEVICE_THREAD_H
#define UVA_DEVICE_DEVICE_THREAD_H

#include <pthread.h>

#include "base/inflight.h"
#include "base/list.h"
#include "base/mpsc.h"
#include "base/parker.h"
#include "uvarrow/base.h"

/* A command, embedded in the object that it works on. It may be sent again once
 * `run` was entered. */
struct uva__device_command {
    struct uva__link link; /* among the commands sent */
    void (*run)(struct uva__device_command *command); /* may free the command */
};

/* An item that is polled until it is done. All zeroes but the functions. */
struct uva__poll_item {
    struct uva__link link; /* among the items that are not done */
    uint64_t begun_ns;     /* when polling began */
    uint64_t due_ns;       /* when it is polled next */
    bool listed;           /* is among those items */
    bool has_callback; /* a callback will report the end: polled only to be safe
                        */
    /* True: it is done; `finish` follows soon, and no further poll. */
    bool (*poll)(struct uva__poll_item *item, uint64_t age_ns);
    /* reports the end, and may free the item */
    void (*finish)(struct uva__poll_item *item);
};

/* All zeroes, but for its functions: a thread that was not started. */
struct uva__device_thread {
    /* take and release a reference to the struct around this one: before the
     * thread is started and as its last act; around each send. Any thread */
    void (*begin)(struct uva__device_thread *device_thread);
    void (*end)(struct uva__device_thread *device_thread);
    /* called by the thread after the last command: releases the objects that
     * only that thread uses. May get stuck */
    void (*clear)(struct uva__device_thread *device_thread);
    struct uva__mpsc sent;        /* commands that wait to be run */
    struct uva__parker parker;    /* the thread */
    struct uva__inflight senders; /* calls that are sending; closed: no more */
    struct uva__inflight reports; /* callbacks that are sending; closed later */
    struct uva__atomic64
        over; /* 1: all commands were run, and clear returned */
    struct uva__atomic64 settling; /* 1: a thread waits until this one sleeps */
    struct uva__futex
        changed; /* raised when `over` is set, `settling` cleared */
    struct {
        struct uva__lock lock;
        pthread_t thread; /* if started */
        bool started;     /* the thread was created */
        bool ended;       /* no thread is started any more */
        bool awaited; /* another thread will join it, if it is over in time */
    } locked;
    struct uva__list items; /* the items; only the thread uses it */
};

/* Starts the thread unless it runs. 0; ENOMEM if the system creates no thread;
 * ESHUTDOWN once it was ended. Thread: any. */
UVA_MUST_CHECK int
uva__device_thread_start(struct uva__device_thread *device_thread);

/* Sends a command, to be run later; the thread was started. False: the thread
 * is ending, and the command stays the caller's. Thread: any. */
UVA_MUST_CHECK bool
uva__device_thread_send(struct uva__device_thread *device_thread,
                        struct uva__device_command *command);

/* Sends a command for a vendor callback. A thread that is ending takes it too,
 * until it has polled its items for the last time; it may not poll an item any
 * more then. Unless it `wakes` the thread, the command is run when the thread
 * is next awake: for cleaning up after an item that it polls. False: the thread
 * has run its last command, and this one stays the caller's.
 * Thread: any. */
UVA_MUST_CHECK bool
uva__device_thread_report(struct uva__device_thread *device_thread,
                          struct uva__device_command *command, bool wakes);

/* Polls `item` from now on; at once if it is polled already.
 * Thread: the device thread. */
void uva__device_thread_poll(struct uva__device_thread *device_thread,
                             struct uva__poll_item *item);

/* Returns when a wait that begins now is given up, of uva__clock_ns(): in
 * UVA__LIMIT_DEVICE_THREAD_MS. Waits that follow one another share it.
 * Thread: any. */
uint64_t uva__device_thread_limit_ns(void);

/* Ends the thread, once: it runs the commands that were sent, polls each item
 * once more, which must then be done, and exits. Waits for that until
 * `until_ns` at most: a foreign call may be stuck, and the thread then exits
 * when that call returns. Thread: any, also the device thread. */
void uva__device_thread_end(struct uva__device_thread *device_thread,
                            uint64_t until_ns);

/* Waits until the thread has run all commands and sleeps, or has exited; until
 * `until_ns` at most. Thread: any other, once. */
void uva__device_thread_settle(struct uva__device_thread *device_thread,
                               uint64_t until_ns);

/* Waits until a thread that is ending, or was never started, is over: a foreign
 * call may be stuck. Thread: any other. */
void uva__device_thread_await(struct uva__device_thread *device_thread);

/* Whether the caller is the device thread. Thread: any. */
bool uva__device_thread_is_current(struct uva__device_thread *device_thread);

/* Whether the thread is ending: then an item that is polled must be done.
 * Thread: the device thread. */
bool uva__device_thread_is_ending(struct uva__device_thread *device_thread);

#endif
