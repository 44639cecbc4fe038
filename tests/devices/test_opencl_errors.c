/* SPDX-License-Identifier: Apache-2.0 */
/* The errors reported when OpenCL fails: a library that is missing or another
 * one, a device that was not attached, events that fail, are never set or
 * belong to another context, one failing copy of several. Another stream on the
 * same device must continue. Runs on a real platform; skipped without one. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/builtin.h"
#include "devices/opencl_device.h"
#include "support/check_suite.h"
#include "support/fault_fixture.h"

enum { DEVICE_ID = 3, ROWS = 3 };

/* ---- the fixture -------------------------------------------------------- */

/* An array with its buffers on the device, until it is released. */
struct moved {
    cl_mem validity, values; /* owns */
    const void *host;        /* the host's values */
    void (*release)(struct ArrowArray *array);
    void *private_data;
};

struct opencl_fixture {
    struct fault_fixture f;
    struct opencl_device cl;
    cl_event gates[2]; /* gates of the stream and of the other one */
    struct moved moved[2 + FAULT_ARRAYS];
    int used; /* number of these in use */
};

static void moved_release(struct ArrowArray *array)
{
    struct moved *moved = array->private_data;

    array->children[0]->buffers[0] = NULL;
    array->children[0]->buffers[1] = moved->host;
    array->release = moved->release;
    array->private_data = moved->private_data;
    array->release(array);
    clReleaseMemObject(moved->validity);
    clReleaseMemObject(moved->values);
}

static cl_mem memory_new(struct opencl_fixture *s, const void *data,
                         size_t size)
{
    cl_int code;
    cl_mem memory =
        clCreateBuffer(s->cl.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                       size, (void *)(uintptr_t)data, &code);

    ck_assert_int_eq(code, CL_SUCCESS);
    return memory;
}

/* Two buffers: two copies, one after the other. */
static void opencl_fixture_move(struct opencl_fixture *s,
                                struct ArrowDeviceArray *array)
{
    static const uint8_t all[] = {0xFF};
    struct ArrowArray *column = array->array.children[0];
    struct moved *moved = &s->moved[s->used++];

    moved->host = column->buffers[1];
    moved->values = memory_new(s, moved->host, ROWS * sizeof(int64_t));
    moved->validity = memory_new(s, all, sizeof(all));
    moved->release = array->array.release;
    moved->private_data = array->array.private_data;
    column->buffers[0] = moved->validity;
    column->buffers[1] = moved->values;
    array->array.release = moved_release;
    array->array.private_data = moved;
    array->device_type = ARROW_DEVICE_OPENCL;
    array->device_id = DEVICE_ID;
}

static void opencl_fixture_revive(void *ctx)
{
    struct opencl_fixture *s = ctx;

    ck_assert_int_eq(clSetUserEventStatus(s->gates[1], CL_COMPLETE), 0);
}

/* The other stream waits for its event on the host, or its data is copied. */
static void opencl_fixture_open(struct opencl_fixture *s, bool copies)
{
    memset(s, 0, sizeof(*s));
    fault_open(&s->f);
    opencl_device_open(&s->cl);
    for (int i = 0; i < 2; i++) {
        s->gates[i] = opencl_device_gate(&s->cl);
        s->f.others[i].device_type = ARROW_DEVICE_OPENCL;
        s->f.others[i].device_id = DEVICE_ID;
    }
    s->f.other_copies = copies;
    if (copies) {
        for (int i = 0; i < 2; i++)
            opencl_fixture_move(s, &s->f.others[i]);
        return;
    }
    s->f.others[1].sync_event = &s->gates[1];
    s->f.revive = opencl_fixture_revive;
    s->f.ctx = s;
}

static void opencl_fixture_close(struct opencl_fixture *s)
{
    fault_close(&s->f);
    for (int i = 0; i < 2; i++)
        clReleaseEvent(s->gates[i]);
    opencl_device_close(&s->cl);
}

/* ---- events ------------------------------------------------------------- */

START_TEST(a_failed_event_is_told_with_its_status)
{
    const struct fault fault = {EIO, "opencl", -5, "clGetEventInfo"};
    struct opencl_fixture s;

    opencl_fixture_open(&s, false);
    for (int k = 0; k < 2; k++)
        fault_array(&s.f, ARROW_DEVICE_OPENCL, DEVICE_ID, &s.gates[0]);
    fault_ready(&s.f, NULL);
    loop_settle(&s.f.f.loop);
    ck_assert_int_eq(clSetUserEventStatus(s.gates[0], -5), 0);
    fault_expect(&s.f, &fault);
    opencl_fixture_close(&s);
}
END_TEST

