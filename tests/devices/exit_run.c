/* SPDX-License-Identifier: Apache-2.0 */
/* Uses the driver from UVA_CUDA_LIBRARY or UVA_HIP_LIBRARY, whichever is set.
 */
#include "devices/exit_run.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "devices/fake_control.h"
#include "support/reference_data.h"
#include "uvarrow/uvarrow.h"

enum { BATCHES = 16, SOME = 4 };

/* The open objects. */
static struct {
    const char *way;
    ArrowDeviceType device_type;
    void *driver;
    struct reference_counts live;
    uv_loop_t loop;
    struct uva_runtime *rt; /* NULL: closed */
    int64_t rows;           /* that were right */
    atomic_bool done, quiet;
    struct ArrowDeviceArray held; /* an array that the program keeps */
} p;

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "exits %s: %s\n", p.way, what);
    _exit(3);
}

static bool is(const char *way)
{
    return strcmp(p.way, way) == 0;
}

/* ---- the program's own use of the driver --------------------------------- */

/* Calls a function of the driver that takes at most these arguments. */
static void drive(const char *cuda, const char *hip, uintptr_t a, uintptr_t b,
                  uintptr_t c, uintptr_t d, uintptr_t e)
{
    int (*call)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);
    void *address =
        dlsym(p.driver, p.device_type == ARROW_DEVICE_CUDA ? cuda : hip);

    must(address != NULL, "the driver lacks a function");
    memcpy(&call, &address, sizeof(call));
    must(call(a, b, c, d, e) == 0, "a call of the driver has failed");
}

static void driver_open(void)
{
    const char *cuda = getenv("UVA_CUDA_LIBRARY");
    void *context;

    p.device_type = cuda != NULL ? ARROW_DEVICE_CUDA : ARROW_DEVICE_ROCM;
    p.driver = dlopen(cuda != NULL ? cuda : getenv("UVA_HIP_LIBRARY"),
                      RTLD_NOW | RTLD_LOCAL);
    must(p.driver != NULL, "there is no driver");
    drive("cuInit", "hipInit", 0, 0, 0, 0, 0);
    if (p.device_type == ARROW_DEVICE_CUDA) {
        drive("cuDevicePrimaryCtxRetain", NULL, (uintptr_t)&context, 0, 0, 0,
              0);
        drive("cuCtxSetCurrent", NULL, (uintptr_t)context, 0, 0, 0, 0);
    } else {
        drive(NULL, "hipSetDevice", 0, 0, 0, 0, 0);
    }
}

/* Checks that the library has given back everything it had of the driver, so
 * that its threads have no more work there. */
static void must_be_left(void)
{
    static const int whats[] = {FAKE_EVENTS, FAKE_STREAMS, FAKE_BLOCKS};
    void *address = dlsym(p.driver, "fakegpu_count");
    long (*count)(int what);

    must(address != NULL, "the driver is no double");
    memcpy(&count, &address, sizeof(count));
    for (size_t i = 0; i < sizeof(whats) / sizeof(*whats); i++)
        must(count(whats[i]) == 0, "the driver is still in use");
}

/* Gives a stream that waits for ever. */
static void *stream_gated(void)
{
    static _Atomic uint32_t word;
    void *stream;

    drive("cuStreamCreate", "hipStreamCreateWithFlags", (uintptr_t)&stream, 1,
          0, 0, 0);
    drive("cuStreamWaitValue32_v2", "hipStreamWaitValue32", (uintptr_t)stream,
          (uintptr_t)&word, 1, 0, UINT32_MAX);
    return stream;
}

/* ---- batches ------------------------------------------------------------- */

static void leave(void)
{
    exit(0);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    if (is("busy") && p.rows == SOME)
        leave();
    p.rows += reference_array_ordinal(&batch->data.array) == batch->ordinal;
    return 0;
}

static int on_device_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    p.rows++;
    if (p.held.array.release == NULL)
        uva_array_move(&batch->data, &p.held);
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    must(outcome->end == UVA_END_COMPLETE, outcome->error.message);
    atomic_store(&p.done, true);
}

