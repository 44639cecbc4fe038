/* SPDX-License-Identifier: Apache-2.0 */
/* How long it takes from the end of an event on a device to a callback on the
 * loop, by different ways that take turns, so that each has had the machine as
 * it was: by hand, through uva_array_wait() and through `ready`. */
#ifndef BENCH_LATENCY_H
#define BENCH_LATENCY_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "host.h"

struct latency;

/* One kind of device. */
struct latency_device {
    ArrowDeviceType device_type;
    const char *by_hand[4]; /* the names of its bare mechanisms, then NULL */
    /* makes a pending event and gives it as arrays carry it */
    void *(*make)(void *ctx);
    /* completes it, and may go on after that while it is freed. On another
     * thread. */
    void (*end)(void *ctx);
    /* has latency_hand_over() called when it is complete, by bare mechanism
     * `way` */
    void (*wait)(void *ctx, int way, struct latency *latency);
    /* frees it */
    void (*free)(void *ctx);
};

struct latency {
    struct host host;
    const struct latency_device *device; /* borrows */
    void *ctx;                           /* borrows: the device's */
    uv_async_t async;                    /* what waits by hand send */
    struct uva_pusher *pusher;           /* owns: of the stream */
    pthread_t thread;                    /* ends events */
    sem_t made;                          /* one is to be ended */
    atomic_bool quit;
    int64_t pause_ns;  /* how long it is waited for, at least */
    double idle_ns;    /* of the processor, in the last pause */
    uint64_t ended_ns; /* when the last was ended; before `seen_ns` */
    uint64_t seen_ns;  /* when its callback was called, or 0 */
    int64_t samples;   /* of each way */
    double *taken[8];  /* owns: microseconds, of each way */
};

/* Measures `samples` of each way and prints p50 and p99 as NAME/WAY/p50. */
void latency_run(const char *name, const struct bench_how *how,
                 const struct latency_device *device, void *ctx);

/* Measures how much of a core the process takes while `ready` waits 100 ms for
 * one event, and prints that as NAME. */
void latency_idle(const char *name, const struct bench_how *how,
                  const struct latency_device *device, void *ctx);

/* Says, by hand, that an event is complete. Thread: any. */
void latency_hand_over(struct latency *latency);

#endif
