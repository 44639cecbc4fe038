/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: start, then one callback in each step: on_schema; while there is
 * demand on_next_task; on_next_task(NULL); release. request and cancel only
 * record the call.
 * Failures: the source (fails, fails_first), an extraction (spoilt_at),
 * cancelling (cancel_code), a request (n <= 0): on_error, once, then release.
 * After a callback that returns an error only release follows. On cancel:
 * batches requested before may still come (late), then release. */
#include "support/reference_producer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/reference_mutant.h"

static bool acts(struct reference_producer *p, enum reference_point point,
                 void *at)
{
    return reference_mutant_acts(p->how.mutant, point, p, at);
}

/* ---- the producer object ------------------------------------------------ */

static void count_demand(struct reference_producer *p, int64_t n)
{
    if (n <= 0)
        p->now.view.bad_request =
            !p->now.view.cancelled || p->now.view.bad_request;
    else if (!p->now.view.cancelled)
        p->now.view.demand = n > INT64_MAX - p->now.view.demand
                                 ? INT64_MAX
                                 : p->now.view.demand + n;
    if (n > 0 && !p->now.view.cancelled)
        p->now.asked =
            n > INT64_MAX - p->now.asked ? INT64_MAX : p->now.asked + n;
}

static void *step_all(void *ctx)
{
    while (reference_producer_step(ctx))
        ;
    return NULL;
}

static void step_elsewhere(struct reference_producer *p)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, step_all, p) != 0)
        abort();
    pthread_join(thread, NULL);
}

static void on_request(struct ArrowAsyncProducer *self, int64_t n)
{
    struct reference_producer *p = self->private_data;

    if (self != &p->object)
        atomic_fetch_add(&p->faults, 1);
    if (acts(p, REFERENCE_AT_REQUEST, &n))
        return;
    pthread_mutex_lock(&p->lock);
    count_demand(p, n);
    pthread_mutex_unlock(&p->lock);
    if (p->how.steps_in_request && atomic_load(&p->inside) == 0)
        step_elsewhere(p);
}

static void on_cancel(struct ArrowAsyncProducer *self)
{
    struct reference_producer *p = self->private_data;

    if (self != &p->object)
        atomic_fetch_add(&p->faults, 1);
    if (acts(p, REFERENCE_AT_CANCELLING, NULL))
        return;
    pthread_mutex_lock(&p->lock);
    p->now.view.cancelled = true;
    pthread_mutex_unlock(&p->lock);
    if (!acts(p, REFERENCE_AT_CANCEL, NULL) && p->how.reports_at_once &&
        p->how.cancel_code != 0 && p->phase == REFERENCE_OPEN &&
        atomic_load(&p->inside) == 0)
        reference_producer_fail(p, p->how.cancel_code, "cannot stop");
}

static void late_request(struct ArrowAsyncProducer *self, int64_t n)
{
    struct reference_producer *p = self->private_data;

    (void)n;
    atomic_fetch_add(&p->faults, 1);
}

static void late_cancel(struct ArrowAsyncProducer *self)
{
    late_request(self, 0);
}

/* ---- setup and end ------------------------------------------------------ */

void reference_producer_init(struct reference_producer *p,
                             const struct reference_producer_options *how)
{
    memset(p, 0, sizeof(*p));
    p->how = *how;
    if (how->device_type == 0)
        p->how.device_type = ARROW_DEVICE_CPU;
    if (how->metadata) {
        p->blocks.schema = p->blocks.about = REFERENCE_SOUND;
        p->blocks.task = p->blocks.error = REFERENCE_SOUND;
    }
    pthread_mutex_init(&p->lock, NULL);
}

void reference_producer_start(struct reference_producer *p,
                              struct ArrowAsyncDeviceStreamHandler *handler)
{
    p->handler = handler;
    p->phase = REFERENCE_ATTACHED;
    p->object = (struct ArrowAsyncProducer){
        .device_type = p->how.device_type,
        .request = on_request,
        .cancel = on_cancel,
        .private_data = p,
    };
    if (!acts(p, REFERENCE_AT_START, NULL))
        handler->producer = &p->object;
    if (p->blocks.about != REFERENCE_NONE)
        p->object.additional_metadata = memcpy(
            p->about, reference_block(p->blocks.about), sizeof(p->about));
}

void reference_producer_fini(struct reference_producer *p)
{
    struct reference_item *item = p->now.items, *older;

    for (; item != NULL; item = older) {
        older = item->older;
        free(item);
    }
    reference_counts_fini(&p->live_structs);
    pthread_mutex_destroy(&p->lock);
}

bool reference_producer_over(const struct reference_producer *p)
{
    return p->phase == REFERENCE_OVER;
}