static void copies_begin(bool back)
{
    const struct uva_consumer consumer = {
        .on_batch = back ? on_batch : on_device_batch, .on_done = on_done};
    struct ArrowDeviceArray arrays[BATCHES];
    struct ArrowSchema schema;
    struct uva_stream *stream;

    reference_schema(&p.live, NULL, &schema);
    for (int k = 0; k < BATCHES; k++)
        reference_array(&p.live, k, &arrays[k]);
    stream = uva_stream_from_arrays(p.rt, &schema, arrays, BATCHES);
    must(uva_stream_transfer(
             stream, &(struct uva_transfer){.device_type = p.device_type}) == 0,
         "no copy to the device");
    if (back)
        must(uva_stream_transfer(stream, NULL) == 0, "no copy to the host");
    must(uva_stream_for_each(stream, &consumer, NULL) == 0, "no stream");
    uva_stream_release(stream);
}

/* ---- ways to exit -------------------------------------------------------- */

static void *leave_run(void *arg)
{
    (void)arg;
    leave();
    return NULL;
}

/* Exits on a thread while main() goes on. */
static _Noreturn void leave_elsewhere(void)
{
    pthread_t thread;

    must(pthread_create(&thread, NULL, leave_run, NULL) == 0, "no thread");
    for (;;)
        (void)pause();
}

static void on_closed(void *ctx)
{
    (void)ctx;
    p.rt = NULL;
    if (!is("held") && !is("pending") && !is("shared"))
        must_be_left();
    if (is("callback"))
        leave();
}

static void on_quiet(void *ctx)
{
    (void)ctx;
    atomic_store(&p.quiet, true);
}

/* Runs after the exit handlers of the driver. */
static void close_late(void)
{
    if (p.rt == NULL)
        return;
    (void)uva_runtime_close(p.rt, 0, NULL, NULL);
    (void)uva_runtime_join(p.rt, UVA_FOREVER);
}

/* Has an array released after work that never ends. */
static void release_pending(void)
{
    struct ArrowDeviceArray array;

    reference_array(&p.live, 0, &array);
    array.device_type = p.device_type;
    array.device_id = 0;
    uva_array_release_after(p.rt, &array, stream_gated());
}

static void run_on_loop(void)
{
    struct uva_runtime_options options = {.on_quiet =
                                              is("quiet") ? on_quiet : NULL};

    if (is("shared"))
        must(uva_workers_new(NULL, &options.workers, NULL) == 0, "no workers");
    must(uv_loop_init(&p.loop) == 0, "no loop");
    must(uva_runtime_open(&p.loop, &options, &p.rt, NULL) == 0, "no runtime");
    copies_begin(!is("held"));
    while (!atomic_load(&p.done))
        (void)uv_run(&p.loop, UV_RUN_ONCE);
    if (is("pending"))
        release_pending();
    (void)uva_runtime_close(p.rt, 0, on_closed, NULL);
    while (p.rt != NULL)
        (void)uv_run(&p.loop, UV_RUN_ONCE);
    must(uv_loop_close(&p.loop) == 0, "the loop is in use");
    uva_workers_release(options.workers);
    if (is("shared"))
        must_be_left();
    while (is("quiet") && !atomic_load(&p.quiet))
        (void)sched_yield();
}

static void run_on_thread(void)
{
    must(uva_runtime_open(NULL, NULL, &p.rt, NULL) == 0, "no runtime");
    copies_begin(true);
    while (!atomic_load(&p.done) || is("busy"))
        (void)sched_yield();
    if (is("open") || is("late"))
        return;
    (void)uva_runtime_close(p.rt, 0, NULL, NULL);
    must(uva_runtime_join(p.rt, UVA_FOREVER) == 0, "not joined");
    must_be_left();
    p.rt = NULL;
}

int exit_run(const char *way)
{
    static const char *const on_loop[] = {
        "closed", "callback", "quiet", "held", "pending", "other", "shared"};
    static const char *const on_thread[] = {"joined", "busy", "open", "late"};
    bool known = false;

    p.way = way;
    if (is("late")) /* before the driver can */
        (void)atexit(close_late);
    driver_open();
    for (size_t i = 0; i < sizeof(on_loop) / sizeof(*on_loop); i++)
        if (is(on_loop[i])) {
            known = true;
            run_on_loop();
        }
    for (size_t i = 0; i < sizeof(on_thread) / sizeof(*on_thread); i++)
        if (is(on_thread[i])) {
            known = true;
            run_on_thread();
        }
    if (is("other"))
        leave_elsewhere();
    return !known ? 2 : p.rows != BATCHES;
}
