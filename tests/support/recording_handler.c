/* SPDX-License-Identifier: Apache-2.0 */
/* Each callback is checked by the rules of the protocol and recorded; then it
 * acts as the test has configured it. */
#include "support/recording_handler.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "uvarrow/arrow.h"

static struct recording_handler *
recorder_of(struct ArrowAsyncDeviceStreamHandler *handler)
{
    return (struct recording_handler *)(void *)handler;
}

static void write_down(struct recording_handler *h, const char *word)
{
    size_t used = strlen(h->transcript);

    ck_assert_uint_lt(used + strlen(word) + 2, sizeof(h->transcript));
    (void)snprintf(h->transcript + used, sizeof(h->transcript) - used, "%s%s",
                   used > 0 ? " " : "", word);
}

/* A breach of the protocol fails the test, with the clause's name. */
static void judge(struct recording_handler *h, enum uva__consumer_event event,
                  int code)
{
    const struct uva__consumer_call call = {.event = event, .code = code};
    struct uva__consumer_verdict verdict =
        uva__consumer_state_enter(&h->rules, &call);

    ck_assert_msg(verdict.clause == NULL, "broke %s after: %s", verdict.clause,
                  h->transcript);
    h->thread = pthread_self();
}

static void copy_metadata(char *to, size_t size, const char *block)
{
    struct uva_metadata_at at = {0};
    struct uva_pair pair;

    to[0] = '\0';
    if (uva_metadata_next(block, &at, &pair) == 0)
        (void)snprintf(to, size, "%.*s=%.*s", (int)pair.key_size, pair.key,
                       (int)pair.value_size, pair.value);
}

void recording_handler_request(struct recording_handler *h, int64_t n)
{
    uva__consumer_state_note_request(&h->rules, n);
    h->handler.producer->request(h->handler.producer, n);
}

/* ---- recording, under the lock ------------------------------------------ */

static int told_schema(struct ArrowAsyncDeviceStreamHandler *handler,
                       struct ArrowSchema *schema)
{
    struct recording_handler *h = recorder_of(handler);

    judge(h, UVA__EVENT_SCHEMA, 0);
    write_down(h, "schema");
    ck_assert_ptr_nonnull(handler->producer);
    copy_metadata(h->about, sizeof(h->about),
                  handler->producer->additional_metadata);
    uva_schema_release(schema);
    if (h->schema_code != 0)
        uva__consumer_state_note_refusal(&h->rules, UVA__EVENT_SCHEMA,
                                         h->schema_code);
    else if (h->request_first > 0)
        recording_handler_request(h, h->request_first);
    uva__consumer_state_leave(&h->rules);
    return h->schema_code;
}

int recording_handler_extract(struct recording_handler *h,
                              struct ArrowAsyncTask *task)
{
    struct ArrowDeviceArray array;
    const int64_t *values;

    if (h->discard)
        uva_task_discard(task);
    else
        h->extract_code = uva_task_extract(task, &array);
    uva__consumer_state_note_settled(&h->rules, h->extract_code);
    if (h->discard || h->extract_code != 0)
        return h->extract_code;
    values =
        array.array.n_children > 0 ? array.array.children[0]->buffers[1] : NULL;
    h->rows += array.array.length;
    if (values != NULL && array.array.length > 0)
        h->sum += values[0];
    uva_array_release(&array);
    return 0;
}

struct extraction {
    struct recording_handler *handler;
    struct ArrowAsyncTask *task;
    int code;
};

static void *extract_there(void *ctx)
{
    struct extraction *extraction = ctx;

    extraction->code =
        recording_handler_extract(extraction->handler, extraction->task);
    return NULL;
}

int recording_handler_extract_elsewhere(struct recording_handler *h,
                                        struct ArrowAsyncTask *task)
{
    struct extraction extraction = {.handler = h, .task = task};
    pthread_t other;

    ck_assert_int_eq(pthread_create(&other, NULL, extract_there, &extraction),
                     0);
    ck_assert_int_eq(pthread_join(other, NULL), 0);
    return extraction.code;
}

/* A task that is refused and not extracted belongs to the producer again
 * (LC-18). */
static void record_refusal(struct recording_handler *h,
                           struct ArrowAsyncTask *task, int code)
{
    if (h->extract_first)
        (void)recording_handler_extract(h, task);
    else
        uva__consumer_state_note_settled(&h->rules, 0);
    uva__consumer_state_note_refusal(&h->rules, UVA__EVENT_TASK, code);
}

static void record_cancel(struct recording_handler *h)
{
    uva__consumer_state_note_cancel(&h->rules, ECANCELED);
    uva__consumer_state_note_cancel_delivered(&h->rules);
    h->handler.producer->cancel(h->handler.producer);
}

static int told_task(struct ArrowAsyncDeviceStreamHandler *handler,
                     struct ArrowAsyncTask *task, const char *metadata)
{
    struct recording_handler *h = recorder_of(handler);
    int64_t ordinal = h->tasks++;
    int code = 0;

