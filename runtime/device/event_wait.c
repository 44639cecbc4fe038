/* SPDX-License-Identifier: Apache-2.0 */
/* The life of one wait for one event.
 *
 * Happy path:  new -> begin -> the device thread arms a callback of the vendor
 *              -> the callback comes, or polling finds the event complete ->
 *              fired: the client is notified -> settled by the device thread ->
 *              the last reference is dropped: freed.
 *
 * Failures:
 * - memory, at the start;
 * - the load of the table, the arming, the event: reported as the outcome;
 * - a callback never comes: polling finds the event complete instead.
 *
 * On cancel:   the device thread stops polling, then notifies the client; an
 *              armed callback keeps its reference until it comes. If it never
 *              does, the few hundred bytes of the wait are never freed. */
#include "device/event_wait.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "device/driver_gate.h"
#include "device/wait_error.h"
#include "uvarrow/arrow.h"

enum { ARM_AGAIN_NS = 2000000 }; /* age at which a polled wait is armed */

static void event_wait_begin_run(struct uva__device_command *command);
static void event_wait_end_run(struct uva__device_command *command);
static void event_wait_tidy_run(struct uva__device_command *command);
static void event_wait_prepare_run(struct uva__device_command *command);
static bool event_wait_poll(struct uva__poll_item *item, uint64_t age_ns);
static void event_wait_finish(struct uva__poll_item *item);

/* ---- life --------------------------------------------------------------- */

int uva__event_wait_new(struct uva__devices *devices,
                        const struct uva_device_event *event,
                        void (*over)(struct uva_watch *watch), void *client,
                        struct uva_watch **out)
{
    struct uva_watch *watch = calloc(1, sizeof(*watch));

    if (watch == NULL)
        return ENOMEM;
    watch->devices = uva__devices_acquire(devices);
    watch->backend = uva__devices_backend(devices, event->device_type);
    watch->on_loop = watch->backend->ops->query_on_loop;
    watch->event = *event;
    watch->over = over;
    watch->client = client;
    watch->begin.run = event_wait_begin_run;
    watch->end.run = event_wait_end_run;
    watch->tidy.run = event_wait_tidy_run;
    watch->prepare.run = event_wait_prepare_run;
    watch->item.poll = event_wait_poll;
    watch->item.finish = event_wait_finish;
    uva__atomic64_store(&watch->refs, 1);
    *out = watch;
    return 0;
}

