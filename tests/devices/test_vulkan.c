/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a real Vulkan driver (lavapipe, or the installed one): set by the
 * host, or by the device after a fill; for the device alone; and waits when the
 * device is detached. Skipped without a driver. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "devices/vulkan_device.h"
#include "support/fake_source.h"
#include "support/loop_rig.h"
#include "uvarrow/uvarrow.h"

enum { MOST = 32, DEVICE_ID = 5, FILL_WORDS = 1 << 20, FILL = 0x5eed5eed };

struct scene {
    struct loop_rig rig;
    struct fake_source fake;
    VkInstance instance;
    VkDevice device;
    VkEvent events[MOST]; /* events of batches */
    struct ArrowDeviceArray arrays[MOST];
    struct uva_stream *stream;
    int64_t batches;
    bool early; /* a batch arrived before its event was set */
    bool done;
    struct uva_outcome outcome;
    struct uva_error answer; /* result of uva_array_wait() */
};

/* ---- the scene ---------------------------------------------------------- */

static void scene_open(struct scene *s, int64_t batches,
                       VkPhysicalDevice *physical)
{
    memset(s, 0, sizeof(*s));
    s->instance = vulkan_instance_make(physical);
    ck_assert(s->instance != VK_NULL_HANDLE);
    s->device = vulkan_device_make(*physical);
    loop_rig_open(&s->rig);
    fake_source_init(&s->fake, batches);
}

static void scene_close(struct scene *s)
{
    loop_rig_close(&s->rig);
    ck_assert(!s->early);
    ck_assert(!atomic_load(&door.misused));
    ck_assert_int_eq(atomic_load(&s->fake.live), 0);
    fake_source_fini(&s->fake);
    for (int k = 0; k < MOST && s->device != VK_NULL_HANDLE; k++)
        vkDestroyEvent(s->device, s->events[k], NULL);
    vkDestroyDevice(s->device, NULL);
    vkDestroyInstance(s->instance, NULL);
}

static void scene_arrays(struct scene *s, int count, VkEventCreateFlags flags)
{
    for (int k = 0; k < count; k++) {
        s->events[k] = vulkan_event_make(s->device, flags);
        fake_source_batch(&s->fake, k, &s->arrays[k]);
        s->arrays[k].device_type = ARROW_DEVICE_VULKAN;
        s->arrays[k].device_id = DEVICE_ID;
        s->arrays[k].sync_event = &s->events[k];
    }
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct scene *s = ctx;
    const VkEvent event = s->events[s->batches++];

    ck_assert_ptr_null(batch->data.sync_event);
    s->early = s->early || vkGetEventStatus(s->device, event) != VK_EVENT_SET;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct scene *s = ctx;

    s->done = true;
    s->outcome = *outcome;
}

static void on_answer(void *ctx, struct ArrowDeviceArray *array,
                      const struct uva_error *error)
{
    struct scene *s = ctx;

    s->answer = *error;
    uva_array_release(array);
    s->done = true;
}

static bool is_done(void *ctx)
{
    return ((struct scene *)ctx)->done;
}

static void scene_start(struct scene *s, int count, const struct uva_ready *how)
{
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = s};
    struct ArrowSchema schema;

    fake_source_schema(&s->fake, &schema);
    s->stream = uva_stream_from_arrays(s->rig.runtime, &schema, s->arrays,
                                       (size_t)count);
    ck_assert_int_eq(uva_stream_ready(s->stream, how), 0);
    ck_assert_int_eq(uva_stream_for_each(s->stream, &consumer, NULL), 0);
}

static void scene_finish(struct scene *s)
{
    loop_rig_until(&s->rig, is_done, s);
    uva_stream_release(s->stream);
}

/* ---- events that the host sets ------------------------------------------ */

