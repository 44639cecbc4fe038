/* SPDX-License-Identifier: Apache-2.0 */
/* The facts about each device type: tables and when they may be replaced,
 * loads, native handles, libraries, and the device thread around them. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/platform.h"
#include "base/time_limits.h"
#include "device/builtin.h"
#include "device/driver_gate.h"
#include "device/shared_library.h"
#include "support/check_suite.h"
#include "support/plain_tree.h"
#include "support/watch_fixture.h"
#include "uvarrow/arrow.h"

static struct event_wait_fixture s; /* large */

/* ---- tables ------------------------------------------------------------- */

START_TEST(a_table_that_is_not_whole_is_refused)
{
    struct uva_device_ops ops;
    struct uva_error error;

    event_wait_open(&s, SOFT_POLLS);
    ops = *soft_device_ops(&s.device);
    switch (_i) {
    case 0:
        ops.version++;
        break;
    case 1:
        ops.load = NULL;
        break;
    case 2:
        ops.query = NULL;
        break;
    case 3:
        ops.name = NULL;
        break;
    case 4:
        ops.reserved[4] = &ops;
        break;
    }
    ck_assert_int_eq(uva__devices_register(s.devices, ARROW_DEVICE_EXT_DEV,
                                           _i == 5 ? NULL : &ops, NULL, &error),
                     EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "uva_device_register"));
    event_wait_close(&s);
}
END_TEST

START_TEST(a_type_that_no_table_can_have_is_refused)
{
    static const ArrowDeviceType types[] = {-1, 0, ARROW_DEVICE_CPU, 17, 9999};
    struct uva_error error;

    event_wait_open(&s, SOFT_POLLS);
    ck_assert_int_eq(uva__devices_register(s.devices, types[_i],
                                           soft_device_ops(&s.device), NULL,
                                           &error),
                     EINVAL);
    event_wait_close(&s);
}
END_TEST

START_TEST(a_table_in_use_is_not_replaced_and_one_that_is_not_is)
{
    struct soft_device other;
    struct uva_error error;

    soft_device_init(&other, SOFT_CALLS);
    event_wait_open(&s, SOFT_POLLS);
    ck_assert_int_eq(uva__devices_register(s.devices, ARROW_DEVICE_EXT_DEV,
                                           soft_device_ops(&other), &other,
                                           &error),
                     0);
    ck_assert_int_eq(uva__devices_load(s.devices, ARROW_DEVICE_EXT_DEV, &error),
                     0);
    ck_assert_int_eq(other.loads, 1);
    ck_assert_int_eq(uva__devices_register(s.devices, ARROW_DEVICE_EXT_DEV,
                                           soft_device_ops(&s.device),
                                           &s.device, &error),
                     EBUSY);
    event_wait_close(&s);
    ck_assert_int_eq(other.unloads, 1);
    soft_device_fini(&other);
}
END_TEST

START_TEST(a_type_that_was_only_asked_about_can_still_be_made_known)
{
    struct uva_device_info info;
    struct uva_error error;
    int event;

    event_wait_open(&s, SOFT_POLLS);
    ck_assert_int_eq(
        uva__devices_describe(s.devices, ARROW_DEVICE_METAL, &info), 0);
    ck_assert(!info.available);
    ck_assert_int_eq(
        uva__devices_classify(s.devices, ARROW_DEVICE_METAL, &event, &error),
        UVA__EVENT_UNKNOWN);
    ck_assert_int_eq(uva__devices_register(s.devices, ARROW_DEVICE_METAL,
                                           soft_device_ops(&s.device),
                                           &s.device, &error),
                     0);
    ck_assert_int_eq(
        uva__devices_classify(s.devices, ARROW_DEVICE_METAL, &event, &error),
        UVA__EVENT_WAIT);
    ck_assert_int_eq(
        uva__devices_describe(s.devices, ARROW_DEVICE_METAL, &info), 0);
    ck_assert(info.available);
    event_wait_close(&s);
}
END_TEST

