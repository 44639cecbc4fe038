/* SPDX-License-Identifier: Apache-2.0 */
/* Copies each batch to another device or to the host, several at once, in
 * order. The copies are the service's work; the stage waits for them as it
 * would for events: to the host until they are complete, to a device until they
 * were begun. */
#include <errno.h>

#include "base/memory.h"
#include "arrow/structs.h"
#include "device/copy.h"
#include "stage/ordered_waits.h"
#include "stream/stream_impl.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

struct transfer {
    struct uva__waits waits;        /* first */
    struct uva__copy_target target; /* where to */
    struct ArrowSchema schema;      /* owns: of the batches; once known */
};

static struct transfer *transfer_of(struct uva__waits *waits)
{
    return uva__container_of(waits, struct transfer, waits);
}

/* ---- batches ------------------------------------------------------------ */

/* The array goes into the copy; what the wait holds meanwhile is released. */
static void transfer_copy(struct transfer *t, struct uva__wait *wait)
{
    struct uva__waits *waits = &t->waits;
    struct uva_device_event event;
    struct uva__copy *copy;
    struct uva_error error;
    int code = uva__copy_new(waits->devices, &t->target, &t->schema,
                             &wait->array, &copy, &error);

    if (code != 0) {
        uva__wait_fail(waits, wait, code, &error);
        return;
    }
    if (uva__copy_goes_on(copy) && uva__waits_depart(waits, wait))
        uva__copy_tell(copy, &(struct uva__tail_client){uva__waits_land, waits,
                                                        wait->bytes});
    event = uva__copy_event(copy);
    uva__wait_work(waits, wait, &event, uva__copy_work(copy));
}

/* The host can read it behind its event. */
static void transfer_wait(struct transfer *t, struct uva__wait *wait)
{
    const struct uva_device_event event = {
        wait->array.device_type, wait->array.device_id, wait->array.sync_event};
    struct uva_error error;

    switch (uva__devices_judge(t->waits.devices, event.device_type,
                               event.sync_event, &error)) {
    case UVA__EVENT_NONE:
        uva__wait_retype(wait, t->target.device_type, t->target.device_id);
        break;
    case UVA__EVENT_WAIT:
        uva__wait_watch(&t->waits, wait, &event, NULL);
        break;
    case UVA__EVENT_ALIEN:
        uva__wait_fail(&t->waits, wait, error.code, &error);
        break;
    }
}

static void transfer_begin(struct uva__waits *waits, struct uva__wait *wait)
{
    struct transfer *t = transfer_of(waits);
    struct uva_error error;

    switch (uva__copy_find(waits->devices, &t->target, &wait->array, &error)) {
    case UVA__COPY_NONE:
        if (wait->array.device_type == ARROW_DEVICE_CPU)
            wait->array.sync_event = NULL; /* EV-04 */
        break;
    case UVA__COPY_WAIT:
        transfer_wait(t, wait);
        break;
    case UVA__COPY_MOVE:
        transfer_copy(t, wait);
        break;
    case UVA__COPY_LOST:
        uva__wait_fail(waits, wait, error.code, &error);
        break;
    }
}

static void transfer_seen(struct uva__waits *waits, struct uva__wait *wait,
                          const struct uva_error *error)
{
    struct transfer *t = transfer_of(waits);

    if (error->code != 0)
        uva__wait_fail(waits, wait, error->code, error);
    else if (wait->watch->work != NULL)
        uva__copy_give(wait->watch->work, &wait->array);
    else
        uva__wait_retype(wait, t->target.device_type, t->target.device_id);
}

/* The producer below takes the feed's schema when it tells it. */
static bool transfer_prepare(struct uva__waits *waits)
{
    struct transfer *t = transfer_of(waits);

    return uva__structs_copy_schema(&waits->op.feed.hub->allocator,
                                    &waits->op.feed.schema, &t->schema) == 0;
}

/* ---- life --------------------------------------------------------------- */

static void transfer_free(struct uva__operator *op,
                          const struct uva_allocator *allocator)
{
    struct transfer *t =
        transfer_of(uva__container_of(op, struct uva__waits, op));

    uva_schema_release(&t->schema);
    uva__waits_fini(&t->waits, allocator);
    uva__memory_free(allocator, t, sizeof(*t));
}

/* What the stage is made from. */
struct recipe {
    struct uva__copy_target target;
    struct uva_window window;     /* complete */
    struct uva__devices *devices; /* borrows */
};

static struct uva__feed *transfer_make(struct uva__producer *above,
                                       const void *given)
{
    static const struct uva__waits_ops waits_ops = {
        transfer_begin, transfer_seen, transfer_prepare};
    static const struct uva__operator_ops ops = {
        .feed = {.name = "transfer",
                 .start = uva__operator_start,
                 .pull = uva__waits_pull,
                 .take = uva__waits_take,
                 .stop = uva__waits_stop,
                 .leave = uva__operator_leave},
        .task = uva__waits_task,
        .free = transfer_free,
    };
    const struct recipe *recipe = given;
    struct transfer *t = uva__memory_new(&above->hub->allocator, sizeof(*t));

    if (t == NULL)
        return NULL;
    t->target = recipe->target;
    t->waits.window = recipe->window;
    t->waits.op.becomes = recipe->target.device_type;
    uva__waits_init(&t->waits, &ops, &waits_ops, above, recipe->devices);
    return &t->waits.op.feed;
}

static int transfer_check(struct uva_stream *stream,
                          const struct uva_transfer *how, struct recipe *out)
{
    if (!uva__memory_is_clear(how->reserved, 4))
        return uva__flow_fail(stream, EINVAL,
                              "uva_transfer: reserved members must be NULL; "
                              "clear the struct before filling it in");
    if (how->device_type < 0 || how->device_type >= UVA__DEVICE_TYPES ||
        uva__window_complete(&how->window, &out->window) != 0)
        return uva__flow_fail(stream, EINVAL,
                              "uva_transfer: an unknown device type, or a "
                              "negative window");
    out->target = (struct uva__copy_target){how->device_type, how->device_id};
    if (how->device_type == 0 || how->device_type == ARROW_DEVICE_CPU)
        out->target = (struct uva__copy_target){ARROW_DEVICE_CPU, -1};
    return 0;
}

/* Extraction that may take long is done by workers first. */
static int transfer_spread(struct uva_stream *stream,
                           const struct uva_window *window)
{
    if (!stream->tail->dear)
        return 0;
    return uva_stream_parallel(stream,
                               &(struct uva_parallel){.window = *window});
}

int uva_stream_transfer(struct uva_stream *stream,
                        const struct uva_transfer *how)
{
    const struct uva_transfer none = {0};
    struct recipe recipe;
    int code = uva__flow_building(stream);

    if (code == 0)
        code = transfer_check(stream, how != NULL ? how : &none, &recipe);
    if (code == 0)
        code = transfer_spread(stream, &recipe.window);
    if (code != 0)
        return code;
    code = uva__fence_service(stream->hub, &recipe.devices);
    if (code != 0)
        return uva__flow_fail(stream, code,
                              "transfer: no thread or memory to copy with");
    code = uva__flow_wrap(stream, transfer_make, &recipe);
    uva__devices_release(recipe.devices);
    if (code == 0)
        stream->device_data = recipe.target.device_type != ARROW_DEVICE_CPU;
    return code;
}
