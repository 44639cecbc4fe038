/* SPDX-License-Identifier: Apache-2.0 */
/* The producer's mutants: first their functions, point by point, then the table
 * in the order of the catalogue. Whatever rule they break, memory stays valid
 * while a checker stands between them and the consumer. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/reference_mutant.h"
#include "support/reference_shape.h"

static bool first_time(struct reference_producer *p)
{
    return atomic_fetch_add(&p->acts, 1) == 0;
}

static int arg_of(const struct reference_producer *p)
{
    return p->how.mutant->arg;
}

/* Runs `callback` on another thread, and waits for its return. */
struct command {
    void (*callback)(struct reference_producer *);
    struct reference_producer *producer;
};

static void *command_run(void *ctx)
{
    const struct command *command = ctx;

    command->callback(command->producer);
    return NULL;
}

static void elsewhere(struct reference_producer *p,
                      void (*callback)(struct reference_producer *))
{
    struct command command = {callback, p};
    pthread_t thread;

    if (pthread_create(&thread, NULL, command_run, &command) != 0)
        abort();
    pthread_join(thread, NULL);
}

/* Callbacks that a mutant makes although it must not. */
enum callback { SCHEMA, TASK, END, ERROR, RELEASE };

static void call(struct reference_producer *p, enum callback which)
{
    const enum reference_producer_phase phase = p->phase;

    if (which == SCHEMA)
        reference_producer_schema(p);
    else if (which == TASK)
        reference_producer_offer(p);
    else if (which == END)
        reference_producer_end(p);
    else if (which == ERROR)
        reference_producer_fail(p, EIO, "out of turn");
    else
        reference_producer_release(p);
    if (which != RELEASE)
        p->phase = phase;
}

/* Makes one callback too many; all other callbacks are correct. */
static bool calls(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    if (first_time(p))
        call(p, (enum callback)arg_of(p));
    return false;
}

static bool does_nothing(void *peer, void *at)
{
    (void)peer;
    (void)at;
    return true;
}

/* ---- the producer object ------------------------------------------------ */

static bool lacks_slot(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    if (arg_of(p) == 0)
        p->object.cancel = NULL;
    else
        p->object.request = NULL;
    return false;
}

static bool type_is(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    p->object.device_type = arg_of(p);
    return false;
}

static void ignore(struct ArrowAsyncProducer *self, int64_t n)
{
    (void)self;
    (void)n;
}

/* An object from before device_type existed: all other members are at offsets
 * smaller by 8 bytes, so a call of request calls cancel. */
static bool layout_is_old(void *peer, void *at)
{
    struct reference_producer *p = peer;
    struct {
        void (*request)(struct ArrowAsyncProducer *, int64_t);
        void (*cancel)(struct ArrowAsyncProducer *, int64_t);
        const char *additional_metadata;
        void *private_data;
    } old = {ignore, ignore, NULL, p};

    (void)at;
    memcpy(&p->other, &old, sizeof(old));
    p->handler->producer = &p->other;
    return true;
}

static bool type_changes(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    if (p->next == p->how.batches)
        p->object.device_type = ARROW_DEVICE_CUDA;
    return false;
}

/* Acts before the last task. */
static bool about_changes(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    if (p->next < p->how.batches)
        return false;
    memcpy(p->about, reference_block(REFERENCE_OTHER), sizeof(p->about));
    return false;
}

static bool about_moves(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    if (p->next < p->how.batches)
        return false;
    p->object.additional_metadata = reference_block(REFERENCE_SOUND);
    return false;
}

enum place {
    IN_SCHEMA = 0x10,
    IN_ABOUT = 0x20,
    IN_TASK = 0x30,
    IN_ERROR = 0x40
};

static bool block_is(void *peer, void *at)
{
    struct reference_producer *p = peer;
    const enum reference_block block = arg_of(p) & 0xF;

    (void)at;
    switch (arg_of(p) & 0xF0) {
    case IN_SCHEMA:
        p->blocks.schema = block;
        break;
    case IN_ABOUT:
        p->blocks.about = block;
        break;
    case IN_TASK:
        p->blocks.task = block;
        break;
    default:
        p->blocks.error = block;
        break;
    }
    return false;
}

/* ---- request, cancel ---------------------------------------------------- */