/* ---- loads -------------------------------------------------------------- */

START_TEST(a_load_is_tried_once_and_its_failure_is_delivered_to_all)
{
    struct uva_error error = {0};

    event_wait_open(&s, SOFT_POLLS);
    s.device.load_code = ENODEV;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(
            uva__devices_load(s.devices, ARROW_DEVICE_EXT_DEV, &error), ENODEV);
        ck_assert_str_eq(error.message, "no soft device");
    }
    ck_assert_int_eq(s.device.loads, 1);
    s.device.loads = 0; /* no library is unloaded */
    event_wait_close(&s);
}
END_TEST

START_TEST(a_load_where_nobody_knows_the_type_or_the_service_has_ended_fails)
{
    struct uva_error error;

    event_wait_open(&s, SOFT_POLLS);
    ck_assert_int_eq(uva__devices_load(s.devices, ARROW_DEVICE_METAL, &error),
                     ENOTSUP);
    ck_assert_ptr_nonnull(strstr(error.message, "uva_device_register"));
    event_wait_end(&s);
    ck_assert_int_eq(uva__devices_load(s.devices, ARROW_DEVICE_EXT_DEV, &error),
                     ESHUTDOWN);
    ck_assert_str_eq(error.message, "the workers are gone");
    event_wait_close(&s);
}
END_TEST

START_TEST(devices_whose_service_never_began_end_and_begin_none)
{
    struct uva__devices *devices = uva__devices_new();
    struct uva_error error;

    uva__devices_acquire(devices);
    uva__devices_quit(devices);
    ck_assert_int_eq(uva__device_thread_start(&devices->device_thread),
                     ESHUTDOWN);
    ck_assert_int_eq(uva__devices_load(devices, ARROW_DEVICE_VULKAN, &error),
                     ESHUTDOWN);
    uva__devices_release(devices);
}
END_TEST

/* A device with an unload that does not return until it may. */
static sem_t may_return;

static void unload_stuck(void *state)
{
    (void)state;
    while (sem_wait(&may_return) != 0)
        continue;
    atomic_fetch_add(&s.device.unloads, 1);
}

START_TEST(a_vendor_that_is_stuck_does_not_hold_up_the_end)
{
    struct uva_device_ops ops;
    struct uva_error error;

    (void)sem_init(&may_return, 0, 0);
    soft_device_init(&s.device, SOFT_POLLS);
    ops = *soft_device_ops(&s.device);
    ops.unload = unload_stuck;
    event_wait_open_with(&s, &ops, &s.device);
    ck_assert_int_eq(uva__devices_load(s.devices, ARROW_DEVICE_EXT_DEV, &error),
                     0);
    event_wait_end(&s); /* waits a second at most */
    ck_assert_int_eq(atomic_load(&s.device.unloads), 0);
    (void)sem_post(&may_return);
    event_wait_close(&s);
    (void)sem_destroy(&may_return);
}
END_TEST

/* For the thread that closes, time passes only while it waits, and a wait takes
 * no time. */
static const uint64_t limit_ns =
    (uint64_t)UVA__LIMIT_DEVICE_THREAD_MS * 1000000;
static _Thread_local bool closes;
static uint64_t waited_ns; /* by that thread */
static uint64_t wakes_ns;  /* a wait returns early after this time */

uint64_t __wrap_uva__clock_ns(void);
uint64_t __real_uva__clock_ns(void);
bool __wrap_uva__platform_sleep(_Atomic uint32_t *at, uint32_t seen,
                                int64_t ns);
bool __real_uva__platform_sleep(_Atomic uint32_t *at, uint32_t seen,
                                int64_t ns);

uint64_t __wrap_uva__clock_ns(void)
{
    return closes ? waited_ns : __real_uva__clock_ns();
}

bool __wrap_uva__platform_sleep(_Atomic uint32_t *at, uint32_t seen, int64_t ns)
{
    bool early;

    if (!closes || ns < 0)
        return __real_uva__platform_sleep(at, seen, ns);
    early = wakes_ns < (uint64_t)ns && waited_ns < 9 * limit_ns;
    waited_ns += early ? wakes_ns : (uint64_t)ns;
    return early;
}

