/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  new -> begin -> the device thread arms a callback of the vendor
 * -> the callback comes, or polling finds the event complete -> fired: the
 * client is notified -> settled by the device thread -> the last reference is
 * dropped: freed.
 *
 * What can fail: memory, at the start; the table, the arming, the event: they
 *              are reported as the outcome. A callback that never comes is made
 *              up for by polling.
 *
 * On cancel:   the device thread stops polling, then notifies the client; an
 *              armed callback keeps its reference until it comes. If it never
 *              does, the few hundred bytes of the wait are never freed. */
#include "device/event_wait.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>

#include "base/error.h"
#include "device/wait_error.h"
#include "uvarrow/arrow.h"

enum { ARM_AGAIN_NS = 2000000 }; /* age at which a polled wait is armed */

static void watch_begin_run(struct uva__errand *errand);
static void watch_end_run(struct uva__errand *errand);
static void watch_tidy_run(struct uva__errand *errand);
static bool watch_look(struct uva__chore *chore, uint64_t age_ns);
static void watch_finish(struct uva__chore *chore);

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
    watch->quick = watch->backend->ops->query_quick;
    watch->event = *event;
    watch->over = over;
    watch->client = client;
    watch->begin.run = watch_begin_run;
    watch->end.run = watch_end_run;
    watch->tidy.run = watch_tidy_run;
    watch->chore.look = watch_look;
    watch->chore.finish = watch_finish;
    uva__word_store(&watch->refs, 1);
    *out = watch;
    return 0;
}

void uva__watch_release(struct uva_watch *watch)
{
    struct uva__devices *devices = watch->devices;

    if (uva__word_sub(&watch->refs, 1) != 1)
        return;
    if (watch->work != NULL)
        watch->work->free(watch->work);
    free(watch->text);
    free(watch);
    uva__devices_release(devices);
}

void **uva_watch_slots(struct uva_watch *watch)
{
    return watch->slots;
}

/* ---- the outcome -------------------------------------------------------- */

/* Takes the event for the calling thread, if no other thread has it. False: the
 * outcome is decided, or is being decided. */
static bool watch_take(struct uva_watch *watch, enum uva__watch_turn turn)
{
    uint64_t open = UVA__WATCH_OPEN;

    return uva__word_cas(&watch->turn, &open, turn);
}

static void watch_conclude(struct uva_watch *watch, int code,
                           const struct uva_error *error)
{
    watch->code = code;
    if (code != 0)
        watch->text = malloc(sizeof(*watch->text));
    if (watch->text != NULL)
        *watch->text = *error;
}

/* Stores the outcome. Returns whether the client is to be notified. `error` may
 * be NULL if code is 0. Called by the thread that has taken the event. */
static bool watch_decide(struct uva_watch *watch, int code,
                         const struct uva_error *error, bool unsure)
{
    uva__word_store(&watch->turn, UVA__WATCH_FIRED);
    watch_conclude(watch, code, error);
    watch->unsure = unsure;
    return uva__word_exchange(&watch->side, UVA__WATCH_OVER) != UVA__WATCH_LEFT;
}

static void watch_fire(struct uva_watch *watch, int code,
                       const struct uva_error *error, bool unsure)
{
    if (watch_decide(watch, code, error, unsure))
        watch->over(watch);
}

static bool code_is_pending(int code)
{
    return code == EAGAIN || code == EINPROGRESS;
}

/* A timeout reports the last code that the vendor gave for a pending event. */
static void watch_note(struct uva_watch *watch, const struct uva_error *error)
{
    if (error->vendor_code != 0)
        uva__word_store(&watch->pending, (uint64_t)(int64_t)error->vendor_code);
}

int uva__watch_outcome(struct uva_watch *watch, struct uva_error *error)
{
    int code = 0;

    assert(uva__watch_is_over(watch));
    if (watch->unsure)
        code = uva__backend_query(watch->backend, &watch->event, error);
    if (code != 0 && code != EAGAIN)
        watch_conclude(watch, code, error);
    watch->unsure = false;
    uva__error_begin(error);
    if (watch->text != NULL)
        *error = *watch->text;
    return error->code = watch->code;
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
    return uva__backend_query(backend, event, error);
}

/* ---- beginning ---------------------------------------------------------- */

/* Takes the vendor's reference first: its callback may come inside arm. */
static int watch_arm(struct uva_watch *watch, struct uva_error *error)
{
    const struct uva_device_ops *ops = watch->backend->ops;
    int code;

    if (ops->arm == NULL || watch->steady)
        return EAGAIN;
    uva__word_add(&watch->refs, 1);
    uva__error_begin(error);
    code = ops->arm(watch->backend->state, &watch->event, watch, error);
    watch->own.armed = code == EINPROGRESS;
    watch->chore.backed = watch->own.armed;
    if (!watch->own.armed)
        uva__watch_release(watch);
    if (code == 0 || code_is_pending(code))
        return code;
    return uva__backend_failed(watch->backend, code,
                               "cannot wait for the event", error);
}

