/* SPDX-License-Identifier: Apache-2.0 */
/* oneAPI with functions missing, and every exception that a libsycl may throw,
 * with doubles of it. Each case runs in a separate process, because libraries
 * stay loaded. */
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "devices/fake_sycl.h"
#include "devices/sycl_driver.h"
#include "support/check_suite.h"
#include "support/faulty_libc.h"
#include "support/fixture.h"

static struct fixture f;

static struct {
    struct sycl_driver driver;
    fake_sycl_break_fn *spoil;
    void *event;
    struct ArrowDeviceArray array;
} sycl;

/* ---- the fixture -------------------------------------------------------- */

/* Loads the double as a program would load its own libsycl; may be NULL. */
static void load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct sycl_driver *driver = dlsym(library, FAKE_SYCL_DRIVER);
    void *address = dlsym(library, FAKE_SYCL_BREAK);

    memcpy(&sycl.spoil, &address, sizeof(address));
    sycl.driver = *driver;
    sycl.event = sycl.driver.event_new();
}

static void make_array(void)
{
    fake_source_batch(&f.fake, 0, &sycl.array);
    sycl.array.device_type = ARROW_DEVICE_ONEAPI;
    sycl.array.sync_event = sycl.event != NULL ? sycl.event : &sycl;
}

static void set_up(const char *path)
{
    if (path != NULL)
        load(path);
    fixture_open(&f, 1);
    make_array();
}

static void tear_down(void)
{
    if (!f.open)
        return;
    fixture_close_now(&f);
    if (sycl.event != NULL)
        sycl.driver.event_free(sycl.event);
}

static void wait_array(void)
{
    const int before = f.answers;

    fixture_wait(&f, &sycl.array, UVA_FOREVER);
    (void)fixture_await_answers(&f, before + 1);
}

static void assert_answer(int code, const char *text)
{
    ck_assert_int_eq(f.answer.code, code);
    text_contains(f.answer.message, text);
}

/* As of every vendor: one word, and the call that failed. */
static void assert_vendor(const struct uva_error *error, const char *call)
{
    ck_assert_str_eq(error->vendor, "sycl");
    ck_assert_ptr_eq(strstr(error->message, call), error->message);
}

/* ---- missing functions -------------------------------------------------- */

START_TEST(a_program_without_sycl_is_told_so)
{
    struct uva_device_info info;

    set_up(NULL);
    wait_array();
    assert_answer(ENOTSUP, "loaded no libsycl");
    assert_vendor(&f.answer, "dlopen failed");
    ck_assert_int_eq(
        uva_device_get_info(f.loop.runtime, ARROW_DEVICE_ONEAPI, &info), 0);
    ck_assert(!info.available);
    ck_assert_ptr_nonnull(strstr(info.library, "loaded no libsycl"));
}
END_TEST

START_TEST(a_libsycl_that_is_loaded_late_is_found)
{
    struct uva_device_info info;

    set_up(NULL);
    wait_array();
    assert_answer(ENOTSUP, "loaded no libsycl");
    ck_assert_int_eq(
        uva_device_get_info(f.loop.runtime, ARROW_DEVICE_ONEAPI, &info), 0);
    ck_assert(!info.available);
    load(UVA_TEST_FAKE_SYCL);
    if (_i == 0) {
        ck_assert_int_eq(
            uva_device_get_info(f.loop.runtime, ARROW_DEVICE_ONEAPI, &info), 0);
        ck_assert(info.available);
        ck_assert_ptr_nonnull(strstr(info.library, "libsycl.so"));
    }
    sycl.driver.event_end(sycl.event, false);
    make_array();
    wait_array();
    ck_assert_int_eq(f.answer.code, 0);
}
END_TEST

START_TEST(the_part_in_another_language_may_be_missing)
{
    setenv("UVA_ONEAPI_LIBRARY", "/nowhere/liboneapi.so", 1);
    set_up(UVA_TEST_FAKE_SYCL);
    wait_array();
    assert_answer(ENOTSUP, "/nowhere/liboneapi.so");
    assert_vendor(&f.answer, "dlopen failed");
}
END_TEST

START_TEST(the_part_in_another_language_may_be_something_else)
{
    setenv("UVA_ONEAPI_LIBRARY", UVA_TEST_FAKE_SYCL, 1);
    set_up(UVA_TEST_FAKE_SYCL);
    wait_array();
    assert_answer(ENOSYS, "uva_oneapi_query");
    assert_vendor(&f.answer, "dlsym failed");
}
END_TEST

START_TEST(a_libsycl_of_another_kind_is_refused)
{
    set_up(UVA_TEST_STRANGE_SYCL);
    wait_array();
    assert_answer(ENOSYS, "_ZNK4sycl3_V15event8get_info");
    assert_vendor(&f.answer, "dlsym failed");
}
END_TEST

START_TEST(an_old_libsycl_has_events_without_barriers)
{
    struct uva_error error;

    set_up(UVA_TEST_OLD_SYCL);
    sycl.array.sync_event = NULL;
    ck_assert_int_eq(uva_array_record(f.loop.runtime, &sycl.array,
                                      sycl.driver.queue, &error),
                     ENOTSUP);
    text_contains(error.message, "barriers");
    assert_vendor(&error, "dlsym failed");
    sycl.array.sync_event = sycl.event;
    sycl.driver.event_end(sycl.event, true);
    wait_array();
    assert_answer(EIO, "the fake device has failed (-5)");
    ck_assert_int_eq(f.answer.vendor_code, 0); /* it has no codes either */
}
END_TEST

