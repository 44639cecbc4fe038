/* SPDX-License-Identifier: Apache-2.0 */
/* oneAPI with functions missing, and every exception that a libsycl may throw,
 * with doubles of it. Each case is a process of its own, because libraries stay
 * loaded. */
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "devices/fake_sycl.h"
#include "devices/sycl_driver.h"
#include "support/fake_source.h"
#include "support/faulty_libc.h"
#include "support/loop_rig.h"
#include "uvarrow/uvarrow.h"

struct scene {
    struct loop_rig rig;
    struct fake_source fake;
    struct sycl_driver driver;
    fake_sycl_break_fn *spoil;
    void *event;
    struct ArrowDeviceArray array;
    bool done;
    struct uva_error answer;
};

static struct scene s;

/* ---- the scene ---------------------------------------------------------- */

/* Loads the double as a program would load its libsycl; NULL: none. */
static void scene_load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct sycl_driver *driver = dlsym(library, FAKE_SYCL_DRIVER);
    void *address = dlsym(library, FAKE_SYCL_BREAK);

    memcpy(&s.spoil, &address, sizeof(address));
    s.driver = *driver;
    s.event = s.driver.event_new();
}

static void scene_open(const char *path)
{
    if (path != NULL)
        scene_load(path);
    loop_rig_open(&s.rig);
    fake_source_init(&s.fake, 1);
    fake_source_batch(&s.fake, 0, &s.array);
    s.array.device_type = ARROW_DEVICE_ONEAPI;
    s.array.sync_event = s.event != NULL ? s.event : &s;
}

static void scene_close(void)
{
    loop_rig_close(&s.rig);
    ck_assert_int_eq(atomic_load(&s.fake.live), 0);
    fake_source_fini(&s.fake);
    if (s.event != NULL)
        s.driver.event_free(s.event);
}

static void on_answer(void *ctx, struct ArrowDeviceArray *array,
                      const struct uva_error *error)
{
    (void)ctx;
    s.answer = *error;
    uva_array_release(array);
    s.done = true;
}

static bool is_done(void *ctx)
{
    (void)ctx;
    return s.done;
}

static void scene_wait(void)
{
    ck_assert_int_eq(
        uva_array_wait(s.rig.runtime, &s.array, UVA_FOREVER, on_answer, NULL),
        0);
    loop_rig_until(&s.rig, is_done, NULL);
}

static void assert_answer(int code, const char *text)
{
    ck_assert_int_eq(s.answer.code, code);
    ck_assert_msg(strstr(s.answer.message, text) != NULL, "%s",
                  s.answer.message);
}

/* ---- missing functions -------------------------------------------------- */

START_TEST(a_program_without_sycl_is_told_so)
{
    struct uva_device_info info;

    scene_open(NULL);
    scene_wait();
    assert_answer(ENOTSUP, "loaded no libsycl");
    ck_assert_int_eq(
        uva_device_get_info(s.rig.runtime, ARROW_DEVICE_ONEAPI, &info), 0);
    ck_assert(!info.available);
    ck_assert_ptr_nonnull(strstr(info.library, "loaded no libsycl"));
    scene_close();
}
END_TEST

START_TEST(the_part_in_another_language_may_be_missing)
{
    setenv("UVA_ONEAPI_LIBRARY", "/nowhere/liboneapi.so", 1);
    scene_open(UVA_TEST_FAKE_SYCL);
    scene_wait();
    assert_answer(ENOTSUP, "/nowhere/liboneapi.so");
    scene_close();
}
END_TEST

START_TEST(the_part_in_another_language_may_be_something_else)
{
    setenv("UVA_ONEAPI_LIBRARY", UVA_TEST_FAKE_SYCL, 1);
    scene_open(UVA_TEST_FAKE_SYCL);
    scene_wait();
    assert_answer(ENOSYS, "uva_oneapi_query");
    scene_close();
}
END_TEST

START_TEST(a_libsycl_of_another_kind_is_refused)
{
    scene_open(UVA_TEST_STRANGE_SYCL);
    scene_wait();
    assert_answer(ENOSYS, "_ZNK4sycl3_V15event8get_info");
    scene_close();
}
END_TEST

START_TEST(an_old_libsycl_has_events_without_barriers)
{
    struct uva_error error;

    scene_open(UVA_TEST_OLD_SYCL);
    s.array.sync_event = NULL;
    ck_assert_int_eq(
        uva_array_record(s.rig.runtime, &s.array, s.driver.queue, &error),
        ENOTSUP);
    ck_assert_ptr_nonnull(strstr(error.message, "barriers"));
    s.array.sync_event = s.event;
    s.driver.event_end(s.event, true);
    scene_wait();
    assert_answer(EIO, "the fake device has failed (-5)");
    ck_assert_int_eq(s.answer.vendor_code, 0); /* nor has it error codes */
    scene_close();
}
END_TEST

