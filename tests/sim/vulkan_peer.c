/* SPDX-License-Identifier: Apache-2.0 */
/* Each program has its own device id. Its events are set by a fiber, in order,
 * except for events that stay pending until the handles are detached. */
#include "sim/vulkan_peer.h"

#include <errno.h>
#include <string.h>

#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/engine.h"
#include "sim/expectation.h"
#include "sim/fake_threads.h"
#include "sim/hosts.h"
#include "sim/peers.h"
#include "uvarrow/arrow.h"
#include "uvarrow/device.h"

enum { EVENTS = 3, STATUS_SET = 3, STATUS_RESET = 4, STATUS_LOST = -4 };

struct program;

/* An event and the array that it belongs to. */
struct event {
    struct program *program;
    struct ArrowDeviceArray array; /* owns */
    uint64_t handle;               /* its address: the VkEvent */
    int32_t status, fate;
    int64_t timeout_ms;
    bool gone; /* it must not be queried any more */
};

static struct program {
    struct event events[EVENTS];
    int64_t device_id;
    int inside;   /* calls of its functions in progress */
    int caller;   /* the fiber inside uva_array_wait(); -1: no fiber */
    int waits;    /* not completed */
    bool leaving; /* detach was called */
    bool left;    /* detach has returned */
} programs[HOSTS];

static int programs_used, programs_drawn;

void vulkan_begin(void)
{
    memset(programs, 0, sizeof(programs));
    programs_used = programs_drawn = 0;
}

bool vulkan_draw(void)
{
    const bool drawn = peers_chance(1, 2);

    programs_drawn += drawn;
    return drawn;
}

bool vulkan_is_used(void)
{
    return programs_drawn > 0;
}

/* ---- the functions of the device ---------------------------------------- */

static void program_enter(struct program *program, const char *what)
{
    sim_flush();
    if (program->left)
        sim_fail("%s after detach", what);
    program->inside++;
    sim_point();
}

static void program_leave(struct program *program)
{
    sim_point();
    program->inside--;
}

static int32_t event_status(void *device, uint64_t handle)
{
    struct event *event = (struct event *)(uintptr_t)handle;
    int32_t status;

    if (event->program != device)
        sim_fail("an event of another VkDevice is queried");
    if (event->gone)
        sim_fail("a VkEvent is queried whose array is released");
    program_enter(device, "vkGetEventStatus");
    status = event->status;
    program_leave(device);
    if (event->gone)
        sim_fail("an array is released while its VkEvent is queried");
    return status;
}

typedef void any_fn(void);

static any_fn *device_find(void *device, const char *name)
{
    program_enter(device, "vkGetDeviceProcAddr");
    program_leave(device);
    return strcmp(name, "vkGetEventStatus") == 0 ? (any_fn *)event_status
                                                 : NULL;
}

/* ---- events ------------------------------------------------------------- */

static int32_t fate_draw(void)
{
    if (peers_chance(1, 4))
        return STATUS_RESET;
    return peers_chance(1, 8) ? STATUS_LOST : STATUS_SET;
}

static void setter(void *arg)
{
    struct program *program = arg;

    for (int i = 0; i < EVENTS; i++) {
        for (uint64_t steps = sim_choose(200); steps > 0; steps--)
            sim_point();
        peers_dawdle();
        program->events[i].status = program->events[i].fate;
    }
}

static bool answer_may_be(const struct event *event, int code)
{
    switch (code) {
    case 0:
        return event->status == STATUS_SET;
    case EIO:
        return event->status == STATUS_LOST;
    case ENODEV:
        return event->program->leaving;
    case ETIMEDOUT:
        return event->timeout_ms >= 0;
    case ECANCELED:
        return true; /* a runtime drains or closes */
    default:
        return arena_has_failed() || fake_threads_have_failed();
    }
}

static void answered(void *ctx, struct ArrowDeviceArray *array,
                     const struct uva_error *error)
{
    struct event *event = ctx;

    expectation_note("vulkan: a wait is answered: %s",
                     uva_error_name(error->code));
    if (event->program->caller == sim_self())
        sim_fail("an answer inside the call that asked for it");
    if (!answer_may_be(event, error->code))
        sim_fail("a VkEvent is answered for: %s", uva_error_name(error->code));
    event->program->waits--;
    event->gone = true;
    uva_array_release(array);
}

static void event_wait(struct uva_runtime *runtime, struct program *program,
                       int number)
{
    struct event *event = &program->events[number];
    int code;

    batches_device_batch(number, 0, &event->array);
    event->array.device_type = ARROW_DEVICE_VULKAN;
    event->array.device_id = program->device_id;
    event->array.sync_event = &event->handle;
    event->timeout_ms =
        peers_chance(1, 2) ? UVA_FOREVER : (int64_t)sim_choose(100);
    program->waits++;
    program->caller = sim_self();
    code = uva_array_wait(runtime, &event->array, event->timeout_ms, answered,
                          event);
    program->caller = -1;
    expectation_note("vulkan: an array is waited for: %s",
                     uva_error_name(code));
    if (code == 0)
        return;
    program->waits--;
    if (code != ESHUTDOWN && !arena_has_failed() && !fake_threads_have_failed())
        sim_fail("wait: %s", uva_error_name(code));
    event->gone = true;
    uva_array_release(&event->array);
}

/* ---- the program -------------------------------------------------------- */

static bool program_attach(struct uva_runtime *runtime, struct program *program)
{
    struct uva_vulkan_device native = {.device = program};
    any_fn *(*find)(void *device, const char *name) = device_find;
    int code;

    memcpy(&native.get_device_proc_addr, &find, sizeof(find));
    code = uva_device_attach(runtime, ARROW_DEVICE_VULKAN, program->device_id,
                             &native, NULL);
    expectation_note("vulkan: attach: %s", uva_error_name(code));
    if (code != 0 && code != ESHUTDOWN && !arena_has_failed() &&
        !fake_threads_have_failed())
        sim_fail("attach: %s", uva_error_name(code));
    return code == 0;
}

static void program_detach(struct uva_runtime *runtime, struct program *program)
{
    int code;

    program->leaving = true;
    code = uva_device_detach(runtime, ARROW_DEVICE_VULKAN, program->device_id);
    expectation_note("vulkan: detach: %s", uva_error_name(code));
    if (code != 0)
        sim_fail("detach: %s", uva_error_name(code));
    if (program->inside > 0)
        sim_fail("detach returns while the VkDevice is in use");
    program->left = true;
}

void vulkan_use(struct uva_runtime *runtime)
{
    struct program *program = &programs[programs_used++];

    program->device_id = programs_used;
    program->caller = -1;
    for (int i = 0; i < EVENTS; i++) {
        program->events[i].program = program;
        program->events[i].handle = (uintptr_t)&program->events[i];
        program->events[i].status = STATUS_RESET;
        program->events[i].fate = fate_draw();
    }
    if (!program_attach(runtime, program))
        return;
    peers_spawn("setter of events", setter, program);
    for (int i = 0; i < EVENTS; i++) {
        peers_dawdle();
        event_wait(runtime, program, i);
    }
    for (uint64_t steps = sim_choose(2) * sim_choose(600); steps > 0; steps--)
        sim_point();
    peers_dawdle();
    program_detach(runtime, program);
}

void vulkan_check(void)
{
    for (int i = 0; i < programs_used; i++)
        if (programs[i].waits != 0)
            sim_fail("%d waits for a VkEvent were never answered",
                     programs[i].waits);
}