START_TEST(batches_come_when_the_host_has_set_their_events)
{
    VkPhysicalDevice physical;
    struct uva_error error;
    struct scene s;

    scene_open(&s, MOST, &physical);
    ck_assert_int_eq(
        vulkan_device_attach(s.device, s.rig.runtime, DEVICE_ID, &error), 0);
    scene_arrays(&s, MOST, 0);
    scene_start(&s, MOST, NULL);
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(s.batches, 0);
    for (int k = MOST - 1; k >= 0; k--)
        ck_assert_int_eq(vkSetEvent(s.device, s.events[k]), VK_SUCCESS);
    scene_finish(&s);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(s.batches, MOST);
    ck_assert_int_eq(
        uva_device_detach(s.rig.runtime, ARROW_DEVICE_VULKAN, DEVICE_ID), 0);
    scene_close(&s);
}
END_TEST

START_TEST(a_device_is_attached_once_and_detached_once)
{
    VkPhysicalDevice physical;
    struct uva_error error;
    struct scene s;

    scene_open(&s, 0, &physical);
    ck_assert_int_eq(
        vulkan_device_attach(s.device, s.rig.runtime, DEVICE_ID, &error), 0);
    ck_assert_int_eq(
        vulkan_device_attach(s.device, s.rig.runtime, DEVICE_ID, &error),
        EBUSY);
    ck_assert_int_eq(
        uva_device_detach(s.rig.runtime, ARROW_DEVICE_VULKAN, DEVICE_ID), 0);
    ck_assert_int_eq(
        uva_device_detach(s.rig.runtime, ARROW_DEVICE_VULKAN, DEVICE_ID),
        ENOENT);
    ck_assert_int_eq(
        vulkan_device_attach(s.device, s.rig.runtime, DEVICE_ID, &error), 0);
    scene_close(&s);
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

static void filled_make(struct filled *f, VkPhysicalDevice physical,
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

    ck_assert_int_eq(vkCreateBuffer(device, &how, NULL, &f->buffer), 0);
    vkGetBufferMemoryRequirements(device, f->buffer, &needs);
    room.allocationSize = needs.size;
    room.memoryTypeIndex = memory_type(physical, needs.memoryTypeBits);
    ck_assert_int_eq(vkAllocateMemory(device, &room, NULL, &f->memory), 0);
    ck_assert_int_eq(vkBindBufferMemory(device, f->buffer, f->memory, 0), 0);
    ck_assert_int_eq(
        vkMapMemory(device, f->memory, 0, VK_WHOLE_SIZE, 0, &mapped), 0);
    f->words = mapped;
}

static void filled_free(struct filled *f, VkDevice device)
{
    vkDestroyBuffer(device, f->buffer, NULL);
    vkFreeMemory(device, f->memory, NULL);
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
                          const struct filled *f, VkEvent event)
{
    const VkMemoryBarrier seen = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                  .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                  .dstAccessMask = VK_ACCESS_HOST_READ_BIT};

    vkCmdWaitEvents(commands, 1, &gate, VK_PIPELINE_STAGE_HOST_BIT,
                    VK_PIPELINE_STAGE_TRANSFER_BIT, 0, NULL, 0, NULL, 0, NULL);
    vkCmdFillBuffer(commands, f->buffer, 0, VK_WHOLE_SIZE, FILL);
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                         VK_PIPELINE_STAGE_HOST_BIT |
                             VK_PIPELINE_STAGE_TRANSFER_BIT,
                         0, 1, &seen, 0, NULL, 0, NULL);
    vkCmdSetEvent(commands, event, VK_PIPELINE_STAGE_TRANSFER_BIT);
    ck_assert_int_eq(vkEndCommandBuffer(commands), 0);
}

