/* SPDX-License-Identifier: Apache-2.0 */
/* The back ends of all device types, one set for each set of workers.
 *
 * Happy path:  made with the built-in tables -> some replaced by the user ->
 *              each loaded by the device thread when a stream first uses its
 *              type -> all unloaded by the device thread before it exits.
 *
 * Failures:    a load. Its error is kept, and reported to every stream that
 *              needs the type. A load that needs a library which the program
 *              has not loaded so far is tried again instead. */
#include "device/registry.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/platform.h"
#include "base/thread.h"
#include "base/unreachable.h"
#include "device/builtin.h"
#include "device/driver_gate.h"
#include "device/pinned_pool.h"
#include "uvarrow/arrow.h"

static void device_thread_begin(struct uva__device_thread *device_thread);
static void device_thread_end(struct uva__device_thread *device_thread);
static void device_thread_clear(struct uva__device_thread *device_thread);
static void event_thread_begin(struct uva__device_thread *event_thread);
static void event_thread_end(struct uva__device_thread *event_thread);
static void event_thread_clear(struct uva__device_thread *event_thread);
static void leave_run(struct uva__device_command *command);

/* ---- life --------------------------------------------------------------- */

struct uva__devices *uva__devices_new(void)
{
    struct uva__devices *devices = calloc(1, sizeof(*devices));

    if (devices == NULL)
        return NULL;
    uva__atomic64_store(&devices->refs, 1);
    uva__atomic64_store(&devices->users, 1);
    devices->device_thread.begin = device_thread_begin;
    devices->device_thread.end = device_thread_end;
    devices->device_thread.clear = device_thread_clear;
    devices->event_thread.begin = event_thread_begin;
    devices->event_thread.end = event_thread_end;
    devices->event_thread.clear = event_thread_clear;
    devices->leave.run = leave_run;
    for (int type = 0; type < UVA__DEVICE_TYPES; type++) {
        struct uva__backend *backend = &devices->backends[type];
        backend->device_type = type;
        backend->ops = uva__builtins[type].ops;
        backend->library = uva__builtins[type].library;
        backend->vendor_info = uva__builtins[type].vendor_info;
        backend->ctx = &devices->attached;
        backend->built_in = true;
    }
    return devices;
}

struct uva__devices *uva__devices_acquire(struct uva__devices *devices)
{
    uva__atomic64_add(&devices->refs, 1);
    return devices;
}

void uva__devices_release(struct uva__devices *devices)
{
    if (uva__atomic64_sub(&devices->refs, 1) != 1)
        return;
    uva__native_handles_fini(&devices->attached);
    free(devices);
}

void uva__devices_use(struct uva__devices *devices)
{
    uva__devices_acquire(devices);
    uva__atomic64_add(&devices->users, 1);
}

static void devices_quit(struct uva__devices *devices, uint64_t until_ns)
{
    if (uva__atomic64_sub(&devices->users, 1) == 1) {
        uva__device_thread_end(&devices->event_thread, until_ns);
        uva__device_thread_end(&devices->device_thread, until_ns);
    }
    uva__devices_release(devices);
}

void uva__devices_quit(struct uva__devices *devices)
{
    devices_quit(devices, uva__device_thread_limit_ns());
}

void uva__devices_send(struct uva__devices *devices,
                       struct uva__device_command *command)
{
    if (!uva__device_thread_send(&devices->device_thread, command))
        UVA__UNREACHABLE("a use keeps the device thread running");
}

/* ---- arrays kept until the workers end ----------------------------------- */

void uva__deferred_releases_take(
    struct uva__deferred_releases *deferred_releases,
    struct uva__deferred_release *release)
{
    assert(!deferred_releases->over);
    release->next = deferred_releases->first;
    deferred_releases->first = release;
}

void uva__deferred_releases_end(
    struct uva__deferred_releases *deferred_releases)
{
    struct uva__deferred_release *release = deferred_releases->first, *next;

    deferred_releases->over = true;
    deferred_releases->first = NULL;
    for (; release != NULL; release = next) {
        next = release->next;
        uva__driver_gate_release(&release->array);
        free(release);
    }
}

static void leave_run(struct uva__device_command *command)
{
    uva__deferred_releases_end(
        &uva__container_of(command, struct uva__devices, leave)
             ->deferred_releases);
}

