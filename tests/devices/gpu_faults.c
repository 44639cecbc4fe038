/* SPDX-License-Identifier: Apache-2.0 */
/* Events wait for gates, one for each of the two streams. */
#include "devices/gpu_faults.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "device/gpu_abi.h"
#include "support/check_suite.h"
#include "support/fault_fixture.h"

enum { NO_SUCH_DEVICE = 77 };

static const struct vendor_driver *gpu;
static const struct fake_control *control;

/* ---- the fixture -------------------------------------------------------- */

struct gated {
    struct fault_fixture f;
    void *streams[2], *events[2];
    void *idle; /* a stream without a gate: the end of one may wait for all */
    _Atomic uint32_t *words; /* words of the gates, in pinned memory */
};

static void gated_pass(struct gated *g, int i)
{
    atomic_store(&g->words[i], 1);
}

static void gated_revive(void *ctx)
{
    gated_pass(ctx, 1);
}

/* `other`: the other stream has an event, too, which works as long as the
 * device does. */
static void gated_open(struct gated *g, bool other)
{
    fault_open(&g->f);
    gpu->enter();
    g->words = vendor_host_alloc(2 * sizeof(*g->words));
    for (int i = 0; i < 2; i++) {
        atomic_store(&g->words[i], 0);
        g->streams[i] = vendor_stream_new();
        g->events[i] = vendor_event_new();
        gpu->stream_gate(g->streams[i], &g->words[i], 1);
        vendor_event_record(g->events[i], g->streams[i]);
    }
    g->idle = vendor_stream_new();
    if (!other)
        return;
    for (int i = 0; i < 2; i++)
        g->f.others[i].device_type = gpu->device_type;
    g->f.others[1].sync_event = &g->events[1];
    g->f.revive = gated_revive;
    g->f.ctx = g;
}

static void gated_close(struct gated *g)
{
    for (int i = 0; i < 2; i++)
        gated_pass(g, i);
    fault_close(&g->f);
    for (int i = 0; i < 2; i++) {
        vendor_stream_drain(g->streams[i]);
        vendor_event_free(g->events[i]);
        vendor_stream_free(g->streams[i]);
    }
    vendor_stream_free(g->idle);
    vendor_host_free((void *)g->words);
    gpu->leave();
}

/* ---- with any driver ---------------------------------------------------- */

START_TEST(a_stuck_event_is_told_with_what_the_driver_says_of_it)
{
    const struct fault fault = {ETIMEDOUT, gpu->vendor, UVA__GPU_NOT_READY,
                                gpu->query};
    struct gated g;

    gated_open(&g, true);
    fault_array(&g.f, gpu->device_type, 0, &g.events[0]);
    fault_array(&g.f, gpu->device_type, 0, NULL);
    fault_load(&g.f, gpu->device_type);
    fault_ready(&g.f, &(struct uva_ready){.timeout_ms = 100});
    fault_expect(&g.f, &fault);
    ck_assert_int_eq(g.f.f.got.batches, 0);
    gated_close(&g);
}
END_TEST

/* The stream copies to the device, and back. */
START_TEST(a_device_that_is_not_there_is_told_with_the_call_that_says_so)
{
    const struct uva_transfer there = {.device_type = gpu->device_type,
                                       .device_id = NO_SUCH_DEVICE};
    const struct fault fault = {ENODEV, gpu->vendor, UVA__GPU_INVALID_DEVICE,
                                gpu->choose};
    struct gated g;

    gated_open(&g, true);
    if (_i == 0) {
        fault_array(&g.f, ARROW_DEVICE_CPU, -1, NULL);
        fault_transfer(&g.f, &there);
    } else {
        fault_array(&g.f, gpu->device_type, NO_SUCH_DEVICE, NULL);
        fault_transfer(&g.f, NULL);
    }
    fault_expect(&g.f, &fault);
    gated_close(&g);
}
END_TEST

/* ---- with a fake driver ------------------------------------------------- */

/* A sticky failure fails the device's other streams, too; streams on the host
 * continue. */
START_TEST(a_device_that_fails_is_told_with_its_code)
{
    const struct fault faults[] = {
        {EIO, gpu->vendor, 719, gpu->query},
        {ENODEV, gpu->vendor, UVA__GPU_CONTEXT_DESTROYED, gpu->query},
        {ENODEV, gpu->vendor, UVA__GPU_INVALID_CONTEXT, gpu->query},
        {ENODEV, gpu->vendor, UVA__GPU_NO_DEVICE, gpu->query},
        {ENOSYS, gpu->vendor, gpu->too_old, gpu->query},
        {ENOMEM, gpu->vendor, UVA__GPU_OUT_OF_MEMORY, gpu->query},
    };
    struct gated g;

    gated_open(&g, false);
    fault_array(&g.f, gpu->device_type, 0, &g.events[0]);
    fault_array(&g.f, gpu->device_type, 0, &g.events[1]);
    fault_ready(&g.f, NULL);
    loop_settle(&g.f.f.loop);
    control->fakegpu_poison(faults[_i].vendor_code);
    fault_expect(&g.f, &faults[_i]);
    loop_close_runtime(&g.f.f.loop, 0);
    control->fakegpu_poison(0);
    gated_close(&g);
}
END_TEST