START_TEST(a_stuck_event_is_told_with_its_status)
{
    const struct fault fault = {ETIMEDOUT, "opencl", FAULT_ANY,
                                "clGetEventInfo"};
    struct opencl_fixture s;

    opencl_fixture_open(&s, false);
    fault_array(&s.f, ARROW_DEVICE_OPENCL, DEVICE_ID, &s.gates[0]);
    fault_load(&s.f, ARROW_DEVICE_OPENCL);
    fault_ready(&s.f, &(struct uva_ready){.timeout_ms = 100});
    fault_expect(&s.f, &fault);
    ck_assert_int_gt(s.f.f.got.outcome.error.vendor_code, CL_COMPLETE);
    ck_assert_int_eq(clSetUserEventStatus(s.gates[0], CL_COMPLETE), 0);
    opencl_fixture_close(&s);
}
END_TEST

START_TEST(an_event_of_another_context_is_told_with_the_call_that_refuses_it)
{
    const struct fault fault = {EIO, "opencl", CL_INVALID_CONTEXT,
                                "clEnqueueReadBuffer"};
    struct opencl_device stranger;
    struct opencl_fixture s;
    cl_event event;

    opencl_fixture_open(&s, true);
    opencl_device_open(&stranger);
    event = opencl_device_gate(&stranger);
    fault_array(&s.f, ARROW_DEVICE_OPENCL, DEVICE_ID, &event);
    opencl_fixture_move(&s, &s.f.arrays[0]);
    fault_transfer(&s.f, NULL);
    fault_expect(&s.f, &fault);
    ck_assert_int_eq(clSetUserEventStatus(event, CL_COMPLETE), 0);
    clReleaseEvent(event);
    opencl_device_close(&stranger);
    opencl_fixture_close(&s);
}
END_TEST

/* ---- devices, libraries ------------------------------------------------- */

START_TEST(a_device_that_nobody_attached_is_told_with_the_call_that_wants_it)
{
    const struct uva_transfer there = {.device_type = ARROW_DEVICE_OPENCL,
                                       .device_id = DEVICE_ID + 1};
    const struct fault fault = {ENODEV, "opencl", 0, "clCreateBuffer"};
    struct opencl_fixture s;

    opencl_fixture_open(&s, true);
    fault_array(&s.f, ARROW_DEVICE_CPU, -1, NULL);
    fault_transfer(&s.f, &there);
    fault_expect(&s.f, &fault);
    opencl_fixture_close(&s);
}
END_TEST

START_TEST(shared_memory_of_no_context_is_told_with_the_call_that_wants_one)
{
    static const char *const calls[] = {"clSVMAlloc", "clEnqueueSVMMemcpy"};
    const struct uva_transfer there = {.device_type = ARROW_DEVICE_OPENCL,
                                       .device_id = DEVICE_ID + 1};
    const struct uva_opencl_device native = {.svm = true};
    const struct fault fault = {ENODEV, "opencl", 0, calls[_i]};
    struct uva_error error;
    struct opencl_fixture s;

    opencl_fixture_open(&s, true);
    ck_assert_int_eq(uva_device_attach(s.f.f.loop.runtime, ARROW_DEVICE_OPENCL,
                                       DEVICE_ID + 1, &native, &error),
                     0);
    fault_array(&s.f, _i == 0 ? ARROW_DEVICE_CPU : ARROW_DEVICE_OPENCL,
                DEVICE_ID + 1, NULL);
    fault_transfer(&s.f, _i == 0 ? &there : NULL);
    fault_expect(&s.f, &fault);
    opencl_fixture_close(&s);
}
END_TEST

/* The library is missing, or lacks the functions; the other stream is on the
 * host. */
START_TEST(a_library_that_cannot_be_used_is_told_with_the_call_that_says_so)
{
    static const char *const paths[] = {"/nowhere/libOpenCL.so.1", "libm.so.6"};
    const struct fault faults[] = {{ENOTSUP, "opencl", 0, "dlopen"},
                                   {ENOSYS, "opencl", 0, "dlsym"}};
    struct fault_fixture f;
    cl_event event = NULL;

    setenv("UVA_OPENCL_LIBRARY", paths[_i], 1);
    fault_open(&f);
    fault_array(&f, ARROW_DEVICE_OPENCL, DEVICE_ID, &event);
    fault_ready(&f, NULL);
    fault_expect(&f, &faults[_i]);
    fault_close(&f);
    unsetenv("UVA_OPENCL_LIBRARY");
}
END_TEST

/* ---- copies ------------------------------------------------------------- */

/* The built-in device functions, except that the event of one copy is the
 * test's. */
static struct {
    struct uva_device_ops ops;
    struct uva__native_handles attached; /* empty */
    cl_event gate;                       /* borrows: replaces the event */
    atomic_int swap_at;        /* swaps at this copy from now; 0: never */
    atomic_int copies, events; /* begun; not freed */
} copier;

static pthread_mutex_t copier_lock = PTHREAD_MUTEX_INITIALIZER;

static int copier_load(void *ctx, const char *path, void **state,
                       struct uva_error *error)
{
    (void)ctx;
    return uva__opencl_ops.load(&copier.attached, path, state, error);
}