/* Makes the consumer's stream wait, on the device. */
static int watch_chain(struct uva_watch *watch, struct uva_error *error)
{
    const struct uva_device_ops *ops = watch->backend->ops;
    int code;

    if (ops->stream_wait == NULL)
        return uva_error_set(error, ENOTSUP,
                             "%s: streams of this device cannot be made to "
                             "wait; use UVA_WAIT_HOST",
                             ops->name);
    uva__error_begin(error);
    code = ops->stream_wait(watch->backend->state, &watch->event,
                            watch->device_stream, error);
    return code == 0
               ? 0
               : uva__backend_failed(watch->backend, code,
                                     "cannot make the stream wait", error);
}

static int watch_step(struct uva_watch *watch, struct uva_error *error)
{
    int code;

    uva__error_begin(error);
    code = watch->work->step(watch->work, &watch->event, error);
    watch->own.working = code == EINPROGRESS;
    return code;
}

static int watch_start(struct uva_watch *watch, struct uva_error *error)
{
    if (watch->work != NULL)
        return watch_step(watch, error);
    return watch->device_stream != NULL ? watch_chain(watch, error)
                                        : watch_arm(watch, error);
}

/* Drops the device thread's reference. Only a vendor's callback may still come.
 */
static void watch_leave(struct uva_watch *watch)
{
    if (watch->work != NULL)
        uva__devices_quit(watch->devices);
    uva__watch_release(watch);
}

/* Only uva__watch_abandon() can race with this. */
static void watch_begin_run(struct uva__errand *errand)
{
    struct uva_watch *watch =
        uva__container_of(errand, struct uva_watch, begin);
    struct uva_error error;
    int code;

    uva__error_begin(&error);
    code = uva__backend_load(watch->backend, &error);
    if (!watch_take(watch, UVA__WATCH_LOOKED)) {
        watch_leave(watch);
        return;
    }
    if (code == 0)
        code = watch_start(watch, &error);
    if (code == EAGAIN)
        code = uva__backend_query(watch->backend, &watch->event, &error);
    if (code_is_pending(code)) {
        watch_note(watch, &error);
        uva__word_store(&watch->turn, UVA__WATCH_OPEN);
        uva__service_ask(&watch->devices->service, &watch->chore);
        return;
    }
    watch_fire(watch, code, &error, false);
    watch_leave(watch);
}

/* The device thread's reference is dropped when polling ends; work, once begun,
 * keeps the device thread running until then. */
void uva__watch_begin(struct uva_watch *watch)
{
    struct uva_error error;

    uva__word_add(&watch->refs, 1);
    if (watch->work != NULL)
        uva__devices_use(watch->devices);
    if (uva__service_send(&watch->devices->service, &watch->begin))
        return;
    (void)uva_error_set(&error, ESHUTDOWN, "the workers are gone");
    watch_fire(watch, ESHUTDOWN, &error, false);
    watch_leave(watch);
}

/* ---- polling ------------------------------------------------------------ */

static void watch_settle(struct uva_watch *watch)
{
    const struct uva_device_ops *ops = watch->backend->ops;

    if (watch->own.armed && !watch->own.settled && ops->settle != NULL)
        ops->settle(watch->backend->state, watch);
    watch->own.settled = true;
}

/* Queries the event and, if it is complete, runs the next step of the work. */
static int watch_ask(struct uva_watch *watch, struct uva_error *error)
{
    int code = uva__backend_query(watch->backend, &watch->event, error);

    if (code == 0 && watch->own.working && !watch->own.cut)
        code = watch_step(watch, error);
    if (code_is_pending(code))
        return code;
    if (watch->own.working) { /* cancelled, or the event has failed */
        watch->own.working = false;
        watch->work->stop(watch->work);
    }
    return code == 0 && watch->own.cut ? uva__notice_cancelled(error) : code;
}

/* An event that lasts is worth a callback: the back end may have declined to
 * arm one at first. */
static int watch_arm_again(struct uva_watch *watch, uint64_t age_ns,
                           struct uva_error *error)
{
    if (watch->own.armed || watch->own.asked || watch->work != NULL ||
        age_ns < ARM_AGAIN_NS)
        return EAGAIN;
    watch->own.asked = true;
    return watch_arm(watch, error);
}

/* The query comes first: it may describe a failure better than the vendor's
 * callback did. But the query may also find nothing wrong, and then the
 * callback counts. */