static void stuck_run(struct uva__device_command *command)
{
    (void)command;
    while (sem_wait(&may_return) != 0)
        continue;
}

/* The device thread waits for the event thread, which hangs. Another user keeps
 * both from ending, or not; waits return early, or not. */
START_TEST(the_end_waits_for_all_threads_until_one_limit)
{
    struct uva__device_command command = {.run = stuck_run};
    const bool shared = _i % 2 == 1;

    (void)sem_init(&may_return, 0, 0);
    event_wait_open(&s, SOFT_POLLS);
    ck_assert_int_eq(uva__device_thread_start(&s.devices->event_thread), 0);
    ck_assert(uva__device_thread_send(&s.devices->event_thread, &command));
    if (shared)
        uva__devices_use(s.devices);
    waited_ns = 0;
    wakes_ns = _i < 2 ? UINT64_MAX : limit_ns / 4;
    closes = true;
    event_wait_end(&s);
    closes = false;
    ck_assert_uint_eq(waited_ns, limit_ns);
    (void)sem_post(&may_return);
    if (shared)
        uva__devices_quit(s.devices);
    event_wait_close(&s);
    (void)sem_destroy(&may_return);
}
END_TEST

START_TEST(what_is_kept_is_released_when_the_service_ends)
{
    struct fake_source fake;
    struct uva__deferred_release *kept;

    fake_source_init(&fake, 3);
    event_wait_open(&s, SOFT_POLLS);
    for (int k = 0; k < 3; k++) {
        kept = calloc(1, sizeof(*kept));
        soft_device_batch(&s.device, &fake, k, &kept->array);
        uva__deferred_releases_take(&s.devices->deferred_releases, kept);
    }
    ck_assert_int_ne(atomic_load(&fake.live), 0);
    event_wait_close(&s);
    ck_assert_int_eq(atomic_load(&fake.live), 0);
    fake_source_fini(&fake);
}
END_TEST

/* ---- events ------------------------------------------------------------- */

START_TEST(an_event_is_judged_by_its_type)
{
    static const ArrowDeviceType eventless[] = {
        ARROW_DEVICE_VPI, ARROW_DEVICE_WEBGPU, ARROW_DEVICE_HEXAGON};
    struct uva_error error;
    int event;

    event_wait_open(&s, SOFT_POLLS);
    ck_assert_int_eq(
        uva__devices_classify(s.devices, ARROW_DEVICE_CPU, &event, &error),
        UVA__EVENT_NONE);         /* EV-04 */
    for (int i = 0; i < 3; i++) { /* EV-09 */
        ck_assert_int_eq(
            uva__devices_classify(s.devices, eventless[i], NULL, &error),
            UVA__EVENT_NONE);
        ck_assert_int_eq(
            uva__devices_classify(s.devices, eventless[i], &event, &error),
            UVA__EVENT_UNKNOWN);
        ck_assert_int_eq(error.code, ENOTSUP);
        ck_assert_ptr_nonnull(strstr(error.message, "EV-09"));
    }
    ck_assert_int_eq(uva__devices_classify(s.devices, 4711, NULL, &error),
                     UVA__EVENT_NONE); /* EV-18 */
    ck_assert_int_eq(uva__devices_classify(s.devices, 4711, &event, &error),
                     UVA__EVENT_UNKNOWN);
    ck_assert_ptr_nonnull(strstr(error.message, "unknown"));
    event_wait_close(&s);
}
END_TEST

/* ---- streams of the program --------------------------------------------- */

static int streams_checked;

static int check_counted(void *state, struct uva_error *error)
{
    (void)state;
    (void)error;
    streams_checked++;
    return 0;
}

