/* SPDX-License-Identifier: Apache-2.0 */
/* Measures one event at a time: begins a wait, completes the event a little
 * later, and takes the time in the loop's callback. */
#include "event_delay.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "uvarrow/arrow.h"
#include "uvarrow/device.h"

enum { SAMPLES = 400, PAUSE_NS = 1000000 };

/* The OpenCL functions needed for user events. */
struct opencl {
    int (*platforms)(unsigned count, void **out, unsigned *found);
    int (*devices)(void *platform, uint64_t kind, unsigned count, void **out,
                   unsigned *found);
    void *(*context)(const void *properties, unsigned count,
                     void *const *devices, void *notify, void *ctx, int *code);
    void *(*event)(void *context, int *code);
    int (*status)(void *event, int status);
    int (*release_event)(void *event);
    int (*release_context)(void *context);
};

/* One sample. The loop thread writes the time, then sets the flag. */
struct sample {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool told;
    uint64_t told_ns;
    int code;
};

/* ---- the device --------------------------------------------------------- */

static bool symbol_find(void *library, const char *name, void *out)
{
    void *address = dlsym(library, name);

    memcpy(out, &address, sizeof(address));
    return address != NULL;
}

static int opencl_open(struct opencl *cl, struct uva_error *error)
{
    const char *path = getenv("UVA_OPENCL_LIBRARY");
    void *library =
        dlopen(path != NULL ? path : "libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);

    if (library == NULL)
        return uva_error_set(error, ENOTSUP, "%.900s", dlerror());
    if (!symbol_find(library, "clGetPlatformIDs", &cl->platforms) ||
        !symbol_find(library, "clGetDeviceIDs", &cl->devices) ||
        !symbol_find(library, "clCreateContext", &cl->context) ||
        !symbol_find(library, "clCreateUserEvent", &cl->event) ||
        !symbol_find(library, "clSetUserEventStatus", &cl->status) ||
        !symbol_find(library, "clReleaseEvent", &cl->release_event) ||
        !symbol_find(library, "clReleaseContext", &cl->release_context))
        return uva_error_set(error, ENOTSUP, "the OpenCL library is too old");
    return 0;
}

/* Makes a context of the first device of any platform. */
static void *context_make(const struct opencl *cl, struct uva_error *error)
{
    const uint64_t all_kinds = 0xFFFFFFFF;
    void *platforms[8], *device, *context;
    unsigned count = 0, found;
    int code;

    if (cl->platforms(8, platforms, &count) != 0)
        count = 0;
    for (unsigned i = 0; i < count && i < 8; i++) {
        if (cl->devices(platforms[i], all_kinds, 1, &device, &found) != 0)
            continue;
        context = cl->context(NULL, 1, &device, NULL, NULL, &code);
        if (code == 0)
            return context;
    }
    (void)uva_error_set(error, ENOTSUP, "no OpenCL platform has a device");
    return NULL;
}

/* ---- one sample --------------------------------------------------------- */

static void array_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static void on_ready(void *ctx, struct ArrowDeviceArray *array,
                     const struct uva_error *error)
{
    struct sample *sample = ctx;
    const uint64_t now = uv_hrtime();

    uva_array_release(array);
    pthread_mutex_lock(&sample->lock);
    sample->told = true;
    sample->told_ns = now;
    sample->code = error->code;
    pthread_cond_signal(&sample->changed);
    pthread_mutex_unlock(&sample->lock);
}

/* Returns the delay in nanoseconds; negative: an errno. */
static int64_t sample_take(struct uva_runtime *runtime, const struct opencl *cl,
                           void *context, struct sample *sample)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    int code;
    void *event = cl->event(context, &code);
    struct ArrowDeviceArray array = {.array.release = array_release,
                                     .device_type = ARROW_DEVICE_OPENCL,
                                     .sync_event = &event};
    uint64_t set_ns;

    if (code != 0)
        return -EIO;
    sample->told = false;
    code = uva_array_wait(runtime, &array, UVA_FOREVER, on_ready, sample);
    if (code != 0)
        return -code;
    (void)nanosleep(&pause, NULL); /* gives the wait time to begin */
    set_ns = uv_hrtime();
    (void)cl->status(event, 0);
    pthread_mutex_lock(&sample->lock);
    while (!sample->told)
        pthread_cond_wait(&sample->changed, &sample->lock);
    pthread_mutex_unlock(&sample->lock);
    (void)cl->release_event(event);
    return sample->code != 0 ? -sample->code
                             : (int64_t)(sample->told_ns - set_ns);
}

static int by_size(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

/* ---- all samples -------------------------------------------------------- */

static int delay_run(struct uva_runtime *runtime, const struct opencl *cl,
                     void *context, struct uva__event_delay *out,
                     struct uva_error *error)
{
    struct sample sample = {.lock = PTHREAD_MUTEX_INITIALIZER,
                            .changed = PTHREAD_COND_INITIALIZER};
    int64_t took[SAMPLES];

    for (int i = 0; i < SAMPLES; i++) {
        took[i] = sample_take(runtime, cl, context, &sample);
        if (took[i] < 0)
            return uva_error_set(error, (int)-took[i],
                                 "a wait for an OpenCL event has failed");
    }
    qsort(took, SAMPLES, sizeof(took[0]), by_size);
    *out = (struct uva__event_delay){SAMPLES, (uint64_t)took[SAMPLES / 2],
                                     (uint64_t)took[SAMPLES * 99 / 100]};
    return 0;
}

int uva__event_delay_opencl(struct uva_runtime *runtime,
                            struct uva__event_delay *out,
                            struct uva_error *error)
{
    struct opencl cl;
    void *context;
    int code = opencl_open(&cl, error);

    if (code != 0)
        return code;
    context = context_make(&cl, error);
    if (context == NULL)
        return error->code;
    code = delay_run(runtime, &cl, context, out, error);
    (void)cl.release_context(context);
    return code;
}
