/* SPDX-License-Identifier: Apache-2.0 */
/* A producer of Arrow's asynchronous streams in plain C: one thread, a mutex,
 * no library. It is a subject of the test suite, in the role producer:
 *
 *     cc -shared -fPIC -pthread -I"$INCLUDE" -o libsubject.so subject.c
 *     uvarrow-tck libsubject.so
 *
 * Happy path:  uva_subject_produce() fills the producer object and starts the
 * thread, which calls on_schema, a task for each batch that was requested, the
 * end and release. Failures: memory, which is an error of the stream. On
 * cancel: a mark that the thread sees before its next call; then release.
 *
 * The object is reference counted: by the thread, and by each task that was not
 * extracted, because consumers send requests while they hold tasks. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "uvarrow/tck.h"

/* The number of objects not freed, and of those made: for
 * uva_subject_count(). */
static atomic_llong live;
static atomic_llong made;

/* A producer. */
struct producer {
    struct ArrowAsyncProducer object;              /* the consumer calls it */
    struct ArrowAsyncDeviceStreamHandler *handler; /* borrows, until release */
    enum uva_subject_plan plan;
    int64_t batches;
    atomic_int holders; /* references of the thread and of tasks */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct { /* protected by the lock; no callback is made under it */
        int64_t demand;
        bool cancelled;
        bool bad_request;
    } now;
};

/* A batch in flight: private_data of a task. The second reference dropped frees
 * it. */
struct payload {
    struct producer *producer;
    struct ArrowDeviceArray array; /* owns, until it is extracted */
    atomic_int holders;            /* references: the task, its offer */
    atomic_bool taken;             /* the task was extracted */
};

/* ---- data --------------------------------------------------------------- */

static void schema_release(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++)
        if (schema->children[i]->release != NULL)
            schema->children[i]->release(schema->children[i]);
    free(schema->private_data);
    schema->release = NULL;
    atomic_fetch_sub(&live, schema->n_children > 0);
}

static int schema_make(struct ArrowSchema *out)
{
    struct {
        struct ArrowSchema *children[1];
        struct ArrowSchema n;
    } *own = calloc(1, sizeof(*own));

    if (own == NULL)
        return ENOMEM;
    own->n = (struct ArrowSchema){
        .format = "l", .name = "n", .release = schema_release};
    own->children[0] = &own->n;
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = 1,
                                .children = own->children,
                                .release = schema_release,
                                .private_data = own};
    atomic_fetch_add(&live, 1);
    return 0;
}

/* Memory owned by an array, in one block that is freed with the last reference:
 * a consumer may have moved the child out. */
struct numbers {
    atomic_int holders; /* references of the array and its child */
    struct ArrowArray *children[1];
    struct ArrowArray n;
    const void *no_buffers[1];
    const void *buffers[2];
    int64_t values[UVA_SUBJECT_ROWS];
};

static void array_release(struct ArrowArray *array)
{
    struct numbers *own = array->private_data;

    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release != NULL)
            array->children[i]->release(array->children[i]);
    array->release = NULL;
    if (atomic_fetch_sub(&own->holders, 1) > 1)
        return;
    free(own);
    atomic_fetch_sub(&live, 1);
}

static int array_make(int64_t ordinal, struct ArrowDeviceArray *out)
{
    struct numbers *own = calloc(1, sizeof(*own));

    if (own == NULL)
        return ENOMEM;
    for (int64_t row = 0; row < UVA_SUBJECT_ROWS; row++)
        own->values[row] = ordinal * UVA_SUBJECT_ROWS + row;
    own->buffers[1] = own->values;
    own->n = (struct ArrowArray){.length = UVA_SUBJECT_ROWS,
                                 .n_buffers = 2,
                                 .buffers = own->buffers,
                                 .release = array_release,
                                 .private_data = own};
    own->children[0] = &own->n;
    atomic_init(&own->holders, 2);
    memset(out, 0, sizeof(*out));
    out->array = (struct ArrowArray){.length = UVA_SUBJECT_ROWS,
                                     .n_buffers = 1,
                                     .buffers = own->no_buffers,
                                     .n_children = 1,
                                     .children = own->children,
                                     .release = array_release,
                                     .private_data = own};
    out->device_id = -1;
    out->device_type = ARROW_DEVICE_CPU;
    atomic_fetch_add(&live, 1);
    atomic_fetch_add(&made, 1);
    return 0;
}

