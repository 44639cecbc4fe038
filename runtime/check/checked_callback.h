/* SPDX-License-Identifier: Apache-2.0 */
/* A callback that passes from the producer to the consumer of a checked stream:
 * the steps that all callbacks share. Release needs only open and drop. */
#ifndef UVA_CHECK_CHECKED_CALLBACK_H
#define UVA_CHECK_CHECKED_CALLBACK_H

#include "check/checked_task.h"

/* One callback. Its arguments are copies of the check, or the producer's own
 * where there is no memory for copies. */
struct uva__callback {
    struct uva__checked *stream;
    struct ArrowAsyncDeviceStreamHandler *self; /* borrows: as called */
    struct uva__active_call active_call;
    struct ArrowSchema *schema;     /* borrows: the consumer's argument */
    struct ArrowAsyncTask *task;    /* borrows: the consumer's argument */
    struct uva__checked_task *slot; /* borrows: the task's slot; or NULL */
    bool tracked;                   /* the task needs a slot */
    bool within;          /* it began inside another call on its thread */
    const char *message;  /* borrows: the consumer's argument */
    const char *metadata; /* borrows: the consumer's argument */
    size_t metadata_size; /* 0: no metadata, or not copied */
    int code;             /* argument of on_error; then the value returned */
    int64_t took_ms;      /* time that the consumer took */
    struct uva__findings seen; /* faults of the arguments; last, for it is large
                                  and not cleared */
};

/* Initialises a callback that the producer made to `self`. Thread: any. */
void uva__callback_open(struct uva__callback *cb,
                        struct ArrowAsyncDeviceStreamHandler *self,
                        enum uva__call call);

/* Records that the callback begins, and reports broken rules. `ordinal` is the
 * task's. Returns false if it came after release: then only drop may follow.
 * Thread: any. */
bool uva__callback_begin(struct uva__callback *cb, int64_t *ordinal);

/* Checks that producer and handler still belong together. Thread: any. */
void uva__callback_check_producer(struct uva__callback *cb);

/* Reports the findings so far, and calls the consumer. Thread: any. */
void uva__callback_pass_on(struct uva__callback *cb);

/* Records that the callback ends, reports broken rules, and returns the
 * consumer's result. The stream may be freed. Thread: any. */
int uva__callback_end(struct uva__callback *cb);

/* Ends a callback that was not passed on. Thread: any. */
void uva__callback_drop(struct uva__callback *cb);

#endif
