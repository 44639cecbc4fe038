/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA events, through the driver API, which is found as the library finds it:
 * the delay from an event to the loop, by hand and through uvarrow, also while
 * something else blocks, or waits inside the driver, the cost of a wait of 100
 * ms, and the speed of copies to the host. Without a driver or a device,
 * there is no measurement.
 *
 * By hand means a host function queued after the event, or a thread that polls
 * the event all the time. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "latency.h"

enum { PINNED_FOR_ALL = 1 | 2, NO_TIMING = 2, UNORDERED = 1, WAIT_UNTIL = 0 };

static struct {
    int (*cuInit)(unsigned flags);
    int (*cuDeviceGet)(int *device, int ordinal);
    int (*cuDevicePrimaryCtxRetain)(void **context, int device);
    int (*cuCtxSetCurrent)(void *context);
    int (*cuStreamCreate)(void **stream, unsigned flags);
    int (*cuStreamSynchronize)(void *stream);
    int (*cuStreamWaitEvent)(void *stream, void *event, unsigned flags);
    int (*cuStreamWaitValue32_v2)(void *stream, uintptr_t word, uint32_t value,
                                  unsigned flags);
    int (*cuEventCreate)(void **event, unsigned flags);
    int (*cuEventRecord)(void *event, void *stream);
    int (*cuEventQuery)(void *event);
    int (*cuEventDestroy_v2)(void *event);
    int (*cuMemHostAlloc)(void **memory, size_t size, unsigned flags);
    int (*cuMemFreeHost)(void *memory);
    int (*cuMemAlloc_v2)(uintptr_t *memory, size_t size);
    int (*cuMemFree_v2)(uintptr_t memory);
    int (*cuMemcpyDtoHAsync_v2)(void *target, uintptr_t source, size_t size,
                                void *stream);
    int (*cuLaunchHostFunc)(void *stream, void (*fn)(void *data), void *data);
} cu;

struct gpu {
    void *context;
    void *stream; /* where events are recorded */
    void *other;  /* stream that waits for them, by hand */
    void *event;
    _Atomic uint32_t *holdback; /* holds events back, by one value each */
    uint32_t passed;
    pthread_t asker; /* thread that polls, by hand */
    bool queries;    /* `asker` runs */
    struct latency *latency;
};

static void must(int code, const char *what)
{
    bench_check(code == 0, what);
}

#define MUST(name, ...) must(cu.name(__VA_ARGS__), #name)

static bool driver_resolve(void *library)
{
    static const char *const names[] = {"cuInit",
                                        "cuDeviceGet",
                                        "cuDevicePrimaryCtxRetain",
                                        "cuCtxSetCurrent",
                                        "cuStreamCreate",
                                        "cuStreamSynchronize",
                                        "cuStreamWaitEvent",
                                        "cuStreamWaitValue32_v2",
                                        "cuEventCreate",
                                        "cuEventRecord",
                                        "cuEventQuery",
                                        "cuEventDestroy_v2",
                                        "cuMemHostAlloc",
                                        "cuMemFreeHost",
                                        "cuMemAlloc_v2",
                                        "cuMemFree_v2",
                                        "cuMemcpyDtoHAsync_v2",
                                        "cuLaunchHostFunc"};
    void *found[sizeof(names) / sizeof(names[0])];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        found[i] = dlsym(library, names[i]);
        if (found[i] == NULL)
            return false;
    }
    memcpy(&cu, found, sizeof(cu));
    return true;
}

