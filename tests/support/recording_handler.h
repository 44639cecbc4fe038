/* SPDX-License-Identifier: Apache-2.0 */
/* A foreign handler that writes down what is done to it: "schema task task end
 * release". Every call is also put to core/consumer_state, so that each test
 * with it is a test of conformance as well. */
#ifndef UVA_SUPPORT_RECORDING_HANDLER_H
#define UVA_SUPPORT_RECORDING_HANDLER_H

#include <pthread.h>

#include "core/consumer_state.h"
#include "uvarrow/arrow_abi.h"

enum { RECORDING_TASKS = 256, RECORDING_STORY = 8192 };

struct recording_handler {
    struct ArrowAsyncDeviceStreamHandler handler; /* to be driven */
    /* what it does; set before the start */
    int64_t request_first; /* in on_schema; 0: nothing */
    int64_t request_each;  /* in each on_next_task with a task */
    bool hold;             /* keeps tasks; the test extracts them */
    bool discard;          /* extracts to NULL */
    int schema_code;       /* answered by on_schema */
    int task_code;         /* answered by on_next_task ... */
    int task_code_at;      /* ... from this task on; the first is 0 */
    bool extract_first;    /* extracts also what it then refuses */
    int cancel_at;         /* cancels in this task; negative: never */
    void (*on_task)(struct recording_handler *h); /* in each; NULL: no */
    void *ctx;                                    /* the test's */
    void (*nudge)(void *ctx); /* after each callback; NULL: no */
    void *nudge_ctx;
    /* held by each callback; by the test while it looks or extracts */
    pthread_mutex_t lock;
    /* what happened */
    char story[RECORDING_STORY];
    int64_t tasks;      /* that came */
    int64_t rows;       /* extracted */
    int64_t sum;        /* of the first value of each batch extracted */
    int extract_code;   /* of the last extraction */
    int error_code;     /* that on_error brought */
    char message[1024]; /* likewise */
    char metadata[256]; /* of the last task or error, as "key=value" */
    char about[256];    /* the producer's, as "key=value" */
    bool released;
    pthread_t thread; /* of the last callback */
    struct ArrowAsyncTask held[RECORDING_TASKS];
    int64_t held_count;
    struct uva__consumer_state rules;
};

/* A handler that asks for `first` batches and then for one more with each. */
void recording_handler_init(struct recording_handler *h, int64_t first,
                            int64_t each);

void recording_handler_fini(struct recording_handler *h);

/* Whether `word` is in the story, `tasks` have come, release was called.
 * Thread: any. */
bool recording_handler_saw(struct recording_handler *h, const char *word);
int64_t recording_handler_tasks(struct recording_handler *h);
bool recording_handler_is_released(struct recording_handler *h);

/* Extracts a task and adds it up. Returns the code. */
int recording_handler_extract(struct recording_handler *h,
                              struct ArrowAsyncTask *task);

/* Asks for more, as the rules require. */
void recording_handler_request(struct recording_handler *h, int64_t n);

#endif