/* One pair in Arrow's encoding of metadata: counts and lengths in 32 bits. */
static const char *metadata_of(char *to, const char *value, int32_t size)
{
    const int32_t numbers[] = {1, 3};

    memcpy(to, numbers, sizeof(numbers));
    memcpy(to + 8, "tck", 3);
    memcpy(to + 11, &size, sizeof(size));
    memcpy(to + 15, value, (size_t)size);
    return to;
}

/* ---- a task ------------------------------------------------------------- */

static void producer_drop(struct producer *p)
{
    if (atomic_fetch_sub(&p->holders, 1) > 1)
        return;
    (void)pthread_cond_destroy(&p->changed);
    (void)pthread_mutex_destroy(&p->lock);
    free((void *)p->object.additional_metadata);
    free(p);
}

static void payload_drop(struct payload *payload)
{
    if (atomic_fetch_sub(&payload->holders, 1) > 1)
        return;
    if (!atomic_load(&payload->taken))
        payload->array.array.release(&payload->array.array);
    producer_drop(payload->producer);
    free(payload);
}

/* Called on any thread; `self` is any copy of the task. */
static int task_extract(struct ArrowAsyncTask *self,
                        struct ArrowDeviceArray *out)
{
    struct payload *payload = self->private_data;

    if (out != NULL) {
        memcpy(out, &payload->array, sizeof(*out));
        atomic_store(&payload->taken, true);
    }
    payload_drop(payload);
    return 0;
}

/* ---- the producer object ------------------------------------------------ */

/* Called on any thread, at any time. Only sets a mark: the thread makes the
 * calls. */
