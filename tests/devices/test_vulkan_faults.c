/* SPDX-License-Identifier: Apache-2.0 */
/* The errors reported when a Vulkan device fails: not attached, without the
 * function, lost, with an event that is never set, detached. Another stream of
 * the same device continues if possible. Skipped without a driver. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "devices/vulkan_device.h"
#include "support/fault_scene.h"

enum { DEVICE_ID = 5, EVENTS = 2 };

/* ---- the scene ---------------------------------------------------------- */

struct scene {
    struct fault_scene f;
    VkInstance instance;
    VkDevice device;
    VkEvent events[EVENTS]; /* events of the stream and of the other one */
};

static void scene_revive(void *ctx)
{
    struct scene *s = ctx;

    ck_assert_int_eq(vkSetEvent(s->device, s->events[1]), VK_SUCCESS);
}

/* `other`: the other stream uses the same device. */
static void scene_open(struct scene *s, bool attached, bool other)
{
    VkPhysicalDevice physical;
    struct uva_error error;

    fault_scene_open(&s->f);
    s->instance = vulkan_instance_make(&physical);
    s->device = vulkan_device_make(physical);
    for (int i = 0; i < EVENTS; i++)
        s->events[i] = vulkan_event_make(s->device, 0);
    if (attached)
        ck_assert_int_eq(vulkan_device_attach(s->device, s->f.rig.runtime,
                                              DEVICE_ID, &error),
                         0);
    for (int i = 0; i < EVENTS && other; i++) {
        s->f.others[i].device_type = ARROW_DEVICE_VULKAN;
        s->f.others[i].device_id = DEVICE_ID;
    }
    if (!other)
        return;
    s->f.others[1].sync_event = &s->events[1];
    s->f.revive = scene_revive;
    s->f.ctx = s;
}

static void scene_close(struct scene *s)
{
    fault_scene_close(&s->f);
    ck_assert(!atomic_load(&door.misused));
    for (int i = 0; i < EVENTS; i++)
        vkDestroyEvent(s->device, s->events[i], NULL);
    vkDestroyDevice(s->device, NULL);
    vkDestroyInstance(s->instance, NULL);
}

static void scene_array(struct scene *s, int64_t device_id)
{
    fault_scene_array(&s->f, ARROW_DEVICE_VULKAN, device_id, &s->events[0]);
}

/* ---- faults ------------------------------------------------------------- */

START_TEST(a_device_that_nobody_attached_is_told_with_its_id)
{
    const struct fault fault = {ENODEV, "vulkan", 0, "vkGetEventStatus"};
    struct scene s;

    scene_open(&s, true, true);
    scene_array(&s, DEVICE_ID + 1);
    fault_scene_ready(&s.f, NULL);
    fault_scene_expect(&s.f, &fault);
    ck_assert_ptr_nonnull(strstr(s.f.outcome.error.message, "device id 6"));
    scene_close(&s);
}
END_TEST

START_TEST(a_driver_without_the_function_is_too_old)
{
    const struct fault fault = {ENOSYS, "vulkan", 0, "vkGetEventStatus"};
    struct scene s;

    scene_open(&s, true, false);
    door.absent = true;
    scene_array(&s, DEVICE_ID);
    fault_scene_ready(&s.f, NULL);
    fault_scene_expect(&s.f, &fault);
    scene_close(&s);
}
END_TEST

START_TEST(a_device_that_is_lost_is_told_with_its_code)
{
    const struct fault fault = {EIO, "vulkan", VK_ERROR_DEVICE_LOST,
                                "vkGetEventStatus"};
    struct scene s;

    scene_open(&s, true, false);
    scene_array(&s, DEVICE_ID);
    fault_scene_ready(&s.f, NULL);
    loop_rig_settle(&s.f.rig);
    atomic_store(&door.fault, VK_ERROR_DEVICE_LOST);
    fault_scene_expect(&s.f, &fault);
    scene_close(&s);
}
END_TEST

START_TEST(a_stuck_event_is_told_with_what_the_driver_says_of_it)
{
    const struct fault fault = {ETIMEDOUT, "vulkan", VK_EVENT_RESET,
                                "vkGetEventStatus"};
    struct scene s;

    scene_open(&s, true, true);
    scene_array(&s, DEVICE_ID);
    scene_array(&s, DEVICE_ID);
    fault_scene_load(&s.f, ARROW_DEVICE_VULKAN);
    fault_scene_ready(&s.f, &(struct uva_ready){.timeout_ms = 100});
    fault_scene_expect(&s.f, &fault);
    scene_close(&s);
}
END_TEST

/* The context of an event is its device, which is destroyed after a detach. */
START_TEST(a_device_that_is_detached_fails_what_waits)
{
    const struct fault fault = {ENODEV, "vulkan", 0, "vkGetEventStatus"};
    struct scene s;
    long before;

    scene_open(&s, true, false);
    scene_array(&s, DEVICE_ID);
    fault_scene_ready(&s.f, NULL);
    loop_rig_settle(&s.f.rig);
    before = atomic_load(&door.calls);
    while (atomic_load(&door.calls) == before) /* the device thread polls */
        (void)sched_yield();
    ck_assert_int_eq(
        uva_device_detach(s.f.rig.runtime, ARROW_DEVICE_VULKAN, DEVICE_ID), 0);
    atomic_store(&door.banned, true);
    fault_scene_expect(&s.f, &fault);
    scene_close(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("vulkan faults");
    TCase *tc = tcase_create("driver");
    VkPhysicalDevice physical;
    VkInstance instance = vulkan_instance_make(&physical);
    SRunner *runner;
    int failed;

    if (instance == VK_NULL_HANDLE)
        return 77;
    vkDestroyInstance(instance, NULL);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_device_that_nobody_attached_is_told_with_its_id);
    tcase_add_test(tc, a_driver_without_the_function_is_too_old);
    tcase_add_test(tc, a_device_that_is_lost_is_told_with_its_code);
    tcase_add_test(tc, a_stuck_event_is_told_with_what_the_driver_says_of_it);
    tcase_add_test(tc, a_device_that_is_detached_fails_what_waits);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); /* drivers have threads */
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
