/* SPDX-License-Identifier: Apache-2.0 */
/* The handler's additional mutants: first the functions, then the table. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tck/mutant_extras.h"

/* The false outcome that is reported. */
enum lie {
    TRUTH,
    REPORTS_COMPLETE,
    REPORTS_FAILED,
    REPORTS_CODE,
    REPORTS_TAG,
    REPORTS_MESSAGE,
    LACKS_SLOT /* not a false outcome, but numbered with them */
};

static int arg_of(const struct reference_consumer *c)
{
    return c->how.mutant->arg;
}

static bool first_time(struct reference_consumer *c)
{
    return atomic_fetch_add(&c->acts, 1) == 0;
}

static bool lies(void *peer, void *at)
{
    (void)peer;
    (void)at;
    return false;
}

static bool crashes(void *peer, void *at)
{
    (void)peer;
    (void)at;
    abort();
}

/* ---- tasks -------------------------------------------------------------- */

static bool frees_task(void *peer, void *at)
{
    (void)peer;
    free(at);
    return false;
}

static bool crashes_cancelled(void *peer, void *at)
{
    const struct reference_consumer *c = peer;

    (void)at;
    if (c->now.cancelled && c->now.had > c->how.cancel_at)
        abort();
    return false;
}

static _Atomic pthread_t the_thread;

/* Crashes unless one thread makes all callbacks. */
static bool crashes_elsewhere(void *peer, void *at)
{
    (void)at;
    if (first_time(peer))
        atomic_store(&the_thread, pthread_self());
    else if (!pthread_equal(atomic_load(&the_thread), pthread_self()))
        abort();
    return false;
}

/* Crashes if a task comes before request has returned. */
static bool crashes_early(void *peer, void *at)
{
    struct reference_consumer *c = peer;
    int calling;

    (void)at;
    pthread_mutex_lock(&c->lock);
    calling = c->now.calling;
    pthread_mutex_unlock(&c->lock);
    if (calling > 0)
        abort();
    return false;
}

static bool dawdles(void *peer, void *at)
{
    const struct timespec pause = {.tv_sec = 1, .tv_nsec = 200000000};

    (void)at;
    if (first_time(peer))
        (void)nanosleep(&pause, NULL);
    return false;
}

static bool requests_one_more(void *peer, void *at)
{
    struct ArrowAsyncProducer *producer = at;

    (void)peer;
    producer->request(producer, 1);
    return false;
}

/* Forgets the tasks that wait when it cancels. */
static bool forgets_waiting(void *peer, void *at)
{
    struct reference_consumer *c = peer;

    (void)at;
    pthread_mutex_lock(&c->lock);
    if (c->how.hold && c->now.cancelled)
        c->now.tasks.first = NULL;
    pthread_mutex_unlock(&c->lock);
    return false;
}

/* Calls cancel under its lock. */
static bool cancels_locked(void *peer, void *at)
{
    struct reference_consumer *c = peer;

    (void)at;
    pthread_mutex_lock(&c->lock);
    if (c->now.cancel_due && c->now.producer != NULL) {
        c->now.cancel_due = false;
        c->now.cancelled = true;
        c->now.producer->cancel(c->now.producer);
    }
    pthread_mutex_unlock(&c->lock);
    return false;
}

static bool reads_producer(void *peer, void *at)
{
    const struct ArrowAsyncDeviceStreamHandler *self = at;

    (void)peer;
    return self->producer->device_type == 0;
}

/* ---- arrays ------------------------------------------------------------- */

enum dislike { RESERVED, NUMBERED, UNKNOWN };

/* Refuses, or crashes at, slightly unusual arrays. */
static bool dislikes(void *peer, void *at)
{
    const struct reference_pull *pull = at;
    const struct reference_consumer *c = peer;
    struct ArrowDeviceArray *out = pull->out;

    if (out == NULL || pull->code != 0 || out->array.release == NULL)
        return false;
    if ((arg_of(c) == RESERVED && out->reserved[0] != 0) ||
        (arg_of(c) == NUMBERED && out->device_id != -1) ||
        (arg_of(c) == UNKNOWN && out->device_type > 100))
        abort();
    return false;
}

static bool writes_values(void *peer, void *at)
{
    const struct ArrowArray *array = at;

    (void)peer;
    ((int64_t *)(uintptr_t)array->children[0]->buffers[1])[0] = -1;
    return false;
}

static bool reads_released(void *peer, void *at)
{
    struct ArrowArray *array = at;
    const int64_t *values = array->children[0]->buffers[1];
    const volatile int64_t *first = values;

    (void)peer;
    array->release(array);
    return *first >= 0;
}

static bool loses(void *peer, void *at)
{
    (void)peer;
    (void)at;
    return true;
}

/* Does not release the batches of a stream after its first. Looks at no value,
 * which may be on a device. */
static bool loses_later(void *peer, void *at)
{
    static void *_Atomic last;
    const struct ArrowArray *array = at;

    return array->n_children > 0 && atomic_exchange(&last, peer) == peer;
}

/* Does not release the arrays of a stream that is no struct. */
static bool loses_bare(void *peer, void *at)
{
    const struct ArrowArray *array = at;

    (void)peer;
    return array->n_children == 0;
}

