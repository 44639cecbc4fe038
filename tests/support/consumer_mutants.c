/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer's mutants: first their functions, then the table in the order of
 * the catalogue. Objects that a mutant keeps or calls against the rules belong
 * to the checker, and stay valid as long as the check. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/reference_mutant.h"

static bool first_time(struct reference_consumer *c)
{
    return atomic_fetch_add(&c->acts, 1) == 0;
}

static int arg_of(const struct reference_consumer *c)
{
    return c->how.mutant->arg;
}

static bool does_nothing(void *peer, void *at)
{
    (void)peer;
    (void)at;
    return true;
}

static bool dawdles(void *peer, void *at)
{
    const struct timespec pause = {.tv_nsec = 60 * 1000 * 1000};

    (void)at;
    if (first_time(peer))
        (void)nanosleep(&pause, NULL);
    return false;
}

static bool lacks_slot(void *peer, void *at)
{
    struct ArrowAsyncDeviceStreamHandler *handler = at;

    switch (arg_of(peer)) {
    case 0:
        handler->on_schema = NULL;
        break;
    case 1:
        handler->on_next_task = NULL;
        break;
    case 2:
        handler->on_error = NULL;
        break;
    default:
        handler->release = NULL;
        break;
    }
    return false;
}

/* ---- schema ------------------------------------------------------------- */

static bool leaves_schema(void *peer, void *at)
{
    (void)peer;
    (void)at;
    return true;
}

static bool releases_stale_schema(void *peer, void *at)
{
    struct reference_consumer *c = peer;
    struct ArrowSchema *stale = c->seen.schema;

    (void)at;
    if (stale != NULL && stale->release != NULL && first_time(c))
        stale->release(stale);
    return false;
}

static bool releases_schema_twice(void *peer, void *at)
{
    struct ArrowSchema *schema = at, one = *schema, two = *schema;

    (void)peer;
    schema->release = NULL;
    one.release(&one);
    two.release(&two);
    return true;
}

/* ---- the producer object ------------------------------------------------ */

static bool asks_badly(void *peer, void *at)
{
    struct reference_consumer *c = peer;
    struct ArrowAsyncProducer *producer = at;

    producer->request(producer, arg_of(c));
    return false;
}

static bool writes_private(void *peer, void *at)
{
    struct ArrowAsyncProducer *producer = at;

    producer->private_data = peer;
    return false;
}

static bool asks_through_copy(void *peer, void *at)
{
    struct reference_consumer *c = peer;
    struct ArrowAsyncProducer copy = *(struct ArrowAsyncProducer *)at;

    pthread_mutex_lock(&c->lock);
    c->now.asked++;
    pthread_mutex_unlock(&c->lock);
    copy.request(&copy, 1);
    return false;
}

static bool asks_too_late(void *peer, void *at)
{
    struct reference_consumer *c = peer;
    struct ArrowAsyncProducer *producer = c->seen.producer;

    (void)at;
    if (c->now.over && producer != NULL && first_time(c)) {
        if (arg_of(c) == 0)
            producer->request(producer, 1);
        else
            producer->cancel(producer);
    }
    return false;
}

static bool asks_too_early(void *peer, void *at)
{
    struct reference_consumer *c = peer;
    struct ArrowAsyncProducer *producer = c->handler.producer;

    (void)at;
    if (producer != NULL && c->now.producer == NULL && !c->now.over &&
        first_time(c))
        producer->request(producer, 1);
    return false;
}

static bool calls_back(void *peer, void *at)
{
    struct reference_consumer *c = peer;
    struct ArrowAsyncDeviceStreamHandler *self = at;

    if (arg_of(c) == 0)
        self->producer->cancel(self->producer);
    else
        self->producer->request(self->producer, 1);
    return false;
}

/* ---- tasks -------------------------------------------------------------- */

static bool forgets_task(void *peer, void *at)
{
    struct reference_consumer *c = peer;

    (void)at;
    return atomic_fetch_add(&c->acts, 1) == arg_of(c);
}