/* Waits until the device thread has run the commands sent so far, which it does
 * in order: the release of an array after a stream is the last one. */
static void device_thread_await(struct gated *g)
{
    const long before = atomic_load(&g->f.f.fake.live);
    struct ArrowDeviceArray array;

    fake_source_batch(&g->f.f.fake, 0, &array);
    array.device_type = gpu->device_type;
    array.device_id = 0;
    uva_array_release_after(g->f.f.loop.runtime, &array, g->idle);
    while (atomic_load(&g->f.f.fake.live) > before)
        (void)sched_yield();
}

/* The copies are queued by then, waiting for the event. */
START_TEST(a_device_that_fails_fails_the_copies_on_it)
{
    const struct fault fault = {EIO, gpu->vendor, 719, gpu->query};
    struct gated g;

    gated_open(&g, false);
    fault_array(&g.f, gpu->device_type, 0, &g.events[0]);
    fault_transfer(&g.f, NULL);
    while (control->fakegpu_count(FAKE_EVENTS) < 2 + 1) /* and the copies' */
        loop_settle(&g.f.f.loop);
    device_thread_await(&g);
    control->fakegpu_poison(719);
    fault_expect(&g.f, &fault);
    loop_close_runtime(&g.f.f.loop, 0);
    control->fakegpu_poison(0);
    gated_close(&g);
}
END_TEST

/* Copies a batch to the device, with the `k`-th call out of memory. Returns
 * false if there were fewer calls. */
static bool memory_ends(long k, bool *seen)
{
    const struct uva_transfer there = {.device_type = gpu->device_type};
    struct gated g;
    long before;

    gated_open(&g, false);
    fault_array(&g.f, ARROW_DEVICE_CPU, -1, NULL);
    before = control->fakegpu_count(FAKE_CALLS);
    control->fakegpu_fail(k, UVA__GPU_OUT_OF_MEMORY);
    fault_transfer(&g.f, &there);
    fault_end(&g.f);
    if (g.f.f.got.outcome.end == UVA_END_FAILED) {
        const struct fault fault = {ENOMEM, gpu->vendor, UVA__GPU_OUT_OF_MEMORY,
                                    g.f.call};
        ck_assert_str_ne(g.f.call, "");
        *seen = *seen || strcmp(g.f.call, gpu->alloc) == 0;
        fault_expect(&g.f, &fault);
    } else {
        fault_release_all(&g.f);
    }
    before = control->fakegpu_count(FAKE_CALLS) - before;
    control->fakegpu_fail(0, 0);
    loop_close_runtime(&g.f.f.loop, 0);
    for (int i = 0; i < 2; i++)
        gated_pass(&g, i);
    control->fakegpu_poison(0);
    gated_close(&g);
    return before >= k;
}

/* Two threads make calls, and the order in which they do may differ from run to
 * run, so that one pass may miss a call. */
START_TEST(a_call_that_finds_no_memory_is_named)
{
    bool seen = false;
    long k = 1;

    for (int pass = 0; pass < 10 && !seen; pass++)
        for (k = 1; memory_ends(k, &seen);)
            k++;
    ck_assert(seen);
    ck_assert_int_gt(k, 5);
}
END_TEST

/* ---- the suite ---------------------------------------------------------- */

void gpu_faults_add(Suite *suite, const struct vendor_driver *driver,
                    const struct fake_control *fake)
{
    TCase *tc = tcase_create("what is said");

    gpu = driver;
    control = fake;
    tcase_set_timeout(tc, 60);
    suite_add_tcase(suite, tc);
    tcase_add_test(tc, a_stuck_event_is_told_with_what_the_driver_says_of_it);
    tcase_add_loop_test(
        tc, a_device_that_is_not_there_is_told_with_the_call_that_says_so, 0,
        2);
    if (fake->fakegpu_count == NULL || vendor_driver_is("destroys"))
        return;
    tcase_add_loop_test(tc, a_device_that_fails_is_told_with_its_code, 0, 6);
    suite_add(tc, a_device_that_fails_fails_the_copies_on_it,
              a_call_that_finds_no_memory_is_named, NULL);
}
