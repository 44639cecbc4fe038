/* SPDX-License-Identifier: Apache-2.0 */
/* A double of the common part of the CUDA driver and HIP: streams with a thread
 * each, events with the rules of record and wait, sticky failures, and device
 * memory that faults when the host touches it. It follows the vendors'
 * documents, and is strict where they leave a case open. fake_cuda.c and
 * fake_hip.c add the vendors' names; tests control it by fake_control.h. */
#ifndef UVA_TESTS_FAKE_GPU_H
#define UVA_TESTS_FAKE_GPU_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_API __attribute__((visibility("default")))

enum {
    FAKE_OK = 0,
    FAKE_INVALID_VALUE = 1,
    FAKE_OUT_OF_MEMORY = 2,
    FAKE_NOT_INITIALIZED = 3,
    FAKE_NO_DEVICE = 100,
    FAKE_INVALID_DEVICE = 101,
    FAKE_INVALID_CONTEXT = 201,
    FAKE_INVALID_HANDLE = 400,
    FAKE_NOT_READY = 600,
    FAKE_CONTEXT_DESTROYED = 709,
    FAKE_NOT_PERMITTED = 800,
    FAKE_CAPTURE_UNSUPPORTED = 900,
    FAKE_CAPTURE_INVALIDATED = 901
};

/* FAKE_HOST_FUNCTIONS: of a device that were not called; with more, drivers
 * hang. FAKE_QUEUE: operations on a stream; a driver blocks until there is
 * room.
 */
enum { FAKE_DEVICES = 2, FAKE_HOST_FUNCTIONS = 32, FAKE_QUEUE = 1024 };

/* Further lawful ways of a driver, by its documents, or by the documents of
 * another implementation. UVA_FAKE_MODE in the environment has the words, such
 * as "pageable,destroys". */
enum fake_mode {
    FAKE_PAGEABLE = 1, /* "pageable": a copy from or to memory that is not
                          pinned waits for the stream */
    FAKE_DESTROYS = 2, /* "destroys": so does the end of a stream, for all
                          streams of the process */
    FAKE_LOCKS = 4,    /* "locks": a call holds one lock, also while it waits */
    FAKE_UNRECORDED = 8, /* "unrecorded": an event that was never recorded reads
                            as pending */
    FAKE_EXITS =
        16 /* "exits": pinned memory is unmapped when the process exits,
              by a handler that was registered as late as possible; a
              later call aborts. To free such memory takes a while */
};

/* Returns whether the double behaves so. */
bool fake_is(enum fake_mode mode);

/* Holds the lock of FAKE_LOCKS until the end of the function. */
#define FAKE_LOCKED()                                                          \
    const int fake_locked __attribute__((cleanup(fake_unlock), unused)) =      \
        fake_lock()
int fake_lock(void);
void fake_unlock(const int *locked);

/* Whether the handle 1 is the legacy default stream, as NULL is. */
extern const bool fake_has_legacy_handle;

/* The requirements and effects of a call. */
enum {
    FAKE_INSIDE = 1, /* needs a current context */
    FAKE_UNSAFE = 2, /* may invalidate a capture on another thread */
    FAKE_REPORTS = 4 /* its failure means that all work has failed */
    /* and the bits of enum fake_refuse */
};

struct fake_context {
    int device;
    atomic_int kept; /* a primary context is active while this is not 0 */
    atomic_bool destroyed;
    struct fake_context *before; /* the context destroyed before this one */
    void *legacy;                /* its legacy default stream; NULL: not made */
    struct fake_context *primary; /* of a green context: its primary one */
    atomic_uintptr_t holder;      /* of a green context: the thread on which it
                                     is current, or 0 */
    int called_back;              /* FAKE_HOST_FUNCTIONS; locked */
};

typedef void fake_callback_fn(void *stream, int code, void *user_data);
typedef void fake_host_fn(void *user_data);
typedef void fake_compute_fn(void *target, const void *source, size_t size);

