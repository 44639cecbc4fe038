/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a real Vulkan driver (lavapipe, or the installed one): set by the
 * host, or by the device after a fill; events for the device alone; and waits
 * when the device is detached. Skipped without a driver. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "devices/vulkan_device.h"
#include "support/check_suite.h"
#include "support/fixture.h"

enum { MOST = 32, DEVICE_ID = 5, FILL_WORDS = 1 << 20, FILL = 0x5eed5eed };

static struct fixture f;

static struct {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkEvent events[MOST]; /* events of batches */
    struct ArrowDeviceArray arrays[MOST];
    bool early; /* a batch was delivered before its event was set */
} vk;

/* ---- the fixture -------------------------------------------------------- */

static void set_up(int64_t batches)
{
    memset(&vk, 0, sizeof(vk));
    vk.instance = vulkan_instance_make(&vk.physical);
    ck_assert(vk.instance != VK_NULL_HANDLE);
    vk.device = vulkan_device_make(vk.physical);
    fixture_open(&f, batches);
}

static int attach(void)
{
    struct uva_error error;

    return vulkan_device_attach(vk.device, f.loop.runtime, DEVICE_ID, &error);
}

static void tear_down(void)
{
    if (!f.open)
        return;
    fixture_close_now(&f);
    ck_assert(!vk.early);
    ck_assert(!atomic_load(&door.misused));
    for (int k = 0; k < MOST && vk.device != VK_NULL_HANDLE; k++)
        vkDestroyEvent(vk.device, vk.events[k], NULL);
    vkDestroyDevice(vk.device, NULL);
    vkDestroyInstance(vk.instance, NULL);
}

static void make_arrays(int count, VkEventCreateFlags flags)
{
    for (int k = 0; k < count; k++) {
        vk.events[k] = vulkan_event_make(vk.device, flags);
        fake_source_batch(&f.fake, k, &vk.arrays[k]);
        vk.arrays[k].device_type = ARROW_DEVICE_VULKAN;
        vk.arrays[k].device_id = DEVICE_ID;
        vk.arrays[k].sync_event = &vk.events[k];
    }
}

static void on_batch(struct recording_consumer *c, struct uva_batch *batch)
{
    const VkEvent event = vk.events[c->taken];

    ck_assert_ptr_null(batch->data.sync_event);
    vk.early = vk.early || vkGetEventStatus(vk.device, event) != VK_EVENT_SET;
}

static void start(int count, const struct uva_ready *options)
{
    fixture_ready(&f, fixture_arrays(&f, vk.arrays, count), options);
    f.got.on_batch = on_batch;
    fixture_start(&f);
}

static void finish(void)
{
    fixture_await(&f);
    fixture_release(&f);
}

/* ---- events that the host sets ------------------------------------------ */

