/* SPDX-License-Identifier: Apache-2.0 */
/* A recording consumer: checks every callback of its producer, and makes every
 * call to it when the case requires it. It keeps the rules itself, except where
 * a case has it break one. The contents of batches are checked by
 * expected_data.h. Lives as long as its process. */
#ifndef UVA_TCK_RECORDING_CONSUMER_H
#define UVA_TCK_RECORDING_CONSUMER_H

#include <pthread.h>

#include "tck/case_run.h"

enum {
    UVA__RECORDING_CONSUMER_TASKS =
        4096, /* tasks that one consumer may be offered */
    UVA__RECORDING_CONSUMER_CALLS =
        256, /* calls into the producer at the same time */
    UVA__RECORDING_CONSUMER_TRACE = 512,   /* callbacks that are recorded */
    UVA__RECORDING_CONSUMER_IN_SCHEMA = -1 /* value of `..._at` for on_schema */
};

#define UVA__RECORDING_CONSUMER_ALL INT64_MAX /* requests without a bound */

/* How the consumer treats a task. */
enum uva__recording_consumer_take {
    UVA__TAKE_INSIDE = 0, /* extracted in on_next_task */
    UVA__TAKE_NOTHING,    /* extracted to NULL in on_next_task */
    UVA__TAKE_ELSEWHERE,  /* soon extracted by another thread */
    UVA__TAKE_LATER       /* kept until the case extracts it */
};

/* How it treats the schema. */
enum uva__recording_consumer_schema {
    UVA__SCHEMA_RELEASE = 0, /* released in on_schema */
    UVA__SCHEMA_LEAVE,       /* left to the producer, live */
    UVA__SCHEMA_KEEP         /* moved out and kept */
};

struct uva__recording_consumer;

/* The behaviour of a consumer. All zeroes: it does not request, and never
 * cancels or refuses. */
struct uva__recording_consumer_manner {
    int64_t first;          /* requested in on_schema */
    int64_t each;           /* requested in each on_next_task, while half of the
                               room for tasks is left: an endless producer may
                               be faster than the cancel that comes */
    bool request_by_thread; /* requests and cancels on another thread */
    enum uva__recording_consumer_take take;
    int64_t cancel_at; /* task to cancel in, from 1, or IN_SCHEMA; 0: never */
    int64_t refuse_at; /* task to refuse with EINVAL, as cancel_at */
    bool refuse_taken; /* extracts the task that it then refuses */
    enum uva__recording_consumer_schema schema;
    bool scribble;     /* overwrites the task once it is copied */
    bool vanish;       /* the handler's memory is unmapped in release */
    bool keep_arrays;  /* keeps arrays until the case releases them */
    bool may_fail;     /* the plan contains an error */
    int64_t linger_ms; /* time to spend in each callback */
    /* called in on_schema after the request; or NULL */
    void (*on_schema)(struct uva__recording_consumer *consumer);
    /* called in on_next_task before the extraction; or NULL */
    void (*on_task)(struct uva__recording_consumer *consumer, int64_t ordinal);
    void (*on_error)(struct uva__recording_consumer *consumer); /* or NULL */
    void *ctx; /* for `on_task` */
};

/* Calls that the consumer makes. */
enum uva__recording_consumer_call {
    UVA__CALL_REQUEST = 1,
    UVA__CALL_CANCEL,
    UVA__CALL_EXTRACT
};

/* One task. */
struct uva__recording_consumer_task {
    struct ArrowAsyncTask copy;
    bool taken;                    /* extracted, or about to be */
    int code;                      /* return code of the extraction */
    struct ArrowDeviceArray array; /* the array, with keep_arrays */
    bool live;                     /* `array` is live */
};

struct uva__recording_consumer {
    struct uva__case_run *run;
    struct ArrowAsyncDeviceStreamHandler *handler; /* on its own page */
    struct ArrowAsyncDeviceStreamHandler made;     /* copy of it, as made */
    struct uva__recording_consumer_manner manner;
    struct uva__lock lock; /* guards `now`; never held while calling out */
    struct {
        char trace[UVA__RECORDING_CONSUMER_TRACE +
                   1]; /* S T N E R, X: refusal, C: cancel */
        size_t traced;
        int64_t inside;          /* callbacks running */
        pthread_t inside_thread; /* the thread of the latest one */
        bool inside_task;        /* the latest one is on_next_task */
        int64_t tasks, ends, errors, schemas, releases;
        int64_t demand;    /* requested in total; ALL: no bound */
        int64_t extracted; /* extractions that succeeded */
        int64_t failed;    /* extractions that failed */
        int64_t running;   /* our calls into the producer */
        bool cancelled, refused;
        bool open; /* on_schema has returned */
        int error_code;
        char message[256];
        char tag[64]; /* value of "tck" in the latest metadata */
        int64_t tag_size;
        struct {
            bool on;
            pthread_t thread;
            enum uva__recording_consumer_call what;
        } calls[UVA__RECORDING_CONSUMER_CALLS];
    } now;
    /* Written in on_schema, read afterwards. */
    struct ArrowSchema schema; /* a copy, or the schema itself */
    struct ArrowAsyncProducer *producer;
    struct ArrowAsyncProducer was; /* copy of the producer as first seen */
    char *about; /* copy of the schema's metadata; may be NULL */
    size_t about_size;
    struct uva__recording_consumer_task *tasks; /* by ordinal */
};

/* Makes a recording consumer. Thread: any. */
struct uva__recording_consumer *uva__recording_consumer_new(
    struct uva__case_run *run,
    const struct uva__recording_consumer_manner *manner);

/* Calls into the producer, recorded and checked. Thread: any. */
void uva__recording_consumer_request(struct uva__recording_consumer *consumer,
                                     int64_t n);
void uva__recording_consumer_cancel(struct uva__recording_consumer *consumer);

/* Extracts task `ordinal` and checks the array; if `wanted` is false, to NULL.
 * Returns the code. Once for each task. Thread: any. */
int uva__recording_consumer_extract(struct uva__recording_consumer *consumer,
                                    int64_t ordinal, bool wanted);

/* Releases an array that was kept, and checks that. Thread: any. */
void uva__recording_consumer_release_array(
    struct uva__recording_consumer *consumer, int64_t ordinal);

/* Conditions for waits: `ctx` is a recording consumer. */
bool uva__recording_consumer_is_released(void *ctx);
bool uva__recording_consumer_has_ended(
    void *ctx); /* NULL, an error or release has arrived */
bool uva__recording_consumer_has_schema(void *ctx);
bool uva__recording_consumer_is_idle(void *ctx); /* no callback is running */
bool uva__recording_consumer_is_settled(
    void *ctx); /* every task taken has been extracted */

/* Returns how many tasks have arrived. Thread: any. */
int64_t uva__recording_consumer_tasks(struct uva__recording_consumer *consumer);

/* Copies the callbacks so far, as letters; `to` has
 * UVA__RECORDING_CONSUMER_TRACE + 1 bytes. */
void uva__recording_consumer_trace(struct uva__recording_consumer *consumer,
                                   char *to);

#endif