/* The device thread may have to release a kept array itself: it may be the
 * library's own, or have our event. So the device thread has to run until then.
 * Both threads are waited for, as a process that has closed all may exit next;
 * they go on only for objects that the program still holds, or if they are
 * stuck: the limit holds for all four waits together. */
void uva__devices_leave(struct uva__devices *devices)
{
    const uint64_t until_ns = uva__device_thread_limit_ns();

    uva__devices_acquire(devices);
    uva__devices_send(devices, &devices->leave);
    devices_quit(devices, until_ns);
    if (!uva__device_thread_is_current(&devices->device_thread) &&
        !uva__device_thread_is_current(&devices->event_thread)) {
        uva__device_thread_settle(&devices->event_thread, until_ns);
        uva__device_thread_settle(&devices->device_thread, until_ns);
    }
    uva__devices_release(devices);
}

/* ---- the device thread -------------------------------------------------- */

static struct uva__devices *devices_of(struct uva__device_thread *device_thread)
{
    return uva__container_of(device_thread, struct uva__devices, device_thread);
}

static void device_thread_begin(struct uva__device_thread *device_thread)
{
    uva__devices_acquire(devices_of(device_thread));
}

static void device_thread_clear(struct uva__device_thread *device_thread)
{
    struct uva__devices *devices = devices_of(device_thread);

    assert(devices->deferred_releases.first == NULL);
    uva__device_thread_await(&devices->event_thread); /* it uses the tables */
    for (int type = 0; type < UVA__DEVICE_TYPES; type++) {
        struct uva__backend *backend = &devices->backends[type];
        if (uva__atomic64_load(&backend->loaded) != UVA__LOADED_OK)
            continue;
        uva__pinned_pool_clear(backend);
        if (backend->ops->unload == NULL || !uva__driver_gate_enter())
            continue;
        backend->ops->unload(backend->state);
        uva__driver_gate_leave();
    }
}

static void device_thread_end(struct uva__device_thread *device_thread)
{
    uva__devices_release(devices_of(device_thread));
}

/* ---- the event thread ---------------------------------------------------- */

static struct uva__devices *waiter_of(struct uva__device_thread *event_thread)
{
    return uva__container_of(event_thread, struct uva__devices, event_thread);
}

static void event_thread_begin(struct uva__device_thread *event_thread)
{
    uva__devices_acquire(waiter_of(event_thread));
}

static void event_thread_end(struct uva__device_thread *event_thread)
{
    uva__devices_release(waiter_of(event_thread));
}

/* The device thread unloads the tables. */
static void event_thread_clear(struct uva__device_thread *event_thread)
{
    (void)event_thread;
}

/* ---- tables ------------------------------------------------------------- */

struct uva__backend *uva__devices_backend(struct uva__devices *devices,
                                          ArrowDeviceType device_type)
{
    if (device_type <= 0 || device_type >= UVA__DEVICE_TYPES)
        return NULL;
    return &devices->backends[device_type];
}

static int ops_check(const struct uva_device_ops *ops, struct uva_error *error)
{
    if (ops == NULL)
        return uva_error_set(error, EINVAL,
                             "uva_device_register: `ops` is NULL");
    if (ops->version != UVA_DEVICE_OPS_VERSION)
        return uva_error_set(error, EINVAL,
                             "uva_device_register: `version` is %u, but this "
                             "library knows UVA_DEVICE_OPS_VERSION %d",
                             (unsigned)ops->version, UVA_DEVICE_OPS_VERSION);
    if (ops->load == NULL || ops->query == NULL || ops->name == NULL)
        return uva_error_set(error, EINVAL,
                             "uva_device_register: `load`, `query` and `name` "
                             "are mandatory");
    if (!uva__memory_is_clear(ops->reserved, 5))
        return uva_error_set(error, EINVAL,
                             "uva_device_register: `reserved` must be NULL; "
                             "was the struct cleared?");
    return 0;
}

int uva__devices_register(struct uva__devices *devices,
                          ArrowDeviceType device_type,
                          const struct uva_device_ops *ops, void *ctx,
                          struct uva_error *error)
{
    struct uva__backend *backend = uva__devices_backend(devices, device_type);
    int code = ops_check(ops, error);
    bool met;

