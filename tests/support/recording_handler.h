/* SPDX-License-Identifier: Apache-2.0 */
/* A foreign handler that records its callbacks: "schema task task end release".
 * protocol/consumer_state checks every call, so each test that uses the handler
 * also tests conformance. */
#ifndef UVA_SUPPORT_RECORDING_HANDLER_H
#define UVA_SUPPORT_RECORDING_HANDLER_H

#include <pthread.h>

#include "protocol/consumer_state.h"
#include "uvarrow/arrow_abi.h"

enum { RECORDING_TASKS = 256, RECORDING_TRANSCRIPT = 8192 };

struct recording_handler {
    struct ArrowAsyncDeviceStreamHandler handler; /* the handler to be driven */
    /* its plan; set before the start */
    int64_t request_first; /* requested in on_schema; 0: no request */
    int64_t request_each;  /* requested in each on_next_task with a task */
    bool hold;             /* keeps tasks; the test extracts them */
    bool discard;          /* extracts to NULL */
    int schema_code;       /* return code of on_schema */
    int task_code;         /* return code of on_next_task ... */
    int task_code_at;      /* ... from this task on; the first is 0 */
    bool extract_first;    /* also extracts the tasks that it then refuses */
    int cancel_at;         /* cancels in this task; negative: never */
    void (*on_task)(struct recording_handler *h); /* called in each; or NULL */
    void *ctx;                /* argument of on_task and nudge */
    void (*nudge)(void *ctx); /* called after each callback; NULL: not called */
    void *nudge_ctx;
    /* held by each callback, and by the test while it reads or extracts */
    pthread_mutex_t lock;
    /* its record */
    char transcript[RECORDING_TRANSCRIPT];
    int64_t tasks;      /* tasks received */
    int64_t rows;       /* rows extracted */
    int64_t sum;        /* sum of the first values of all batches extracted */
    int extract_code;   /* code of the last extraction */
    int error_code;     /* code of on_error */
    char message[1024]; /* text of on_error */
    char metadata[256]; /* metadata of the last task or error, as "key=value" */
    char about[256];    /* metadata of the producer, as "key=value" */
    bool released;
    pthread_t thread; /* thread of the last callback */
    struct ArrowAsyncTask held[RECORDING_TASKS];
    int64_t held_count;
    struct uva__consumer_state rules;
};

/* Prepares a handler that requests `first` batches and then `each` with every
 * task. */
void recording_handler_init(struct recording_handler *h, int64_t first,
                            int64_t each);

void recording_handler_fini(struct recording_handler *h);

/* Return whether `word` is in the transcript, how many tasks have arrived, and
 * whether release was called. Thread: any. */
bool recording_handler_saw(struct recording_handler *h, const char *word);
int64_t recording_handler_tasks(struct recording_handler *h);
bool recording_handler_is_released(struct recording_handler *h);

/* Extracts a task and adds its rows to the sums. Returns the code. */
int recording_handler_extract(struct recording_handler *h,
                              struct ArrowAsyncTask *task);

/* As above, on another thread, which has ended then. */
int recording_handler_extract_elsewhere(struct recording_handler *h,
                                        struct ArrowAsyncTask *task);

/* Requests more batches, as the rules require. */
void recording_handler_request(struct recording_handler *h, int64_t n);

#endif