/* ---- outcomes ----------------------------------------------------------- */

void mutant_handler(const struct reference_mutant *mutant,
                    struct ArrowAsyncDeviceStreamHandler *handler)
{
    if (mutant != NULL && mutant->act == lies && mutant->arg == LACKS_SLOT)
        handler->on_error = NULL;
}

void mutant_outcome(const struct reference_mutant *mutant,
                    struct uva_subject_outcome *out)
{
    if (mutant == NULL || mutant->act != lies)
        return;
    switch (mutant->arg) {
    case REPORTS_COMPLETE:
        out->end = UVA_SUBJECT_COMPLETE;
        break;
    case REPORTS_FAILED:
        out->end = UVA_SUBJECT_FAILED;
        out->code = EIO;
        break;
    case REPORTS_CODE:
        out->code = ENOENT;
        break;
    case REPORTS_TAG:
        out->tag_size = 1;
        break;
    case REPORTS_MESSAGE:
        (void)snprintf(out->message, sizeof(out->message), "gone");
        break;
    default:
        break;
    }
}

/* ---- the table ---------------------------------------------------------- */

#define M(clause, variant, point, act, arg)                                    \
    {                                                                          \
        clause, variant, REFERENCE_AT_##point, act, arg, NULL, 0, NULL         \
    }

/* clang-format off: a table */
static const struct reference_mutant CONSUMER_EXTRAS[] = {
    M("AB-15", "crashes", PULLED, dislikes, UNKNOWN),
    M("AB-17", "slot", NOTHING, lies, LACKS_SLOT),
    M("DA-05", "crashes", PULLED, dislikes, NUMBERED),
    M("DA-07", "fails", NOTHING, lies, REPORTS_FAILED),
    M("DA-09", "crashes", PULLED, dislikes, RESERVED),
    M("DA-12", "complete", NOTHING, lies, REPORTS_COMPLETE),
    M("DA-16", "loses", DROP, loses, 0),
    M("DA-18", "writes", DROP, writes_values, 0),
    M("DA-29", "complete", NOTHING, lies, REPORTS_COMPLETE),
    M("AT-19", "frees", TAKE, frees_task, 0),
    M("AT-21", "waiting", STEP, forgets_waiting, 0),
    M("AP-13", "locks", STEP, cancels_locked, 0),
    M("AP-15", "crashes", TAKE, crashes_cancelled, 0),
    M("AP-18", "crashes", TAKE, crashes_cancelled, 0),
    M("AP-25", "more", GREETED, requests_one_more, 0),
    M("AH-01", "fails", NOTHING, lies, REPORTS_FAILED),
    M("AH-02", "slot", NOTHING, lies, LACKS_SLOT),
    M("AH-03", "reads", ERROR, reads_producer, 0),
    M("AH-14", "tag", NOTHING, lies, REPORTS_TAG),
    M("AH-18", "complete", NOTHING, lies, REPORTS_COMPLETE),
    M("AH-20", "tag", NOTHING, lies, REPORTS_TAG),
    M("AH-23", "fails", NOTHING, lies, REPORTS_FAILED),
    M("TH-02", "one", TAKE, crashes_elsewhere, 0),
    M("TH-11", "early", TAKE, crashes_early, 0),
    M("TH-12", "long", TAKE, dawdles, 0),
    M("TH-14", "fails", NOTHING, lies, REPORTS_FAILED),
    M("MD-04", "tag", NOTHING, lies, REPORTS_TAG),
    M("MD-05", "crashes", ERROR, crashes, 0),
    M("MD-06", "tag", NOTHING, lies, REPORTS_TAG),
    M("MD-07", "fails", NOTHING, lies, REPORTS_FAILED),
    M("LC-01", "complete", NOTHING, lies, REPORTS_COMPLETE),
    M("LC-04", "reads", DROP, reads_released, 0),
    M("LC-21", "crashes", GO, crashes, 0),
    M("LC-22", "loses", DROP, loses, 0),
    M("LC-22", "bare", DROP, loses_bare, 0),
    M("LC-22", "later", DROP, loses_later, 0),
    M("ER-01", "code", NOTHING, lies, REPORTS_CODE),
    M("ER-02", "code", NOTHING, lies, REPORTS_CODE),
    M("ER-06", "complete", NOTHING, lies, REPORTS_COMPLETE),
    M("ER-07", "message", NOTHING, lies, REPORTS_MESSAGE),
    M("ER-08", "tag", NOTHING, lies, REPORTS_TAG),
    M("ER-10", "fails", NOTHING, lies, REPORTS_FAILED),
    M("ER-12", "complete", NOTHING, lies, REPORTS_COMPLETE),
    M("ER-13", "complete", NOTHING, lies, REPORTS_COMPLETE),
    M("ER-14", "fails", NOTHING, lies, REPORTS_FAILED),
};
/* clang-format on */

const struct reference_mutant *mutant_consumer_extras(int *count)
{
    *count = (int)(sizeof(CONSUMER_EXTRAS) / sizeof(*CONSUMER_EXTRAS));
    return CONSUMER_EXTRAS;
}
