/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer that watches its producer: everything that comes is judged, all
 * that is done to the producer is done on cue. Keeps the rules itself, but for
 * what a case has it do. What batches hold is specimen.h. Lives as long as its
 * process. */
#ifndef UVA_TCK_PROBE_H
#define UVA_TCK_PROBE_H

#include <pthread.h>

#include "tck/trial.h"

enum {
    UVA__PROBE_TASKS = 4096,  /* that one probe may be offered */
    UVA__PROBE_CALLS = 256,   /* into the producer, at the same time */
    UVA__PROBE_TRACE = 512,   /* callbacks written down */
    UVA__PROBE_IN_SCHEMA = -1 /* for `..._at` */
};

#define UVA__PROBE_ALL INT64_MAX /* of requests: no bound */

/* What becomes of a task. */
enum uva__probe_take {
    UVA__TAKE_INSIDE = 0, /* extracted in on_next_task */
    UVA__TAKE_NOTHING,    /* extracted to NULL in on_next_task */
    UVA__TAKE_ELSEWHERE,  /* extracted by another thread, soon */
    UVA__TAKE_LATER       /* kept: the case extracts it */
};

struct uva__probe;

/* What a probe does. Zeroes: asks for nothing, never cancels or refuses. */
struct uva__probe_manner {
    int64_t first;   /* requested in on_schema */
    int64_t each;    /* requested in each on_next_task */
    bool ask_around; /* requests and cancels on another thread instead */
    enum uva__probe_take take;
    int64_t cancel_at; /* in that task, from 1, or IN_SCHEMA; 0: never */
    int64_t refuse_at; /* likewise; returns EINVAL */
    bool refuse_taken; /* extracts what it then refuses */
    bool leave_schema; /* does not release it */
    bool keep_schema;  /* moves it out, and keeps it */
    bool scribble;     /* writes over the task when it has copied it */
    bool vanish;       /* the handler's memory goes away in release */
    bool keep_arrays;  /* until the case releases them */
    bool may_fail;     /* the plan has an error in it */
    int64_t linger_ms; /* stays in each callback */
    /* in each, before it is taken; NULL: no */
    void (*on_task)(struct uva__probe *probe, int64_t ordinal);
    void *ctx; /* for that */
};

/* Calls that a probe makes. */
enum uva__probe_call {
    UVA__CALL_REQUEST = 1,
    UVA__CALL_CANCEL,
    UVA__CALL_EXTRACT
};

/* One task. */
struct uva__probe_task {
    struct ArrowAsyncTask copy;
    bool taken;                    /* extracted, or about to be */
    int code;                      /* of the extraction */
    struct ArrowDeviceArray array; /* with keep_arrays */
    bool live;                     /* it is */
};

struct uva__probe {
    struct uva__trial *trial;
    struct ArrowAsyncDeviceStreamHandler *handler; /* a page of its own */
    struct ArrowAsyncDeviceStreamHandler made;     /* it, as it was made */
    struct uva__probe_manner manner;
    struct uva__lock lock; /* over all below; never while calling out */
    struct {
        char trace[UVA__PROBE_TRACE + 1]; /* S T N E R, X a refusal, C cancel */
        size_t traced;
        int64_t inside;          /* callbacks running */
        pthread_t inside_thread; /* the one that came last */
        bool inside_task;        /* it is on_next_task */
        int64_t tasks, ends, errors, schemas, releases;
        int64_t demand;    /* requested in all; ALL: no bound */
        int64_t extracted; /* well */
        int64_t failed;    /* extractions that failed */
        int64_t running;   /* calls of ours into it */
        bool cancelled, refused;
        bool open; /* on_schema is back */
        int error_code;
        char message[256];
        char tag[64]; /* value of "tck" that came with the last thing told */
        int64_t tag_size;
        struct {
            bool on;
            pthread_t thread;
            enum uva__probe_call what;
        } calls[UVA__PROBE_CALLS];
    } now;
    /* written in on_schema, read behind it */
    struct ArrowSchema schema; /* a copy */
    struct ArrowAsyncProducer *producer;
    struct ArrowAsyncProducer was; /* what it looked like */
    char *about;                   /* copy of its metadata; NULL: none */
    size_t about_size;
    struct uva__probe_task *tasks; /* by ordinal */
};

/* Makes one. Thread: any. */
struct uva__probe *uva__probe_new(struct uva__trial *trial,
                                  const struct uva__probe_manner *manner);

/* Calls of the producer, noted and watched. Thread: any. */
void uva__probe_request(struct uva__probe *probe, int64_t n);
void uva__probe_cancel(struct uva__probe *probe);

/* Extracts task `ordinal` and checks what comes; `wanted` false: to NULL. Gives
 * back the code. Once for each task. Thread: any. */
int uva__probe_extract(struct uva__probe *probe, int64_t ordinal, bool wanted);

/* Releases an array that was kept, and checks it. Thread: any. */
void uva__probe_let_go(struct uva__probe *probe, int64_t ordinal);

/* For waits: `ctx` is a probe. */
bool uva__probe_is_released(void *ctx);
bool uva__probe_is_told(void *ctx); /* NULL, an error or release has come */
bool uva__probe_has_schema(void *ctx);
bool uva__probe_is_back(void *ctx);    /* no callback of it runs */
bool uva__probe_is_settled(void *ctx); /* all that was taken is extracted */

/* How many tasks have come. Thread: any. */
int64_t uva__probe_tasks(struct uva__probe *probe);

/* The story so far, as letters; `to` has UVA__PROBE_TRACE + 1 bytes. */
void uva__probe_trace(struct uva__probe *probe, char *to);

#endif