static int watch_judge(struct uva_watch *watch, bool said, uint64_t age_ns,
                       struct uva_error *error)
{
    int code = watch_ask(watch, error);

    if ((code == 0 || code_is_pending(code)) && said && watch->told.code != 0)
        return uva__notice_told(watch, error);
    if (!code_is_pending(code))
        return code;
    watch_note(watch, error);
    return watch_arm_again(watch, age_ns, error);
}

static bool watch_look(struct uva__chore *chore, uint64_t age_ns)
{
    struct uva_watch *watch = uva__container_of(chore, struct uva_watch, chore);
    const bool said = uva__word_load(&watch->said) != 0;
    bool known = said; /* the vendor uses the event no more */
    struct uva_error error;
    int code;

    if (watch_take(watch, UVA__WATCH_LOOKED)) {
        code = watch_judge(watch, said, age_ns, &error);
        known = known || !code_is_pending(code);
        if (code_is_pending(code) &&
            uva__service_is_ending(&watch->devices->service))
            code = uva_error_set(&error, ECANCELED, "the workers are gone");
        if (code_is_pending(code)) {
            chore->backed = watch->own.armed && !said;
            uva__word_store(&watch->turn, UVA__WATCH_OPEN);
            return false;
        }
        watch->own.untold = watch_decide(watch, code, &error, false);
    }
    if (known)
        watch_settle(watch);
    return true;
}

static void watch_finish(struct uva__chore *chore)
{
    struct uva_watch *watch = uva__container_of(chore, struct uva_watch, chore);

    if (watch->own.untold)
        watch->over(watch);
    watch_leave(watch);
}

/* ---- vendors' callbacks ------------------------------------------------- */

/* Drops the vendor's reference. */
static void watch_tidy_run(struct uva__errand *errand)
{
    struct uva_watch *watch = uva__container_of(errand, struct uva_watch, tidy);

    if (watch->chore.listed)
        uva__service_ask(&watch->devices->service, &watch->chore);
    else
        watch_settle(watch);
    uva__watch_release(watch);
}

/* A callback's success is confirmed by a query: by the client, if the query may
 * run on the loop thread, or else by the device thread. A failure is examined
 * by the device thread. While that uses the event, the client is not notified
 * from here. */
void uva_watch_notify(struct uva_watch *watch, int code, int vendor_code,
                      const char *vendor)
{
    struct uva__service *service = &watch->devices->service;
    bool fires, sent;

    watch->told.code = code_is_pending(code) || code < 0 ? EIO : code;
    watch->told.vendor_code = vendor_code;
    watch->told.vendor = vendor;
    uva__word_exchange(&watch->said, 1);
    fires = code == 0 && watch->quick && watch_take(watch, UVA__WATCH_FIRED);
    if (fires)
        watch_fire(watch, 0, NULL, true);
    sent = fires ? uva__service_leave(service, &watch->tidy)
                 : uva__service_send(service, &watch->tidy);
    if (!sent)
        uva__watch_release(watch);
}

/* ---- an early end ------------------------------------------------------- */

/* Runs after the begin, so the wait is being polled unless it is over. */
static void watch_end_run(struct uva__errand *errand)
{
    struct uva_watch *watch = uva__container_of(errand, struct uva_watch, end);
    struct uva_error error;

    watch->own.cut = true;
    if (!watch->own.working && watch_take(watch, UVA__WATCH_FIRED))
        watch_fire(watch, uva__notice_cancelled(&error), &error, false);
    if (watch->chore.listed)
        uva__service_ask(&watch->devices->service, &watch->chore);
    if (watch->left.array.release != NULL)
        uva_array_release(&watch->left);
    uva__watch_release(watch);
}

/* Without a device thread no other thread uses the event: it runs here. */
static void watch_end(struct uva_watch *watch)
{
    if (!uva__service_send(&watch->devices->service, &watch->end))
        watch_end_run(&watch->end);
}

void uva__watch_cancel(struct uva_watch *watch)
{
    uva__word_add(&watch->refs, 1);
    watch_end(watch);
}

/* Waits until the device thread does not use the stream that was to wait: the
 * caller may free it afterwards. */
static void watch_unchain(struct uva_watch *watch)
{
    if (watch_take(watch, UVA__WATCH_FIRED))
        return;
    while (uva__word_load(&watch->turn) == UVA__WATCH_LOOKED)
        (void)sched_yield();
}

bool uva__watch_abandon(struct uva_watch *watch, struct ArrowDeviceArray *array)
{
    uint64_t pending = UVA__WATCH_PENDING;

    if (!uva__word_cas(&watch->side, &pending, UVA__WATCH_LEFT))
        return false;
    if (watch->device_stream != NULL)
        watch_unchain(watch);
    uva_array_move(array, &watch->left);
    watch_end(watch);
    return true;
}