START_TEST(no_stream_is_checked_once_the_process_exits)
{
    static const struct uva__vendor_info vendor_info = {.stream_check =
                                                            check_counted};
    void *const stream = (void *)1; /* a default one */
    struct uva_error error;

    event_wait_open(&s, SOFT_POLLS);
    ck_assert_int_eq(uva__devices_register(s.devices, ARROW_DEVICE_CUDA,
                                           soft_device_ops(&s.device),
                                           &s.device, &error),
                     0);
    ck_assert_int_eq(uva__devices_load(s.devices, ARROW_DEVICE_CUDA, &error),
                     0);
    uva__devices_backend(s.devices, ARROW_DEVICE_CUDA)->vendor_info =
        &vendor_info;
    ck_assert_int_eq(uva__devices_check_stream(s.devices, stream, &error), 0);
    uva__driver_gate_close();
    ck_assert_int_eq(uva__devices_check_stream(s.devices, stream, &error),
                     ESHUTDOWN);
    ck_assert_int_eq(streams_checked, 1);
    s.device.loads = 0; /* no library is unloaded */
    event_wait_close(&s);
}
END_TEST

/* ---- native handles ----------------------------------------------------- */

START_TEST(handles_are_attached_once_and_found_by_type_and_id)
{
    struct uva__native_handles attached = {0};
    struct uva__native_handle *use;
    const int64_t native = 42, other = 43;

    ck_assert_int_eq(uva__native_handles_add(&attached, 7, 1, &native, 8), 0);
    ck_assert_int_eq(uva__native_handles_add(&attached, 7, 1, &other, 8),
                     EBUSY);
    ck_assert_int_eq(uva__native_handles_add(&attached, 7, 2, &other, 8), 0);
    ck_assert_int_eq(uva__native_handles_add(&attached, 4, 1, &other, 8), 0);
    use = uva__native_handles_use(&attached, 7, 1);
    ck_assert_int_eq(*(const int64_t *)uva__native_handle_native(use), 42);
    uva__native_handles_drop(&attached, use);
    ck_assert_ptr_null(uva__native_handles_use(&attached, 7, 3));
    ck_assert(!uva__native_handles_remove(&attached, 7, 3));
    ck_assert(uva__native_handles_remove(&attached, 7, 1));
    ck_assert(!uva__native_handles_remove(&attached, 7, 1));
    ck_assert_ptr_null(uva__native_handles_use(&attached, 7, 1));
    uva__native_handles_fini(&attached);
}
END_TEST

struct removal {
    struct uva__native_handles attached;
    atomic_bool begun, over;
};

static void *removal_main(void *arg)
{
    struct removal *removal = arg;

    atomic_store(&removal->begun, true);
    ck_assert(uva__native_handles_remove(&removal->attached, 7, 1));
    atomic_store(&removal->over, true);
    return NULL;
}

START_TEST(a_detach_waits_for_those_who_use_the_handles)
{
    struct removal removal = {0};
    struct uva__native_handle *uses[2];
    const int64_t native = 42;
    pthread_t thread;

    ck_assert_int_eq(
        uva__native_handles_add(&removal.attached, 7, 1, &native, 8), 0);
    for (int i = 0; i < 2; i++)
        uses[i] = uva__native_handles_use(&removal.attached, 7, 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, removal_main, &removal), 0);
    for (;;) { /* until it is removed from the list */
        struct uva__native_handle *use =
            uva__native_handles_use(&removal.attached, 7, 1);
        if (use == NULL)
            break;
        uva__native_handles_drop(&removal.attached, use);
        sched_yield();
    }
    for (int i = 0; i < 1000; i++) /* and waits, most likely */
        sched_yield();
    uva__native_handles_drop(&removal.attached, uses[0]);
    ck_assert(!atomic_load(&removal.over));
    ck_assert_int_eq(*(const int64_t *)uva__native_handle_native(uses[1]), 42);
    uva__native_handles_drop(&removal.attached, uses[1]);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(atomic_load(&removal.over));
    uva__native_handles_fini(&removal.attached);
}
END_TEST

/* ---- libraries ---------------------------------------------------------- */