static bool extracts_twice(void *peer, void *at)
{
    struct reference_pull *pull = at;
    struct ArrowAsyncTask other = *pull->task;

    if (first_time(peer))
        other.extract_data(&other, NULL);
    return false;
}

static bool extracts_stale_task(void *peer, void *at)
{
    struct reference_consumer *c = peer;
    struct ArrowAsyncTask *stale = c->seen.task;

    (void)at;
    if (stale != NULL && first_time(c))
        stale->extract_data(stale, NULL);
    return false;
}

static bool alters_token(void *peer, void *at)
{
    struct reference_pull *pull = at;
    struct ArrowAsyncTask other = *pull->task;

    if (!first_time(peer))
        return false;
    other.private_data = (char *)other.private_data + 1;
    other.extract_data(&other, NULL);
    return false;
}

static void no_release(struct ArrowArray *array)
{
    (void)array;
}

/* Extracts into a struct that is not zeroed, and then calls the release that it
 * finds there. */
static bool releases_failed(void *peer, void *at)
{
    struct reference_pull *pull = at;

    (void)peer;
    pull->out->array.release = no_release;
    pull->code = pull->task->extract_data(pull->task, pull->out);
    if (pull->code != 0)
        pull->out->array.release(&pull->out->array);
    return true;
}

static bool refuses_with(void *peer, void *at)
{
    struct reference_consumer *c = peer;

    *(int *)at = arg_of(c);
    return false;
}

/* ---- arrays ------------------------------------------------------------- */

static bool releases_twice(void *peer, void *at)
{
    struct ArrowArray *array = at, copy = *array;

    if (!first_time(peer))
        return false;
    array->release(array);
    copy.release(&copy);
    return true;
}

static bool releases_elsewhere(void *peer, void *at)
{
    struct ArrowArray *array = at, source = *array;

    source.release = NULL; /* it was moved */
    if (first_time(peer))
        array->release(&source);
    return false;
}

static bool loses_array(void *peer, void *at)
{
    struct reference_consumer *c = peer;

    if (!first_time(c))
        return false;
    c->lost = *(struct ArrowArray *)at;
    return true;
}

static bool releases_child(void *peer, void *at)
{
    struct ArrowArray *array = at, *child = array->children[0];

    if (first_time(peer))
        child->release(child);
    return false;
}

/* Moves a child out, and releases the parent late. */
static bool releases_child_first(void *peer, void *at)
{
    struct ArrowArray *array = at, child = *array->children[0];

    if (!first_time(peer))
        return false;
    array->children[0]->release = NULL;
    child.release(&child);
    return false;
}

static bool writes_buffers(void *peer, void *at)
{
    struct ArrowArray *array = at;

    if (first_time(peer))
        array->buffers[0] = array;
    return false;
}

/* ---- the table ---------------------------------------------------------- */

static const struct reference_pair USUAL = {{.batches = 3, .metadata = true},
                                            {.first = 2, .more = 2}};
static const struct reference_pair AMPLE = {{.batches = 3}, {.first = 10}};
static const struct reference_pair SPOILT = {
    {.batches = 2, .lazy = true, .spoilt_at = 1, .leaves_out = true},
    {.first = 10}};
static const struct reference_pair FAILS = {{.batches = 2, .fails = true},
                                            {.first = 10}};
static const struct reference_pair REFUSES = {{.batches = 4},
                                              {.first = 10, .refuse_at = 2}};
static const struct reference_pair CANCELS = {
    {.batches = -1}, {.first = 3, .more = 3, .cancel_at = 2}};
static const struct reference_pair HOLDS = {{.batches = 2},
                                            {.first = 3, .hold = true}};
static const struct reference_pair FAILS_HELD = {{.batches = 2, .fails = true},
                                                 {.first = 10, .hold = true}};
/* The producer goes on to its end on another thread, while the request waits
 * for that. Only a consumer that does not wait for its own request makes
 * progress. */
static const struct reference_pair ASKS_WHILE_ENDING = {
    {.batches = 2, .steps_in_request = true}, {.first = 2, .more = 2}};

