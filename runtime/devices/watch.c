/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  new -> begin -> armed by the service -> notified by the vendor,
 *              or asked after until it is complete -> fired: the client is told
 *              -> settled by the service -> the last count frees.
 *
 * What can fail: memory, at the start; the table, the arming, the event: told
 *              as the outcome. A callback that never comes is asked after.
 *
 * On cancel:   the service stops asking, then tells; what was armed stays with
 *              the vendor until it notifies. Where it never does, the few
 *              hundred bytes of the watch stay behind. */
#include "devices/watch.h"

#include <assert.h>
#include <stdlib.h>

#include "uvarrow/arrow.h"

enum { ARM_AGAIN_NS = 2000000 }; /* who only polls so far is asked to arm */

static void watch_begin_run(struct uva__errand *errand);
static void watch_end_run(struct uva__errand *errand);
static void watch_tidy_run(struct uva__errand *errand);
static bool watch_look(struct uva__chore *chore, uint64_t age_ns);

/* ---- life --------------------------------------------------------------- */

int uva__watch_new(struct uva__devices *devices,
                   const struct uva_device_event *event,
                   void (*over)(struct uva_watch *watch), void *client,
                   struct uva_watch **out)
{
    struct uva_watch *watch = calloc(1, sizeof(*watch));

    if (watch == NULL)
        return ENOMEM;
    watch->devices = uva__devices_acquire(devices);
    watch->backend = uva__devices_backend(devices, event->device_type);
    watch->event = *event;
    watch->over = over;
    watch->client = client;
    watch->begin.run = watch_begin_run;
    watch->end.run = watch_end_run;
    watch->tidy.run = watch_tidy_run;
    watch->chore.look = watch_look;
    uva__word_store(&watch->refs, 1);
    *out = watch;
    return 0;
}

static void watch_acquire(struct uva_watch *watch)
{
    uva__word_add(&watch->refs, 1);
}

void uva__watch_release(struct uva_watch *watch)
{
    struct uva__devices *devices = watch->devices;

    if (uva__word_sub(&watch->refs, 1) != 1)
        return;
    if (watch->work != NULL)
        watch->work->free(watch->work);
    free(watch);
    uva__devices_release(devices);
}

void **uva_watch_slots(struct uva_watch *watch)
{
    return watch->slots;
}

/* ---- the outcome -------------------------------------------------------- */

/* Who comes first has the say. `error` may be NULL, where code is 0. */
static void watch_fire(struct uva_watch *watch, int code,
                       const struct uva_error *error, bool unsure)
{
    if (uva__word_exchange(&watch->fired, 1) != 0)
        return;
    if (code != 0)
        watch->error = *error;
    watch->unsure = unsure;
    if (uva__word_exchange(&watch->side, UVA__WATCH_OVER) != UVA__WATCH_LEFT)
        watch->over(watch);
}

/* Calls the table's query, with a text for a failure that has none. */
static int watch_query(struct uva_watch *watch, struct uva_error *error)
{
    const struct uva_device_ops *ops = watch->backend->ops;
    int code;

    *error = (struct uva_error){0};
    code = ops->query(watch->backend->state, &watch->event, error);
    if (code != 0 && code != EAGAIN && error->code == 0)
        (void)uva_error_set(error, code, "%s: the event of a batch has failed",
                            ops->name);
    return code;
}

int uva__watch_outcome(struct uva_watch *watch)
{
    struct uva_error error;
    int code;

    assert(uva__watch_is_over(watch));
    if (!watch->unsure)
        return watch->error.code;
    watch->unsure = false;
    code = watch_query(watch, &error);
    if (code != 0 && code != EAGAIN)
        watch->error = error;
    return watch->error.code;
}

int uva__watch_peek(struct uva__devices *devices,
                    const struct uva_device_event *event,
                    struct uva_error *error)
{
    struct uva__backend *backend =
        uva__devices_backend(devices, event->device_type);

    if (uva__word_load(&backend->loaded) != UVA__LOADED_OK ||
        !backend->ops->query_quick)
        return EAGAIN;
    return backend->ops->query(backend->state, event, error);
}

/* ---- beginning ---------------------------------------------------------- */