static const char *const no_names[] = {"libuva-none.so.1", "libuva-no.so",
                                       NULL};
/* The begin of the C library's file name, its usual name, and another library.
 */
#ifdef __GLIBC__
#define LIBC      "libc.so."
#define LIBC_NAME "libc.so.6"
#define LIBM_NAME "libm.so.6"
#else /* musl's loader is its C library, and contains the other one */
#define LIBC      "ld-musl-"
#define LIBC_NAME "libc.so"
#define LIBM_NAME "libm.so"
#endif

static const char *const some_names[] = {"libuva-none.so.1", LIBM_NAME, NULL};

START_TEST(a_library_is_opened_by_path_by_prefix_or_by_name)
{
    struct uva__shared_library library = {"vendor", NULL, some_names};
    struct uva_error error;
    void *handle;

    ck_assert_int_eq(uva__shared_library_open(&library, NULL, &handle, &error),
                     0);
    ck_assert_str_eq(error.message, LIBM_NAME);
    library.prefix = LIBC; /* which is loaded */
    ck_assert_int_eq(uva__shared_library_open(&library, NULL, &handle, &error),
                     0);
    ck_assert_ptr_nonnull(strstr(error.message, "/" LIBC));
    library.prefix = "libuva-none";
    ck_assert_int_eq(uva__shared_library_open(&library, NULL, &handle, &error),
                     0);
    ck_assert_str_eq(error.message, LIBM_NAME);
    ck_assert_int_eq(
        uva__shared_library_open(&library, LIBC_NAME, &handle, &error), 0);
    ck_assert_str_eq(error.message, LIBC_NAME);
}
END_TEST

START_TEST(a_library_that_is_not_there_is_named)
{
    const struct uva__shared_library library = {"vendor", NULL, no_names};
    struct uva_error error;
    void *handle;

    ck_assert_int_eq(uva__shared_library_open(&library, NULL, &handle, &error),
                     ENOTSUP);
    ck_assert_str_eq(error.vendor, "vendor");
    ck_assert_ptr_nonnull(strstr(error.message, "dlopen failed: no library: "));
    ck_assert_ptr_nonnull(strstr(error.message, "libuva-no.so"));
    ck_assert_int_eq(
        uva__shared_library_open(&library, "/no/lib.so", &handle, &error),
        ENOTSUP); /* and the names are not tried */
    ck_assert_ptr_nonnull(strstr(error.message, "/no/lib.so"));
}
END_TEST

START_TEST(a_function_that_is_missing_is_named_unless_it_may_be)
{
    const struct uva__shared_library library = {"vendor", NULL, some_names};
    struct uva__symbol symbols[] = {{"cos", 0, false},
                                    {"uva_no_such", sizeof(void *), true}};
    void *table[2] = {NULL, &table};
    struct uva_error error;
    void *handle;

    ck_assert_int_eq(uva__shared_library_open(&library, NULL, &handle, &error),
                     0);
    ck_assert_int_eq(uva__shared_library_resolve(&library, handle, symbols, 2,
                                                 table, &error),
                     0);
    ck_assert_ptr_nonnull(table[0]);
    ck_assert_ptr_null(table[1]);
    symbols[1].optional = false;
    ck_assert_int_eq(uva__shared_library_resolve(&library, handle, symbols, 2,
                                                 table, &error),
                     ENOSYS);
    ck_assert_str_eq(error.vendor, "vendor");
    ck_assert_ptr_nonnull(strstr(error.message, "uva_no_such"));
    ck_assert_int_eq(uva__shared_library_failed(NULL, EIO, "v", "call", 3),
                     EIO);
    ck_assert_int_eq(uva__shared_library_failed(&error, EIO, "v", "call", 3),
                     EIO);
    ck_assert_str_eq(error.message, "call failed with 3");
    ck_assert_int_eq(error.vendor_code, 3);
}
END_TEST