/* Returns false if there is no device, after printing that. */
static bool gpu_open(struct gpu *gpu)
{
    const char *path = getenv("UVA_CUDA_LIBRARY");
    void *library =
        dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int device;

    *gpu = (struct gpu){0};
    if (library == NULL || !driver_resolve(library) || cu.cuInit(0) != 0 ||
        cu.cuDeviceGet(&device, 0) != 0) {
        (void)fprintf(stderr, "skipped: no CUDA device\n");
        return false;
    }
    MUST(cuDevicePrimaryCtxRetain, &gpu->context, device);
    MUST(cuCtxSetCurrent, gpu->context);
    MUST(cuStreamCreate, &gpu->stream, UNORDERED);
    MUST(cuStreamCreate, &gpu->other, UNORDERED);
    MUST(cuMemHostAlloc, (void **)&gpu->holdback, sizeof(*gpu->holdback),
         PINNED_FOR_ALL);
    atomic_store(gpu->holdback, 0);
    return true;
}

/* ---- events ------------------------------------------------------------- */

static void *event_make(void *ctx)
{
    struct gpu *gpu = ctx;

    MUST(cuStreamWaitValue32_v2, gpu->stream, (uintptr_t)gpu->holdback,
         ++gpu->passed, WAIT_UNTIL);
    MUST(cuEventCreate, &gpu->event, NO_TIMING);
    MUST(cuEventRecord, gpu->event, gpu->stream);
    return &gpu->event;
}

static void event_end(void *ctx)
{
    struct gpu *gpu = ctx;

    atomic_fetch_add(gpu->holdback, 1);
}

static void on_complete(void *arg)
{
    latency_hand_over(arg);
}

static void *event_query_once(void *arg)
{
    struct gpu *gpu = arg;

    MUST(cuCtxSetCurrent, gpu->context);
    while (cu.cuEventQuery(gpu->event) != 0)
        continue;
    latency_hand_over(gpu->latency);
    return NULL;
}

static void event_wait(void *ctx, int way, struct latency *latency)
{
    struct gpu *gpu = ctx;

    if (way == 0) {
        MUST(cuStreamWaitEvent, gpu->other, gpu->event, 0);
        MUST(cuLaunchHostFunc, gpu->other, on_complete, latency);
        return;
    }
    gpu->latency = latency;
    gpu->queries = true;
    must(pthread_create(&gpu->asker, NULL, event_query_once, gpu), "thread");
}

static void event_free(void *ctx)
{
    struct gpu *gpu = ctx;

    if (gpu->queries)
        (void)pthread_join(gpu->asker, NULL);
    gpu->queries = false;
    MUST(cuStreamSynchronize, gpu->stream);
    MUST(cuStreamSynchronize, gpu->other);
    MUST(cuEventDestroy_v2, gpu->event);
}

static const struct latency_device gated_events = {
    .device_type = ARROW_DEVICE_CUDA,
    .by_hand = {"hand-callback", "hand-polling"},
    .make = event_make,
    .end = event_end,
    .wait = event_wait,
    .free = event_free,
};

/* ---- events beside a blocked driver ------------------------------------- */

/* A program's release that waits for the end of the samples. */
struct blocked {
    struct gpu gpu; /* first: functions of events have it as their ctx */
    sem_t entered, left;
};

static void blocked_release(struct ArrowArray *array)
{
    struct blocked *blocked = array->private_data;

    (void)sem_post(&blocked->entered);
    (void)sem_wait(&blocked->left);
    array->release = NULL;
}

static void blocked_begin(void *ctx, struct host *host)
{
    struct blocked *blocked = ctx;
    struct ArrowDeviceArray array = {
        .device_type = ARROW_DEVICE_CUDA,
        .array = {.release = blocked_release, .private_data = blocked}};

    uva_array_release_after(host->runtime, &array, blocked->gpu.stream);
    (void)sem_wait(&blocked->entered);
}

static void blocked_end(void *ctx)
{
    (void)sem_post(&((struct blocked *)ctx)->left);
}

static const struct latency_device events_beside = {
    .device_type = ARROW_DEVICE_CUDA,
    .by_hand = {"hand-callback"},
    .make = event_make,
    .end = event_end,
    .wait = event_wait,
    .free = event_free,
    .block = blocked_begin,
    .unblock = blocked_end,
};