/* Counts for the vendor first, who may notify inside arm. */
static int watch_arm(struct uva_watch *watch, struct uva_error *error)
{
    const struct uva_device_ops *ops = watch->backend->ops;
    int code;

    if (ops->arm == NULL)
        return EAGAIN;
    watch_acquire(watch);
    *error = (struct uva_error){0};
    code = ops->arm(watch->backend->state, &watch->event, watch, error);
    watch->own.armed = code == EINPROGRESS;
    watch->chore.backed = watch->own.armed;
    if (!watch->own.armed)
        uva__watch_release(watch);
    if (code != 0 && code != EINPROGRESS && code != EAGAIN && error->code == 0)
        (void)uva_error_set(error, code, "%s: cannot wait for the event",
                            ops->name);
    return code;
}

/* Makes a stream of the consumer's wait, on the device. */
static int watch_chain(struct uva_watch *watch, struct uva_error *error)
{
    const struct uva_device_ops *ops = watch->backend->ops;
    int code;

    if (ops->stream_wait == NULL)
        return uva_error_set(error, ENOTSUP,
                             "%s: streams of this device cannot be made to "
                             "wait; use UVA_WAIT_HOST",
                             ops->name);
    code = ops->stream_wait(watch->backend->state, &watch->event,
                            watch->device_stream, error);
    if (code != 0 && error->code == 0)
        (void)uva_error_set(error, code, "%s: cannot make the stream wait",
                            ops->name);
    return code;
}

/* The next step of its work; while one is under way the service is in use. */
static int watch_step(struct uva_watch *watch, struct uva_error *error)
{
    const bool before = watch->own.working;
    int code;

    *error = (struct uva_error){0};
    code = watch->work->step(watch->work, &watch->event, error);
    watch->own.working = code == EINPROGRESS;
    if (watch->own.working && !before)
        uva__devices_use(watch->devices);
    if (before && !watch->own.working)
        uva__devices_quit(watch->devices);
    return code;
}

static int watch_start(struct uva_watch *watch, struct uva_error *error)
{
    if (watch->work != NULL)
        return watch_step(watch, error);
    return watch->device_stream != NULL ? watch_chain(watch, error)
                                        : watch_arm(watch, error);
}

static void watch_begin_run(struct uva__errand *errand)
{
    struct uva_watch *watch =
        uva__container_of(errand, struct uva_watch, begin);
    struct uva_error error = {0};
    int code = uva__backend_load(watch->backend, &error);

    if (code == 0 && uva__word_load(&watch->fired) == 0)
        code = watch_start(watch, &error);
    if (code == EAGAIN)
        code = watch_query(watch, &error);
    if (code == EAGAIN || code == EINPROGRESS) {
        uva__service_ask(&watch->devices->service, &watch->chore);
        return;
    }
    watch_fire(watch, code, &error, false);
    uva__watch_release(watch);
}

/* The service's count is given up when the chore is over. */
void uva__watch_begin(struct uva_watch *watch)
{
    struct uva_error error;

    watch_acquire(watch);
    if (uva__service_send(&watch->devices->service, &watch->begin))
        return;
    (void)uva_error_set(&error, ESHUTDOWN, "the workers are gone");
    watch_fire(watch, ESHUTDOWN, &error, false);
    uva__watch_release(watch);
}

static int error_of_cancel(struct uva_error *error)
{
    return uva_error_set(error, ECANCELED, "the wait was cancelled");
}

/* ---- while it lasts ----------------------------------------------------- */

static void watch_settle(struct uva_watch *watch)
{
    const struct uva_device_ops *ops = watch->backend->ops;

    if (watch->own.armed && !watch->own.settled && ops->settle != NULL)
        ops->settle(watch->backend->state, watch);
    watch->own.settled = true;
}

/* True: it is complete or has failed, and the client knows. */
static bool watch_ask(struct uva_watch *watch)
{
    struct uva_error error;
    int code = watch_query(watch, &error);

    if (code == 0 && watch->own.working && !watch->own.cut)
        code = watch_step(watch, &error);
    if (code == EAGAIN || code == EINPROGRESS)
        return false;
    if (watch->own.working) { /* cut short, or the event has failed */
        watch->own.working = false;
        watch->work->stop(watch->work);
        uva__devices_quit(watch->devices);
    }
    if (code == 0 && watch->own.cut)
        code = error_of_cancel(&error);
    watch_fire(watch, code, &error, false);
    return true;
}

/* A callback has come, or none is expected: then what is polled may be worth a
 * callback by now. */
