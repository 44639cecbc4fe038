/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: on_schema moves the schema and requests; on_next_task keeps a
 * copy of the task; steps extract, request more, release; NULL; release.
 * Failures: an extraction (its code is kept), the stream (on_error). On the
 * end: NULL, on_error and release stop calls of the producer and wait for those
 * on other threads; tasks that are queued stay, and later steps extract or
 * discard them. */
#include "support/reference_consumer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/reference_mutant.h"

/* The consumer as which this thread is calling the producer, outside of
 * callbacks. */
static _Thread_local struct reference_consumer *calling_here;

static bool acts(struct reference_consumer *c, enum reference_point point,
                 void *at)
{
    return reference_mutant_acts(c->how.mutant, point, c, at);
}

static void fault(struct reference_consumer *c)
{
    atomic_fetch_add(&c->faults, 1);
}

/* ---- pieces ------------------------------------------------------------- */

static void pieces_push(struct reference_pieces *pieces,
                        struct reference_piece *piece)
{
    if (pieces->first == NULL)
        pieces->end = &pieces->first;
    piece->next = NULL;
    *pieces->end = piece;
    pieces->end = &piece->next;
}

static struct reference_piece *pieces_pop(struct reference_pieces *pieces)
{
    struct reference_piece *piece = pieces->first;

    if (piece != NULL)
        pieces->first = piece->next;
    return piece;
}

static void push_locked_array(struct reference_consumer *c,
                              struct reference_piece *piece)
{
    pthread_mutex_lock(&c->lock);
    pieces_push(&c->now.arrays, piece);
    pthread_mutex_unlock(&c->lock);
}

/* ---- calls of the producer ---------------------------------------------- */

/* Returns the producer, which stays valid until call_end(); or NULL. */
static struct ArrowAsyncProducer *call_begin(struct reference_consumer *c)
{
    struct ArrowAsyncProducer *producer;

    pthread_mutex_lock(&c->lock);
    producer = c->now.producer;
    c->now.calling += producer != NULL;
    pthread_mutex_unlock(&c->lock);
    calling_here = producer != NULL ? c : NULL;
    return producer;
}

static void call_end(struct reference_consumer *c)
{
    calling_here = NULL;
    pthread_mutex_lock(&c->lock);
    c->now.calling--;
    pthread_cond_broadcast(&c->calm);
    pthread_mutex_unlock(&c->lock);
}

static void request_outside(struct reference_consumer *c, int64_t n)
{
    struct ArrowAsyncProducer *producer = call_begin(c);

    if (producer == NULL)
        return;
    producer->request(producer, n);
    call_end(c);
}

static void cancel_outside(struct reference_consumer *c)
{
    struct ArrowAsyncProducer *producer = call_begin(c);

    if (producer == NULL)
        return;
    producer->cancel(producer);
    call_end(c);
}