START_TEST(a_batch_comes_when_the_device_has_filled_it)
{
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                           .commandBufferCount = 1};
    VkPhysicalDevice physical;
    VkCommandBuffer commands;
    struct uva_error error;
    VkCommandPool pool;
    struct filled filled;
    struct scene s;
    VkEvent gate;
    VkQueue queue;

    scene_open(&s, 1, &physical);
    ck_assert_int_eq(
        vulkan_device_attach(s.device, s.rig.runtime, DEVICE_ID, &error), 0);
    scene_arrays(&s, 1, 0);
    gate = vulkan_event_make(s.device, 0);
    filled_make(&filled, physical, s.device);
    commands = commands_begin(s.device, &pool);
    commands_fill(commands, gate, &filled, s.events[0]);
    vkGetDeviceQueue(s.device, 0, 0, &queue);
    submit.pCommandBuffers = &commands;
    ck_assert_int_eq(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE), 0);
    scene_start(&s, 1, NULL);
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(s.batches, 0);
    vkSetEvent(s.device, gate);
    scene_finish(&s);
    ck_assert_int_eq(s.batches, 1);
    for (int i = 0; i < FILL_WORDS; i++)
        ck_assert_uint_eq(filled.words[i], FILL);
    ck_assert_int_eq(vkQueueWaitIdle(queue), 0);
    filled_free(&filled, s.device);
    vkDestroyCommandPool(s.device, pool, NULL);
    vkDestroyEvent(s.device, gate, NULL);
    scene_close(&s);
}
END_TEST

START_TEST(an_event_for_the_device_alone_is_waited_for_until_the_timeout)
{
    VkPhysicalDevice physical;
    struct uva_error error;
    struct scene s;

    scene_open(&s, 2, &physical);
    ck_assert_int_eq(
        vulkan_device_attach(s.device, s.rig.runtime, DEVICE_ID, &error), 0);
    scene_arrays(&s, 2, VK_EVENT_CREATE_DEVICE_ONLY_BIT);
    scene_start(&s, 2, &(struct uva_ready){.timeout_ms = 20});
    scene_finish(&s);
    ck_assert_int_eq(s.outcome.end, UVA_END_FAILED);
    ck_assert_int_eq(s.outcome.error.code, ETIMEDOUT);
    ck_assert_int_eq(s.batches, 0);
    scene_close(&s);
}
END_TEST

/* ---- what goes wrong ---------------------------------------------------- */

START_TEST(an_event_of_a_device_that_nobody_attached_is_refused)
{
    VkPhysicalDevice physical;
    struct scene s;

    scene_open(&s, 1, &physical);
    scene_arrays(&s, 1, 0);
    if (_i == 0)
        scene_start(&s, 1, NULL);
    else
        ck_assert_int_eq(uva_array_wait(s.rig.runtime, &s.arrays[0],
                                        UVA_FOREVER, on_answer, &s),
                         0);
    loop_rig_until(&s.rig, is_done, &s);
    if (_i == 0)
        s.answer = s.outcome.error;
    ck_assert_int_eq(s.answer.code, ENODEV);
    ck_assert_ptr_nonnull(strstr(s.answer.message, "uva_device_attach"));
    if (_i == 0)
        uva_stream_release(s.stream);
    scene_close(&s);
}
END_TEST

/* The wrapped function returns this instead of the driver's result. */
START_TEST(a_device_that_is_lost_fails_its_waits)
{
    VkPhysicalDevice physical;
    struct uva_error error;
    struct scene s;

    scene_open(&s, 2, &physical);
    ck_assert_int_eq(
        vulkan_device_attach(s.device, s.rig.runtime, DEVICE_ID, &error), 0);
    scene_arrays(&s, 2, 0);
    scene_start(&s, 2, NULL);
    loop_rig_settle(&s.rig);
    atomic_store(&door.fault, VK_ERROR_DEVICE_LOST);
    scene_finish(&s);
    ck_assert_int_eq(s.outcome.error.code, EIO);
    ck_assert_str_eq(s.outcome.error.vendor, "vulkan");
    ck_assert_int_eq(s.outcome.error.vendor_code, VK_ERROR_DEVICE_LOST);
    ck_assert_ptr_nonnull(strstr(s.outcome.error.message, "vkGetEventStatus"));
    scene_close(&s);
}
END_TEST

