/* SPDX-License-Identifier: Apache-2.0 */
/* One asynchronous wait for one event: started, polled and cleaned up on one
 * thread, completed to a client on some loop. That is the device thread for
 * work, for a device stream that has to wait, and for a user's table, which may
 * expect it; otherwise the event thread. The client, the device thread and the
 * vendor hold references; a vendor cannot be made to drop its reference, so a
 * wait may outlive everything else. */
#ifndef UVA_DEVICE_EVENT_WAIT_H
#define UVA_DEVICE_EVENT_WAIT_H

#include "device/registry.h"

/* Whether the client still wants the outcome. */
enum uva__event_wait_side {
    UVA__EVENT_WAIT_PENDING,  /* the client waits for it */
    UVA__EVENT_WAIT_OVER,     /* it was notified, or is being notified */
    UVA__EVENT_WAIT_ABANDONED /* the client has abandoned the wait */
};

/* Which thread may use the event. */
enum uva__event_wait_holder {
    UVA__EVENT_WAIT_OPEN, /* not over: a vendor callback may notify the
                             client */
    /* the device thread, in a call of the table. No other thread may notify the
     * client then, which would release the array and with it the event */
    UVA__EVENT_WAIT_IN_USE,
    UVA__EVENT_WAIT_FIRED,      /* the client: the outcome is decided */
    UVA__EVENT_WAIT_REVOKED = 4 /* a bit besides: work may begin no step */
};

/* How far a callback of the vendor is: a wait that lasts tries once more to
 * arm one. */
enum uva__watch_callback {
    UVA__WATCH_CALLBACK_NONE,
    UVA__WATCH_CALLBACK_PREPARED, /* the device thread prepares the arm */
    UVA__WATCH_CALLBACK_DECLINED, /* it was declined twice */
    UVA__WATCH_CALLBACK_ARMED,    /* the vendor will call back */
    UVA__WATCH_CALLBACK_SETTLED   /* the objects that arm retained are freed */
};

/* The client's wish for the steps that have not begun. */
enum uva__watch_wish {
    UVA__WATCH_WANTED,
    UVA__WATCH_CANCELLED, /* no step follows */
    UVA__WATCH_YIELDED    /* so, too, and the client was notified while a step
                             was in flight */
};

/* Work of several steps, each of which ends with an event: a wait then waits
 * for these events, one after the other. */
struct uva__work {
    bool on_stream; /* steps use the consumer's stream */
    /* runs the next step, at first and when the event of the step before is
     * complete: 0 all is done; EINPROGRESS: `event` belongs to the next step;
     * otherwise it has failed, and no work is in flight. Device thread. */
    int (*step)(struct uva__work *work, struct uva_device_event *event,
                struct uva_error *error);
    /* the step in flight is over, and no other follows: its event has failed,
     * or the wait was cancelled. Device thread. */
    void (*stop)(struct uva__work *work);
    /* frees it; no work is in flight. Any thread. */
    void (*free)(struct uva__work *work);
};

/* The members above `refs` never change. */
struct uva_watch {
    struct uva__devices *devices;  /* counts */
    struct uva__backend *backend;  /* borrows: its row there */
    struct uva_device_event event; /* as in the array */
    /* notifies the client, once; may only post a wake-up. Any thread, a
     * vendor's too. */
    void (*over)(struct uva_watch *watch);
    /* borrows: lasts until `over` has returned, or until
     * uva__event_wait_abandon() */
    void *client;
    bool on_loop; /* a copy of query_on_loop: a late callback of a vendor may
                     find the table gone */
    struct uva__atomic64 refs;
    struct uva__atomic64 holder;   /* enum uva__event_wait_holder */
    struct uva__atomic64 side;     /* enum uva__event_wait_side */
    struct uva__atomic64 notified; /* 1: the vendor has called back, and drops
                                      its reference */
    /* the vendor's report; written before `notified` is set */
    struct {
        int code, vendor_code;
        const char *vendor; /* static */
    } report;
    struct uva__atomic64 pending; /* the vendor's code of the last query that
                                     found the event pending, or 0 */

