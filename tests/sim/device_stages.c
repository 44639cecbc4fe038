/* SPDX-License-Identifier: Apache-2.0 */
/* While a chain is built, its scenario records where its batches are and how
 * their events were treated; later, how they must arrive. */
#include "sim/device_stages.h"

#include <errno.h>
#include <string.h>

#include "device/driver_gate.h"
#include "device/registry.h"
#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/device_peer.h"
#include "sim/engine.h"
#include "sim/fake_threads.h"
#include "sim/fake_uv.h"
#include "sim/hosts.h"
#include "sim/peers.h"
#include "uvarrow/arrow.h"

enum { FIBERS = 1024 };

static int waits;          /* calls of uva_array_wait() not completed */
static bool calls[FIBERS]; /* fibers inside such a call */
static struct expectation outsiders[HOSTS];
static int outsiders_used;

void device_stages_begin(void)
{
    waits = outsiders_used = 0;
    memset(calls, 0, sizeof(calls));
    memset(outsiders, 0, sizeof(outsiders));
}

/* ---- making ------------------------------------------------------------- */

ArrowDeviceType device_type(const struct expectation *expectation)
{
    return expectation->on_device ? device_own_type() : ARROW_DEVICE_CPU;
}

void device_batch(struct expectation *expectation, bool on_device,
                  int64_t ordinal, int64_t hops, struct ArrowDeviceArray *out)
{
    batches_device_batch(ordinal, hops, out);
    if (!on_device)
        return;
    if (peers_chance(1, 5))
        batches_keep(out, NULL, NULL);
    else
        batches_keep(out, device_event_new(expectation, ordinal),
                     device_event_release);
}

/* Leaves out uva_array_record() if a load may get stuck, because it would wait
 * for that. */
void device_recorded_batch(struct uva_runtime *runtime,
                           struct expectation *expectation, int64_t ordinal,
                           struct ArrowDeviceArray *out)
{
    struct device_place place = {true, ordinal, expectation};
    int code;

    if (!expectation->device || !device_can_record() || device_is_stuck() ||
        peers_chance(1, 2)) {
        device_batch(expectation, expectation->device, ordinal, 0, out);
        return;
    }
    batches_device_batch(ordinal, 0, out);
    batches_keep(out, NULL, NULL);
    code = uva_array_record(runtime, out, &place, NULL);
    expectation_note("chain %d: an event is recorded: %s", expectation->number,
                     uva_error_name(code));
    if (code == 0)
        batches_keep(out, out->sync_event, NULL);
    else if (!arena_has_failed() && !fake_threads_have_failed() &&
             !device_fails())
        sim_fail("record: %s", uva_error_name(code));
}

/* ---- stages ------------------------------------------------------------- */

/* Returns whether a timeout may expire without a fault. */
static bool time_may_pass(int64_t timeout_ms)
{
    return timeout_ms < 1000 || peers_are_slow() || fake_uv_ticks() ||
           device_is_faulty();
}

static int64_t timeout_draw(struct expectation *expectation)
{
    static const int64_t timeouts[] = {1, 10, 100, 1000};
    int64_t timeout_ms;

    if (peers_chance(2, 3))
        return 0;
    timeout_ms = timeouts[sim_choose(4)];
    if (time_may_pass(timeout_ms))
        expectation->excuses |= EXCUSE_TIMEOUT;
    return timeout_ms;
}

static enum uva_wait wait_draw(void)
{
    if (peers_chance(2, 3))
        return UVA_WAIT_HOST;
    return device_can_chain() && peers_chance(1, 2) ? UVA_WAIT_STREAM
                                                    : UVA_WAIT_NONE;
}

void device_add_ready(struct uva_stream *stream,
                      struct expectation *expectation)
{
    const enum uva_wait wait = wait_draw();
    const struct uva_ready options = {
        .wait = wait,
        .device_stream = wait == UVA_WAIT_STREAM ? device_queue() : NULL,
        .timeout_ms = timeout_draw(expectation),
        .window = peers_window()};

    expectation_note("chain %d: ready, mode %d, timeout %lld, window %d",
                     expectation->number, (int)wait,
                     (long long)options.timeout_ms, options.window.batches);
    if (wait == UVA_WAIT_HOST && expectation->wait != WAIT_COPIED &&
        expectation->on_device)
        expectation->wait = WAIT_READY;
    if (wait == UVA_WAIT_STREAM && expectation->wait == WAIT_NOT)
        expectation->wait = WAIT_STREAM;
    (void)uva_stream_ready(stream, &options);
}