START_TEST(a_device_without_the_function_cannot_be_waited_for)
{
    VkPhysicalDevice physical;
    struct uva_error error;
    struct scene s;

    scene_open(&s, 1, &physical);
    door.absent = true;
    ck_assert_int_eq(
        vulkan_device_attach(s.device, s.rig.runtime, DEVICE_ID, &error), 0);
    scene_arrays(&s, 1, 0);
    scene_start(&s, 1, NULL);
    scene_finish(&s);
    ck_assert_int_eq(s.outcome.error.code, ENOSYS);
    scene_close(&s);
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

static void device_forget(struct scene *s)
{
    ck_assert_int_eq(
        uva_device_detach(s->rig.runtime, ARROW_DEVICE_VULKAN, DEVICE_ID), 0);
    atomic_store(&door.banned, true);
    for (int k = 0; k < MOST; k++)
        vkDestroyEvent(s->device, s->events[k], NULL);
    vkDestroyDevice(s->device, NULL);
    s->device = VK_NULL_HANDLE;
}

START_TEST(ordered_waits_fail_when_their_device_is_detached)
{
    VkPhysicalDevice physical;
    struct uva_error error;
    struct scene s;

    scene_open(&s, MOST, &physical);
    ck_assert_int_eq(
        vulkan_device_attach(s.device, s.rig.runtime, DEVICE_ID, &error), 0);
    scene_arrays(&s, MOST, 0);
    if (_i == 0)
        scene_start(&s, MOST, NULL);
    else
        ck_assert_int_eq(uva_array_wait(s.rig.runtime, &s.arrays[0],
                                        UVA_FOREVER, on_answer, &s),
                         0);
    loop_rig_settle(&s.rig);
    door_await();
    device_forget(&s);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(_i == 0 ? s.outcome.error.code : s.answer.code, ENODEV);
    ck_assert_int_eq(s.batches, 0);
    if (_i == 0)
        uva_stream_release(s.stream);
    for (int k = 1; k < MOST && _i == 1; k++)
        uva_array_release(&s.arrays[k]);
    scene_close(&s);
}
END_TEST

START_TEST(a_stream_dropped_while_waiting_lets_go_of_its_events)
{
    VkPhysicalDevice physical;
    struct uva_error error;
    struct scene s;

    scene_open(&s, MOST, &physical);
    ck_assert_int_eq(
        vulkan_device_attach(s.device, s.rig.runtime, DEVICE_ID, &error), 0);
    scene_arrays(&s, MOST, 0);
    scene_start(&s, MOST, NULL);
    loop_rig_settle(&s.rig);
    uva_stream_drop(s.stream);
    while (atomic_load(&s.fake.live) != 0)
        loop_rig_settle(&s.rig);
    device_forget(&s);
    ck_assert(!s.done);
    scene_close(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("vulkan");
    TCase *tc = tcase_create("driver");
    VkPhysicalDevice physical;
    VkInstance instance = vulkan_instance_make(&physical);
    SRunner *runner;
    int failed;

    if (instance == VK_NULL_HANDLE)
        return 77;
    vkDestroyInstance(instance, NULL);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, batches_come_when_the_host_has_set_their_events);
    tcase_add_test(tc, a_device_is_attached_once_and_detached_once);
    tcase_add_test(tc, a_batch_comes_when_the_device_has_filled_it);
    tcase_add_test(
        tc, an_event_for_the_device_alone_is_waited_for_until_the_timeout);
    tcase_add_loop_test(
        tc, an_event_of_a_device_that_nobody_attached_is_refused, 0, 2);
    tcase_add_test(tc, a_device_that_is_lost_fails_its_waits);
    tcase_add_test(tc, a_device_without_the_function_cannot_be_waited_for);
    tcase_add_loop_test(tc, ordered_waits_fail_when_their_device_is_detached, 0,
                        2);
    tcase_add_test(tc, a_stream_dropped_while_waiting_lets_go_of_its_events);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); /* drivers have threads */
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