/* Starts every function of a vendor: returns a code, or 0 to proceed. Functions
 * that free proceed in any case. */
int fake_begin(unsigned needs);

/* Initialises the driver; returns FAKE_NO_DEVICE if it has no device. */
int fake_init(void);

/* Contexts: the devices', and the current one of this thread. */
struct fake_context *fake_primary(int device);
struct fake_context *fake_current(void);
void fake_current_set(struct fake_context *context);
int fake_push(struct fake_context *context);
struct fake_context *fake_pop(void);
int fake_context_keep(struct fake_context *context, int step);

/* Sets how this thread affects captures of other threads; returns the mode
 * before. */
int fake_capture_mode(int mode);
int fake_capture_begin(void);
int fake_capture_end(void);

/* Events and streams. */
int fake_event_create(void **out);
int fake_event_destroy(void *event);
int fake_event_record(void *event, void *stream);
int fake_event_query(void *event);
int fake_event_synchronize(void *event);
int fake_stream_create(void **out);
int fake_stream_create_in(struct fake_context *context, void **out);
int fake_stream_destroy(void *stream);
int fake_stream_synchronize(void *stream);
int fake_stream_wait(void *stream, void *event);
int fake_stream_wait_value(void *stream, void *word, uint32_t value);
int fake_stream_store(void *stream, void *word, uint32_t value);
int fake_stream_spin(void *stream, uint64_t ns);
int fake_stream_fail(void *stream, int code);
int fake_stream_callback(void *stream, fake_callback_fn *fn, void *user_data);
int fake_stream_host(void *stream, fake_host_fn *fn, void *user_data);
/* Copies from the host, and to it. */
int fake_stream_upload(void *stream, void *target, const void *source,
                       size_t size);
int fake_stream_download(void *stream, void *target, const void *source,
                         size_t size);
int fake_stream_compute(void *stream, fake_compute_fn *fn, void *target,
                        const void *source, size_t size);
/* Gives whether devices can read each other's memory: not with UVA_FAKE_APART
 * in the environment. */
int fake_peers(int *direct, int device, int peer);
/* A copy between devices. */
int fake_stream_peer(void *stream, void *target, const void *source,
                     size_t size);
/* Memory that may be used later in the order of the stream, and is freed when
 * the stream gets there. */
int fake_stream_alloc(void *stream, void **out, size_t size);
int fake_stream_free(void *stream, void *memory);
int fake_stream_context(void *stream, void **out);

/* Memory. */
int fake_memory_new(void **out, size_t size, bool of_host);
int fake_memory_free(void *memory);
/* Do that where the test holds such calls, too. */
int fake_memory_make(void **out, size_t size, bool of_host);
int fake_memory_drop(void *memory);
/* Returns where the bytes of an address are; for device memory, that is another
 * place. */
void *fake_memory_bytes(const void *address);
/* Note that a stream has come to the allocation of memory. */
void fake_memory_order(void *memory, bool usable);
/* Returns whether streams may use the address: memory allocated in the order of
 * a stream, only when that has come to it. */
bool fake_memory_is_usable(const void *address);
/* Returns whether the address is in memory that was allocated here. */
bool fake_memory_is_known(const void *address);

/* Returns the code that all work has failed with, or 0. */
int fake_sticky(void);

/* Makes all work fail from now on; the caller wakes the threads that wait. */
void fake_fail(int code);

/* The process exits: no call may follow, and queued work does not run. */
void fake_exit(void);
void fake_stop(void);

/* Wakes all waiting threads. */
void fake_wake(void);

/* Waits until no work is queued. */
void fake_drain(void);

/* Waits while the test holds calls of this kind (enum fake_hold). */
void fake_hold(int call);

/* Marks this thread as inside a callback, or not. */
void fake_calls_back(bool on);

/* A count that fake_control.h reads. */
void fake_count(int what, int step);
FAKE_API long fakegpu_count(int what);

#endif