static void add_transfer(struct uva_stream *stream,
                         struct expectation *expectation)
{
    const struct uva_transfer options = {
        .device_type = expectation->on_device ? 0 : device_own_type(),
        .window = peers_window()};

    expectation_note(
        "chain %d: transfer to the %s, window %d", expectation->number,
        expectation->on_device ? "host" : "device", options.window.batches);
    expectation->on_device = !expectation->on_device;
    expectation->wait = device_can_copy() ? WAIT_COPIED : WAIT_READY;
    (void)uva_stream_transfer(stream, &options);
    if (expectation->on_device) /* with an event of the library */
        (void)uva_stream_ready(stream, NULL);
}

void device_add_stage(struct uva_stream *stream,
                      struct expectation *expectation)
{
    if ((expectation->on_device ? device_can_transfer() : device_can_copy()) &&
        peers_chance(1, 3))
        add_transfer(stream, expectation);
    else
        device_add_ready(stream, expectation);
}

void device_add_fresh(struct expectation *expectation)
{
    expectation->wait = WAIT_NOT;
    expectation->joined = false;
}

/* ---- replacements of library functions ---------------------------------- */

int __wrap_uva__devices_load(struct uva__devices *devices,
                             ArrowDeviceType device_type,
                             struct uva_error *error);
int __real_uva__devices_load(struct uva__devices *devices,
                             ArrowDeviceType device_type,
                             struct uva_error *error);
void __wrap_uva__device_thread_end(struct uva__device_thread *device_thread,
                                   uint64_t until_ns);
void __real_uva__device_thread_end(struct uva__device_thread *device_thread,
                                   uint64_t until_ns);

/* Both functions wait for the device thread. */
int __wrap_uva__devices_load(struct uva__devices *devices,
                             ArrowDeviceType device_type,
                             struct uva_error *error)
{
    if (hosts_on_loop())
        sim_fail("a loop waits for a table to be loaded");
    return __real_uva__devices_load(devices, device_type, error);
}

void __wrap_uva__device_thread_end(struct uva__device_thread *device_thread,
                                   uint64_t until_ns)
{
    if (hosts_on_loop())
        sim_fail("a loop waits for the device thread to end");
    __real_uva__device_thread_end(device_thread, until_ns);
}

void __wrap_uva__driver_gate_watch(ArrowDeviceType device_type,
                                   enum uva__driver_use use);

/* No process exits in a schedule. */
void __wrap_uva__driver_gate_watch(ArrowDeviceType device_type,
                                   enum uva__driver_use use)
{
    (void)device_type;
    (void)use;
}

/* ---- checks on arrival -------------------------------------------------- */

/* The batch is as it was made, so that its event is known. */
static void event_see(const struct expectation *expectation,
                      const struct ArrowDeviceArray *batch, bool done)
{
    const void *event = batches_event(&batch->array);

    if (!done && batch->sync_event != event)
        sim_fail("a batch arrives without its event");
    if (done && event != NULL && device_event_state(event) != 0)
        sim_fail("a batch arrives before its event");
    if (expectation->wait == WAIT_STREAM && event != NULL &&
        !device_event_is_chained(event))
        sim_fail("a batch arrives that no stream waits for");
}

void device_see(const struct expectation *expectation,
                const struct ArrowDeviceArray *batch)
{
    const bool done =
        expectation->wait == WAIT_READY || expectation->wait == WAIT_COPIED;

    if (batch->device_type != device_type(expectation))
        sim_fail("a batch of device type %d arrives", (int)batch->device_type);
    if (done && batch->sync_event != NULL)
        sim_fail("a batch that was waited for arrives with an event");
    if (expectation->joined && batch->sync_event != NULL)
        sim_fail("a joined batch arrives with an event");
    if (expectation->wait != WAIT_COPIED && !expectation->joined)
        event_see(expectation, batch, done);
}

/* Whether the event of the next batch fails; a transform may have kept some
 * before it. */
static bool next_is_bad(const struct expectation *expectation)
{
    int64_t i = expectation->seen;

    for (; i <= expectation->seen + expectation->keepers; i++)
        if (i < EXPECTATION_BATCHES && expectation->bad[i])
            return true;
    return false;
}

bool device_may_end(const struct expectation *expectation, int code)
{
    if (code == ETIMEDOUT)
        return (expectation->excuses & EXCUSE_TIMEOUT) != 0;
    if (code != device_fault())
        return false;
    if (device_fails())
        return true;
    if ((expectation->excuses & EXCUSE_EVENT) == 0)
        return false;
    if (!expectation->unordered && !expectation->partial &&
        !next_is_bad(expectation))
        sim_fail("the fault of an event is reported after %lld batches",
                 (long long)expectation->seen);
    return true;
}