static void producer_request(struct ArrowAsyncProducer *self, int64_t n)
{
    struct producer *p = self->private_data;

    (void)pthread_mutex_lock(&p->lock);
    if (n <= 0)
        p->now.bad_request = true;
    else if (n > INT64_MAX - p->now.demand)
        p->now.demand = INT64_MAX;
    else
        p->now.demand += n;
    (void)pthread_cond_signal(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
}

static void producer_cancel(struct ArrowAsyncProducer *self)
{
    struct producer *p = self->private_data;

    (void)pthread_mutex_lock(&p->lock);
    p->now.cancelled = true;
    (void)pthread_cond_signal(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
}

/* ---- the thread --------------------------------------------------------- */

/* The next step of the thread. */
enum step { STEP_STOP, STEP_COMPLAIN, STEP_FINISH, STEP_OFFER };

/* Waits for the next step; a task that is offered spends a request. */
static enum step producer_wait(struct producer *p, int64_t next)
{
    const bool over = p->plan != UVA_SUBJECT_ENDLESS && next == p->batches;
    enum step step;

    (void)pthread_mutex_lock(&p->lock);
    while (!over && !p->now.cancelled && !p->now.bad_request &&
           p->now.demand == 0)
        (void)pthread_cond_wait(&p->changed, &p->lock);
    step = p->now.cancelled     ? STEP_STOP
           : p->now.bad_request ? STEP_COMPLAIN
           : over               ? STEP_FINISH
                                : STEP_OFFER;
    if (step == STEP_OFFER && p->now.demand < INT64_MAX)
        p->now.demand--;
    (void)pthread_mutex_unlock(&p->lock);
    return step;
}

/* Offers batch `ordinal`. Returns false if only release may follow. */
static bool producer_offer(struct producer *p, int64_t ordinal)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    struct payload *payload = calloc(1, sizeof(*payload));
    struct ArrowAsyncTask task = {task_extract, payload};
    char tag[64];
    char number[24];
    bool refused;

    if (p->plan == UVA_SUBJECT_SLOW)
        (void)nanosleep(&pause, NULL);
    if (payload == NULL || array_make(ordinal, &payload->array) != 0) {
        free(payload);
        p->handler->on_error(p->handler, ENOMEM, "out of memory", NULL);
        return false;
    }
    payload->producer = p;
    atomic_init(&payload->holders, 2);
    atomic_fetch_add(&p->holders, 1);
    (void)snprintf(number, sizeof(number), "%lld", (long long)ordinal);
    refused = p->handler->on_next_task(
                  p->handler, &task,
                  p->plan == UVA_SUBJECT_TAGGED
                      ? metadata_of(tag, number, (int32_t)strlen(number))
                      : NULL) != 0;
    if (refused && atomic_load(&payload->holders) > 1)
        payload_drop(payload); /* it was rejected without being extracted */
    payload_drop(payload);
    return !refused;
}

static void producer_finish(struct producer *p)
{
    char tag[64];

    if (p->plan == UVA_SUBJECT_FAILS)
        p->handler->on_error(p->handler, EIO, "the source failed", NULL);
    else if (p->plan == UVA_SUBJECT_TAGGED_FAILS)
        p->handler->on_error(p->handler, EIO, "the source failed",
                             metadata_of(tag, "a\0b\0c", 5));
    else
        (void)p->handler->on_next_task(p->handler, NULL, NULL);
}

static void producer_play(struct producer *p)
{
    struct ArrowSchema schema;
    int64_t next = 0;
    enum step step = STEP_OFFER;
    int code;

    if (p->plan == UVA_SUBJECT_FAILS_FIRST || schema_make(&schema) != 0) {
        p->handler->on_error(p->handler, EIO, "there is no schema", NULL);
        return;
    }
    code = p->handler->on_schema(p->handler, &schema);
    if (schema.release != NULL)
        schema.release(&schema);
    if (code != 0)
        return;
    while (step == STEP_OFFER) {
        step = producer_wait(p, next);
        if (step == STEP_OFFER && !producer_offer(p, next++))
            return;
    }
    if (step == STEP_COMPLAIN)
        p->handler->on_error(p->handler, EINVAL,
                             "a request must be for 1 or more", NULL);
    else if (step == STEP_FINISH)
        producer_finish(p);
}

static void *producer_run(void *ctx)
{
    struct producer *p = ctx;

    producer_play(p);
    p->handler->release(p->handler);
    producer_drop(p);
    return NULL;
}

/* ---- the functions of the subject --------------------------------------- */

int32_t uva_subject_version(void)
{
    return UVA_SUBJECT_VERSION;
}

int32_t uva_subject_produce(int32_t plan, int64_t batches, int64_t at,
                            struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct producer *p = calloc(1, sizeof(*p));
    char *about = malloc(64);
    pthread_t thread;

    (void)at;
    if (plan == UVA_SUBJECT_TASK_FAILS || plan == UVA_SUBJECT_CANCEL_FAILS) {
        free(about);
        free(p);
        return UVA_SUBJECT_CANNOT;
    }
    if (p == NULL || about == NULL)
        goto fail_memory;
    p->object = (struct ArrowAsyncProducer){.device_type = ARROW_DEVICE_CPU,
                                            .request = producer_request,
                                            .cancel = producer_cancel,
                                            .private_data = p};
    if (plan == UVA_SUBJECT_TAGGED)
        p->object.additional_metadata = metadata_of(about, "about", 5);
    else
        free(about);
    about = NULL;
    p->handler = handler;
    p->plan = (enum uva_subject_plan)plan;
    p->batches = batches;
    atomic_init(&p->holders, 1);
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->changed, NULL);
    handler->producer = &p->object;
    if (pthread_create(&thread, NULL, producer_run, p) == 0) {
        (void)pthread_detach(thread);
        return 0;
    }
    handler->producer = NULL;
    producer_drop(p);
    return EAGAIN;
fail_memory:
    free(about);
    free(p);
    return ENOMEM;
}

int64_t uva_subject_count(int32_t what)
{
    return atomic_load(what == UVA_SUBJECT_LIVE ? &live : &made);
}