/* After this, the producer may be freed (TH-10). */
static void gate_close(struct reference_consumer *c)
{
    const int mine = calling_here == c;
    const bool waits = !acts(c, REFERENCE_AT_GATE, NULL);

    pthread_mutex_lock(&c->lock);
    c->now.producer = NULL;
    while (waits && c->now.calling > mine)
        pthread_cond_wait(&c->calm, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

/* ---- tasks and arrays --------------------------------------------------- */

static void split(struct ArrowArray *array)
{
    struct ArrowArray child = *array->children[0];

    array->children[0]->release = NULL; /* it was moved */
    array->release(array);
    child.release(&child);
}

static void drop(struct reference_consumer *c, struct reference_piece *piece)
{
    struct ArrowArray *array = &piece->array.array;

    if (!acts(c, REFERENCE_AT_DROP, array)) {
        if (c->how.splits && array->n_children > 0 && array->children != NULL &&
            array->children[0] != NULL)
            split(array);
        else
            array->release(array);
    }
    free(piece);
}

/* Returns the piece with its array, or frees it and returns NULL. */
static struct reference_piece *pulled(struct reference_consumer *c,
                                      struct reference_piece *piece,
                                      const struct reference_pull *pull)
{
    if (pull->code == 0 && pull->out != NULL &&
        pull->out->array.release != NULL) {
        atomic_fetch_add(&c->rows, pull->out->array.length);
        return piece;
    }
    if (pull->code == 0 && pull->out != NULL)
        fault(c); /* AT-05 */
    if (pull->code != 0) {
        pthread_mutex_lock(&c->lock);
        c->now.failed = true;
        c->now.cancel_due = c->how.cancels_on_fail && !c->now.cancelled;
        pthread_mutex_unlock(&c->lock);
    }
    free(piece);
    return NULL;
}

static struct reference_piece *pull(struct reference_consumer *c,
                                    struct reference_piece *piece, bool wanted)
{
    struct reference_pull pull = {&piece->task, NULL, 0};

    memset(&piece->array, 0, sizeof(piece->array));
    if (wanted)
        pull.out = &piece->array;
    if (!acts(c, REFERENCE_AT_PULL, &pull))
        pull.code = piece->task.extract_data(&piece->task, pull.out);
    acts(c, REFERENCE_AT_PULLED, &pull);
    return pulled(c, piece, &pull);
}

/* ---- callbacks ---------------------------------------------------------- */

/* Adds requests; the largest number stands for an unlimited one. */
static int64_t sum(int64_t asked, int64_t n)
{
    if (n <= 0)
        return asked;
    return n > INT64_MAX - asked ? INT64_MAX : asked + n;
}

static int greet(struct reference_consumer *c,
                 struct ArrowAsyncProducer *producer,
                 struct ArrowSchema *schema)
{
    if (!acts(c, REFERENCE_AT_GREET, schema)) {
        c->schema = *schema;
        schema->release = NULL;
    }
    pthread_mutex_lock(&c->lock);
    c->now.producer = producer;
    c->now.asked = sum(c->how.first, c->how.second);
    pthread_mutex_unlock(&c->lock);
    if (c->how.first > 0)
        producer->request(producer, c->how.first);
    if (c->how.second != 0)
        producer->request(producer, c->how.second);
    acts(c, REFERENCE_AT_GREETED, producer);
    return 0;
}

static int on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                     struct ArrowSchema *schema)
{
    struct reference_consumer *c = self->private_data;
    const bool live = schema != NULL && schema->release != NULL;

    c->seen.schema = schema;
    c->seen.producer = self->producer;
    if (live && self->producer != NULL && c->schema.release == NULL &&
        !c->how.refuse_schema)
        return greet(c, self->producer, schema);
    if (live)
        schema->release(schema);
    if (c->how.refuse_schema)
        return ENOTSUP;
    fault(c);
    return c->schema.release != NULL ? 0 : EINVAL;
}

/* Counts one more task and decides its treatment. */
struct course {
    bool refuse, cancel, wanted, greeted;
    int64_t request;
};

static struct course course_set(struct reference_consumer *c)
{
    const struct reference_consumer_options *how = &c->how;
    struct course course = {0};

    pthread_mutex_lock(&c->lock);
    c->now.had++;
    course.greeted = c->now.producer != NULL;
    course.wanted = !how->discard && !c->now.cancelled;
    course.refuse = c->now.had == how->refuse_at;
    c->now.refused = c->now.refused || course.refuse;
    if (!course.refuse && c->now.had == how->cancel_at) {
        course.cancel = how->cancel_inside;
        c->now.cancel_due = !how->cancel_inside;
        c->now.cancelled = c->now.cancelled || how->cancel_inside;
    }
    if (how->more_at_once && !course.refuse && !c->now.cancelled &&
        !c->now.cancel_due && c->now.had == c->now.asked) {
        course.request = how->more;
        c->now.asked = sum(c->now.asked, how->more);
    }
    pthread_mutex_unlock(&c->lock);
    return course;
}

static void take(struct reference_consumer *c,
                 const struct ArrowAsyncTask *task, bool at_once, bool wanted)
{
    struct reference_piece *piece = calloc(1, sizeof(*piece));

    if (piece == NULL)
        abort();
    piece->task = *task;
    if (!at_once) {
        pthread_mutex_lock(&c->lock);
        pieces_push(&c->now.tasks, piece);
        pthread_mutex_unlock(&c->lock);
        return;
    }
    piece = pull(c, piece, wanted);
    if (piece != NULL && c->how.keep)
        push_locked_array(c, piece);
    else if (piece != NULL)
        drop(c, piece);
}

static int on_task(struct reference_consumer *c,
                   struct ArrowAsyncProducer *producer,
                   struct ArrowAsyncTask *task)
{
    const struct course course = course_set(c);
    const bool at_once = c->how.extract == REFERENCE_AT_ONCE;
    int code = EIO;

    if (task->extract_data == NULL)
        fault(c); /* AT-01 */
    else if (!acts(c, REFERENCE_AT_TAKE, task))
        take(c, task, at_once || course.refuse,
             course.wanted && !course.refuse);
    if (course.refuse) {
        acts(c, REFERENCE_AT_REFUSE, &code);
        return code;
    }
    if (!course.greeted) /* AH-05: calls of the producer are too early */
        fault(c);
    if (course.cancel && course.greeted)
        producer->cancel(producer);
    if (course.request > 0 && course.greeted)
        producer->request(producer, course.request);
    return 0;
}

static int on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                        struct ArrowAsyncTask *task, const char *metadata)
{
    struct reference_consumer *c = self->private_data;

    (void)metadata;
    c->seen.task = task != NULL ? task : c->seen.task;
    if (task != NULL)
        return on_task(c, self->producer, task);
    pthread_mutex_lock(&c->lock);
    c->now.ended = true;
    pthread_mutex_unlock(&c->lock);
    gate_close(c);
    return 0;
}

