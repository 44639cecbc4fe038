/* SPDX-License-Identifier: Apache-2.0 */
/* The table of each device type, and the threads that all runtimes on the same
 * workers share: the device thread, on which calls may block, and the event
 * thread, which waits for the events of built-in tables, and makes no call that
 * may block. References are held by the workers, by streams and by waits, the
 * last of which may end long after the workers. */
#ifndef UVA_DEVICE_REGISTRY_H
#define UVA_DEVICE_REGISTRY_H

#include "arrow/device_traits.h"
#include "device/device_thread.h"
#include "device/native_handles.h"
#include "uvarrow/device.h"

/* Whether the table of a type was loaded. */
enum uva__loaded {
    UVA__LOADED_NOT,  /* it was not needed so far */
    UVA__LOADED_BUSY, /* loading */
    UVA__LOADED_OK,
    UVA__LOADED_FAILED /* `why` has the error */
};

/* The state that was current on a thread before a call to `enter`: the table's.
 */
struct uva__stream_scope {
    uint64_t words[4];
};

/* The parts of a built-in table besides its functions. */
struct uva__vendor_info {
    const char *vendor;     /* static: in errors */
    const char *query_call; /* static: the call that queries an event */
    bool default_streams;   /* small handles are default streams */
    /* fills `error` with why alloc has last given NULL, and returns its
     * code. Device thread. NULL: the table has no alloc. */
    int (*alloc_failed)(void *state, struct uva_error *error);
    /* as alloc of the table, for work queued on `device_stream`. Device thread.
     * NULL: memory can be used on any stream. */
    void *(*alloc_on)(void *state, ArrowDeviceType device_type,
                      int64_t device_id, void *device_stream,
                      size_t size_bytes);
    /* gives whether one device can read another one's memory; queues a copy
     * from one to the other, on `device_stream` of the target, or on our stream
     * if that is NULL. Device thread. NULL: no such copies */
    int (*peers)(void *state, int64_t from_id, int64_t to_id, bool *direct,
                 struct uva_error *error);
    int (*copy_peer)(void *state, const struct uva_device_copy *copy,
                     int64_t to_id, void *device_stream, void **event_out,
                     struct uva_error *error);
    /* returns whether the device thread can use a default stream of the calling
     * thread: 0, or why not. Any thread. NULL: of another vendor than CUDA */
    int (*stream_check)(void *state, struct uva_error *error);
    /* prepares arm on a device; a failure is left for arm to see. Device
     * thread. NULL: arm needs no preparation. */
    void (*prepare)(void *state, int64_t device_id);
    /* makes the context of `device_stream`, a program's stream, current on this
     * thread; leave() undoes that. Any thread. NULL: no context has to be
     * current. */
    int (*enter)(void *state, int64_t device_id, void *device_stream,
                 struct uva__stream_scope *scope, struct uva_error *error);
    void (*leave)(void *state, struct uva__stream_scope *scope);
    /* make a device current for a user function, and give our stream for copies
     * to it; undo that. Device thread. NULL: no device is current */
    int (*begin_use)(void *state, int64_t device_id, void **stream,
                     struct uva_error *error);
    void (*end_use)(void *state, int64_t device_id);
};

/* One device type. */
struct uva__backend {
    ArrowDeviceType device_type;
    const struct uva_device_ops *ops; /* borrows; NULL: the type has no table */
    void *ctx;                        /* borrows: of the table */
    const char *library; /* static: in the name of its variable in the
                            environment, or NULL */
    const struct uva__vendor_info
        *vendor_info;            /* static; NULL: a user's table */
    bool built_in;               /* the table is ours */
    struct uva__atomic64 met;    /* 1: in use, it cannot be replaced */
    struct uva__atomic64 loader; /* of LOADED_BUSY: the thread that loads */
    struct uva__futex settled;   /* raised when that has ended */
    struct uva__atomic64 loaded; /* enum uva__loaded; guards the members
                                    below */
    void *state;                 /* owns, through ops->unload */
    struct uva_error why;        /* of a load that failed */
    struct {                     /* pool of memory; the device thread's alone */
        struct uva__pinned_pool_block *first; /* owns */
        size_t size_bytes;                    /* of all arrays */
    } pinned;
};

/* An array for which no event could be recorded, so that the library cannot
 * know when a device has finished with it: it is released when the workers are
 * gone. From malloc(). */
struct uva__deferred_release {
    struct uva__deferred_release *next; /* owns */
    struct ArrowDeviceArray array;      /* owns */
};

/* All of them; all zeroes is empty. The device thread's alone. */
struct uva__deferred_releases {
    struct uva__deferred_release *first; /* owns */
    bool over;                           /* the workers are gone */
};

/* All device types of one set of workers. */
struct uva__devices {
    struct uva__atomic64 refs;
    struct uva__atomic64 users; /* of the device thread: the workers, and
                               objects that need it after them */
    struct uva__device_thread device_thread; /* calls may block */
    struct uva__device_thread event_thread;  /* waits; it ends first */
    struct uva__deferred_releases
        deferred_releases;               /* the device thread's alone */
    struct uva__device_command leave;    /* sent when the workers end */
    struct uva__native_handles attached; /* native handles */
    struct uva__lock lock; /* guards `ops` and `ctx` of the types */
    struct uva__backend backends[UVA__DEVICE_TYPES];
};

/* Makes one, with a use by the workers; NULL without memory. Its memory is
 * the C library's, since a vendor may call back after all else is freed.
 * Thread: any. */