    if (code != 0)
        return code;
    if (backend == NULL || device_type == ARROW_DEVICE_CPU)
        return uva_error_set(error, EINVAL,
                             "uva_device_register: device type %d is unknown "
                             "here, or the host itself",
                             (int)device_type);
    uva__lock_take(&devices->lock);
    met = uva__atomic64_load(&backend->met) != 0;
    if (!met) {
        backend->ops = ops;
        backend->ctx = ctx;
        backend->library = NULL;
        backend->vendor_info = NULL;
        backend->built_in = false;
    }
    uva__lock_drop(&devices->lock);
    if (met)
        return uva_error_set(error, EBUSY,
                             "uva_device_register: a stream has met device "
                             "type %d already; register before it starts",
                             (int)device_type);
    return 0;
}

/* Marks the table, if there is one, as used: it cannot be replaced any more. */
static bool backend_observe(struct uva__devices *devices,
                            struct uva__backend *backend)
{
    bool known;

    if (uva__atomic64_load(&backend->met) != 0)
        return true;
    uva__lock_take(&devices->lock);
    known = backend->ops != NULL;
    if (known)
        uva__atomic64_store(&backend->met, 1);
    uva__lock_drop(&devices->lock);
    return known;
}

struct uva__backend *uva__devices_first_use(struct uva__devices *devices,
                                            ArrowDeviceType device_type)
{
    struct uva__backend *backend = uva__devices_backend(devices, device_type);

    return backend != NULL && backend_observe(devices, backend) ? backend
                                                                : NULL;
}

/* ---- loading ------------------------------------------------------------ */

/* Returns the path that the environment has for a library, or NULL; NULL too in
 * a set-user-ID program, where the environment cannot be trusted. */
static const char *library_path(const char *library)
{
    char name[64];
    const char *path;

    if (library == NULL)
        return NULL;
    (void)snprintf(name, sizeof(name), "UVA_%s_LIBRARY", library);
    path = uva__platform_trusted_env(name);
    return path != NULL && path[0] != '\0' ? path : NULL;
}

int uva__backend_failed(const struct uva__backend *backend, int code,
                        const char *what, struct uva_error *error)
{
    if (code == EAGAIN || code == EINPROGRESS || code < 0)
        code = EIO;
    if (error->code == 0)
        return uva_error_set(error, code, "%s: %s", backend->ops->name, what);
    error->code = code;
    return code;
}

int uva__backend_query(const struct uva__backend *backend,
                       const struct uva_device_event *event,
                       struct uva_error *error)
{
    int code;

    uva__error_begin(error);
    if (!uva__driver_gate_enter())
        return uva__driver_gate_refuse(error);
    code = backend->ops->query(backend->state, event, error);
    uva__driver_gate_leave();
    if (code == 0 || code == EAGAIN)
        return code;
    return uva__backend_failed(backend, code, "the event of a batch has failed",
                               error);
}

int uva__backend_record(const struct uva__backend *backend,
                        const struct uva_device_event *device,
                        void *device_stream, void **event_out,
                        struct uva_error *error)
{
    const int code = backend->ops->record(backend->state, device, device_stream,
                                          event_out, error);

    uva__driver_gate_watch(backend->device_type, UVA__DRIVER_HAS_EVENT);
    return code == 0
               ? 0
               : uva__backend_failed(backend, code,
                                     "an event could not be recorded", error);
}

int uva__backend_chain(const struct uva__backend *backend,
                       const struct uva_device_event *event,
                       void *device_stream, struct uva_error *error)
{
    int code;

    if (backend->ops->stream_wait == NULL)
        return uva_error_set(error, ENOTSUP,
                             "%s: streams of this device cannot be made to "
                             "wait for events; wait on the host "
                             "(UVA_WAIT_HOST, or uva_array_wait())",
                             backend->ops->name);
    uva__error_begin(error);
    code =
        backend->ops->stream_wait(backend->state, event, device_stream, error);
    return code == 0 ? 0
                     : uva__backend_failed(
                           backend, code, "cannot make the stream wait", error);
}

void uva__backend_event_free(const struct uva__backend *backend, void *event)
{
    if (event == NULL || backend->ops->event_free == NULL ||
        !uva__driver_gate_enter())
        return;
    backend->ops->event_free(backend->state, event);
    uva__driver_gate_leave();
}

