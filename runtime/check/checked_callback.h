/* SPDX-License-Identifier: Apache-2.0 */
/* One callback on its way from the producer to the consumer of a checked
 * stream: what all of them have in common but release, which needs no more than
 * open and drop. */
#ifndef UVA_CHECK_CHECKED_CALLBACK_H
#define UVA_CHECK_CHECKED_CALLBACK_H

#include "check/checked_task.h"

/* One callback. What it shows to the consumer is ours, or the producer's where
 * there is no memory. */
struct uva__callback {
    struct uva__checked *stream;
    struct ArrowAsyncDeviceStreamHandler *self; /* borrows: as called */
    struct uva__epoch epoch;
    struct ArrowSchema *schema;     /* borrows: shown */
    struct ArrowAsyncTask *task;    /* borrows: shown */
    struct uva__checked_task *slot; /* borrows: of the task; or NULL */
    bool watched;                   /* the task is to have a slot */
    bool within;                    /* another call, on the same thread */
    const char *message;            /* borrows: shown */
    const char *metadata;           /* borrows: shown */
    size_t metadata_size;           /* 0: none, or none of ours */
    int code;                       /* of on_error; then what is returned */
    int64_t took_ms;                /* the consumer's time */
    struct uva__findings seen;      /* what is wrong with what came; last, for
                                       it is large and not cleared */
};

/* Begins one of `self`, by the producer's hand, at a stream that counts.
 * Thread: any. */
void uva__callback_open(struct uva__callback *cb,
                        struct ArrowAsyncDeviceStreamHandler *self,
                        enum uva__call call);

/* Judges it, and tells what is found. `ordinal` is that of a task. False if it
 * came after release: then only drop follows. Thread: any. */
bool uva__callback_begin(struct uva__callback *cb, int64_t *ordinal);

/* Looks whether producer and handler still belong to each other. Thread: any.
 */
void uva__callback_look(struct uva__callback *cb);

/* Tells of what was seen meanwhile, and calls the consumer. Thread: any. */
void uva__callback_pass_on(struct uva__callback *cb);

/* Ends it: judges, tells, and returns what it returns. The stream may be gone.
 * Thread: any. */
int uva__callback_end(struct uva__callback *cb);

/* Ends one that was not passed on. Thread: any. */
void uva__callback_drop(struct uva__callback *cb);

#endif