    /* The outcome: written before `side` becomes OVER. */
    int code;               /* 0: complete */
    struct uva_error *text; /* owns: the description of a failure, or NULL */
    bool unverified; /* only the vendor's callback has reported success */

    /* borrows: the thread that starts, polls and cleans up; set by
     * uva__event_wait_begin() */
    struct uva__device_thread *thread;
    struct uva__device_command begin;   /* sent once */
    struct uva__device_command end;     /* sent once, by cancel or abandon */
    struct uva__device_command tidy;    /* sent once, by uva_watch_notify() */
    struct uva__device_command prepare; /* sent once, to the device thread */
    struct uva__atomic64 prepared;      /* 1: arm was prepared */
    struct uva__poll_item item; /* polled from the begin until it is over */

    /* Set before uva__event_wait_begin(). */
    struct uva__work *work; /* owns, until the last release; may be NULL */
    bool chains; /* a stream is made to wait, on the device, not the host */
    void *device_stream; /* borrows until the wait is over or abandoned: that
                            stream; NULL may be one */
    bool poll_only;      /* poll only, never arm a callback */

    struct ArrowDeviceArray left; /* owns: the array of an abandoned wait */
    void *slots[4];               /* the back end's: see uva_watch_slots() */
    struct {                      /* used by `thread` alone */
        enum uva__watch_callback callback; /* of the vendor */
        enum uva__watch_wish wish;         /* of the client */
        bool notify_pending; /* over, but the client is not notified */
        bool working;        /* a step is in flight: its memory is in use */
    } own;
};

/* Makes a wait with one reference, the client's; the device thread runs. 0 or
 * ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__event_wait_new(struct uva__devices *devices,
                                       const struct uva_device_event *event,
                                       void (*over)(struct uva_watch *watch),
                                       void *client, struct uva_watch **out);

/* Drops a reference. Thread: any. */
void uva__event_wait_release(struct uva_watch *watch);

/* Queries an event at once, without a wait, if the query may run on the loop
 * thread and the table is loaded: 0, EAGAIN, or how it failed. Thread: any. */
int uva__event_wait_peek(struct uva__devices *devices,
                         const struct uva_device_event *event,
                         struct uva_error *error);

/* Starts the wait, once. Thread: any. */
void uva__event_wait_begin(struct uva_watch *watch);

/* Ends the wait soon, with ECANCELED unless it is over before: the event is not
 * used any more once the client is notified. A step in flight is completed
 * first. Thread: any, once. */
void uva__event_wait_cancel(struct uva_watch *watch);

/* Keeps the device thread from using the consumer's stream, for a client that
 * abandons the wait next. False: a vendor call is in flight, and the wait is
 * over when that returns; or it is over. True at once if no such stream is
 * used. Thread: any but the device thread. */
UVA_MUST_CHECK bool uva__event_wait_unchain(struct uva_watch *watch);

/* The client abandons the wait: it is not notified any more, and `array` is
 * taken, to be released when no thread uses its event. Takes the client's
 * reference too. False: the wait is over, no argument was taken, and `over` was
 * called or is being called. Thread: any but the device thread, once, without
 * uva__event_wait_cancel(). */
UVA_MUST_CHECK bool uva__event_wait_abandon(struct uva_watch *watch,
                                            struct ArrowDeviceArray *array);

/* As uva_watch_notify(). False: the thread of the wait has ended, and the
 * objects that arm retained stay. Thread: any. */
bool uva__event_wait_notify(struct uva_watch *watch, int code, int vendor_code,
                            const char *vendor);

/* Returns whether the wait is over. Thread: any. */
static inline bool uva__event_wait_is_over(const struct uva_watch *watch)
{
    return uva__atomic64_load(&watch->side) == UVA__EVENT_WAIT_OVER;
}

/* Returns the outcome of a wait that is over: 0 or an errno, and `error` with
 * it. Queries the event again if only the vendor's callback has reported
 * success, since some vendors report it of failed events too. Thread: the
 * client's. */
int uva__event_wait_outcome(struct uva_watch *watch, struct uva_error *error);

#endif