static enum uva__loaded load_failed(struct uva__backend *backend, int code)
{
    (void)uva__backend_failed(backend, code, "it cannot be used here",
                              &backend->why);
    return UVA__LOADED_FAILED;
}

/* Returns an errno with `error` if the load is to be tried again later, else 0.
 * Only the thread that tried it has that error, as the next one may already
 * be trying. */
static int load_now(struct uva__backend *backend, struct uva_error *error)
{
    enum uva__loaded loaded = UVA__LOADED_OK;
    bool later;
    int code;

    uva__atomic64_store(&backend->loader, uva__thread_self());
    code = backend->ops->load(backend->ctx, library_path(backend->library),
                              &backend->state, &backend->why);
    later = backend->built_in && code == EAGAIN;
    if (later)
        *error = backend->why;
    if (code == 0)
        uva__driver_gate_watch(backend->device_type, UVA__DRIVER_LOADED);
    if (code != 0)
        loaded = later ? UVA__LOADED_NOT : load_failed(backend, code);
    uva__atomic64_store(&backend->loaded, loaded);
    uva__futex_raise(&backend->settled);
    return later ? error->code : 0;
}

/* Waits until the thread that loads has ended that. False: it is this one. */
static bool load_settle(struct uva__backend *backend)
{
    uint32_t seen = uva__futex_now(&backend->settled);

    while (uva__atomic64_load(&backend->loaded) == UVA__LOADED_BUSY) {
        if (uva__atomic64_load(&backend->loader) == uva__thread_self())
            return false;
        (void)uva__futex_wait(&backend->settled, seen, -1);
        seen = uva__futex_now(&backend->settled);
    }
    return true;
}

static int load_once(struct uva__backend *backend, struct uva_error *error)
{
    uint64_t loaded;
    int code;

    do {
        loaded = UVA__LOADED_NOT;
        code = 0;
        if (uva__atomic64_cas(&backend->loaded, &loaded, UVA__LOADED_BUSY))
            code = load_now(backend, error);
        if (code != 0)
            return code;
        if (!load_settle(backend))
            return uva_error_set(error, EDEADLK, "%s: it is being loaded",
                                 backend->ops->name);
        loaded = uva__atomic64_load(&backend->loaded);
    } while (loaded == UVA__LOADED_NOT);
    if (loaded == UVA__LOADED_OK)
        return 0;
    *error = backend->why;
    return error->code;
}

int uva__backend_load(struct uva__backend *backend, struct uva_error *error)
{
    int code;

    if (!uva__driver_gate_enter())
        return uva__driver_gate_refuse(error);
    code = load_once(backend, error);
    uva__driver_gate_leave();
    return code;
}

/* A load that a thread waits for. */
struct load {
    struct uva__device_command command;
    struct uva__backend *backend; /* borrows */
    struct uva_error *error;      /* borrows: why it has failed */
    int code;                     /* the outcome, once done */
    struct uva__futex done;       /* raised then */
};

/* The waiting thread may free `load` as soon as the futex has changed. */
static void load_run(struct uva__device_command *command)
{
    struct load *load = uva__container_of(command, struct load, command);

    load->code = uva__backend_load(load->backend, load->error);
    uva__futex_raise(&load->done);
}

static int load_await(struct uva__devices *devices,
                      struct uva__backend *backend, struct uva_error *error)
{
    struct load load = {
        .command.run = load_run, .backend = backend, .error = error};
    const uint32_t seen = uva__futex_now(&load.done);

    if (!uva__device_thread_send(&devices->device_thread, &load.command))
        return uva_error_set(error, ESHUTDOWN, "the workers are gone");
    while (uva__futex_now(&load.done) == seen)
        (void)uva__futex_wait(&load.done, seen, -1);
    return load.code;
}

/* Returns why there is no table for a type. */
static const char *type_why(ArrowDeviceType device_type)
{
    if (device_type <= 0 || device_type >= UVA__DEVICE_TYPES ||
        uva__builtins[device_type].why == NULL)
        return "the type is unknown";
    return uva__builtins[device_type].why;
}

