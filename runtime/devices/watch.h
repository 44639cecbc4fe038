/* SPDX-License-Identifier: Apache-2.0 */
/* One wait for one event: begun, asked after and tidied up by the service, told
 * to a client that lives on some loop. Its client, the service and the vendor
 * count it; nobody can make a vendor let go, so it may outlive all else. */
#ifndef UVA_DEVICES_WATCH_H
#define UVA_DEVICES_WATCH_H

#include "devices/registry.h"

/* Who has an interest in the outcome. */
enum uva__watch_side {
    UVA__WATCH_PENDING, /* the client waits for it */
    UVA__WATCH_OVER,    /* it was told, or is being told */
    UVA__WATCH_LEFT     /* nobody: the client has gone */
};

/* Whose the event is. */
enum uva__watch_turn {
    UVA__WATCH_OPEN,   /* nobody's: a vendor may tell the client */
    UVA__WATCH_LOOKED, /* the service's, in the table: nobody else may tell the
                          client, who would release the array */
    UVA__WATCH_FIRED   /* the client's: somebody has the outcome */
};

/* Work of several steps, each of which ends with an event: what a watch then
 * waits for, one after the other. */
struct uva__work {
    /* goes on, at first and when the event of the step before is complete: 0
     * all is done; EINPROGRESS: `event` is that of the next step; otherwise it
     * has failed, and nothing is under way. Service. */
    int (*step)(struct uva__work *work, struct uva_device_event *event,
                struct uva_error *error);
    /* the step under way is over, and no other follows: its event has failed,
     * or nobody wants more. Service. */
    void (*stop)(struct uva__work *work);
    /* frees it; nothing is under way. Any thread. */
    void (*free)(struct uva__work *work);
};

/* What is above `refs` never changes. */
struct uva_watch {
    struct uva__devices *devices;          /* counts */
    struct uva__backend *backend;          /* borrows: its row there */
    struct uva_device_event event;         /* as in the array */
    void (*over)(struct uva_watch *watch); /* tells the client, once: any
                                              thread, a vendor's too; may only
                                              post */
    void *client; /* borrows: lasts until `over` has returned, or until
                     uva__watch_abandon() */
    bool quick;   /* as in its table, which a late vendor may find gone */
    struct uva__word refs;
    struct uva__word turn; /* enum uva__watch_turn */
    struct uva__word side; /* enum uva__watch_side */
    struct uva__word said; /* 1: the vendor has notified, and so let go */
    struct {
        int code, vendor_code;
        const char *vendor;   /* static */
    } told;                   /* what it has notified; behind `said` */
    struct uva__word pending; /* the vendor's code of the last look that found
                                 it pending, or 0 */
    int code;                 /* the outcome, 0: complete; behind `side` */
    struct uva_error *text;   /* owns: what is to be said of a failure, or NULL;
                                 behind `side` */
    bool unsure; /* the vendor's word alone says that it is complete;
                    behind `side` */
    struct uva__errand begin; /* sent once */
    struct uva__errand end;   /* sent once, by cancel or abandon */
    struct uva__errand tidy;  /* sent once, by a notify */
    struct uva__chore chore;  /* once begun, until it is over */
    struct uva__work *work;   /* owns, until the last release; NULL: none. Set
                                 before the begin */
    void *device_stream; /* borrows until it is over or abandoned: instead of
                            waiting, makes this wait; NULL: no. Set before the
                            begin */
    bool steady;         /* only asked after: nobody is in a hurry. Likewise */
    struct ArrowDeviceArray left; /* owns: what an abandoned one releases */
    void *slots[4];               /* the back end's */
    struct {                      /* the service's alone */
        bool armed;               /* the vendor will notify */
        bool settled;             /* what arm retained is freed */
        bool asked;               /* arm was called a second time */
        bool untold;              /* over, but the client has to be told */
        bool working; /* a step is under way: nobody may let go of anything */
        bool cut;     /* it is the last one */
    } own;
};

/* Makes a watch with one count, the client's; the service runs. 0 or ENOMEM.
 * Thread: any. */
UVA_MUST_CHECK int uva__watch_new(struct uva__devices *devices,
                                  const struct uva_device_event *event,
                                  void (*over)(struct uva_watch *watch),
                                  void *client, struct uva_watch **out);

/* Counts. Thread: any. */
void uva__watch_release(struct uva_watch *watch);

/* Asks at once, without a watch, where that is quick and the table is loaded:
 * 0, EAGAIN, or how it failed. Thread: any. */
int uva__watch_peek(struct uva__devices *devices,
                    const struct uva_device_event *event,
                    struct uva_error *error);

/* Begins to wait, once. Thread: any. */
void uva__watch_begin(struct uva_watch *watch);

/* Has it end soon, with ECANCELED unless it is over before: the event is not
 * looked at any more once the client is told. A step that is under way comes to
 * its end first. Thread: any, once. */
void uva__watch_cancel(struct uva_watch *watch);

/* The client goes: it is not told any more, and `array` is taken, to be
 * released when nobody looks at its event. Takes the client's count too. A
 * stream that was to wait is not touched any more: one call of the vendor's,
 * under way, may be waited for. False: it is over, nothing was taken, and
 * `over` was called or is being called. Thread: any but the service, once,
 * without uva__watch_cancel(). */
UVA_MUST_CHECK bool uva__watch_abandon(struct uva_watch *watch,
                                       struct ArrowDeviceArray *array);

/* Whether it is over. Thread: any. */
static inline bool uva__watch_is_over(const struct uva_watch *watch)
{
    return uva__word_load(&watch->side) == UVA__WATCH_OVER;
}

/* The outcome of one that is over: 0 or an errno, and `error` with it. Asks
 * once more where only the vendor's callback has said that all is well: it says
 * so of failed events too. Thread: the client's. */
int uva__watch_outcome(struct uva_watch *watch, struct uva_error *error);

#endif