static void watch_arm_again(struct uva_watch *watch, uint64_t age_ns)
{
    struct uva_error error;
    int code;

    if (watch->own.armed || watch->own.asked || watch->work != NULL ||
        age_ns < ARM_AGAIN_NS)
        return;
    watch->own.asked = true;
    code = watch_arm(watch, &error);
    if (code != EAGAIN && code != EINPROGRESS)
        watch_fire(watch, code, &error, false);
}

/* The service has no more to do with it, but for a vendor's notify. */
static bool watch_leave(struct uva_watch *watch)
{
    uva__watch_release(watch);
    return true;
}

static bool watch_look(struct uva__chore *chore, uint64_t age_ns)
{
    struct uva_watch *watch = uva__container_of(chore, struct uva_watch, chore);
    const bool said = uva__word_load(&watch->said) != 0;
    struct uva_error error;

    if (uva__word_load(&watch->fired) == 0 && watch_ask(watch)) {
        watch_settle(watch);
        return watch_leave(watch);
    }
    if (uva__word_load(&watch->fired) == 0)
        watch_arm_again(watch, age_ns);
    if (uva__word_load(&watch->fired) == 0 &&
        uva__service_is_ending(&watch->devices->service)) {
        (void)uva_error_set(&error, ECANCELED, "the workers are gone");
        watch_fire(watch, ECANCELED, &error, false);
    }
    if (uva__word_load(&watch->fired) == 0) {
        chore->backed = watch->own.armed && !said;
        return false;
    }
    if (said)
        watch_settle(watch);
    return watch_leave(watch);
}

/* ---- what vendors say --------------------------------------------------- */

/* The vendor's count goes with the errand. */
static void watch_tidy_run(struct uva__errand *errand)
{
    struct uva_watch *watch = uva__container_of(errand, struct uva_watch, tidy);

    if (watch->chore.listed)
        uva__service_ask(&watch->devices->service, &watch->chore);
    else
        watch_settle(watch);
    uva__watch_release(watch);
}

static void error_of_vendor(struct uva_error *error, int code, int vendor_code,
                            const char *vendor)
{
    (void)uva_error_set(error, code,
                        "%s: the event of a batch has failed with %d",
                        vendor != NULL ? vendor : "device", vendor_code);
    error->vendor = vendor;
    error->vendor_code = vendor_code;
}

/* Complete, by a callback, is believed only as far as a quick query by the
 * client, or one by the service, agrees. */
void uva_watch_notify(struct uva_watch *watch, int code, int vendor_code,
                      const char *vendor)
{
    struct uva__service *service = &watch->devices->service;
    const bool quick = watch->backend->ops->query_quick;
    struct uva_error error;
    bool sent;

    if (code != 0)
        error_of_vendor(&error, code, vendor_code, vendor);
    uva__word_exchange(&watch->said, 1);
    if (code != 0 || quick)
        watch_fire(watch, code, &error, code == 0);
    sent = code != 0 || quick ? uva__service_leave(service, &watch->tidy)
                              : uva__service_send(service, &watch->tidy);
    if (!sent)
        uva__watch_release(watch);
}

/* ---- an early end ------------------------------------------------------- */

/* Comes behind the begin, so the chore is listed unless it is over. */
static void watch_end_run(struct uva__errand *errand)
{
    struct uva_watch *watch = uva__container_of(errand, struct uva_watch, end);
    struct uva_error error;

    watch->own.cut = true;
    if (!watch->own.working)
        watch_fire(watch, error_of_cancel(&error), &error, false);
    if (watch->chore.listed)
        uva__service_ask(&watch->devices->service, &watch->chore);
    if (watch->left.array.release != NULL)
        uva_array_release(&watch->left);
    uva__watch_release(watch);
}

/* Without a service nobody looks at the event any more. */
static void watch_end(struct uva_watch *watch)
{
    if (!uva__service_send(&watch->devices->service, &watch->end))
        watch_end_run(&watch->end);
}

void uva__watch_cancel(struct uva_watch *watch)
{
    watch_acquire(watch);
    watch_end(watch);
}

bool uva__watch_abandon(struct uva_watch *watch, struct ArrowDeviceArray *array)
{
    uint64_t pending = UVA__WATCH_PENDING;

    if (!uva__word_cas(&watch->side, &pending, UVA__WATCH_LEFT))
        return false;
    uva_array_move(array, &watch->left);
    watch_end(watch);
    return true;
}
