/* SPDX-License-Identifier: Apache-2.0 */
/* Events of an OpenCL platform (PoCL or any other that is installed): the delay
 * from an event to the loop, by hand and through uvarrow, also while a thread
 * waits in the platform, and the cost of a wait of 100 ms. Without a platform
 * there is no measurement. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdio.h>

#include "latency.h"

struct platform {
    cl_device_id device;
    cl_context context;
    cl_event event;
};

static bool platform_find(cl_device_id *out)
{
    cl_platform_id platforms[8];
    cl_uint count = 0, devices;

    if (clGetPlatformIDs(8, platforms, &count) != CL_SUCCESS)
        return false;
    for (cl_uint i = 0; i < count && i < 8; i++)
        if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, out,
                           &devices) == CL_SUCCESS)
            return true;
    return false;
}

/* Returns false if there is no platform, after printing that. */
static bool platform_open(struct platform *platform)
{
    cl_int status = CL_SUCCESS;

    if (platform_find(&platform->device))
        platform->context =
            clCreateContext(NULL, 1, &platform->device, NULL, NULL, &status);
    bench_check(status == CL_SUCCESS, "clCreateContext");
    if (platform->context == NULL)
        (void)fprintf(stderr, "skipped: no OpenCL device\n");
    return platform->context != NULL;
}

/* ---- user events -------------------------------------------------------- */

static void *event_make(void *ctx)
{
    struct platform *platform = ctx;
    cl_int status;

    platform->event = clCreateUserEvent(platform->context, &status);
    bench_check(status == CL_SUCCESS, "clCreateUserEvent");
    bench_check(clRetainEvent(platform->event) == CL_SUCCESS, "clRetainEvent");
    return &platform->event;
}

static void event_end(void *ctx)
{
    const cl_event event = ((struct platform *)ctx)->event;

    bench_check(clSetUserEventStatus(event, CL_COMPLETE) == CL_SUCCESS,
                "clSetUserEventStatus");
    (void)clReleaseEvent(event);
}

static void CL_CALLBACK on_complete(cl_event event, cl_int status, void *arg)
{
    (void)event;
    (void)status;
    latency_hand_over(arg);
}

static void event_wait(void *ctx, int way, struct latency *latency)
{
    struct platform *platform = ctx;

    (void)way;
    bench_check(clSetEventCallback(platform->event, CL_COMPLETE, on_complete,
                                   latency) == CL_SUCCESS,
                "clSetEventCallback");
}

static void event_free(void *ctx)
{
    (void)clReleaseEvent(((struct platform *)ctx)->event);
}

static const struct latency_device user_events = {
    .device_type = ARROW_DEVICE_OPENCL,
    .by_hand = {"hand"},
    .make = event_make,
    .end = event_end,
    .wait = event_wait,
    .free = event_free,
};

/* ---- events while a thread is in the platform ---------------------------- */

/* A program's thread in clFinish(). */
struct visited {
    struct platform platform; /* first: functions of events have it as ctx */
    cl_command_queue waiting, other;
    _Atomic(cl_event) gate; /* counts: the event that the thread waits for; or
                               NULL */
};

static void visited_stay(void *ctx)
{
    struct visited *visited = ctx;
    cl_int status;
    const cl_event gate = clCreateUserEvent(visited->platform.context, &status);

    bench_check(status == CL_SUCCESS && clRetainEvent(gate) == CL_SUCCESS,
                "clCreateUserEvent");
    bench_check(clEnqueueMarkerWithWaitList(visited->waiting, 1, &gate, NULL) ==
                    CL_SUCCESS,
                "clEnqueueMarkerWithWaitList");
    atomic_store(&visited->gate, gate);
    bench_check(clFinish(visited->waiting) == CL_SUCCESS, "clFinish");
    (void)clReleaseEvent(gate);
}

static void visited_let(void *ctx)
{
    const cl_event gate =
        atomic_exchange(&((struct visited *)ctx)->gate, (cl_event)NULL);

    if (gate == NULL)
        return;
    bench_check(clSetUserEventStatus(gate, CL_COMPLETE) == CL_SUCCESS,
                "clSetUserEventStatus");
    (void)clReleaseEvent(gate);
}

static void *visited_queue(void *ctx)
{
    return ((struct visited *)ctx)->other;
}

static const struct latency_device events_inside = {
    .device_type = ARROW_DEVICE_OPENCL,
    .by_hand = {"hand"},
    .make = event_make,
    .end = event_end,
    .wait = event_wait,
    .free = event_free,
    .stay = visited_stay,
    .let = visited_let,
    .queue = visited_queue,
};

/* ---- cases -------------------------------------------------------------- */

static double run_latency(const struct bench_case *self,
                          const struct bench_how *how)
{
    struct platform platform = {0};

    if (!platform_open(&platform))
        return 0;
    latency_run(self->name, how, &user_events, &platform);
    (void)clReleaseContext(platform.context);
    return 0;
}

static cl_command_queue queue_make(struct platform *platform)
{
    cl_int status;
    cl_command_queue queue = clCreateCommandQueueWithProperties(
        platform->context, platform->device, NULL, &status);

    bench_check(status == CL_SUCCESS, "clCreateCommandQueueWithProperties");
    return queue;
}

static double run_inside(const struct bench_case *self,
                         const struct bench_how *how)
{
    struct visited visited = {.gate = NULL};

    if (!platform_open(&visited.platform))
        return 0;
    visited.waiting = queue_make(&visited.platform);
    visited.other = queue_make(&visited.platform);
    latency_run(self->name, how, &events_inside, &visited);
    (void)clReleaseCommandQueue(visited.other);
    (void)clReleaseCommandQueue(visited.waiting);
    (void)clReleaseContext(visited.platform.context);
    return 0;
}

static double run_waiting(const struct bench_case *self,
                          const struct bench_how *how)
{
    struct platform platform = {0};

    if (!platform_open(&platform))
        return 0;
    latency_idle(self->name, how, &user_events, &platform);
    (void)clReleaseContext(platform.context);
    return 0;
}

static const struct bench_case cases[] = {
    {"opencl/latency", 5000, run_latency, 0, 0, BENCH_PRINTS},
    {"opencl/inside", 1000, run_inside, 0, 0, BENCH_PRINTS},
    {"opencl/waiting", 1, run_waiting, 0, 0, BENCH_PRINTS},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