/* Memory fails on the device thread, while it opens the libraries. */
START_TEST(there_may_be_no_memory)
{
    bool again = true;
    long k;

    load(UVA_TEST_FAKE_SYCL);
    sycl.driver.event_end(sycl.event, false);
    for (k = 1; again; k++) {
        set_up(NULL);
        faulty_libc_only_thread("uva-devices");
        faulty_libc_fail(k);
        wait_array();
        again = faulty_libc_stop();
        ck_assert_msg(again ? f.answer.code == ENOMEM : f.answer.code == 0,
                      "%s", f.answer.message);
        fixture_close(&f);
    }
    ck_assert_int_gt(k, 2);
    sycl.driver.event_free(sycl.event);
}
END_TEST

/* ---- streams ------------------------------------------------------------ */

/* Makes a queue wait for the event of a batch. */
static void chain(void *queue)
{
    const struct uva_ready options = {.wait = UVA_WAIT_STREAM,
                                      .device_stream = queue};

    fixture_ready(&f, fixture_arrays(&f, &sycl.array, 1), &options);
    (void)fixture_run(&f);
    f.answer = f.got.outcome.error;
}

START_TEST(a_queue_cannot_be_made_to_wait_without_barriers)
{
    set_up(UVA_TEST_OLD_SYCL);
    chain(sycl.driver.queue);
    assert_answer(ENOTSUP, "barriers");
    sycl.driver.event_end(sycl.event, false);
}
END_TEST

START_TEST(there_is_no_queue_without_a_handle)
{
    struct uva_error error;

    set_up(UVA_TEST_FAKE_SYCL);
    sycl.array.sync_event = NULL;
    ck_assert_int_eq(
        uva_array_record(f.loop.runtime, &sycl.array, NULL, &error), EINVAL);
    text_contains(error.message, "sycl::queue");
    sycl.array.sync_event = sycl.event;
    chain(NULL);
    assert_answer(EINVAL, "sycl::queue");
    sycl.driver.event_end(sycl.event, false);
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

    set_up(UVA_TEST_FAKE_SYCL);
    sycl.spoil(all[_i].fault);
    sycl.driver.event_end(sycl.event, all[_i].fault == FAKE_SYCL_WAIT);
    wait_array();
    assert_answer(all[_i].code, all[_i].text);
    ck_assert_int_eq(f.answer.vendor_code, all[_i].vendor_code);
    ck_assert_str_eq(f.answer.vendor, "sycl");
}
END_TEST

START_TEST(a_barrier_that_throws_is_told)
{
    struct uva_error error;

    set_up(UVA_TEST_FAKE_SYCL);
    sycl.spoil(FAKE_SYCL_BARRIER);
    if (_i == 0) {
        chain(sycl.driver.queue);
    } else {
        sycl.array.sync_event = NULL;
        ck_assert_int_eq(uva_array_record(f.loop.runtime, &sycl.array,
                                          sycl.driver.queue, &error),
                         EIO);
        f.answer = error;
        uva_array_release(&sycl.array);
    }
    assert_answer(EIO, "ext_oneapi_submit_barrier failed: no barrier today");
    ck_assert_int_eq(f.answer.vendor_code, 42);
    sycl.driver.event_end(sycl.event, false);
}
END_TEST

/* Without an event, the completion of the work is unknown, so the array stays
 * until the workers end. */
START_TEST(an_array_is_kept_where_no_event_can_be_recorded)
{
    set_up(UVA_TEST_FAKE_SYCL);
    sycl.spoil(FAKE_SYCL_BARRIER);
    sycl.array.sync_event = NULL;
    uva_array_release_after(f.loop.runtime, &sycl.array, sycl.driver.queue);
    loop_settle(&f.loop);
    ck_assert_int_eq(atomic_load(&f.fake.live), 1);
    sycl.driver.event_end(sycl.event, false);
    loop_close_runtime(&f.loop, 0);
    while (atomic_load(&f.fake.live) != 0)
        sched_yield();
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("doubles");

    tcase_set_timeout(tc, 60);
    suite_add(tc, a_program_without_sycl_is_told_so,
              the_part_in_another_language_may_be_missing,
              the_part_in_another_language_may_be_something_else,
              a_libsycl_of_another_kind_is_refused,
              an_old_libsycl_has_events_without_barriers,
              there_may_be_no_memory,
              a_queue_cannot_be_made_to_wait_without_barriers,
              there_is_no_queue_without_a_handle, NULL);
    tcase_add_loop_test(tc, a_libsycl_that_is_loaded_late_is_found, 0, 2);
    tcase_add_loop_test(tc, what_libsycl_throws_is_told, 0, 5);
    tcase_add_loop_test(tc, a_barrier_that_throws_is_told, 0, 2);
    tcase_add_test(tc, an_array_is_kept_where_no_event_can_be_recorded);
    return suite_main("oneapi faults", NULL, tear_down, tc, NULL);
}
