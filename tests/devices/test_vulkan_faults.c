/* SPDX-License-Identifier: Apache-2.0 */
/* The errors reported when a Vulkan device fails: not attached, without the
 * function, lost, with an event that is never set, detached. Another stream of
 * the same device continues if possible. Skipped without a driver. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "devices/vulkan_device.h"
#include "support/check_suite.h"
#include "support/fault_fixture.h"

enum { DEVICE_ID = 5, EVENTS = 2 };

/* ---- the fixture -------------------------------------------------------- */

struct vulkan_fixture {
    struct fault_fixture f;
    VkInstance instance;
    VkDevice device;
    VkEvent events[EVENTS]; /* events of the stream and of the other one */
};

static struct vulkan_fixture s;

static void vulkan_fixture_revive(void *ctx)
{
    (void)ctx;
    ck_assert_int_eq(vkSetEvent(s.device, s.events[1]), VK_SUCCESS);
}

/* `other`: the other stream is of the same device. */
static void vulkan_fixture_open(bool attached, bool other)
{
    VkPhysicalDevice physical;
    struct uva_error error;

    fault_open(&s.f);
    s.instance = vulkan_instance_make(&physical);
    s.device = vulkan_device_make(physical);
    for (int i = 0; i < EVENTS; i++)
        s.events[i] = vulkan_event_make(s.device, 0);
    if (attached)
        ck_assert_int_eq(vulkan_device_attach(s.device, s.f.f.loop.runtime,
                                              DEVICE_ID, &error),
                         0);
    for (int i = 0; i < EVENTS && other; i++) {
        s.f.others[i].device_type = ARROW_DEVICE_VULKAN;
        s.f.others[i].device_id = DEVICE_ID;
    }
    if (!other)
        return;
    s.f.others[1].sync_event = &s.events[1];
    s.f.revive = vulkan_fixture_revive;
}

static void vulkan_fixture_close(void)
{
    fault_close(&s.f);
    ck_assert(!atomic_load(&door.misused));
    for (int i = 0; i < EVENTS; i++)
        vkDestroyEvent(s.device, s.events[i], NULL);
    vkDestroyDevice(s.device, NULL);
    vkDestroyInstance(s.instance, NULL);
}

static void vulkan_fixture_array(int64_t device_id)
{
    fault_array(&s.f, ARROW_DEVICE_VULKAN, device_id, &s.events[0]);
}

/* ---- faults ------------------------------------------------------------- */

START_TEST(a_device_that_nobody_attached_is_told_with_its_id)
{
    const struct fault fault = {ENODEV, "vulkan", 0, "vkGetEventStatus"};

    vulkan_fixture_open(true, true);
    vulkan_fixture_array(DEVICE_ID + 1);
    fault_ready(&s.f, NULL);
    fault_expect(&s.f, &fault);
    text_contains(s.f.f.got.outcome.error.message, "device id 6");
}
END_TEST

START_TEST(a_driver_without_the_function_is_too_old)
{
    const struct fault fault = {ENOSYS, "vulkan", 0, "vkGetEventStatus"};

    vulkan_fixture_open(true, false);
    door.absent = true;
    vulkan_fixture_array(DEVICE_ID);
    fault_ready(&s.f, NULL);
    fault_expect(&s.f, &fault);
}
END_TEST

START_TEST(a_device_that_is_lost_is_told_with_its_code)
{
    const struct fault fault = {EIO, "vulkan", VK_ERROR_DEVICE_LOST,
                                "vkGetEventStatus"};

    vulkan_fixture_open(true, false);
    vulkan_fixture_array(DEVICE_ID);
    fault_ready(&s.f, NULL);
    loop_settle(&s.f.f.loop);
    atomic_store(&door.fault, VK_ERROR_DEVICE_LOST);
    fault_expect(&s.f, &fault);
}
END_TEST

START_TEST(a_stuck_event_is_told_with_what_the_driver_says_of_it)
{
    const struct fault fault = {ETIMEDOUT, "vulkan", VK_EVENT_RESET,
                                "vkGetEventStatus"};

    vulkan_fixture_open(true, true);
    vulkan_fixture_array(DEVICE_ID);
    vulkan_fixture_array(DEVICE_ID);
    fault_load(&s.f, ARROW_DEVICE_VULKAN);
    fault_ready(&s.f, &(struct uva_ready){.timeout_ms = 100});
    fault_expect(&s.f, &fault);
}
END_TEST

/* The context of an event is its device, which is destroyed after a detach. */
START_TEST(a_device_that_is_detached_fails_what_waits)
{
    const struct fault fault = {ENODEV, "vulkan", 0, "vkGetEventStatus"};
    long before;

    vulkan_fixture_open(true, false);
    vulkan_fixture_array(DEVICE_ID);
    fault_ready(&s.f, NULL);
    loop_settle(&s.f.f.loop);
    before = atomic_load(&door.calls);
    while (atomic_load(&door.calls) == before) /* the device thread polls */
        (void)sched_yield();
    ck_assert_int_eq(
        uva_device_detach(s.f.f.loop.runtime, ARROW_DEVICE_VULKAN, DEVICE_ID),
        0);
    atomic_store(&door.banned, true);
    fault_expect(&s.f, &fault);
}
END_TEST

int main(void)
{
    Suite *suite;
    VkPhysicalDevice physical;
    VkInstance instance = vulkan_instance_make(&physical);
    TCase *tc;

    if (instance == VK_NULL_HANDLE)
        return 77;
    suite = suite_create("vulkan faults");
    tc = suite_case(suite, "driver", NULL, vulkan_fixture_close);
    vkDestroyInstance(instance, NULL);
    tcase_set_timeout(tc, 60);
    suite_add(tc, a_device_that_nobody_attached_is_told_with_its_id,
              a_driver_without_the_function_is_too_old,
              a_device_that_is_lost_is_told_with_its_code,
              a_stuck_event_is_told_with_what_the_driver_says_of_it,
              a_device_that_is_detached_fails_what_waits, NULL);
    return suite_run_alone(suite);
}