START_TEST(batches_come_when_the_host_has_set_their_events)
{
    set_up(MOST);
    ck_assert_int_eq(attach(), 0);
    make_arrays(MOST, 0);
    start(MOST, NULL);
    loop_settle(&f.loop);
    ck_assert_int_eq(f.got.batches, 0);
    for (int k = MOST - 1; k >= 0; k--)
        ck_assert_int_eq(vkSetEvent(vk.device, vk.events[k]), VK_SUCCESS);
    finish();
    ck_assert_int_eq(f.got.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(f.got.batches, MOST);
    ck_assert_int_eq(
        uva_device_detach(f.loop.runtime, ARROW_DEVICE_VULKAN, DEVICE_ID), 0);
}
END_TEST

START_TEST(a_device_is_attached_once_and_detached_once)
{
    set_up(0);
    ck_assert_int_eq(attach(), 0);
    ck_assert_int_eq(attach(), EBUSY);
    ck_assert_int_eq(
        uva_device_detach(f.loop.runtime, ARROW_DEVICE_VULKAN, DEVICE_ID), 0);
    ck_assert_int_eq(
        uva_device_detach(f.loop.runtime, ARROW_DEVICE_VULKAN, DEVICE_ID),
        ENOENT);
    ck_assert_int_eq(attach(), 0);
}
END_TEST

/* ---- events that the device sets ---------------------------------------- */

/* Memory that the device fills and the host can read. */
struct filled {
    VkBuffer buffer;
    VkDeviceMemory memory;
    const uint32_t *words;
};

/* Returns a type that `bits` allows, visible to the host and coherent. */
static uint32_t memory_type(VkPhysicalDevice physical, uint32_t bits)
{
    const VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                         VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkPhysicalDeviceMemoryProperties has;

    vkGetPhysicalDeviceMemoryProperties(physical, &has);
    for (uint32_t i = 0; i < has.memoryTypeCount; i++)
        if ((bits >> i & 1) != 0 &&
            (has.memoryTypes[i].propertyFlags & wanted) == wanted)
            return i;
    ck_abort_msg("no memory that the host sees");
    return 0;
}

static void filled_make(struct filled *to, VkPhysicalDevice physical,
                        VkDevice device)
{
    const VkBufferCreateInfo how = {.sType =
                                        VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                    .size = FILL_WORDS * sizeof(uint32_t),
                                    .usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    VkMemoryAllocateInfo room = {.sType =
                                     VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    VkMemoryRequirements needs;
    void *mapped;

    ck_assert_int_eq(vkCreateBuffer(device, &how, NULL, &to->buffer), 0);
    vkGetBufferMemoryRequirements(device, to->buffer, &needs);
    room.allocationSize = needs.size;
    room.memoryTypeIndex = memory_type(physical, needs.memoryTypeBits);
    ck_assert_int_eq(vkAllocateMemory(device, &room, NULL, &to->memory), 0);
    ck_assert_int_eq(vkBindBufferMemory(device, to->buffer, to->memory, 0), 0);
    ck_assert_int_eq(
        vkMapMemory(device, to->memory, 0, VK_WHOLE_SIZE, 0, &mapped), 0);
    to->words = mapped;
}

static void filled_free(struct filled *to, VkDevice device)
{
    vkDestroyBuffer(device, to->buffer, NULL);
    vkFreeMemory(device, to->memory, NULL);
}

static VkCommandBuffer commands_begin(VkDevice device, VkCommandPool *pool)
{
    const VkCommandPoolCreateInfo how = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    VkCommandBufferAllocateInfo one = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1};
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    VkCommandBuffer commands;

    ck_assert_int_eq(vkCreateCommandPool(device, &how, NULL, pool), 0);
    one.commandPool = *pool;
    ck_assert_int_eq(vkAllocateCommandBuffers(device, &one, &commands), 0);
    ck_assert_int_eq(vkBeginCommandBuffer(commands, &begin), 0);
    return commands;
}

/* Waits for `gate`, fills, makes the result visible to the host, sets
 * `event`. */
static void commands_fill(VkCommandBuffer commands, VkEvent gate,
                          const struct filled *to, VkEvent event)
{
    const VkMemoryBarrier seen = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                  .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                  .dstAccessMask = VK_ACCESS_HOST_READ_BIT};

    vkCmdWaitEvents(commands, 1, &gate, VK_PIPELINE_STAGE_HOST_BIT,
                    VK_PIPELINE_STAGE_TRANSFER_BIT, 0, NULL, 0, NULL, 0, NULL);
    vkCmdFillBuffer(commands, to->buffer, 0, VK_WHOLE_SIZE, FILL);
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                         VK_PIPELINE_STAGE_HOST_BIT |
                             VK_PIPELINE_STAGE_TRANSFER_BIT,
                         0, 1, &seen, 0, NULL, 0, NULL);
    vkCmdSetEvent(commands, event, VK_PIPELINE_STAGE_TRANSFER_BIT);
    ck_assert_int_eq(vkEndCommandBuffer(commands), 0);
}

/* A fill that the device has been given, after a gate. */
struct filling {
    struct filled filled;
    VkCommandPool pool;
    VkEvent gate;
    VkQueue queue;
};

