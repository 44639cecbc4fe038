/* SPDX-License-Identifier: Apache-2.0 */
/* The program's OpenCL handles while they are used: a detach comes in the
 * middle of each call that has them, and waits for its end. The calls are
 * doubles. */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "device/opencl_copy.h"
#include "support/check_suite.h"

static struct {
    struct uva__native_handles attached;
    pthread_t thread;
    atomic_bool detached;
    bool early; /* before the call was over */
} fixture;

static void *detach_main(void *arg)
{
    (void)arg;
    ck_assert(
        uva__native_handles_remove(&fixture.attached, ARROW_DEVICE_OPENCL, 7));
    atomic_store(&fixture.detached, true);
    return NULL;
}

static bool is_attached(void)
{
    struct uva__native_handle *found =
        uva__native_handles_use(&fixture.attached, ARROW_DEVICE_OPENCL, 7);

    if (found != NULL)
        uva__native_handles_drop(&fixture.attached, found);
    return found != NULL;
}

/* In the middle of a call. */
static void intrude(void)
{
    ck_assert_int_eq(pthread_create(&fixture.thread, NULL, detach_main, NULL),
                     0);
    while (is_attached())
        (void)sched_yield();
    for (int i = 0; i < 1000;
         i++) /* a thread that does not wait gets past this */
        (void)sched_yield();
    fixture.early = atomic_load(&fixture.detached);
}

static uva__cl_int read_buffer(uva__cl_queue queue, uva__cl_mem memory,
                               uva__cl_uint blocking, size_t offset,
                               size_t size, void *target, uva__cl_uint count,
                               const uva__cl_event *events,
                               uva__cl_event *event)
{
    (void)queue, (void)memory, (void)blocking, (void)offset, (void)size;
    (void)target, (void)count, (void)events, (void)event;
    intrude();
    return 0;
}

static uva__cl_mem create_buffer(uva__cl_context context, uint64_t flags,
                                 size_t size, void *host, uva__cl_int *code)
{
    (void)context, (void)flags, (void)size, (void)host;
    intrude();
    *code = 0;
    return &fixture;
}

static uva__cl_int flush(uva__cl_queue queue)
{
    (void)queue;
    return 0;
}

START_TEST(a_detach_waits_for_the_call_that_has_the_handles)
{
    const struct uva_opencl_device native = {.context = &fixture,
                                             .queue = &fixture};
    struct uva__opencl opencl = {.attached = &fixture.attached,
                                 .cl = {.clEnqueueReadBuffer = read_buffer,
                                        .clCreateBuffer = create_buffer,
                                        .clFlush = flush}};
    char bytes[8];
    const struct uva_device_copy copy = {
        .after = {ARROW_DEVICE_OPENCL, 7, NULL},
        .target = bytes,
        .source = &fixture,
        .size_bytes = sizeof(bytes)};
    struct uva_error error;

    atomic_store(&fixture.detached, false);
    ck_assert_int_eq(uva__native_handles_add(&fixture.attached,
                                             ARROW_DEVICE_OPENCL, 7, &native,
                                             sizeof(native)),
                     0);
    if (_i == 0)
        ck_assert_int_eq(uva__opencl_copy(&opencl, &copy, NULL, &error), 0);
    else
        ck_assert_ptr_nonnull(
            uva__opencl_alloc(&opencl, ARROW_DEVICE_OPENCL, 7, 64));
    ck_assert_int_eq(pthread_join(fixture.thread, NULL), 0);
    ck_assert(!fixture.early);
    ck_assert(!is_attached());
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("detach");

    tcase_add_loop_test(tc, a_detach_waits_for_the_call_that_has_the_handles, 0,
                        2);
    return suite_main("OpenCL's handles", NULL, NULL, tc, NULL);
}