#define AT(point) REFERENCE_AT_##point

static const struct reference_mutant MUTANTS[] = {
    {"DA-13", "", AT(DROP), releases_elsewhere, 0, &USUAL, 0, NULL},
    {"AT-02", "", AT(TAKE), forgets_task, 1, &USUAL, 0, NULL},
    {"AT-03", "", AT(PULLED), extracts_twice, 0, &USUAL, 0, NULL},
    {"AT-13", "", AT(STEP), extracts_stale_task, 0, &HOLDS, 0, NULL},
    {"AT-14", "", AT(PULL), alters_token, 0, &USUAL, 0, NULL},
    {"AT-21", "cancel", AT(TAKE), forgets_task, 0, &CANCELS, 0, NULL},
    {"AT-21", "error", AT(TAKE), forgets_task, 0, &FAILS_HELD, 0, NULL},
    {"AT-22", "", AT(PULL), releases_failed, 0, &SPOILT, 0, NULL},
    {"AP-08", "zero", AT(GREETED), asks_badly, 0, &AMPLE, 0, NULL},
    {"AP-08", "negative", AT(GREETED), asks_badly, -1, &AMPLE, 0, NULL},
    {"AP-21", "", AT(GREETED), writes_private, 0, &USUAL, 0, NULL},
    {"AP-23", "", AT(GREETED), asks_through_copy, 0, &USUAL, 0, NULL},
    {"AP-24", "request", AT(STEP), asks_too_late, 0, &USUAL, 0, NULL},
    {"AP-24", "cancel", AT(STEP), asks_too_late, 1, &USUAL, 0, NULL},
    {"AP-24", "held", AT(STEP), asks_too_late, 0, &HOLDS, 0, NULL},
    {"AH-02", "on_schema", AT(READY), lacks_slot, 0, &USUAL, 0, NULL},
    {"AH-02", "on_next_task", AT(READY), lacks_slot, 1, &USUAL, 0, NULL},
    {"AH-02", "on_error", AT(READY), lacks_slot, 2, &USUAL, 0, NULL},
    {"AH-02", "release", AT(READY), lacks_slot, 3, &USUAL, 0, NULL},
    {"AH-04", "", AT(STEP), asks_too_early, 0, &USUAL, 0, NULL},
    {"AH-06", "live", AT(GREET), leaves_schema, 0, &USUAL, 0, NULL},
    {"AH-06", "stale", AT(STEP), releases_stale_schema, 0, &USUAL, 0, NULL},
    {"AH-09", "negative", AT(REFUSE), refuses_with, -5, &REFUSES, 0, NULL},
    {"AH-09", "large", AT(REFUSE), refuses_with, 100000, &REFUSES, 0, NULL},
    {"AH-19", "error", AT(ERROR), calls_back, 0, &FAILS, 0, NULL},
    {"AH-19", "release", AT(GO), calls_back, 1, &USUAL, 0, NULL},
    {"TH-10", "", AT(GATE), does_nothing, 0, &ASKS_WHILE_ENDING, 0, NULL},
    {"TH-12", "", AT(TAKE), dawdles, 0, &USUAL, REFERENCE_SHOWS_SLOW, NULL},
    {"LC-02", "array", AT(DROP), releases_twice, 0, &USUAL, 0, NULL},
    {"LC-02", "schema", AT(GREET), releases_schema_twice, 0, &USUAL, 0, NULL},
    {"LC-02", "lost", AT(DROP), loses_array, 0, &USUAL, 0, NULL},
    {"LC-03", "", AT(DROP), releases_child, 0, &USUAL, REFERENCE_SHOWS_DEEP,
     NULL},
    {"LC-10", "", AT(DROP), releases_child_first, 0, &USUAL,
     REFERENCE_SHOWS_DEEP, NULL},
    {"LC-11", "", AT(DROP), writes_buffers, 0, &USUAL, 0, NULL},
};

const struct reference_mutant *consumer_mutants(int *count)
{
    *count = (int)(sizeof(MUTANTS) / sizeof(MUTANTS[0]));
    return MUTANTS;
}