/* ---- tasks -------------------------------------------------------------- */

static struct reference_item *item_new(struct reference_producer *p)
{
    struct reference_item *item = calloc(1, sizeof(*item));

    if (item == NULL)
        abort();
    item->producer = p;
    item->ordinal = p->next++;
    pthread_mutex_lock(&p->lock);
    item->older = p->now.items;
    p->now.items = item;
    p->now.view.held++;
    if (p->now.view.demand > 0 && p->now.view.demand < INT64_MAX)
        p->now.view.demand--;
    pthread_mutex_unlock(&p->lock);
    return item;
}

bool reference_item_settle(struct reference_item *item)
{
    struct reference_producer *p = item->producer;
    bool first;

    pthread_mutex_lock(&p->lock);
    first = !item->settled;
    item->settled = true;
    p->now.view.held -= first;
    pthread_mutex_unlock(&p->lock);
    return first;
}

static void spoil(struct reference_producer *p)
{
    pthread_mutex_lock(&p->lock);
    p->now.view.spoilt = true;
    pthread_mutex_unlock(&p->lock);
}

static int extract(struct reference_extraction *e)
{
    struct reference_producer *p = e->item->producer;

    if (!reference_item_settle(e->item)) {
        atomic_fetch_add(&p->faults, 1);
        return EINVAL;
    }
    if (e->out == NULL)
        return 0;
    if (p->how.lazy && e->item->ordinal == p->how.spoilt_at) {
        if (!p->how.leaves_out)
            e->out->array.release = NULL;
        spoil(p);
        if (p->how.reports_early && atomic_load(&p->inside) == 0)
            step_elsewhere(p);
        return EIO;
    }
    reference_array(&p->live_structs, e->item->ordinal, e->out);
    e->out->device_type = p->how.device_type;
    acts(p, REFERENCE_AT_FILLED, e);
    return 0;
}

static int task_extract(struct ArrowAsyncTask *self,
                        struct ArrowDeviceArray *out)
{
    struct reference_extraction e = {self->private_data, out, 0};
    struct reference_producer *p = e.item->producer;

    if (!acts(p, REFERENCE_AT_EXTRACT, &e))
        e.code = extract(&e);
    atomic_fetch_add(&p->settled, 1);
    return e.code;
}

/* ---- callbacks ---------------------------------------------------------- */

static const char *block_copy(enum reference_block which, char *storage)
{
    const char *block = reference_block(which);

    return block == NULL ? NULL : memcpy(storage, block, REFERENCE_BLOCK_SIZE);
}

/* Handles the return code of a callback. */
static void answer(struct reference_producer *p, int code)
{
    if (code == 0)
        return;
    p->phase = REFERENCE_REFUSED;
    acts(p, REFERENCE_AT_REFUSED, NULL);
}

void reference_producer_schema(struct reference_producer *p)
{
    struct ArrowSchema schema;
    int code;

    reference_schema(&p->live_structs, reference_block(p->blocks.schema),
                     &schema);
    acts(p, REFERENCE_AT_ISSUE, &schema);
    p->phase = REFERENCE_OPEN;
    atomic_fetch_add(&p->inside, 1);
    code = p->handler->on_schema(p->handler, &schema);
    atomic_fetch_sub(&p->inside, 1);
    if (schema.release != NULL) {
        atomic_fetch_add(&p->faults, 1); /* AH-06 */
        schema.release(&schema);
    }
    memset(&schema, 0x5A, sizeof(schema));
    answer(p, code);
    if (code == 0)
        acts(p, REFERENCE_AT_STARTED, NULL);
}

void reference_producer_offer(struct reference_producer *p)
{
    char metadata[REFERENCE_BLOCK_SIZE] = {0};
    struct reference_item *item = item_new(p);
    struct ArrowAsyncTask task = {task_extract, item};
    int code;

    if (acts(p, REFERENCE_AT_OFFER, &task))
        return;
    atomic_fetch_add(&p->offered, 1);
    atomic_fetch_add(&p->inside, 1);
    code = p->handler->on_next_task(p->handler, &task,
                                    block_copy(p->blocks.task, metadata));
    atomic_fetch_sub(&p->inside, 1);
    acts(p, REFERENCE_AT_OFFERED, &task);
    memset(&task, 0x5A, sizeof(task)); /* AT-13 */
    memset(metadata, 0x5A, sizeof(metadata));
    if (code != 0 && reference_item_settle(item))
        atomic_fetch_add(&p->settled, 1); /* LC-18 */
    answer(p, code);
}