static int copier_copy(void *state, const struct uva_device_copy *copy,
                       void **event_out, struct uva_error *error)
{
    const int code = uva__opencl_ops.copy(state, copy, event_out, error);
    cl_event *box;

    if (code != 0)
        return code;
    atomic_fetch_add(&copier.events, 1);
    box = *event_out;
    if (atomic_fetch_sub(&copier.swap_at, 1) == 1) {
        clWaitForEvents(1, box); /* the library does not wait for it */
        clReleaseEvent(*box);
        clRetainEvent(*box = copier.gate);
    }
    atomic_fetch_add(&copier.copies, 1);
    return 0;
}

static void copier_event_free(void *state, void *event)
{
    atomic_fetch_sub(&copier.events, 1);
    pthread_mutex_lock(&copier_lock);
    uva__opencl_ops.event_free(state, event);
    pthread_mutex_unlock(&copier_lock);
}

/* PoCL uses the events after a failed one while it notifies them, even if they
 * are released meanwhile. */
static void gate_fail(struct opencl_fixture *s)
{
    pthread_mutex_lock(&copier_lock);
    ck_assert_int_eq(clSetUserEventStatus(s->gates[0], -5), 0);
    pthread_mutex_unlock(&copier_lock);
}

static void copier_register(struct opencl_fixture *s)
{
    struct uva_error error;

    copier.ops = uva__opencl_ops;
    copier.ops.load = copier_load;
    copier.ops.copy = copier_copy;
    copier.ops.event_free = copier_event_free;
    copier.gate = s->gates[0];
    atomic_store(&copier.copies, 0);
    ck_assert_int_eq(uva_device_register(s->f.f.loop.runtime,
                                         ARROW_DEVICE_OPENCL, &copier.ops, NULL,
                                         &error),
                     0);
}

/* Fails the first of two copies, or the last, which waits for the first.
 * Everything begun must be released, and the next copies use the same queue. */
START_TEST(a_copy_among_others_that_fails_fails_the_batch)
{
    struct fault fault = {EIO, "opencl", -5, "clGetEventInfo"};
    struct opencl_fixture s;

    opencl_fixture_open(&s, true);
    if (_i == 0) {
        fault.vendor_code = FAULT_ANY;
        fault.call = opencl_device_reporter(&s.cl);
    }
    copier_register(&s);
    fault_array(&s.f, ARROW_DEVICE_OPENCL, DEVICE_ID, NULL);
    opencl_fixture_move(&s, &s.f.arrays[0]);
    fault_stream(&s.f);
    ck_assert_int_eq(uva_stream_transfer(s.f.f.stream, NULL), 0);
    atomic_store(&copier.swap_at, 1 + _i);
    fault_start(&s.f);
    while (atomic_load(&copier.copies) < 2 + 2) /* with the other stream's */
        loop_settle(&s.f.f.loop);
    gate_fail(&s);
    fault_expect(&s.f, &fault);
    opencl_fixture_close(&s);
    ck_assert_int_eq(atomic_load(&copier.events), 0);
}
END_TEST

/* The event of an array fails when its copies are queued. */
START_TEST(copies_behind_a_failed_event_do_not_stop_those_of_other_streams)
{
    const struct fault fault = {EIO, "opencl", FAULT_ANY, "clGetEventInfo"};
    struct opencl_fixture s;

    opencl_fixture_open(&s, true);
    copier_register(&s);
    fault_array(&s.f, ARROW_DEVICE_OPENCL, DEVICE_ID, &s.gates[0]);
    opencl_fixture_move(&s, &s.f.arrays[0]);
    fault_stream(&s.f);
    ck_assert_int_eq(uva_stream_transfer(s.f.f.stream, NULL), 0);
    fault_start(&s.f);
    while (atomic_load(&copier.copies) < 2 + 2)
        loop_settle(&s.f.f.loop);
    gate_fail(&s);
    fault_expect(&s.f, &fault);
    opencl_fixture_close(&s);
    ck_assert_int_eq(atomic_load(&copier.events), 0);
}
END_TEST

static void add_cases(TCase *tc)
{
    suite_add(tc, a_failed_event_is_told_with_its_status,
              a_stuck_event_is_told_with_its_status,
              an_event_of_another_context_is_told_with_the_call_that_refuses_it,
              a_device_that_nobody_attached_is_told_with_the_call_that_wants_it,
              NULL);
    suite_add_loops(
        tc, 0, 2,
        shared_memory_of_no_context_is_told_with_the_call_that_wants_one,
        a_library_that_cannot_be_used_is_told_with_the_call_that_says_so,
        a_copy_among_others_that_fails_fails_the_batch, NULL);
    tcase_add_test(
        tc, copies_behind_a_failed_event_do_not_stop_those_of_other_streams);
}

int main(void)
{
    Suite *suite;
    cl_device_id device;
    TCase *tc;

    if (!opencl_device_find(&device))
        return 77;
    suite = suite_create("opencl faults");
    tc = tcase_create("platform");
    tcase_set_timeout(tc, 60);
    add_cases(tc);
    suite_add_tcase(suite, tc);
    return suite_run_alone(suite);
}