static void add_demand(struct reference_producer *p, int64_t n)
{
    pthread_mutex_lock(&p->lock);
    if (n <= INT64_MAX - p->now.view.demand)
        p->now.view.demand += n;
    pthread_mutex_unlock(&p->lock);
}

/* Calls back on the stack of a request, outside of callbacks (0) or inside
 * (1). */
static bool request_calls(void *peer, void *at)
{
    struct reference_producer *p = peer;
    const bool inside = atomic_load(&p->inside) > 0;

    if (inside != (arg_of(p) == 1) || p->phase != REFERENCE_OPEN ||
        p->next == 0 || !first_time(p))
        return false;
    add_demand(p, *(int64_t *)at);
    reference_producer_offer(p);
    return true;
}

static bool request_releases(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    if (p->phase == REFERENCE_REFUSED && atomic_load(&p->inside) == 0)
        reference_producer_release(p);
    return false;
}

/* Another thread offers a task while this one waits in a callback. */
static bool request_overlaps(void *peer, void *at)
{
    struct reference_producer *p = peer;

    if (atomic_load(&p->inside) == 0 || (p->next == 0) != (arg_of(p) == 1) ||
        !first_time(p))
        return false;
    add_demand(p, *(int64_t *)at);
    elsewhere(p, reference_producer_offer);
    return true;
}

/* Sets the demand to the latest request, instead of adding it (AP-02). */
static bool request_sets(void *peer, void *at)
{
    struct reference_producer *p = peer;

    pthread_mutex_lock(&p->lock);
    p->now.view.demand = *(int64_t *)at;
    pthread_mutex_unlock(&p->lock);
    return true;
}

static bool request_inside_is_lost(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    return atomic_load(&p->inside) > 0;
}

static bool request_is_lost(void *peer, void *at)
{
    return *(int64_t *)at > 0 && first_time(peer);
}

static bool bad_request_is_lost(void *peer, void *at)
{
    (void)peer;
    return *(int64_t *)at <= 0;
}

/* Releases on the stack of the cancel, outside of callbacks; or on another
 * thread, inside a callback. */
static bool cancel_releases(void *peer, void *at)
{
    struct reference_producer *p = peer;
    const bool inside = atomic_load(&p->inside) > 0;

    (void)at;
    if (arg_of(p) == 0 && !inside)
        reference_producer_release(p);
    else if (arg_of(p) == 1 && inside)
        elsewhere(p, reference_producer_release);
    return true;
}

/* Offers all tasks requested before the cancel, and one more. */
static bool offers_after_cancel(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    for (int i = 0; i < 8 && p->now.view.demand > 0; i++)
        reference_producer_offer(p);
    reference_producer_offer(p);
    return false;
}

static bool tells_of_cancel(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    reference_producer_fail(p, ECANCELED, "cancelled");
    return false;
}

/* ---- the handler -------------------------------------------------------- */

static bool sends_no_schema(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    p->phase = REFERENCE_REFUSED;
    return true;
}

static bool schema_is_dead(void *peer, void *at)
{
    struct reference_producer *p = peer;
    struct ArrowSchema schema = {0};

    (void)at;
    p->phase = REFERENCE_REFUSED;
    p->handler->on_schema(p->handler, arg_of(p) == 0 ? NULL : &schema);
    return true;
}

static bool schema_stays_marked(void *peer, void *at)
{
    (void)peer;
    reference_schema_unmarked(at);
    return false;
}

static bool ordered_waits_not(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    if ((p->now.asked > 0) != (arg_of(p) == 1) || !first_time(p))
        return false;
    reference_producer_offer(p);
    return true;
}

static bool ends_by_a_copy(void *peer, void *at)
{
    struct reference_producer *p = peer;
    struct ArrowAsyncDeviceStreamHandler copy = *p->handler;

    (void)at;
    copy.on_next_task(&copy, NULL, NULL);
    return true;
}

static bool writes_private(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    p->handler->private_data = p;
    return false;
}

static void no_error(struct ArrowAsyncDeviceStreamHandler *self, int code,
                     const char *message, const char *metadata)
{
    (void)self;
    (void)code;
    (void)message;
    (void)metadata;
}

static bool writes_slot(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    p->handler->on_error = no_error;
    return false;
}