void reference_producer_end(struct reference_producer *p)
{
    p->phase = REFERENCE_ENDED;
    if (acts(p, REFERENCE_AT_END, NULL))
        return;
    atomic_fetch_add(&p->inside, 1);
    p->handler->on_next_task(p->handler, NULL, NULL);
    atomic_fetch_sub(&p->inside, 1);
    acts(p, REFERENCE_AT_ENDED, NULL);
}

void reference_producer_fail(struct reference_producer *p, int code,
                             const char *text)
{
    char metadata[REFERENCE_BLOCK_SIZE] = {0}, message[32] = "";

    p->phase = REFERENCE_FAILED;
    strncat(message, text, sizeof(message) - 1);
    if (acts(p, REFERENCE_AT_FAIL, NULL))
        return;
    atomic_fetch_add(&p->inside, 1);
    p->handler->on_error(p->handler, code, message,
                         block_copy(p->blocks.error, metadata));
    atomic_fetch_sub(&p->inside, 1);
    memset(message, 0x5A, sizeof(message)); /* AH-20 */
    memset(metadata, 0x5A, sizeof(metadata));
    acts(p, REFERENCE_AT_FAILED, NULL);
}

void reference_producer_release(struct reference_producer *p)
{
    const bool silent = acts(p, REFERENCE_AT_RELEASE, NULL);

    p->phase = REFERENCE_OVER;
    if (silent)
        return;
    atomic_fetch_add(&p->inside, 1);
    p->handler->release(p->handler);
    atomic_fetch_sub(&p->inside, 1);
    atomic_fetch_add(&p->released, 1);
    p->object.request = late_request;
    p->object.cancel = late_cancel;
    acts(p, REFERENCE_AT_RELEASED, NULL);
}

/* ---- steps -------------------------------------------------------------- */

static bool wait_for_more(struct reference_producer *p)
{
    return acts(p, REFERENCE_AT_WAIT, NULL);
}

static bool step_schema(struct reference_producer *p)
{
    if (p->how.fails_first)
        reference_producer_fail(p, EIO, "no source");
    else if (!acts(p, REFERENCE_AT_SCHEMA, NULL))
        reference_producer_schema(p);
    return true;
}

static bool has_next(const struct reference_producer *p)
{
    return p->how.batches < 0 || p->next < p->how.batches;
}

static bool step_cancelled(struct reference_producer *p, int64_t demand)
{
    if (p->how.late > 0 && demand > 0 && has_next(p)) {
        p->how.late--;
        reference_producer_offer(p);
    } else if (p->how.cancel_code != 0) {
        reference_producer_fail(p, p->how.cancel_code, "cannot stop");
    } else if (p->how.late_end) {
        reference_producer_end(p);
    } else {
        reference_producer_release(p);
    }
    return true;
}

static bool step_source(struct reference_producer *p, int64_t demand)
{
    const bool next = has_next(p);

    if (demand == 0 && (next || p->how.end_is_asked))
        return wait_for_more(p);
    if (next)
        reference_producer_offer(p);
    else if (p->how.fails)
        reference_producer_fail(p, EIO, "the source failed");
    else
        reference_producer_end(p);
    return true;
}

static bool step_ended(struct reference_producer *p,
                       const struct reference_view *view)
{
    if (view->spoilt && !view->cancelled)
        reference_producer_fail(p, EIO, "a batch is spoilt");
    else if (p->how.lazy && !p->how.hurries && view->held > 0 &&
             !view->cancelled)
        return false;
    else
        reference_producer_release(p);
    return true;
}

static bool step_open(struct reference_producer *p,
                      const struct reference_view *view)
{
    if (view->cancelled)
        return step_cancelled(p, view->demand);
    if (view->bad_request)
        reference_producer_fail(p, EINVAL, "n must be positive");
    else if (view->spoilt)
        reference_producer_fail(p, EIO, "a batch is spoilt");
    else
        return step_source(p, view->demand);
    return true;
}

static bool step(struct reference_producer *p,
                 const struct reference_view *view)
{
    switch (p->phase) {
    case REFERENCE_ATTACHED:
        return step_schema(p);
    case REFERENCE_OPEN:
        return step_open(p, view);
    case REFERENCE_ENDED:
        return step_ended(p, view);
    case REFERENCE_FAILED:
    case REFERENCE_REFUSED:
        reference_producer_release(p);
        return true;
    default:
        return false;
    }
}

static struct reference_view look(struct reference_producer *p)
{
    struct reference_view view;

    pthread_mutex_lock(&p->lock);
    view = p->now.view;
    pthread_mutex_unlock(&p->lock);
    return view;
}

bool reference_producer_step(struct reference_producer *p)
{
    const struct reference_view view = p->how.hasty ? p->view : look(p);
    bool moved;

    p->stepper = pthread_self();
    moved = step(p, &view);
    p->view = look(p);
    return moved;
}