    judge(h, UVA__EVENT_TASK, 0);
    write_down(h, "task");
    copy_metadata(h->metadata, sizeof(h->metadata), metadata);
    if (h->on_task != NULL)
        h->on_task(h);
    if (h->task_code != 0 && ordinal >= h->task_code_at)
        code = h->task_code;
    else if (h->hold)
        h->held[h->held_count++ % RECORDING_TASKS] = *task;
    else
        (void)recording_handler_extract(h, task);
    if (code != 0)
        record_refusal(h, task, code);
    else if (ordinal == h->cancel_at)
        record_cancel(h);
    else if (h->request_each > 0)
        recording_handler_request(h, h->request_each);
    else if (h->request_each < 0) /* against the rules (AP-08) */
        handler->producer->request(handler->producer, h->request_each);
    uva__consumer_state_leave(&h->rules);
    return code;
}

static int told_next(struct ArrowAsyncDeviceStreamHandler *handler,
                     struct ArrowAsyncTask *task, const char *metadata)
{
    struct recording_handler *h = recorder_of(handler);

    if (task != NULL)
        return told_task(handler, task, metadata);
    judge(h, UVA__EVENT_END, 0);
    write_down(h, "end");
    uva__consumer_state_leave(&h->rules);
    return 0;
}

static void told_error(struct ArrowAsyncDeviceStreamHandler *handler, int code,
                       const char *message, const char *metadata)
{
    struct recording_handler *h = recorder_of(handler);

    judge(h, UVA__EVENT_ERROR, code);
    write_down(h, "error");
    h->error_code = code;
    (void)snprintf(h->message, sizeof(h->message), "%s", message);
    copy_metadata(h->metadata, sizeof(h->metadata), metadata);
    uva__consumer_state_leave(&h->rules);
}

static void told_release(struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct recording_handler *h = recorder_of(handler);

    judge(h, UVA__EVENT_RELEASE, 0);
    write_down(h, "release");
    handler->release = NULL;
    handler->producer = NULL;
    uva__consumer_state_leave(&h->rules);
    h->released = true;
}

/* ---- the callbacks ------------------------------------------------------ */

static void callback_end(struct recording_handler *h)
{
    void (*nudge)(void *ctx) = h->nudge;
    void *ctx = h->nudge_ctx;

    pthread_mutex_unlock(&h->lock);
    if (nudge != NULL)
        nudge(ctx);
}

static int record_schema(struct ArrowAsyncDeviceStreamHandler *handler,
                         struct ArrowSchema *schema)
{
    struct recording_handler *h = recorder_of(handler);
    int code;

    pthread_mutex_lock(&h->lock);
    code = told_schema(handler, schema);
    callback_end(h);
    return code;
}

static int record_next(struct ArrowAsyncDeviceStreamHandler *handler,
                       struct ArrowAsyncTask *task, const char *metadata)
{
    struct recording_handler *h = recorder_of(handler);
    int code;

    pthread_mutex_lock(&h->lock);
    code = told_next(handler, task, metadata);
    callback_end(h);
    return code;
}

static void record_error(struct ArrowAsyncDeviceStreamHandler *handler,
                         int code, const char *message, const char *metadata)
{
    struct recording_handler *h = recorder_of(handler);

    pthread_mutex_lock(&h->lock);
    told_error(handler, code, message, metadata);
    callback_end(h);
}

static void record_release(struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct recording_handler *h = recorder_of(handler);

    pthread_mutex_lock(&h->lock);
    told_release(handler);
    callback_end(h);
}

/* ---- for the test ------------------------------------------------------- */

bool recording_handler_saw(struct recording_handler *h, const char *word)
{
    bool saw;

    pthread_mutex_lock(&h->lock);
    saw = strstr(h->transcript, word) != NULL;
    pthread_mutex_unlock(&h->lock);
    return saw;
}

int64_t recording_handler_tasks(struct recording_handler *h)
{
    int64_t tasks;

    pthread_mutex_lock(&h->lock);
    tasks = h->tasks;
    pthread_mutex_unlock(&h->lock);
    return tasks;
}

bool recording_handler_is_released(struct recording_handler *h)
{
    return recording_handler_saw(h, "release");
}

void recording_handler_fini(struct recording_handler *h)
{
    pthread_mutex_lock(&h->lock); /* a callback may be about to return */
    pthread_mutex_unlock(&h->lock);
    pthread_mutex_destroy(&h->lock);
}

void recording_handler_init(struct recording_handler *h, int64_t first,
                            int64_t each)
{
    memset(h, 0, sizeof(*h));
    pthread_mutex_init(&h->lock, NULL);
    h->handler.on_schema = record_schema;
    h->handler.on_next_task = record_next;
    h->handler.on_error = record_error;
    h->handler.release = record_release;
    h->request_first = first;
    h->request_each = each;
    h->cancel_at = -1;
    uva__consumer_state_init(&h->rules, 1 << 20, 1 << 19);
}
