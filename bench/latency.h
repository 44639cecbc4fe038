/* SPDX-License-Identifier: Apache-2.0 */
/* The delay from the completion of a device event to a callback on the loop,
 * measured in several ways that take turns, so that all run under the same
 * conditions: by hand, through uva_array_wait() and through `ready`. */
#ifndef BENCH_LATENCY_H
#define BENCH_LATENCY_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "bell.h"
#include "host.h"

struct latency;

/* One kind of device. */
struct latency_device {
    ArrowDeviceType device_type;
    const char *by_hand[4]; /* names of the mechanisms used by hand, then
                               NULL */
    /* Makes a pending event; returns it as arrays carry it. */
    void *(*make)(void *ctx);
    /* Completes the event, and may still run while it is freed. On another
     * thread. */
    void (*end)(void *ctx);
    /* Arranges for latency_hand_over() to be called on completion, by mechanism
     * `way` of `by_hand`. */
    void (*wait)(void *ctx, int way, struct latency *latency);
    /* Frees the event. */
    void (*free)(void *ctx);
    /* The work beside the samples: has a blocking call begin in the runtime of
     * `host`, and lets it end. May be NULL. */
    void (*block)(void *ctx, struct host *host);
    void (*unblock)(void *ctx);
    /* The work of another thread of the program meanwhile, again and again:
     * waits in the driver until `let` is called, every few milliseconds. Then
     * the time that uva_array_record() takes on the loop's thread is measured,
     * too. May be NULL. */
    void (*stay)(void *ctx);
    void (*let)(void *ctx);
    void *(*queue)(void *ctx); /* returns the queue to record on */
};

struct latency {
    struct host host;
    const struct latency_device *device; /* borrows */
    void *ctx;                           /* borrows: argument for the device */
    struct bell bell;                    /* rung by waits made by hand */
    struct uva_pusher *pusher;           /* owns: pusher of the stream */
    pthread_t thread;                    /* completes events */
    sem_t made;                          /* an event is to be completed */
    atomic_bool quit;
    int64_t pause_ns;  /* minimum time before it completes */
    double idle_ns;    /* CPU time in the last pause */
    uint64_t ended_ns; /* last completion; written before `seen_ns` */
    uint64_t seen_ns;  /* when the callback ran, or 0 */
    int64_t samples;   /* samples of each way */
    double *taken[8];  /* owns: microseconds, for each way */
};

/* Measures `samples` for each way and prints p50 and p99 as NAME/WAY/p50 and so
 * on. With `stay`, the way `record` is a call of uva_array_record(). */
void latency_run(const char *name, const struct bench_how *how,
                 const struct latency_device *device, void *ctx);

/* Measures the share of a core that the process uses while `ready` waits 100 ms
 * for one event, and prints it as NAME. */
void latency_idle(const char *name, const struct bench_how *how,
                  const struct latency_device *device, void *ctx);

/* Called by hand when an event is complete. Thread: any. */
void latency_hand_over(struct latency *latency);

#endif