/* ---- events while a thread is in the driver ------------------------------ */

/* A program's thread in cuStreamSynchronize(). */
struct visited {
    struct gpu gpu; /* first: functions of events have it as their ctx */
    void *stream;   /* where it waits */
    _Atomic uint32_t *word; /* the word that the stream waits for */
    uint32_t value;         /* until it is this */
};

static void visited_stay(void *ctx)
{
    struct visited *visited = ctx;

    MUST(cuCtxSetCurrent, visited->gpu.context);
    MUST(cuStreamWaitValue32_v2, visited->stream, (uintptr_t)visited->word,
         ++visited->value, WAIT_UNTIL);
    MUST(cuStreamSynchronize, visited->stream);
}

static void visited_let(void *ctx)
{
    atomic_fetch_add(((struct visited *)ctx)->word, 1);
}

static void *visited_queue(void *ctx)
{
    return ((struct visited *)ctx)->gpu.other;
}

static const struct latency_device events_inside = {
    .device_type = ARROW_DEVICE_CUDA,
    .by_hand = {"hand-callback"},
    .make = event_make,
    .end = event_end,
    .wait = event_wait,
    .free = event_free,
    .stay = visited_stay,
    .let = visited_let,
    .queue = visited_queue,
};

/* ---- copies ------------------------------------------------------------- */

enum { ROWS = 8 << 20, COPY_BYTES = ROWS * 8, UNDER_WAY = 4 };

/* A stream of batches that all have the same column. */
struct copies {
    struct ArrowDeviceArrayStream abi; /* first */
    struct ArrowArray column;
    struct ArrowArray *columns[1];
    const void *buffers[2];
    const void *none[1];
    int64_t left; /* batches left */
};

static void copy_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static void column_release(struct ArrowArray *array)
{
    (void)array;
}

static int copy_next(struct ArrowDeviceArrayStream *self,
                     struct ArrowDeviceArray *out)
{
    struct copies *copies = self->private_data;

    memset(out, 0, sizeof(*out));
    if (copies->left-- == 0)
        return 0;
    out->device_type = ARROW_DEVICE_CUDA;
    out->array = (struct ArrowArray){.length = ROWS,
                                     .n_buffers = 1,
                                     .buffers = copies->none,
                                     .n_children = 1,
                                     .children = copies->columns,
                                     .release = copy_release};
    return 0;
}

static void copies_init(struct copies *copies, uintptr_t memory, int64_t count)
{
    struct input input;

    input_init(&input, 0);
    *copies = (struct copies){.abi = input.abi, .left = count};
    copies->abi.device_type = ARROW_DEVICE_CUDA;
    copies->abi.get_next = copy_next;
    copies->abi.private_data = copies;
    copies->buffers[1] = (const void *)memory;
    copies->columns[0] = &copies->column;
    copies->column = (struct ArrowArray){.length = ROWS,
                                         .n_buffers = 2,
                                         .buffers = copies->buffers,
                                         .release = column_release};
}

static int copy_on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    bench_check(batch->data.array.length == ROWS, "rows");
    return 0;
}

static double copies_by_uvarrow(const struct bench_how *how, uintptr_t memory)
{
    const struct uva_arrow_source on_loop = {.on_loop = true};
    const struct uva_transfer ahead = {
        .window = {.batches = UNDER_WAY, .bytes = INT64_MAX}};
    struct uva_stream *stream;
    struct copies copies;
    struct host host;
    double begun;

    host_open(&host, how, 0);
    copies_init(&copies, memory, how->batches);
    stream = uva_stream_from_device_stream(host.runtime, &copies.abi, &on_loop);
    bench_check(uva_stream_transfer(stream, &ahead) == 0, "transfer");
    begun = bench_now_ns(how);
    bench_check(
        uva_stream_for_each(stream,
                            &(struct uva_consumer){.on_batch = copy_on_batch,
                                                   .on_done = host_on_done,
                                                   .ctx = &host},
                            NULL) == 0,
        "for_each");
    host.open++;
    uva_stream_release(stream);
    begun = host_run(&host) - begun;
    host_close(&host);
    return begun;
}

