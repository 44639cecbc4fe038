/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of an event by the type of its device: ignored on the host
 * (EV-04), refused with a reason where nobody can wait for it (EV-08, EV-09,
 * EV-11, EV-12), waited for by a table of the program's own in its place. An
 * event that nobody knows is never looked into. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "support/loop_rig.h"
#include "support/soft_device.h"
#include "uvarrow/uvarrow.h"

enum { BATCHES = 3, UNKNOWN = 99 };

struct scene {
    struct loop_rig rig;
    struct fake_source fake;
    struct soft_device device;
    struct uva_stream *stream;
    int64_t batches;
    const void *sync_event; /* of the last batch */
    bool done;
    struct uva_error error; /* how it ended, or the answer */
};

static struct scene s; /* large */

/* What nobody can wait for, and what is said of it. */
static const struct {
    ArrowDeviceType type;
    const char *text;
} helpless[] = {
    {ARROW_DEVICE_METAL, "there is no Metal on this system"}, /* EV-08 */
    {ARROW_DEVICE_VPI, "EV-09"},
    {ARROW_DEVICE_WEBGPU, "EV-09"},
    {ARROW_DEVICE_HEXAGON, "EV-09"},
    {ARROW_DEVICE_EXT_DEV, "uva_device_register()"}, /* EV-11 */
    {ARROW_DEVICE_ONEAPI, "loaded no libsycl"},      /* EV-12 */
    {UNKNOWN, "the type is unknown"},
};

/* What a program may have a table of its own for. */
static const ArrowDeviceType replaced[] = {
    ARROW_DEVICE_METAL, ARROW_DEVICE_EXT_DEV, ARROW_DEVICE_ONEAPI,
    ARROW_DEVICE_VULKAN, ARROW_DEVICE_OPENCL};

enum {
    HELPLESS = sizeof(helpless) / sizeof(helpless[0]),
    REPLACED = sizeof(replaced) / sizeof(replaced[0])
};

/* ---- the scene ---------------------------------------------------------- */

static void scene_open(ArrowDeviceType type, enum soft_mode mode)
{
    memset(&s, 0, sizeof(s));
    loop_rig_open(&s.rig);
    fake_source_init(&s.fake, BATCHES);
    soft_device_init(&s.device, mode);
    s.device.device_type = type;
}

static void scene_register(void)
{
    struct uva_error error;

    ck_assert_int_eq(uva_device_register(s.rig.runtime, s.device.device_type,
                                         soft_device_ops(&s.device), &s.device,
                                         &error),
                     0);
}

static void scene_close(void)
{
    if (s.stream != NULL)
        uva_stream_release(s.stream);
    loop_rig_close(&s.rig);
    while (atomic_load(&s.fake.live) != 0)
        sched_yield(); /* the service ends later */
    while (atomic_load(&s.device.loads) != atomic_load(&s.device.unloads))
        sched_yield();
    fake_source_fini(&s.fake);
    soft_device_fini(&s.device);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    s.batches++;
    s.sync_event = batch->data.sync_event;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    s.done = true;
    s.error = outcome->error;
}

static void on_answer(void *ctx, struct ArrowDeviceArray *array,
                      const struct uva_error *error)
{
    (void)ctx;
    s.done = true;
    s.error = *error;
    uva_array_release(array);
}

static bool is_done(void *ctx)
{
    (void)ctx;
    return s.done;
}

/* A stream whose batches have events that are no addresses at all. */
static void scene_stream(void *event)
{
    static struct ArrowDeviceArray arrays[BATCHES];
    struct ArrowSchema schema;

    for (int k = 0; k < BATCHES; k++) {
        fake_source_batch(&s.fake, k, &arrays[k]);
        arrays[k].device_type = s.device.device_type;
        arrays[k].sync_event = event;
    }
    fake_source_schema(&s.fake, &schema);
    s.stream = uva_stream_from_arrays(s.rig.runtime, &schema, arrays, BATCHES);
}