START_TEST(the_environment_says_where_a_library_is)
{
    struct uva_device_info info;

    ck_assert_int_eq(
        setenv("UVA_OPENCL_LIBRARY", _i == 0 ? "/no/opencl.so" : LIBM_NAME, 1),
        0);
    event_wait_open(&s, SOFT_POLLS);
    ck_assert_int_eq(
        uva__devices_describe(s.devices, ARROW_DEVICE_OPENCL, &info), 0);
    ck_assert(!info.available);
    ck_assert(!info.can_copy);
    ck_assert_str_eq(info.name, "OPENCL");
    ck_assert_ptr_nonnull(
        strstr(info.library, _i == 0 ? "/no/opencl.so" : "it has no cl"));
    event_wait_close(&s);
    (void)unsetenv("UVA_OPENCL_LIBRARY");
}
END_TEST

/* ---- the facts about a type --------------------------------------------- */

START_TEST(every_type_of_the_document_is_described)
{
    struct uva_device_info info;
    const bool known = uva__device_traits(_i)->name != NULL;

    ck_assert_int_eq(setenv("UVA_OPENCL_LIBRARY", "", 1), 0);
    event_wait_open(&s, SOFT_COPIES);
    ck_assert_int_eq(uva__devices_describe(s.devices, _i, &info),
                     known ? 0 : ENOENT);
    ck_assert_int_eq(info.device_type, _i);
    if (known) {
        ck_assert_ptr_nonnull(info.mechanism);
        ck_assert_ptr_nonnull(info.name);
    }
    if (_i == ARROW_DEVICE_CPU) {
        ck_assert(info.available && info.host_readable);
        ck_assert_str_eq(info.mechanism, "none needed");
    }
    if (_i == ARROW_DEVICE_EXT_DEV) {
        ck_assert(info.available && info.can_copy && !info.host_readable);
        ck_assert_str_eq(info.name, "soft");
        ck_assert_str_eq(info.mechanism, "polling");
    }
    ck_assert_int_eq(uva__devices_describe(s.devices, 17 + _i, &info), ENOENT);
    event_wait_close(&s);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, a_table_that_is_not_whole_is_refused, 0, 6);
    tcase_add_loop_test(tc, a_type_that_no_table_can_have_is_refused, 0, 5);
    tcase_add_test(tc, a_table_in_use_is_not_replaced_and_one_that_is_not_is);
    tcase_add_test(tc,
                   a_type_that_was_only_asked_about_can_still_be_made_known);
    tcase_add_test(tc,
                   a_load_is_tried_once_and_its_failure_is_delivered_to_all);
    tcase_add_test(
        tc, a_load_where_nobody_knows_the_type_or_the_service_has_ended_fails);
    tcase_add_test(tc, devices_whose_service_never_began_end_and_begin_none);
    tcase_add_test(tc, a_vendor_that_is_stuck_does_not_hold_up_the_end);
    tcase_add_loop_test(tc, the_end_waits_for_all_threads_until_one_limit, 0,
                        4);
    tcase_add_test(tc, what_is_kept_is_released_when_the_service_ends);
    tcase_add_test(tc, an_event_is_judged_by_its_type);
    tcase_add_test(tc, no_stream_is_checked_once_the_process_exits);
    tcase_add_test(tc, handles_are_attached_once_and_found_by_type_and_id);
    tcase_add_test(tc, a_detach_waits_for_those_who_use_the_handles);
    tcase_add_test(tc, a_library_is_opened_by_path_by_prefix_or_by_name);
    tcase_add_test(tc, a_library_that_is_not_there_is_named);
    tcase_add_test(tc, a_function_that_is_missing_is_named_unless_it_may_be);
    tcase_add_loop_test(tc, the_environment_says_where_a_library_is, 0, 2);
    tcase_add_loop_test(tc, every_type_of_the_document_is_described, 0,
                        UVA__DEVICE_TYPES);
}

int main(void)
{
    TCase *tc = tcase_create("types");

    tcase_set_timeout(tc, 60);
    add_tests(tc);
    return suite_main("device registry", NULL, NULL, tc, NULL);
}