int uva__devices_load(struct uva__devices *devices, ArrowDeviceType device_type,
                      struct uva_error *error)
{
    struct uva__backend *backend = uva__devices_first_use(devices, device_type);
    int code;

    if (backend == NULL)
        return uva_error_set(error, ENOTSUP, "device type %d: %s",
                             (int)device_type, type_why(device_type));
    if (uva__atomic64_load(&backend->loaded) == UVA__LOADED_OK)
        return 0;
    if (uva__device_thread_is_current(
            &devices->device_thread)) /* a release in a table */
        return uva__backend_load(backend, error);
    code = uva__device_thread_start(&devices->device_thread);
    if (code != 0)
        return uva_error_set(error, code,
                             code == ENOMEM ? "the system gives no thread"
                                            : "the workers are gone");
    return load_await(devices, backend, error);
}

/* Only CUDA has several contexts for a device. A user's table may have handles
 * of any kind. */
int uva__devices_check_stream(struct uva__devices *devices, void *device_stream,
                              struct uva_error *error)
{
    const struct uva__backend *backend =
        uva__devices_backend(devices, ARROW_DEVICE_CUDA);
    struct uva_error unloaded;
    int code;

    if (!uva__stream_is_default(device_stream) ||
        uva__atomic64_load(&backend->loaded) == UVA__LOADED_FAILED ||
        uva__devices_load(devices, ARROW_DEVICE_CUDA, &unloaded) != 0 ||
        backend->vendor_info == NULL)
        return 0;
    if (!uva__driver_gate_enter())
        return uva__driver_gate_refuse(error);
    code = backend->vendor_info->stream_check(backend->state, error);
    uva__driver_gate_leave();
    return code;
}

/* ---- descriptions ------------------------------------------------------- */

static void text_copy(char *out, size_t size, const char *text)
{
    (void)snprintf(out, size, "%.*s", (int)size - 1, text);
}

static void describe_table(const struct uva__backend *backend,
                           struct uva_device_info *out)
{
    if (uva__atomic64_load(&backend->loaded) == UVA__LOADED_OK)
        text_copy(out->library, sizeof(out->library), backend->why.message);
    out->host_readable = backend->ops->host_readable;
    out->mechanism = backend->ops->arm != NULL ? "callback" : "polling";
    out->can_copy = out->available && backend->ops->copy != NULL;
    if (backend->library == NULL)
        out->name = backend->ops->name;
}

int uva__devices_describe(struct uva__devices *devices,
                          ArrowDeviceType device_type,
                          struct uva_device_info *out)
{
    struct uva__backend *backend = uva__devices_backend(devices, device_type);
    struct uva_error error;
    int code;

    memset(out, 0, sizeof(*out));
    out->device_type = device_type;
    if (backend == NULL || uva__device_traits(device_type)->name == NULL)
        return ENOENT;
    out->name = uva__device_traits(device_type)->name;
    out->mechanism = "none";
    if (device_type == ARROW_DEVICE_CPU) {
        out->available = out->host_readable = true;
        out->mechanism = "none needed";
        return 0;
    }
    backend = uva__devices_first_use(devices, device_type);
    code = uva__devices_load(devices, device_type, &error);
    out->available = code == 0;
    if (backend != NULL)
        describe_table(backend, out);
    if (code != 0)
        text_copy(out->library, sizeof(out->library), error.message);
    return 0;
}

/* ---- events ------------------------------------------------------------- */

static int event_unknown(ArrowDeviceType device_type, const char *why,
                         struct uva_error *error)
{
    return uva_error_set(error, ENOTSUP,
                         "nobody here can wait for an event of device type %d: "
                         "%s",
                         (int)device_type, why);
}

enum uva__event_kind uva__devices_classify(struct uva__devices *devices,
                                           ArrowDeviceType device_type,
                                           const void *sync_event,
                                           struct uva_error *error)
{
    struct uva__backend *backend = uva__devices_backend(devices, device_type);

    if (sync_event == NULL || device_type == ARROW_DEVICE_CPU)
        return UVA__EVENT_NONE; /* Clauses: EV-01, EV-04. */
    if (backend != NULL && backend_observe(devices, backend))
        return UVA__EVENT_WAIT;
    (void)event_unknown(device_type, type_why(device_type), error);
    return UVA__EVENT_UNKNOWN;
}