/* Memory fails on the device thread, while it opens the libraries. */
START_TEST(there_may_be_no_memory)
{
    bool again = true;
    long k;

    scene_load(UVA_TEST_FAKE_SYCL);
    s.driver.event_end(s.event, false);
    for (k = 1; again; k++) {
        scene_open(NULL);
        faulty_libc_only_thread("uva-devices");
        faulty_libc_fail(k);
        scene_wait();
        again = faulty_libc_stop();
        ck_assert_msg(again ? s.answer.code == ENOMEM : s.answer.code == 0,
                      "%s", s.answer.message);
        s.done = false;
        loop_rig_close(&s.rig);
        fake_source_fini(&s.fake);
    }
    ck_assert_int_gt(k, 2);
    s.driver.event_free(s.event);
}
END_TEST

/* ---- streams ------------------------------------------------------------ */

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    s.answer = outcome->error;
    s.done = true;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    (void)batch;
    return 0;
}

/* Makes a queue wait for the event of a batch. */
static void scene_chain(void)
{
    const struct uva_ready how = {.wait = UVA_WAIT_STREAM,
                                  .device_stream = s.driver.queue};
    const struct uva_consumer consumer = {.on_batch = on_batch,
                                          .on_done = on_done};
    struct ArrowSchema schema;
    struct uva_stream *stream;

    fake_source_schema(&s.fake, &schema);
    stream = uva_stream_from_arrays(s.rig.runtime, &schema, &s.array, 1);
    ck_assert_int_eq(uva_stream_ready(stream, &how), 0);
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
    loop_rig_until(&s.rig, is_done, NULL);
    uva_stream_release(stream);
}

START_TEST(a_queue_cannot_be_made_to_wait_without_barriers)
{
    scene_open(UVA_TEST_OLD_SYCL);
    scene_chain();
    assert_answer(ENOTSUP, "barriers");
    s.driver.event_end(s.event, false);
    scene_close();
}
END_TEST

/* ---- exceptions --------------------------------------------------------- */

START_TEST(what_libsycl_throws_is_told)
{
    static const struct {
        enum fake_sycl_fault fault;
        int code, vendor_code;
        const char *text;
    } all[] = {
        {FAKE_SYCL_STATUS, EIO, 42,
         "sycl::event::get_info failed: no status today"},
        {FAKE_SYCL_WAIT, EIO, 42,
         "sycl::event::wait failed: the fake device has failed (-5)"},
        {FAKE_SYCL_MEMORY, ENOMEM, 0, "sycl::event::wait failed: no memory"},
        {FAKE_SYCL_OTHER, EIO, 0, "sycl::event::wait failed: of another kind"},
        {FAKE_SYCL_INT, EIO, 0, "no std::exception"},
    };

    scene_open(UVA_TEST_FAKE_SYCL);
    s.spoil(all[_i].fault);
    s.driver.event_end(s.event, all[_i].fault == FAKE_SYCL_WAIT);
    scene_wait();
    assert_answer(all[_i].code, all[_i].text);
    ck_assert_int_eq(s.answer.vendor_code, all[_i].vendor_code);
    ck_assert_str_eq(s.answer.vendor, "sycl");
    scene_close();
}
END_TEST

START_TEST(a_barrier_that_throws_is_told)
{
    struct uva_error error;

    scene_open(UVA_TEST_FAKE_SYCL);
    s.spoil(FAKE_SYCL_BARRIER);
    if (_i == 0) {
        scene_chain();
    } else {
        s.array.sync_event = NULL;
        ck_assert_int_eq(
            uva_array_record(s.rig.runtime, &s.array, s.driver.queue, &error),
            EIO);
        s.answer = error;
        uva_array_release(&s.array);
    }
    assert_answer(EIO, "ext_oneapi_submit_barrier failed: no barrier today");
    ck_assert_int_eq(s.answer.vendor_code, 42);
    s.driver.event_end(s.event, false);
    scene_close();
}
END_TEST

/* Without an event, the completion of the work is unknown, so the array stays
 * until the workers end. */
START_TEST(an_array_is_kept_where_no_event_can_be_recorded)
{
    scene_open(UVA_TEST_FAKE_SYCL);
    s.spoil(FAKE_SYCL_BARRIER);
    s.array.sync_event = NULL;
    uva_array_release_after(s.rig.runtime, &s.array, s.driver.queue);
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(atomic_load(&s.fake.live), 1);
    s.driver.event_end(s.event, false);
    loop_rig_close_runtime(&s.rig, 0);
    while (atomic_load(&s.fake.live) != 0)
        sched_yield();
    scene_close();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("oneapi faults");
    TCase *tc = tcase_create("doubles");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_program_without_sycl_is_told_so);
    tcase_add_test(tc, the_part_in_another_language_may_be_missing);
    tcase_add_test(tc, the_part_in_another_language_may_be_something_else);
    tcase_add_test(tc, a_libsycl_of_another_kind_is_refused);
    tcase_add_test(tc, an_old_libsycl_has_events_without_barriers);
    tcase_add_test(tc, there_may_be_no_memory);
    tcase_add_test(tc, a_queue_cannot_be_made_to_wait_without_barriers);
    tcase_add_loop_test(tc, what_libsycl_throws_is_told, 0, 5);
    tcase_add_loop_test(tc, a_barrier_that_throws_is_told, 0, 2);
    tcase_add_test(tc, an_array_is_kept_where_no_event_can_be_recorded);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