static bool writes_producer(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    p->other = p->object;
    p->handler->producer = &p->other;
    return false;
}

/* Reports an error with invalid arguments: a code of 0, a text that is not
 * UTF-8. */
static bool error_is_odd(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    if (arg_of(p) == 0)
        p->handler->on_error(p->handler, 0, "no code", NULL);
    else
        p->handler->on_error(p->handler, EIO, "\xFF\xFE", NULL);
    return true;
}

/* ---- tasks -------------------------------------------------------------- */

static bool task_is_hollow(void *peer, void *at)
{
    struct ArrowAsyncTask *task = at;

    if (!first_time(peer))
        return false;
    reference_item_settle(task->private_data);
    task->extract_data = NULL;
    return false;
}

static bool task_is_used_again(void *peer, void *at)
{
    struct ArrowAsyncTask *task = at;

    if (first_time(peer))
        task->extract_data(task, NULL);
    return false;
}

static bool discard_fails(void *peer, void *at)
{
    struct reference_extraction *e = at;

    (void)peer;
    if (e->out != NULL)
        return false;
    reference_item_settle(e->item);
    e->code = EINVAL;
    return true;
}

enum result { UNTOUCHED, RELEASED, NEGATIVE };

static bool extract_gives(void *peer, void *at)
{
    struct reference_producer *p = peer;
    struct reference_extraction *e = at;

    if (e->out == NULL || !first_time(p))
        return false;
    reference_item_settle(e->item);
    if (arg_of(p) == RELEASED)
        memset(e->out, 0, sizeof(*e->out));
    return true;
}

/* Returns an error, although it has left an array, a stale one. */
static bool extract_fails_and_fills(void *peer, void *at)
{
    struct reference_producer *p = peer;
    struct reference_extraction *e = at;
    struct ArrowArray freed;

    if (e->out == NULL || !first_time(p))
        return false;
    reference_item_settle(e->item);
    reference_array(&p->live_structs, e->item->ordinal, e->out);
    reference_array_childless(&e->out->array);
    freed = e->out->array;
    freed.release(&freed);
    pthread_mutex_lock(&p->lock);
    p->now.view.spoilt = true;
    pthread_mutex_unlock(&p->lock);
    e->code = EIO;
    return true;
}

static bool extract_calls(void *peer, void *at)
{
    struct reference_producer *p = peer;
    struct reference_extraction *e = at;

    if (e->out == NULL || !first_time(p))
        return false;
    reference_item_settle(e->item);
    e->out->array.release = NULL;
    reference_producer_fail(p, EIO, "at once");
    e->code = EIO;
    return true;
}

static bool spoilt_is_kept_quiet(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    p->phase = REFERENCE_FAILED;
    return true;
}

/* Takes some milliseconds. */
static bool dawdles(void *peer, void *at)
{
    const struct timespec pause = {.tv_nsec = 60 * 1000 * 1000};

    (void)at;
    if (first_time(peer))
        (void)nanosleep(&pause, NULL);
    return false;
}

/* ---- arrays ------------------------------------------------------------- */

static bool misshapes(void *peer, void *at)
{
    struct reference_producer *p = peer;
    struct reference_extraction *e = at;

    if (!first_time(p))
        return false;
    reference_array_misshape(e->out, (enum reference_shape)arg_of(p));
    return false;
}

static void call_nested(void *ctx)
{
    struct reference_producer *p = ctx;

    if (atomic_load(&p->inside) > 0 && first_time(p))
        reference_producer_offer(p);
}

static bool array_calls(void *peer, void *at)
{
    struct reference_producer *p = peer;

    (void)at;
    p->live_structs.ctx = p;
    p->live_structs.on_release = call_nested;
    return false;
}

/* ---- the table ---------------------------------------------------------- */

/* Pairs. The consumers request two batches at a time, in steps. */
static const struct reference_pair USUAL = {{.batches = 3, .metadata = true},
                                            {.first = 2, .more = 2}};
static const struct reference_pair EMPTY = {{0}, {.first = 1}};
static const struct reference_pair SILENT = {{0}, {0}};
static const struct reference_pair QUIET = {{.batches = 1}, {0}};
static const struct reference_pair AMPLE = {{.batches = 3}, {.first = 10}};
static const struct reference_pair AT_ONCE = {{.batches = 3},
                                              {.first = 2,
                                               .more = 2,
                                               .more_at_once = true,
                                               .extract = REFERENCE_AT_ONCE}};