static double copies_by_hand(const struct bench_how *how, struct gpu *gpu,
                             uintptr_t memory)
{
    void *target[UNDER_WAY];
    double begun;

    for (int i = 0; i < UNDER_WAY; i++)
        MUST(cuMemHostAlloc, &target[i], COPY_BYTES, PINNED_FOR_ALL);
    begun = bench_now_ns(how);
    for (int64_t i = 0; i < how->batches; i++)
        MUST(cuMemcpyDtoHAsync_v2, target[i % UNDER_WAY], memory, COPY_BYTES,
             gpu->stream);
    MUST(cuStreamSynchronize, gpu->stream);
    begun = bench_now_ns(how) - begun;
    for (int i = 0; i < UNDER_WAY; i++)
        MUST(cuMemFreeHost, target[i]);
    return begun;
}

/* Returns bytes per nanosecond, which are gigabytes per second. `window` 1:
 * through uvarrow. */
static double run_copies(const struct bench_case *self,
                         const struct bench_how *how)
{
    struct gpu gpu;
    uintptr_t memory;
    double took;

    if (!gpu_open(&gpu))
        return 0;
    MUST(cuMemAlloc_v2, &memory, COPY_BYTES);
    took = self->window == 1 ? copies_by_uvarrow(how, memory)
                             : copies_by_hand(how, &gpu, memory);
    MUST(cuMemFree_v2, memory);
    bench_print(self->name, (double)how->batches * COPY_BYTES / took, "GB/s");
    return 0;
}

/* ---- cases -------------------------------------------------------------- */

static double run_latency(const struct bench_case *self,
                          const struct bench_how *how)
{
    struct gpu gpu;

    if (gpu_open(&gpu))
        latency_run(self->name, how, &gated_events, &gpu);
    return 0;
}

static double run_beside(const struct bench_case *self,
                         const struct bench_how *how)
{
    struct blocked blocked;

    if (!gpu_open(&blocked.gpu))
        return 0;
    bench_check(sem_init(&blocked.entered, 0, 0) == 0 &&
                    sem_init(&blocked.left, 0, 0) == 0,
                "semaphore");
    latency_run(self->name, how, &events_beside, &blocked);
    (void)sem_destroy(&blocked.entered);
    (void)sem_destroy(&blocked.left);
    return 0;
}

static double run_inside(const struct bench_case *self,
                         const struct bench_how *how)
{
    struct visited visited = {.value = 0};

    if (!gpu_open(&visited.gpu))
        return 0;
    MUST(cuStreamCreate, &visited.stream, UNORDERED);
    MUST(cuMemHostAlloc, (void **)&visited.word, sizeof(*visited.word),
         PINNED_FOR_ALL);
    atomic_store(visited.word, 0);
    latency_run(self->name, how, &events_inside, &visited);
    return 0;
}

static double run_waiting(const struct bench_case *self,
                          const struct bench_how *how)
{
    struct gpu gpu;

    if (gpu_open(&gpu))
        latency_idle(self->name, how, &gated_events, &gpu);
    return 0;
}

static const struct bench_case cases[] = {
    {"cuda/latency", 5000, run_latency, 0, 0, BENCH_PRINTS},
    {"cuda/beside", 1000, run_beside, 0, 0, BENCH_PRINTS},
    {"cuda/inside", 1000, run_inside, 0, 0, BENCH_PRINTS},
    {"cuda/to-host/hand", 200, run_copies, 0, 0, BENCH_PRINTS},
    {"cuda/to-host/uvarrow", 200, run_copies, 1, 0, BENCH_PRINTS},
    {"cuda/waiting", 1, run_waiting, 0, 0, BENCH_PRINTS},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