static void filling_begin(struct filling *filling, VkEvent event)
{
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                           .commandBufferCount = 1};
    VkCommandBuffer commands;

    filling->gate = vulkan_event_make(vk.device, 0);
    filled_make(&filling->filled, vk.physical, vk.device);
    commands = commands_begin(vk.device, &filling->pool);
    commands_fill(commands, filling->gate, &filling->filled, event);
    vkGetDeviceQueue(vk.device, 0, 0, &filling->queue);
    submit.pCommandBuffers = &commands;
    ck_assert_int_eq(vkQueueSubmit(filling->queue, 1, &submit, VK_NULL_HANDLE),
                     0);
}

static void *filling_await(void *arg)
{
    const struct filling *filling = arg;

    ck_assert_int_eq(vkQueueWaitIdle(filling->queue), 0);
    return NULL;
}

static void filling_free(struct filling *filling)
{
    filled_free(&filling->filled, vk.device);
    vkDestroyCommandPool(vk.device, filling->pool, NULL);
    vkDestroyEvent(vk.device, filling->gate, NULL);
}

START_TEST(a_batch_comes_when_the_device_has_filled_it)
{
    struct filling filling;
    int wrong = 0;

    set_up(1);
    ck_assert_int_eq(attach(), 0);
    make_arrays(1, 0);
    filling_begin(&filling, vk.events[0]);
    start(1, NULL);
    loop_settle(&f.loop);
    ck_assert_int_eq(f.got.batches, 0);
    vkSetEvent(vk.device, filling.gate);
    finish();
    ck_assert_int_eq(f.got.batches, 1);
    for (int i = 0; i < FILL_WORDS; i++)
        wrong += filling.filled.words[i] != FILL;
    ck_assert_int_eq(wrong, 0);
    (void)filling_await(&filling);
    filling_free(&filling);
}
END_TEST

/* The loop's thread asks the driver for the state of an event. */
START_TEST(a_batch_comes_while_another_thread_waits_for_the_device)
{
    struct filling filling;
    pthread_t thread;

    set_up(2);
    ck_assert_int_eq(attach(), 0);
    make_arrays(2, 0);
    uva_array_release(&vk.arrays[1]);
    filling_begin(&filling, vk.events[1]);
    ck_assert_int_eq(pthread_create(&thread, NULL, filling_await, &filling), 0);
    start(1, NULL);
    loop_settle(&f.loop);
    vkSetEvent(vk.device, vk.events[0]);
    finish();
    ck_assert_int_eq(f.got.batches, 1);
    vkSetEvent(vk.device, filling.gate);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    filling_free(&filling);
}
END_TEST

START_TEST(an_event_for_the_device_alone_is_waited_for_until_the_timeout)
{
    set_up(2);
    ck_assert_int_eq(attach(), 0);
    make_arrays(2, VK_EVENT_CREATE_DEVICE_ONLY_BIT);
    start(2, &(struct uva_ready){.timeout_ms = 20});
    finish();
    recording_ended(&f.got, UVA_END_FAILED, ETIMEDOUT, "");
    ck_assert_int_eq(f.got.batches, 0);
}
END_TEST

/* ---- failures ----------------------------------------------------------- */

START_TEST(an_event_of_a_device_that_nobody_attached_is_refused)
{
    set_up(1);
    make_arrays(1, 0);
    if (_i == 0)
        start(1, NULL);
    else
        fixture_wait(&f, &vk.arrays[0], UVA_FOREVER);
    if (_i == 0) {
        fixture_await(&f);
        f.answer = f.got.outcome.error;
    } else {
        fixture_await_answers(&f, 1);
    }
    ck_assert_int_eq(f.answer.code, ENODEV);
    text_contains(f.answer.message, "uva_device_attach");
}
END_TEST