static const struct reference_pair DISCARDS = {
    {.batches = 3}, {.first = 2, .more = 2, .discard = true}};
static const struct reference_pair ON_VPI = {
    {.batches = 2, .device_type = ARROW_DEVICE_VPI}, {.first = 2}};
static const struct reference_pair SPOILT = {
    {.batches = 4, .lazy = true, .spoilt_at = 1},
    {.first = 10, .extract = REFERENCE_AT_ONCE}};
static const struct reference_pair SPOILT_LATER = {
    {.batches = 2, .lazy = true, .spoilt_at = -1}, {.first = 10}};
static const struct reference_pair FAILS = {
    {.batches = 1, .fails = true, .metadata = true}, {.first = 10}};
static const struct reference_pair FAILS_FIRST = {{.fails_first = true}, {0}};
static const struct reference_pair REFUSES_SCHEMA = {{.batches = 1},
                                                     {.refuse_schema = true}};
static const struct reference_pair REFUSES = {{.batches = 4},
                                              {.first = 10, .refuse_at = 2}};
static const struct reference_pair REFUSES_AND_ASKS = {
    {.batches = 4}, {.first = 10, .refuse_at = 2, .asks_on = true}};
static const struct reference_pair CANCELS = {
    {.batches = -1}, {.first = 3, .more = 3, .cancel_at = 2}};
static const struct reference_pair CANCELS_INSIDE = {
    {.batches = -1},
    {.first = 3, .more = 3, .cancel_at = 2, .cancel_inside = true}};
static const struct reference_pair CANCELS_AND_ASKS = {{.batches = -1},
                                                       {.first = 3,
                                                        .more = 3,
                                                        .cancel_at = 2,
                                                        .cancel_inside = true,
                                                        .asks_on = true}};
static const struct reference_pair ASKS_TWICE = {{.batches = -1},
                                                 {.first = 2, .second = 3}};
static const struct reference_pair ASKS_BADLY = {{.batches = 3},
                                                 {.first = 5, .second = -1}};
static const struct reference_pair ASKS_LITTLE = {{.batches = 3}, {.first = 2}};
static const struct reference_pair ASKS_LATER = {{.batches = 3}, {.more = 3}};

#define AT(point) REFERENCE_AT_##point