static int scene_run(void)
{
    const struct uva_consumer consumer = {.on_batch = on_batch,
                                          .on_done = on_done};

    ck_assert_int_eq(uva_stream_for_each(s.stream, &consumer, NULL), 0);
    loop_rig_until(&s.rig, is_done, NULL);
    return s.error.code;
}

static int scene_wait(struct ArrowDeviceArray *array)
{
    ck_assert_int_eq(
        uva_array_wait(s.rig.runtime, array, UVA_FOREVER, on_answer, NULL), 0);
    loop_rig_until(&s.rig, is_done, NULL);
    return s.error.code;
}

static void scene_array(struct ArrowDeviceArray *out, void *event)
{
    fake_source_batch(&s.fake, 0, out);
    out->device_type = s.device.device_type;
    out->sync_event = event;
}

static void *const NOWHERE = (void *)1;

/* ---- the host ----------------------------------------------------------- */

START_TEST(ev_04_an_event_of_the_host_is_never_looked_at)
{
    struct ArrowDeviceArray array;

    scene_open(ARROW_DEVICE_CPU, SOFT_POLLS);
    if (_i < 2) {
        scene_stream(NOWHERE);
        if (_i == 1)
            ck_assert_int_eq(uva_stream_ready(s.stream, NULL), 0);
        ck_assert_int_eq(scene_run(), 0);
        ck_assert_int_eq(s.batches, BATCHES);
    } else if (_i == 2) {
        scene_array(&array, NOWHERE);
        ck_assert_int_eq(scene_wait(&array), 0);
    } else {
        scene_array(&array, NOWHERE);
        uva_array_release_after(s.rig.runtime, &array, NULL);
        ck_assert_int_eq(atomic_load(&s.fake.live), 0);
    }
    scene_close();
}
END_TEST

/* ---- what nobody can wait for ------------------------------------------- */

START_TEST(ev_08_ev_09_ev_11_ev_12_an_event_is_refused_with_a_reason)
{
    struct ArrowDeviceArray array;
    const int which = _i / 2;

    scene_open(helpless[which].type, SOFT_POLLS);
    if (_i % 2 == 0) {
        scene_stream(NOWHERE);
        ck_assert_int_eq(uva_stream_ready(s.stream, NULL), 0);
        (void)scene_run();
    } else {
        scene_array(&array, NOWHERE);
        (void)scene_wait(&array);
    }
    ck_assert_int_eq(s.error.code, ENOTSUP);
    ck_assert_int_eq(s.batches, 0);
    ck_assert_msg(strstr(s.error.message, helpless[which].text) != NULL, "%s",
                  s.error.message);
    scene_close();
}
END_TEST

START_TEST(an_event_that_nobody_knows_passes_where_nobody_waits)
{
    const struct uva_ready how = {.wait = UVA_WAIT_NONE};

    scene_open(helpless[_i].type, SOFT_POLLS);
    scene_stream(NOWHERE);
    ck_assert_int_eq(uva_stream_ready(s.stream, &how), 0);
    ck_assert_int_eq(scene_run(), 0);
    ck_assert_int_eq(s.batches, BATCHES);
    ck_assert_ptr_eq(s.sync_event, NOWHERE);
    scene_close();
}
END_TEST

START_TEST(ev_18_without_an_event_there_is_nothing_to_wait_for)
{
    struct ArrowDeviceArray array;
    const int which = _i / 2;

    scene_open(helpless[which].type, SOFT_POLLS);
    if (_i % 2 == 0) {
        scene_stream(NULL);
        ck_assert_int_eq(uva_stream_ready(s.stream, NULL), 0);
        ck_assert_int_eq(scene_run(), 0);
        ck_assert_int_eq(s.batches, BATCHES);
    } else {
        scene_array(&array, NULL);
        ck_assert_int_eq(scene_wait(&array), 0);
    }
    scene_close();
}
END_TEST