/* The wrapped function returns this instead of the driver result. */
START_TEST(a_device_that_is_lost_fails_its_waits)
{
    set_up(2);
    ck_assert_int_eq(attach(), 0);
    make_arrays(2, 0);
    start(2, NULL);
    loop_settle(&f.loop);
    atomic_store(&door.fault, VK_ERROR_DEVICE_LOST);
    finish();
    ck_assert_int_eq(f.got.outcome.error.code, EIO);
    ck_assert_str_eq(f.got.outcome.error.vendor, "vulkan");
    ck_assert_int_eq(f.got.outcome.error.vendor_code, VK_ERROR_DEVICE_LOST);
    text_contains(f.got.outcome.error.message, "vkGetEventStatus");
}
END_TEST

START_TEST(a_device_without_the_function_cannot_be_waited_for)
{
    set_up(1);
    door.absent = true;
    ck_assert_int_eq(attach(), 0);
    make_arrays(1, 0);
    start(1, NULL);
    finish();
    ck_assert_int_eq(f.got.outcome.error.code, ENOSYS);
}
END_TEST

/* ---- detaching ---------------------------------------------------------- */

/* Waits until the device thread polls the event, which the loop may have polled
 * before. */
static void door_await(void)
{
    const long before = atomic_load(&door.calls);

    while (atomic_load(&door.calls) == before)
        sched_yield();
}

static void device_forget(void)
{
    ck_assert_int_eq(
        uva_device_detach(f.loop.runtime, ARROW_DEVICE_VULKAN, DEVICE_ID), 0);
    atomic_store(&door.banned, true);
    for (int k = 0; k < MOST; k++)
        vkDestroyEvent(vk.device, vk.events[k], NULL);
    vkDestroyDevice(vk.device, NULL);
    vk.device = VK_NULL_HANDLE;
}

START_TEST(ordered_waits_fail_when_their_device_is_detached)
{
    set_up(MOST);
    ck_assert_int_eq(attach(), 0);
    make_arrays(MOST, 0);
    if (_i == 0)
        start(MOST, NULL);
    else
        fixture_wait(&f, &vk.arrays[0], UVA_FOREVER);
    loop_settle(&f.loop);
    door_await();
    device_forget();
    ck_assert_int_eq(_i == 0 ? fixture_await(&f) : fixture_await_answers(&f, 1),
                     ENODEV);
    ck_assert_int_eq(f.got.batches, 0);
    for (int k = 1; k < MOST && _i == 1; k++)
        uva_array_release(&vk.arrays[k]);
}
END_TEST

START_TEST(a_stream_dropped_while_waiting_lets_go_of_its_events)
{
    set_up(MOST);
    ck_assert_int_eq(attach(), 0);
    make_arrays(MOST, 0);
    start(MOST, NULL);
    loop_settle(&f.loop);
    fixture_drop(&f);
    while (atomic_load(&f.fake.live) != 0)
        loop_settle(&f.loop);
    device_forget();
    ck_assert(!f.got.done);
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
    suite = suite_create("vulkan");
    tc = suite_case(suite, "driver", NULL, tear_down);
    vkDestroyInstance(instance, NULL);
    tcase_set_timeout(tc, 60);
    suite_add(tc, batches_come_when_the_host_has_set_their_events,
              a_device_is_attached_once_and_detached_once,
              a_batch_comes_when_the_device_has_filled_it,
              a_batch_comes_while_another_thread_waits_for_the_device,
              an_event_for_the_device_alone_is_waited_for_until_the_timeout,
              NULL);
    tcase_add_loop_test(
        tc, an_event_of_a_device_that_nobody_attached_is_refused, 0, 2);
    suite_add(tc, a_device_that_is_lost_fails_its_waits,
              a_device_without_the_function_cannot_be_waited_for, NULL);
    tcase_add_loop_test(tc, ordered_waits_fail_when_their_device_is_detached, 0,
                        2);
    tcase_add_test(tc, a_stream_dropped_while_waiting_lets_go_of_its_events);
    return suite_run_alone(suite);
}