static void on_error(struct ArrowAsyncDeviceStreamHandler *self, int code,
                     const char *message, const char *metadata)
{
    struct reference_consumer *c = self->private_data;

    (void)message;
    (void)metadata;
    acts(c, REFERENCE_AT_ERROR, self);
    pthread_mutex_lock(&c->lock);
    c->now.erred = true;
    c->now.code = code;
    pthread_mutex_unlock(&c->lock);
    gate_close(c);
}

static void on_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    struct reference_consumer *c = self->private_data;

    acts(c, REFERENCE_AT_GO, self);
    gate_close(c);
    self->release = NULL;
    self->producer = NULL;
    pthread_mutex_lock(&c->lock);
    c->now.over = true;
    pthread_mutex_unlock(&c->lock);
}

/* ---- steps -------------------------------------------------------------- */

enum command { NOTHING, CANCEL, PULL, DROP, REQUEST };

static bool asks_on_locked(struct reference_consumer *c)
{
    if (!c->how.asks_on || c->now.asked_on || c->now.cancel_due ||
        !(c->now.cancelled || c->now.refused) || c->now.producer == NULL)
        return false;
    c->now.asked_on = true;
    return true;
}

static bool asks_more_locked(struct reference_consumer *c)
{
    if (c->how.more == 0 || c->now.cancelled || c->now.refused ||
        c->now.cancel_due || c->now.producer == NULL ||
        c->now.had < c->now.asked)
        return false;
    c->now.asked = sum(c->now.asked, c->how.more);
    return true;
}

/* Returns the next thing to do; for PULL and DROP with its piece, for REQUEST
 * with n. */
static enum command command_next_locked(struct reference_consumer *c,
                                        struct reference_piece **piece,
                                        int64_t *n)
{
    if (c->now.cancel_due) {
        c->now.cancel_due = false;
        c->now.cancelled = true;
        return CANCEL;
    }
    if ((!c->how.hold || c->now.over) &&
        (*piece = pieces_pop(&c->now.tasks)) != NULL)
        return PULL;
    if ((!c->how.keep || c->now.over) &&
        (*piece = pieces_pop(&c->now.arrays)) != NULL)
        return DROP;
    *n = c->how.more;
    if (asks_more_locked(c))
        return REQUEST;
    *n = 1;
    return asks_on_locked(c) ? REQUEST : NOTHING;
}

bool reference_consumer_step(struct reference_consumer *c)
{
    struct reference_piece *piece = NULL;
    enum command command;
    bool wanted;
    int64_t n = 0;

    if (acts(c, REFERENCE_AT_STEP, NULL))
        return true;
    pthread_mutex_lock(&c->lock);
    command = command_next_locked(c, &piece, &n);
    wanted = !c->how.discard && !c->now.cancelled;
    pthread_mutex_unlock(&c->lock);
    if (command == CANCEL)
        cancel_outside(c);
    else if (command == REQUEST)
        request_outside(c, n);
    else if (command == DROP)
        drop(c, piece);
    else if (command == PULL && (piece = pull(c, piece, wanted)) != NULL)
        push_locked_array(c, piece);
    return command != NOTHING;
}

void reference_consumer_cancel(struct reference_consumer *c)
{
    pthread_mutex_lock(&c->lock);
    c->now.cancel_due = !c->now.cancelled && c->now.producer != NULL;
    pthread_mutex_unlock(&c->lock);
}

bool reference_consumer_over(struct reference_consumer *c)
{
    bool over;

    pthread_mutex_lock(&c->lock);
    over = c->now.over && c->now.tasks.first == NULL &&
           c->now.arrays.first == NULL;
    pthread_mutex_unlock(&c->lock);
    return over;
}

/* ---- setup and end ------------------------------------------------------ */

void reference_consumer_init(struct reference_consumer *c,
                             const struct reference_consumer_options *how)
{
    memset(c, 0, sizeof(*c));
    c->how = *how;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->calm, NULL);
    c->handler = (struct ArrowAsyncDeviceStreamHandler){
        .on_schema = on_schema,
        .on_next_task = on_next_task,
        .on_error = on_error,
        .release = on_release,
        .private_data = c,
    };
    acts(c, REFERENCE_AT_READY, &c->handler);
}

void reference_consumer_release(struct reference_consumer *c)
{
    struct reference_piece *piece;

    while ((piece = pieces_pop(&c->now.arrays)) != NULL)
        drop(c, piece);
    if (c->schema.release != NULL)
        c->schema.release(&c->schema);
}

void reference_consumer_fini(struct reference_consumer *c)
{
    struct reference_piece *piece;

    reference_consumer_release(c);
    while ((piece = pieces_pop(&c->now.tasks)) != NULL)
        free(piece);
    if (c->lost.release != NULL)
        c->lost.release(&c->lost);
    pthread_cond_destroy(&c->calm);
    pthread_mutex_destroy(&c->lock);
}