struct uva__devices *uva__devices_new(void);

/* Counts references; the last release frees. Thread: any. */
struct uva__devices *uva__devices_acquire(struct uva__devices *devices);
void uva__devices_release(struct uva__devices *devices);

/* Uses the device thread, which runs as long; the last user to quit ends it.
 * Thread: any. */
void uva__devices_use(struct uva__devices *devices);
void uva__devices_quit(struct uva__devices *devices);

/* Sends a command to the device thread, which is in use. Thread: any. */
void uva__devices_send(struct uva__devices *devices,
                       struct uva__device_command *command);

/* Takes `release`; the caller holds the workers. Thread: the device thread. */
void uva__deferred_releases_take(
    struct uva__deferred_releases *deferred_releases,
    struct uva__deferred_release *release);

/* Releases all kept arrays: the workers are gone. Thread: the device thread. */
void uva__deferred_releases_end(
    struct uva__deferred_releases *deferred_releases);

/* The workers quit, once: the kept arrays are released. Thread: any. */
void uva__devices_leave(struct uva__devices *devices);

/* How an array's event is treated, by its device type. */
enum uva__event_kind {
    UVA__EVENT_NONE,   /* no event: the data is ready */
    UVA__EVENT_WAIT,   /* a wait, by the type's table */
    UVA__EVENT_UNKNOWN /* there is no table that can wait: ENOTSUP */
};

/* Classifies the event of an array. Thread: any. */
enum uva__event_kind uva__devices_classify(struct uva__devices *devices,
                                           ArrowDeviceType device_type,
                                           const void *sync_event,
                                           struct uva_error *error);

/* Returns the row of a type; NULL for an unknown type. Thread: any. */
struct uva__backend *uva__devices_backend(struct uva__devices *devices,
                                          ArrowDeviceType device_type);

/* Returns the row of a type that has a table, which cannot be replaced from now
 * on; NULL if it has no table. Thread: any. */
struct uva__backend *uva__devices_first_use(struct uva__devices *devices,
                                            ArrowDeviceType device_type);

/* Completes the error of a failed call of the table: adds a missing text, and
 * replaces a code that would mean that the event is pending. Returns the code.
 * Thread: any. */
int uva__backend_failed(const struct uva__backend *backend, int code,
                        const char *what, struct uva_error *error);

/* Queries an event: 0, EAGAIN, or how it failed. Thread: as its table
 * documents.
 */
int uva__backend_query(const struct uva__backend *backend,
                       const struct uva_device_event *event,
                       struct uva_error *error);

/* Records an event after the work on `device_stream`, by a table that is loaded
 * and has record; the caller is inside the gate of drivers. 0, or why it has
 * failed. Thread: any. */
UVA_MUST_CHECK int uva__backend_record(const struct uva__backend *backend,
                                       const struct uva_device_event *device,
                                       void *device_stream, void **event_out,
                                       struct uva_error *error);

/* Makes `device_stream` wait for an event, on the device, by a table that is
 * loaded; the caller is inside the gate of drivers. 0; ENOTSUP if the table has
 * no such function; or why it has failed. Thread: as its table documents. */
UVA_MUST_CHECK int uva__backend_chain(const struct uva__backend *backend,
                                      const struct uva_device_event *event,
                                      void *device_stream,
                                      struct uva_error *error);

/* Frees an event of the table; NULL is ignored. Thread: any. */
void uva__backend_event_free(const struct uva__backend *backend, void *event);

/* Loads the table, unless that was tried before; waits for a load by the other
 * thread. The load of a built-in table that returns EAGAIN, with another code
 * in its error, is tried again by the next call. 0, or why it failed. Thread:
 * any for a built-in table; the device thread. */
UVA_MUST_CHECK int uva__backend_load(struct uva__backend *backend,
                                     struct uva_error *error);

/* Has the device thread load the table of a type, and waits for that: tens of
 * milliseconds, the first time. Starts the device thread. 0, or why it failed;
 * ENOTSUP for a type without a table; ENOMEM without a thread; ESHUTDOWN;
 * EDEADLK from inside that very load. Thread: any. */
UVA_MUST_CHECK int uva__devices_load(struct uva__devices *devices,
                                     ArrowDeviceType device_type,
                                     struct uva_error *error);

/* Answers uva_device_get_info(). Thread: any. */
UVA_MUST_CHECK int uva__devices_describe(struct uva__devices *devices,
                                         ArrowDeviceType device_type,
                                         struct uva_device_info *out);

/* Returns whether a handle of a vendor with default streams is a default
 * stream: a small number, which means another stream on each thread, or in each
 * context. */
static inline bool uva__stream_is_default(const void *handle)
{
    return (uintptr_t)handle <= 2;
}

/* Checks a stream of the caller's that the device thread is to make wait. Loads
 * CUDA if it is a default stream. 0; ENOTSUP, with the handle to pass instead;
 * ESHUTDOWN if the process exits.
 * Thread: the caller's. */
UVA_MUST_CHECK int uva__devices_check_stream(struct uva__devices *devices,
                                             void *device_stream,
                                             struct uva_error *error);

/* Replaces the table of a type: uva_device_register().
 * Thread: any. */
UVA_MUST_CHECK int uva__devices_register(struct uva__devices *devices,
                                         ArrowDeviceType device_type,
                                         const struct uva_device_ops *ops,
                                         void *ctx, struct uva_error *error);

#endif