/* ---- consuming ---------------------------------------------------------- */

struct waiter {
    struct ArrowDeviceArray array; /* owns */
    struct expectation *expectation;
    const void *event; /* borrows, from the array; or NULL */
    int64_t timeout_ms;
};

static bool answer_may_be(const struct waiter *waiter, int code)
{
    if (code == 0)
        return waiter->event == NULL || device_event_state(waiter->event) == 0;
    if (code == ETIMEDOUT)
        return waiter->timeout_ms >= 0;
    if (code == device_fault() && device_is_faulty())
        return true;
    if (arena_has_failed() || fake_threads_have_failed())
        return true;
    return code == ECANCELED && !peers_are_alone();
}

static void answered(void *ctx, struct ArrowDeviceArray *array,
                     const struct uva_error *error)
{
    struct waiter *waiter = ctx;

    expectation_note("a wait is answered: %s", uva_error_name(error->code));
    if (calls[sim_self()])
        sim_fail("an answer inside the call that asked for it");
    if (array != &waiter->array)
        sim_fail("an answer about another array");
    if (!answer_may_be(waiter, error->code))
        sim_fail("an array is answered for: %s", uva_error_name(error->code));
    waits--;
    uva_array_release(array);
    arena_free(waiter);
}

static void array_wait(struct expectation *expectation,
                       struct ArrowDeviceArray *array)
{
    struct waiter *waiter = arena_new(sizeof(*waiter), "a waiter");
    int code;

    waiter->expectation = expectation;
    waiter->event = array->sync_event;
    waiter->timeout_ms =
        peers_chance(1, 2) ? UVA_FOREVER : (int64_t)sim_choose(100);
    uva_array_move(array, &waiter->array);
    waits++;
    calls[sim_self()] = true;
    code = uva_array_wait(expectation->runtime, &waiter->array,
                          waiter->timeout_ms, answered, waiter);
    calls[sim_self()] = false;
    expectation_note("an array is waited for: %s", uva_error_name(code));
    if (code == 0)
        return; /* it may be called back by now */
    waits--;
    if (code != ESHUTDOWN && !arena_has_failed() && !fake_threads_have_failed())
        sim_fail("wait: %s", uva_error_name(code));
    uva_array_release(&waiter->array);
    arena_free(waiter);
}

/* Takes no batch into a wait if memory may fail, because the batch would be
 * lost. */
bool device_take(struct expectation *expectation,
                 struct ArrowDeviceArray *batch)
{
    struct ArrowDeviceArray mine;

    if (!expectation->on_device || peers_chance(1, 2))
        return false;
    uva_array_move(batch, &mine);
    if (peers_chance(1, 2) || arena_may_fail() || fake_threads_may_fail()) {
        array_wait(expectation, &mine);
        return true;
    }
    expectation_note("an array is released after work of the device");
    if (expectation->wait != WAIT_COPIED)
        device_read(batches_event(&mine.array));
    uva_array_release_after(expectation->runtime, &mine, device_queue());
    if (mine.array.release != NULL)
        sim_fail("release_after left the array");
    return true;
}

/* ---- beside streams ----------------------------------------------------- */

static void query_available(struct uva_runtime *runtime)
{
    struct uva_device_info info;
    const int code = uva_device_get_info(runtime, device_own_type(), &info);

    if (code != 0 && !arena_has_failed())
        sim_fail("get_info: %s", uva_error_name(code));
    if (code == 0 && !info.available && !device_fails() &&
        !arena_has_failed() && !fake_threads_have_failed())
        sim_fail("the device is not there: %s", info.library);
}

/* Leaves the call out if a load may get stuck, because it would wait for
 * that. */
void device_use_outside(struct uva_runtime *runtime)
{
    struct expectation *expectation = &outsiders[outsiders_used++];
    struct ArrowDeviceArray array;

    expectation->runtime = runtime;
    expectation->device = expectation->on_device = true;
    expectation->total = 3;
    for (int64_t i = 0; i < expectation->total && !device_is_stuck(); i++) {
        if (peers_chance(1, 3))
            query_available(runtime);
        device_recorded_batch(runtime, expectation, i, &array);
        peers_dawdle();
        if (!device_take(expectation, &array))
            uva_array_release(&array);
    }
}

void device_stages_check(void)
{
    if (waits != 0)
        sim_fail("%d waits were never answered", waits);
}