START_TEST(no_event_can_be_recorded_where_nobody_can_wait)
{
    struct ArrowDeviceArray array;
    struct uva_error error;

    scene_open(helpless[_i].type, SOFT_POLLS);
    scene_array(&array, NULL);
    ck_assert_int_eq(uva_array_record(s.rig.runtime, &array, NOWHERE, &error),
                     ENOTSUP);
    ck_assert_msg(strstr(error.message, helpless[_i].text) != NULL, "%s",
                  error.message);
    ck_assert_ptr_null(array.sync_event);
    uva_array_release(&array);
    scene_close();
}
END_TEST

START_TEST(what_is_known_of_a_type_says_why_it_cannot_be_waited_for)
{
    struct uva_device_info info;
    int code;

    scene_open(helpless[_i].type, SOFT_POLLS);
    code = uva_device_get_info(s.rig.runtime, helpless[_i].type, &info);
    ck_assert_int_eq(code, helpless[_i].type == UNKNOWN ? ENOENT : 0);
    ck_assert(!info.available);
    ck_assert(!info.can_copy);
    if (code == 0)
        ck_assert_ptr_nonnull(strstr(info.library, helpless[_i].text));
    scene_close();
}
END_TEST

/* ---- a table of the program's own --------------------------------------- */

START_TEST(ev_11_a_table_of_the_program_waits_for_its_events)
{
    struct ArrowDeviceArrayStream source;

    scene_open(replaced[_i % REPLACED], SOFT_POLLS);
    scene_register();
    soft_device_stream(&s.device, &s.fake, &source);
    s.stream = uva_stream_from_blocking(s.rig.runtime, &source, NULL);
    ck_assert_int_eq(uva_stream_ready(s.stream, NULL), 0);
    for (int k = BATCHES - 1; k >= 0; k--)
        soft_event_end(&s.device, k, _i >= REPLACED && k == 1 ? EIO : 0);
    ck_assert_int_eq(scene_run(), _i < REPLACED ? 0 : EIO);
    ck_assert_int_eq(s.batches, _i < REPLACED ? BATCHES : 1);
    ck_assert_ptr_null(s.sync_event);
    scene_close();
}
END_TEST

static bool has_asked(void *ctx)
{
    (void)ctx;
    return atomic_load(&s.device.queries) > 0;
}

static void nudge(void *ctx)
{
    loop_rig_nudge(ctx);
}

START_TEST(ev_11_a_table_of_the_program_waits_for_one_array)
{
    struct ArrowDeviceArray array;

    scene_open(replaced[_i], SOFT_POLLS);
    s.device.asked = nudge;
    s.device.ctx = &s.rig;
    scene_register();
    soft_device_batch(&s.device, &s.fake, 0, &array);
    ck_assert_int_eq(
        uva_array_wait(s.rig.runtime, &array, UVA_FOREVER, on_answer, NULL), 0);
    loop_rig_until(&s.rig, has_asked, NULL);
    ck_assert(!s.done);
    soft_event_end(&s.device, 0, 0);
    loop_rig_until(&s.rig, is_done, NULL);
    ck_assert_int_eq(s.error.code, 0);
    scene_close();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device types");
    TCase *tc = tcase_create("events");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, ev_04_an_event_of_the_host_is_never_looked_at, 0,
                        4);
    tcase_add_loop_test(
        tc, ev_08_ev_09_ev_11_ev_12_an_event_is_refused_with_a_reason, 0,
        2 * HELPLESS);
    tcase_add_loop_test(
        tc, an_event_that_nobody_knows_passes_where_nobody_waits, 0, HELPLESS);
    tcase_add_loop_test(tc, ev_18_without_an_event_there_is_nothing_to_wait_for,
                        0, 2 * HELPLESS);
    tcase_add_loop_test(tc, no_event_can_be_recorded_where_nobody_can_wait, 0,
                        HELPLESS);
    tcase_add_loop_test(
        tc, what_is_known_of_a_type_says_why_it_cannot_be_waited_for, 0,
        HELPLESS);
    tcase_add_loop_test(tc, ev_11_a_table_of_the_program_waits_for_its_events,
                        0, 2 * REPLACED);
    tcase_add_loop_test(tc, ev_11_a_table_of_the_program_waits_for_one_array, 0,
                        REPLACED);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