void uva__event_wait_release(struct uva_watch *watch)
{
    struct uva__devices *devices = watch->devices;

    if (uva__atomic64_sub(&watch->refs, 1) != 1)
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
static bool event_wait_take(struct uva_watch *watch,
                            enum uva__event_wait_holder holder)
{
    uint64_t open = UVA__EVENT_WAIT_OPEN;

    if (uva__atomic64_cas(&watch->holder, &open, holder))
        return true;
    return open == UVA__EVENT_WAIT_REVOKED &&
           uva__atomic64_cas(&watch->holder, &open, holder | open);
}

static bool event_wait_is_revoked(const struct uva_watch *watch)
{
    return (uva__atomic64_load(&watch->holder) & UVA__EVENT_WAIT_REVOKED) != 0;
}

static void event_wait_conclude(struct uva_watch *watch, int code,
                                const struct uva_error *error)
{
    watch->code = code;
    if (code != 0)
        watch->text = malloc(sizeof(*watch->text));
    if (watch->text != NULL)
        *watch->text = *error;
}

/* Stores the outcome. Returns whether the client is to be notified. `error` may
 * be NULL if code is 0. Called by the thread that has taken the event, which is
 * the vendor's only for a wait without work. */
static bool event_wait_decide(struct uva_watch *watch, int code,
                              const struct uva_error *error, bool unverified)
{
    uva__atomic64_store(&watch->holder, UVA__EVENT_WAIT_FIRED);
    if (watch->work != NULL && watch->own.wish == UVA__WATCH_YIELDED)
        return false;
    event_wait_conclude(watch, code, error);
    watch->unverified = unverified;
    return uva__atomic64_exchange(&watch->side, UVA__EVENT_WAIT_OVER) !=
           UVA__EVENT_WAIT_ABANDONED;
}

static void event_wait_fire(struct uva_watch *watch, int code,
                            const struct uva_error *error, bool unverified)
{
    if (event_wait_decide(watch, code, error, unverified))
        watch->over(watch);
}

/* The client has revoked the use of its stream while a step was begun. The wait
 * is over for it now; the device thread goes on to wait for the step. */
static void event_wait_yield(struct uva_watch *watch)
{
    uint64_t pending = UVA__EVENT_WAIT_PENDING;
    struct uva_error error;

    if (watch->own.wish == UVA__WATCH_YIELDED)
        return;
    watch->own.wish = UVA__WATCH_YIELDED;
    event_wait_conclude(watch, uva__wait_error_cancelled(&error), &error);
    if (uva__atomic64_cas(&watch->side, &pending, UVA__EVENT_WAIT_OVER))
        watch->over(watch);
}

/* Ends the use of the event by this thread: the wait goes on. */
static void event_wait_open(struct uva_watch *watch)
{
    const uint64_t before =
        uva__atomic64_and(&watch->holder, UVA__EVENT_WAIT_REVOKED);

    if ((before & UVA__EVENT_WAIT_REVOKED) != 0)
        event_wait_yield(watch);
}

static bool code_is_pending(int code)
{
    return code == EAGAIN || code == EINPROGRESS;
}

/* A timeout reports the last code that the vendor gave for a pending event. */
static void event_wait_note(struct uva_watch *watch,
                            const struct uva_error *error)
{
    if (error->vendor_code != 0)
        uva__atomic64_store(&watch->pending,
                            (uint64_t)(int64_t)error->vendor_code);
}

int uva__event_wait_outcome(struct uva_watch *watch, struct uva_error *error)
{
    int code = 0;

    assert(uva__event_wait_is_over(watch));
    if (watch->unverified)
        code = uva__backend_query(watch->backend, &watch->event, error);
    if (code != 0 && code != EAGAIN)
        event_wait_conclude(watch, code, error);
    watch->unverified = false;
    uva__error_begin(error);
    if (watch->text != NULL)
        *error = *watch->text;
    return error->code = watch->code;
}

int uva__event_wait_peek(struct uva__devices *devices,
                         const struct uva_device_event *event,
                         struct uva_error *error)
{
    struct uva__backend *backend =
        uva__devices_backend(devices, event->device_type);

    if (uva__atomic64_load(&backend->loaded) != UVA__LOADED_OK ||
        !backend->ops->query_on_loop)
        return EAGAIN;
    return uva__backend_query(backend, event, error);
}

/* ---- beginning ---------------------------------------------------------- */

/* Takes the vendor's reference first: its callback may come inside arm. */
static int event_wait_arm(struct uva_watch *watch, struct uva_error *error)
{
    const struct uva_device_ops *ops = watch->backend->ops;
    int code;

    if (ops->arm == NULL || watch->poll_only)
        return EAGAIN;
    uva__atomic64_add(&watch->refs, 1);
    uva__error_begin(error);
    code = ops->arm(watch->backend->state, &watch->event, watch, error);
    watch->item.has_callback = code == EINPROGRESS;
    if (code == EINPROGRESS)
        watch->own.callback = UVA__WATCH_CALLBACK_ARMED;
    else
        uva__event_wait_release(watch);
    if (code == 0 || code_is_pending(code))
        return code;
    return uva__backend_failed(watch->backend, code,
                               "cannot wait for the event", error);
}

static int event_wait_step(struct uva_watch *watch, struct uva_error *error)
{
    int code;

    if (event_wait_is_revoked(watch))
        return uva__wait_error_cancelled(error);
    uva__error_begin(error);
    code = watch->work->step(watch->work, &watch->event, error);
    watch->own.working = code == EINPROGRESS;
    return code;
}

static int event_wait_start(struct uva_watch *watch, struct uva_error *error)
{
    if (watch->work != NULL)
        return event_wait_step(watch, error);
    return watch->chains ? uva__backend_chain(watch->backend, &watch->event,
                                              watch->device_stream, error)
                         : event_wait_arm(watch, error);
}

/* Drops the device thread's reference. Only a vendor's callback may still come.
 */
static void event_wait_leave(struct uva_watch *watch)
{
    if (watch->work != NULL)
        uva__devices_quit(watch->devices);
    uva__event_wait_release(watch);
}

/* Only uva__event_wait_abandon() can race with this. */
static void event_wait_begin_run(struct uva__device_command *command)
{
    struct uva_watch *watch =
        uva__container_of(command, struct uva_watch, begin);
    struct uva_error error;
    int code;

    uva__error_begin(&error);
    code = uva__backend_load(watch->backend, &error);
    if (!event_wait_take(watch, UVA__EVENT_WAIT_IN_USE)) {
        event_wait_leave(watch);
        return;
    }
    if (code == 0) {
        uva__driver_gate_watch(watch->backend->device_type,
                               UVA__DRIVER_HAS_EVENT);
        code = event_wait_start(watch, &error);
    }
    if (code == EAGAIN)
        code = uva__backend_query(watch->backend, &watch->event, &error);
    if (code_is_pending(code)) {
        event_wait_note(watch, &error);
        event_wait_open(watch);
        uva__device_thread_poll(watch->thread, &watch->item);
        return;
    }
    event_wait_fire(watch, code, &error, false);
    event_wait_leave(watch);
}

/* The event thread makes no call that may block: only events of known tables.
 * If the system creates no thread, the device thread waits. */
static struct uva__device_thread *event_wait_thread(struct uva_watch *watch)
{
    struct uva__devices *devices = watch->devices;

    if (!watch->backend->built_in || watch->work != NULL || watch->chains ||
        uva__device_thread_start(&devices->event_thread) != 0)
        return &devices->device_thread;
    return &devices->event_thread;
}

/* The thread's reference is dropped when polling ends; work, once begun,
 * keeps the device thread running until then. */
void uva__event_wait_begin(struct uva_watch *watch)
{
    struct uva_error error;

    uva__atomic64_add(&watch->refs, 1);
    if (watch->work != NULL)
        uva__devices_use(watch->devices);
    watch->thread = event_wait_thread(watch);
    if (uva__device_thread_send(watch->thread, &watch->begin))
        return;
    (void)uva_error_set(&error, ESHUTDOWN, "the workers are gone");
    event_wait_fire(watch, ESHUTDOWN, &error, false);
    event_wait_leave(watch);
}

/* ---- polling ------------------------------------------------------------ */

static void event_wait_settle(struct uva_watch *watch)
{
    const struct uva_device_ops *ops = watch->backend->ops;

    if (watch->own.callback != UVA__WATCH_CALLBACK_ARMED)
        return;
    watch->own.callback = UVA__WATCH_CALLBACK_SETTLED;
    if (ops->settle == NULL || !uva__driver_gate_enter())
        return;
    ops->settle(watch->backend->state, watch);
    uva__driver_gate_leave();
}

/* Queries the event and, if it is complete, runs the next step of the work. */
static int event_wait_query(struct uva_watch *watch, struct uva_error *error)
{
    int code = uva__backend_query(watch->backend, &watch->event, error);

    if (code == 0 && watch->own.working && watch->own.wish == UVA__WATCH_WANTED)
        code = event_wait_step(watch, error);
    if (code_is_pending(code))
        return code;
    if (watch->own.working) { /* cancelled, or the event has failed */
        watch->own.working = false;
        watch->work->stop(watch->work);
    }
    return code == 0 && watch->own.wish != UVA__WATCH_WANTED
               ? uva__wait_error_cancelled(error)
               : code;
}

static void event_wait_prepare_run(struct uva__device_command *command)
{
    struct uva_watch *watch =
        uva__container_of(command, struct uva_watch, prepare);
    const struct uva__backend *backend = watch->backend;

    if (uva__driver_gate_enter()) {
        backend->vendor_info->prepare(backend->state, watch->event.device_id);
        uva__driver_gate_leave();
    }
    uva__atomic64_store(&watch->prepared, 1);
    uva__event_wait_release(watch);
}

/* Has the device thread prepare an arm. Returns whether it has. */
static bool event_wait_prepare(struct uva_watch *watch)
{
    const struct uva__vendor_info *info = watch->backend->vendor_info;

    if (info == NULL || info->prepare == NULL)
        return true;
    if (watch->own.callback == UVA__WATCH_CALLBACK_NONE) {
        watch->own.callback = UVA__WATCH_CALLBACK_PREPARED;
        uva__atomic64_add(&watch->refs, 1);
        if (!uva__device_thread_send(&watch->devices->device_thread,
                                     &watch->prepare))
            uva__event_wait_release(watch);
    }
    return uva__atomic64_load(&watch->prepared) != 0;
}

/* An event that lasts is worth a callback: the back end may have declined to
 * arm one at first. */
static int event_wait_arm_again(struct uva_watch *watch, uint64_t age_ns,
                                struct uva_error *error)
{
    if (watch->own.callback >= UVA__WATCH_CALLBACK_DECLINED ||
        watch->work != NULL || watch->poll_only || age_ns < ARM_AGAIN_NS ||
        !event_wait_prepare(watch))
        return EAGAIN;
    watch->own.callback = UVA__WATCH_CALLBACK_DECLINED;
    return event_wait_arm(watch, error);
}

/* The query comes first: it may describe a failure better than the vendor's
 * callback did. But the query may also find no fault, and then the callback
 * counts. */
static int event_wait_check(struct uva_watch *watch, bool notified,
                            uint64_t age_ns, struct uva_error *error)
{
    int code = event_wait_query(watch, error);

    if ((code == 0 || code_is_pending(code)) && notified &&
        watch->report.code != 0)
        return uva__wait_error_notified(watch, error);
    if (!code_is_pending(code))
        return code;
    event_wait_note(watch, error);
    return event_wait_arm_again(watch, age_ns, error);
}

static bool event_wait_poll(struct uva__poll_item *item, uint64_t age_ns)
{
    struct uva_watch *watch = uva__container_of(item, struct uva_watch, item);
    const bool notified = uva__atomic64_load(&watch->notified) != 0;
    bool known = notified; /* the vendor uses the event no more */
    struct uva_error error;
    int code;

    if (event_wait_take(watch, UVA__EVENT_WAIT_IN_USE)) {
        code = event_wait_check(watch, notified, age_ns, &error);
        known = known || !code_is_pending(code);
        if (code_is_pending(code) &&
            uva__device_thread_is_ending(watch->thread))
            code = uva_error_set(&error, ECANCELED, "the workers are gone");
        if (code_is_pending(code)) {
            item->has_callback =
                watch->own.callback == UVA__WATCH_CALLBACK_ARMED && !notified;
            event_wait_open(watch);
            return false;
        }
        watch->own.notify_pending =
            event_wait_decide(watch, code, &error, false);
    }
    if (known)
        event_wait_settle(watch);
    return true;
}

static void event_wait_finish(struct uva__poll_item *item)
{
    struct uva_watch *watch = uva__container_of(item, struct uva_watch, item);

    if (watch->own.notify_pending)
        watch->over(watch);
    event_wait_leave(watch);
}

/* ---- vendors' callbacks ------------------------------------------------- */

/* Drops the vendor's reference. */
static void event_wait_tidy_run(struct uva__device_command *command)
{
    struct uva_watch *watch =
        uva__container_of(command, struct uva_watch, tidy);

    if (watch->item.listed)
        uva__device_thread_poll(watch->thread, &watch->item);
    else
        event_wait_settle(watch);
    uva__event_wait_release(watch);
}

/* A callback's success is confirmed by a query: by the client, if the query may
 * run on the loop thread, or else by the device thread. A failure is examined
 * by the device thread. While that uses the event, the client is not notified
 * from here. */
bool uva__event_wait_notify(struct uva_watch *watch, int code, int vendor_code,
                            const char *vendor)
{
    struct uva__device_thread *device_thread = watch->thread;
    bool fires;

    watch->report.code = code_is_pending(code) || code < 0 ? EIO : code;
    watch->report.vendor_code = vendor_code;
    watch->report.vendor = vendor;
    uva__atomic64_exchange(&watch->notified, 1);
    fires = code == 0 && watch->on_loop &&
            event_wait_take(watch, UVA__EVENT_WAIT_FIRED);
    if (fires)
        event_wait_fire(watch, 0, NULL, true);
    if (uva__device_thread_report(device_thread, &watch->tidy, !fires))
        return true;
    uva__event_wait_release(watch);
    return false;
}

void uva_watch_notify(struct uva_watch *watch, int code, int vendor_code,
                      const char *vendor)
{
    (void)uva__event_wait_notify(watch, code, vendor_code, vendor);
}

/* ---- an early end ------------------------------------------------------- */

static void event_wait_drop_run(struct uva__device_command *command)
{
    struct uva_watch *watch = uva__container_of(command, struct uva_watch, end);

    uva__driver_gate_release(&watch->left);
    uva__event_wait_release(watch);
}

/* The user's release may block: it runs on the device thread. */
static void event_wait_drop(struct uva_watch *watch)
{
    watch->end.run = event_wait_drop_run;
    if (watch->left.array.release == NULL ||
        watch->thread == &watch->devices->device_thread ||
        !uva__device_thread_send(&watch->devices->device_thread, &watch->end))
        event_wait_drop_run(&watch->end);
}

/* Runs after the begin, so the wait is being polled unless it is over. */
static void event_wait_end_run(struct uva__device_command *command)
{
    struct uva_watch *watch = uva__container_of(command, struct uva_watch, end);
    struct uva_error error;

    if (watch->own.wish == UVA__WATCH_WANTED)
        watch->own.wish = UVA__WATCH_CANCELLED;
    if (!watch->own.working && event_wait_take(watch, UVA__EVENT_WAIT_FIRED))
        event_wait_fire(watch, uva__wait_error_cancelled(&error), &error,
                        false);
    if (watch->item.listed)
        uva__device_thread_poll(watch->thread, &watch->item);
    event_wait_drop(watch);
}

/* Without a device thread no other thread uses the event: it runs here. */
static void event_wait_end(struct uva_watch *watch)
{
    if (!uva__device_thread_send(watch->thread, &watch->end))
        event_wait_end_run(&watch->end);
}

void uva__event_wait_cancel(struct uva_watch *watch)
{
    uva__atomic64_add(&watch->refs, 1);
    event_wait_end(watch);
}

bool uva__event_wait_unchain(struct uva_watch *watch)
{
    uint64_t before;

    if (watch->chains)
        return event_wait_take(watch, UVA__EVENT_WAIT_FIRED);
    if (watch->work == NULL || !watch->work->on_stream)
        return true;
    before = uva__atomic64_or(&watch->holder, UVA__EVENT_WAIT_REVOKED);
    return (before & UVA__EVENT_WAIT_IN_USE) == 0;
}

bool uva__event_wait_abandon(struct uva_watch *watch,
                             struct ArrowDeviceArray *array)
{
    uint64_t pending = UVA__EVENT_WAIT_PENDING;

    if (!uva__atomic64_cas(&watch->side, &pending, UVA__EVENT_WAIT_ABANDONED))
        return false;
    uva_array_move(array, &watch->left);
    event_wait_end(watch);
    return true;
}