static const struct reference_mutant MUTANTS[] = {
    {"AB-17", "cancel", AT(START), lacks_slot, 0, &USUAL, 0, NULL},
    {"AB-17", "request", AT(START), lacks_slot, 1, &QUIET, 0, NULL},
    {"AB-19", "", AT(START), layout_is_old, 0, &SILENT, 0, NULL},
    {"DA-04", "", AT(FILLED), misshapes, REFERENCE_ID_UNSET, &USUAL, 0, NULL},
    {"DA-05", "", AT(FILLED), misshapes, REFERENCE_CPU_NUMBERED, &USUAL, 0,
     NULL},
    {"DA-08", "", AT(FILLED), misshapes, REFERENCE_RESERVED_SET, &USUAL, 0,
     NULL},
    {"DA-21", "length", AT(FILLED), misshapes, REFERENCE_LENGTH_MINUS, &USUAL,
     0, NULL},
    {"DA-21", "offset", AT(FILLED), misshapes, REFERENCE_OFFSET_MINUS, &USUAL,
     0, NULL},
    {"DA-21", "nulls", AT(FILLED), misshapes, REFERENCE_NULLS_MINUS, &USUAL, 0,
     NULL},
    {"DA-21", "many_nulls", AT(FILLED), misshapes, REFERENCE_NULLS_MANY, &USUAL,
     0, NULL},
    {"DA-22", "data", AT(FILLED), misshapes, REFERENCE_DATA_NONE, &USUAL, 0,
     NULL},
    {"DA-22", "bitmap", AT(FILLED), misshapes, REFERENCE_BITMAP_NONE, &USUAL, 0,
     NULL},
    {"DA-23", "", AT(FILLED), misshapes, REFERENCE_OFFSETS_FALL, &USUAL, 0,
     NULL},
    {"DA-24", "", AT(FILLED), misshapes, REFERENCE_UNALIGNED, &USUAL, 0, NULL},
    {"DA-25", "children", AT(FILLED), misshapes, REFERENCE_CHILDREN_NONE,
     &USUAL, 0, NULL},
    {"DA-25", "child", AT(FILLED), misshapes, REFERENCE_CHILD_NONE, &USUAL, 0,
     NULL},
    {"EV-04", "", AT(FILLED), misshapes, REFERENCE_EVENT, &USUAL, 0, NULL},
    {"EV-09", "", AT(FILLED), misshapes, REFERENCE_EVENT, &ON_VPI, 0, NULL},
    {"AT-01", "", AT(OFFER), task_is_hollow, 0, &USUAL, 0, NULL},
    {"AT-04", "", AT(EXTRACT), discard_fails, 0, &DISCARDS, 0, NULL},
    {"AT-05", "untouched", AT(EXTRACT), extract_gives, UNTOUCHED, &USUAL, 0,
     NULL},
    {"AT-05", "released", AT(EXTRACT), extract_gives, RELEASED, &USUAL, 0,
     NULL},
    {"AT-07", "", AT(EXTRACT), extract_fails_and_fills, 0, &SPOILT_LATER, 0,
     NULL},
    {"AT-08", "", AT(FAIL), calls, TASK, &SPOILT, 0, NULL},
    {"AT-09", "", AT(EXTRACT), dawdles, 0, &USUAL, REFERENCE_SHOWS_SLOW, NULL},
    {"AT-16", "", AT(FILLED), misshapes, REFERENCE_TYPE_OTHER, &USUAL, 0, NULL},
    {"AT-17", "buffers", AT(FILLED), misshapes, REFERENCE_BUFFERS_MANY, &USUAL,
     0, NULL},
    {"AT-17", "dictionary", AT(FILLED), misshapes, REFERENCE_WORDS_NONE, &USUAL,
     0, NULL},
    {"AT-17", "children", AT(FILLED), misshapes, REFERENCE_CHILDREN_FEW, &USUAL,
     0, NULL},
    {"AT-20", "", AT(OFFERED), task_is_used_again, 0, &USUAL,
     REFERENCE_SHOWS_PERTURBED, NULL},
    {"AT-23", "", AT(EXTRACT), extract_calls, 0, &SPOILT_LATER, 0, NULL},
    {"AP-01", "zero", AT(START), type_is, 0, &EMPTY, 0, NULL},
    {"AP-01", "changes", AT(OFFER), type_changes, 0, &USUAL, 0, NULL},
    {"AP-02", "", AT(REQUEST), request_sets, 0, &ASKS_TWICE, 0, NULL},
    {"AP-03", "", AT(REQUEST), request_inside_is_lost, 0, &AMPLE, 0, NULL},
    {"AP-04", "outside", AT(REQUEST), request_calls, 0, &USUAL, 0, NULL},
    {"AP-04", "inside", AT(REQUEST), request_calls, 1, &AT_ONCE, 0, NULL},
    {"AP-05", "", AT(REQUEST), request_releases, 0, &REFUSES_AND_ASKS, 0, NULL},
    {"AP-06", "", AT(WAIT), ordered_waits_not, 1, &ASKS_LITTLE, 0, NULL},
    {"AP-07", "", AT(RELEASE), offers_after_cancel, 0, &CANCELS_AND_ASKS, 0,
     NULL},
    {"AP-09", "", AT(REQUEST), bad_request_is_lost, 0, &ASKS_BADLY, 0, "AP-08"},
    {"AP-13", "", AT(CANCEL), cancel_releases, 0, &CANCELS, 0, NULL},
    {"AP-14", "", AT(RELEASE), does_nothing, 0, &CANCELS, 0, NULL},
    {"AP-16", "", AT(RELEASE), tells_of_cancel, 0, &CANCELS, 0, NULL},
    {"AP-19", "", AT(OFFER), about_changes, 0, &USUAL, 0, NULL},
    {"AP-20", "", AT(OFFER), about_moves, 0, &USUAL, 0, NULL},
    {"AP-26", "", AT(REQUEST), request_is_lost, 0, &ASKS_LATER, 0, NULL},
    {"AP-28", "", AT(REQUEST), dawdles, 0, &ASKS_LATER, REFERENCE_SHOWS_SLOW,
     NULL},
    {"AH-03", "error", AT(START), does_nothing, 0, &FAILS_FIRST, 0, NULL},
    {"AH-03", "schema", AT(START), does_nothing, 0, &USUAL, 0, NULL},
    {"AH-05", "task", AT(SCHEMA), calls, TASK, &USUAL, 0, NULL},
    {"AH-05", "twice", AT(STARTED), calls, SCHEMA, &USUAL, 0, NULL},
    {"AH-05", "bare", AT(SCHEMA), sends_no_schema, 0, &USUAL, 0, NULL},
    {"AH-07", "none", AT(SCHEMA), schema_is_dead, 0, &USUAL, 0, NULL},
    {"AH-07", "released", AT(SCHEMA), schema_is_dead, 1, &USUAL, 0, NULL},
    {"AH-08", "end", AT(REFUSED), calls, END, &REFUSES_SCHEMA, 0, NULL},
    {"AH-08", "error", AT(REFUSED), calls, ERROR, &REFUSES_SCHEMA, 0, NULL},
    {"AH-10", "", AT(WAIT), ordered_waits_not, 0, &QUIET, 0, NULL},
    {"AH-11", "twice", AT(ENDED), calls, END, &AMPLE, 0, NULL},
    {"AH-11", "task", AT(ENDED), calls, TASK, &AMPLE, 0, NULL},
    {"AH-12", "", AT(END), does_nothing, 0, &USUAL, 0, NULL},
    {"AH-15", "", AT(REQUEST), request_overlaps, 0, &AT_ONCE, 0, NULL},
    {"AH-16", "error", AT(REFUSED), calls, ERROR, &REFUSES, 0, NULL},
    {"AH-16", "task", AT(REFUSED), calls, TASK, &REFUSES, 0, NULL},
    {"AH-17", "end", AT(FAILED), calls, END, &FAILS, 0, NULL},
    {"AH-17", "task", AT(FAILED), calls, TASK, &FAILS, 0, NULL},
    {"AH-17", "never", AT(RELEASE), does_nothing, 0, &FAILS, 0, NULL},
    {"AH-21", "twice", AT(RELEASED), calls, RELEASE, &USUAL, 0, NULL},
    {"AH-21", "never", AT(RELEASE), does_nothing, 0, &USUAL, 0, NULL},
    {"AH-22", "end", AT(RELEASED), calls, END, &AMPLE, 0, NULL},
    {"AH-22", "task", AT(RELEASED), calls, TASK, &AMPLE, 0, NULL},
    {"AH-22", "error", AT(RELEASED), calls, ERROR, &AMPLE, 0, NULL},
    {"AH-22", "schema", AT(RELEASED), calls, SCHEMA, &AMPLE, 0, NULL},
    {"AH-24", "", AT(END), ends_by_a_copy, 0, &USUAL, 0, NULL},
    {"AH-25", "", AT(STARTED), writes_private, 0, &USUAL, 0, NULL},
    {"AH-26", "", AT(STARTED), writes_slot, 0, &USUAL, 0, NULL},
    {"AH-29", "", AT(STARTED), writes_producer, 0, &USUAL, 0, NULL},
    {"AH-32", "", AT(FAILED), calls, ERROR, &FAILS, 0, NULL},
    {"AH-33", "", AT(ENDED), calls, ERROR, &AMPLE, 0, NULL},
    {"TH-01", "", AT(REQUEST), request_overlaps, 1, &AMPLE, 0, NULL},
    {"TH-08", "", AT(START), array_calls, 0, &AT_ONCE, 0, NULL},
    {"TH-09", "", AT(CANCEL), cancel_releases, 1, &CANCELS_INSIDE, 0, NULL},
    {"MD-02", "schema", AT(START), block_is, IN_SCHEMA | REFERENCE_EMPTY,
     &USUAL, 0, NULL},
    {"MD-02", "about", AT(START), block_is, IN_ABOUT | REFERENCE_EMPTY, &USUAL,
     0, NULL},
    {"MD-02", "task", AT(START), block_is, IN_TASK | REFERENCE_EMPTY, &USUAL, 0,
     NULL},
    {"MD-02", "error", AT(START), block_is, IN_ERROR | REFERENCE_EMPTY, &FAILS,
     0, NULL},
    {"MD-05", "schema_pairs", AT(START), block_is, IN_SCHEMA | REFERENCE_MINUS,
     &USUAL, 0, NULL},
    {"MD-05", "schema_key", AT(START), block_is,
     IN_SCHEMA | REFERENCE_MINUS_KEY, &USUAL, 0, NULL},
    {"MD-05", "schema_value", AT(START), block_is,
     IN_SCHEMA | REFERENCE_MINUS_WORD, &USUAL, 0, NULL},
    {"MD-05", "about_pairs", AT(START), block_is, IN_ABOUT | REFERENCE_MINUS,
     &USUAL, 0, NULL},
    {"MD-05", "about_key", AT(START), block_is, IN_ABOUT | REFERENCE_MINUS_KEY,
     &USUAL, 0, NULL},
    {"MD-05", "about_value", AT(START), block_is,
     IN_ABOUT | REFERENCE_MINUS_WORD, &USUAL, 0, NULL},
    {"MD-05", "task_pairs", AT(START), block_is, IN_TASK | REFERENCE_MINUS,
     &USUAL, 0, NULL},
    {"MD-05", "task_key", AT(START), block_is, IN_TASK | REFERENCE_MINUS_KEY,
     &USUAL, 0, NULL},
    {"MD-05", "task_value", AT(START), block_is, IN_TASK | REFERENCE_MINUS_WORD,
     &USUAL, 0, NULL},
    {"MD-05", "error_pairs", AT(START), block_is, IN_ERROR | REFERENCE_MINUS,
     &FAILS, 0, NULL},
    {"MD-05", "error_key", AT(START), block_is, IN_ERROR | REFERENCE_MINUS_KEY,
     &FAILS, 0, NULL},
    {"MD-05", "error_value", AT(START), block_is,
     IN_ERROR | REFERENCE_MINUS_WORD, &FAILS, 0, NULL},
    {"MD-09", "schema_pairs", AT(START), block_is, IN_SCHEMA | REFERENCE_CROWD,
     &USUAL, 0, NULL},
    {"MD-09", "schema_key", AT(START), block_is, IN_SCHEMA | REFERENCE_GIANT,
     &USUAL, 0, NULL},
    {"MD-09", "about_pairs", AT(START), block_is, IN_ABOUT | REFERENCE_CROWD,
     &USUAL, 0, NULL},
    {"MD-09", "about_key", AT(START), block_is, IN_ABOUT | REFERENCE_GIANT,
     &USUAL, 0, NULL},
    {"MD-09", "task_pairs", AT(START), block_is, IN_TASK | REFERENCE_CROWD,
     &USUAL, 0, NULL},
    {"MD-09", "task_key", AT(START), block_is, IN_TASK | REFERENCE_GIANT,
     &USUAL, 0, NULL},
    {"MD-09", "error_pairs", AT(START), block_is, IN_ERROR | REFERENCE_CROWD,
     &FAILS, 0, NULL},
    {"MD-09", "error_key", AT(START), block_is, IN_ERROR | REFERENCE_GIANT,
     &FAILS, 0, NULL},
    {"LC-05", "", AT(FILLED), misshapes, REFERENCE_CHILDREN_STAY, &USUAL,
     REFERENCE_SHOWS_DEEP, NULL},
    {"LC-07", "array", AT(FILLED), misshapes, REFERENCE_MARK_STAYS, &USUAL, 0,
     NULL},
    {"LC-07", "schema", AT(ISSUE), schema_stays_marked, 0, &USUAL, 0, NULL},
    {"ER-05", "", AT(FAIL), spoilt_is_kept_quiet, 0, &SPOILT, 0, NULL},
    {"ER-06", "", AT(FAIL), error_is_odd, 0, &FAILS, 0, NULL},
    {"ER-07", "", AT(FAIL), error_is_odd, 1, &FAILS, 0, NULL},
};

const struct reference_mutant *producer_mutants(int *count)
{
    *count = (int)(sizeof(MUTANTS) / sizeof(MUTANTS[0]));
    return MUTANTS;
}
