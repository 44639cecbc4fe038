/* SPDX-License-Identifier: Apache-2.0 */
/* How an event is treated depending on the type of its device: ignored on the
 * host, refused with a reason if it cannot be waited for, waited for by a table
 * of the program instead. An event of an unknown type is never read. Clauses:
 * EV-04, EV-08, EV-09, EV-11, EV-12. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"

enum { BATCHES = 3, UNKNOWN = 99 };

static struct fixture f;

/* Types with events that cannot be waited for, and the error text. */
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

/* Types for which a program may register its own table. */
static const ArrowDeviceType replaced[] = {
    ARROW_DEVICE_METAL, ARROW_DEVICE_EXT_DEV, ARROW_DEVICE_ONEAPI,
    ARROW_DEVICE_VULKAN, ARROW_DEVICE_OPENCL};

enum {
    HELPLESS = sizeof(helpless) / sizeof(helpless[0]),
    REPLACED = sizeof(replaced) / sizeof(replaced[0])
};

/* ---- the fixture -------------------------------------------------------- */

static void set_up(ArrowDeviceType type)
{
    fixture_open(&f, BATCHES);
    soft_device_init(&f.device, SOFT_POLLS);
    f.device.device_type = type;
    f.has_device = true;
}

static void tear_down(void)
{
    fixture_close(&f);
}

static void register_device(void)
{
    struct uva_error error;

    ck_assert_int_eq(uva_device_register(f.loop.runtime, f.device.device_type,
                                         soft_device_ops(&f.device), &f.device,
                                         &error),
                     0);
}

/* Makes a stream with events that are not valid addresses. */
static void make_stream(void *event)
{
    static struct ArrowDeviceArray arrays[BATCHES];

    for (int k = 0; k < BATCHES; k++) {
        fake_source_batch(&f.fake, k, &arrays[k]);
        arrays[k].device_type = f.device.device_type;
        arrays[k].sync_event = event;
    }
    f.stream = fixture_arrays(&f, arrays, BATCHES);
}

static int await_array(struct ArrowDeviceArray *array)
{
    fixture_wait(&f, array, UVA_FOREVER);
    return fixture_await_answers(&f, 1);
}

static void make_array(struct ArrowDeviceArray *out, void *event)
{
    fake_source_batch(&f.fake, 0, out);
    out->device_type = f.device.device_type;
    out->sync_event = event;
}

static void *const NOWHERE = (void *)1;

/* ---- the host ----------------------------------------------------------- */

START_TEST(ev_04_an_event_of_the_host_is_never_looked_at)
{
    struct ArrowDeviceArray array;

    set_up(ARROW_DEVICE_CPU);
    if (_i < 2) {
        make_stream(NOWHERE);
        if (_i == 1)
            ck_assert_int_eq(uva_stream_ready(f.stream, NULL), 0);
        ck_assert_int_eq(fixture_run(&f), 0);
        ck_assert_int_eq(f.got.batches, BATCHES);
    } else if (_i == 2) {
        make_array(&array, NOWHERE);
        ck_assert_int_eq(await_array(&array), 0);
    } else {
        make_array(&array, NOWHERE);
        uva_array_release_after(f.loop.runtime, &array, NULL);
        ck_assert_int_eq(atomic_load(&f.fake.live), 0);
    }
}
END_TEST

/* ---- events that cannot be waited for ----------------------------------- */

START_TEST(ev_08_ev_09_ev_11_ev_12_an_event_is_refused_with_a_reason)
{
    struct ArrowDeviceArray array;
    const int which = _i / 2;
    int code;

    set_up(helpless[which].type);
    if (_i % 2 == 0) {
        make_stream(NOWHERE);
        ck_assert_int_eq(uva_stream_ready(f.stream, NULL), 0);
        code = fixture_run(&f);
    } else {
        make_array(&array, NOWHERE);
        code = await_array(&array);
    }
    ck_assert_int_eq(code, ENOTSUP);
    ck_assert_int_eq(f.got.batches, 0);
    text_contains(_i % 2 == 0 ? f.got.outcome.error.message : f.answer.message,
                  helpless[which].text);
}
END_TEST

START_TEST(an_event_that_nobody_knows_passes_where_nobody_waits)
{
    const struct uva_ready options = {.wait = UVA_WAIT_NONE};

    set_up(helpless[_i].type);
    make_stream(NOWHERE);
    ck_assert_int_eq(uva_stream_ready(f.stream, &options), 0);
    fixture_completes(&f, BATCHES);
    ck_assert_ptr_eq(f.got.sync_event, NOWHERE);
}
END_TEST

START_TEST(ev_18_without_an_event_there_is_nothing_to_wait_for)
{
    struct ArrowDeviceArray array;
    const int which = _i / 2;

    set_up(helpless[which].type);
    if (_i % 2 == 0) {
        make_stream(NULL);
        ck_assert_int_eq(uva_stream_ready(f.stream, NULL), 0);
        ck_assert_int_eq(fixture_run(&f), 0);
        ck_assert_int_eq(f.got.batches, BATCHES);
    } else {
        make_array(&array, NULL);
        ck_assert_int_eq(await_array(&array), 0);
    }
}
END_TEST

START_TEST(no_event_can_be_recorded_where_nobody_can_wait)
{
    struct ArrowDeviceArray array;
    struct uva_error error;

    set_up(helpless[_i].type);
    make_array(&array, NULL);
    ck_assert_int_eq(uva_array_record(f.loop.runtime, &array, NOWHERE, &error),
                     ENOTSUP);
    text_contains(error.message, helpless[_i].text);
    ck_assert_ptr_null(array.sync_event);
    uva_array_release(&array);
}
END_TEST

START_TEST(what_is_known_of_a_type_says_why_it_cannot_be_waited_for)
{
    struct uva_device_info info;
    int code;

    set_up(helpless[_i].type);
    code = uva_device_get_info(f.loop.runtime, helpless[_i].type, &info);
    ck_assert_int_eq(code, helpless[_i].type == UNKNOWN ? ENOENT : 0);
    ck_assert(!info.available);
    ck_assert(!info.can_copy);
    if (code == 0)
        ck_assert_ptr_nonnull(strstr(info.library, helpless[_i].text));
}
END_TEST

/* ---- tables of the program ---------------------------------------------- */

START_TEST(ev_11_a_table_of_the_program_waits_for_its_events)
{
    set_up(replaced[_i % REPLACED]);
    register_device();
    fixture_ready(&f, fixture_device_stream(&f), NULL);
    for (int k = BATCHES - 1; k >= 0; k--)
        soft_event_end(&f.device, k, _i >= REPLACED && k == 1 ? EIO : 0);
    ck_assert_int_eq(fixture_run(&f), _i < REPLACED ? 0 : EIO);
    ck_assert_int_eq(f.got.batches, _i < REPLACED ? BATCHES : 1);
    ck_assert_ptr_null(f.got.sync_event);
}
END_TEST

static bool has_asked(void *ctx)
{
    (void)ctx;
    return atomic_load(&f.device.queries) > 0;
}

static void nudge(void *ctx)
{
    loop_nudge(ctx);
}

START_TEST(ev_11_a_table_of_the_program_waits_for_one_array)
{
    struct ArrowDeviceArray array;

    set_up(replaced[_i]);
    f.device.asked = nudge;
    f.device.ctx = &f.loop;
    register_device();
    soft_device_batch(&f.device, &f.fake, 0, &array);
    fixture_wait(&f, &array, UVA_FOREVER);
    loop_until(&f.loop, has_asked, NULL);
    ck_assert_int_eq(f.answers, 0);
    soft_event_end(&f.device, 0, 0);
    ck_assert_int_eq(fixture_await_answers(&f, 1), 0);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("events");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, ev_04_an_event_of_the_host_is_never_looked_at, 0,
                        4);
    suite_add_loops(tc, 0, 2 * HELPLESS,
                    ev_08_ev_09_ev_11_ev_12_an_event_is_refused_with_a_reason,
                    ev_18_without_an_event_there_is_nothing_to_wait_for, NULL);
    suite_add_loops(
        tc, 0, HELPLESS, an_event_that_nobody_knows_passes_where_nobody_waits,
        no_event_can_be_recorded_where_nobody_can_wait,
        what_is_known_of_a_type_says_why_it_cannot_be_waited_for, NULL);
    tcase_add_loop_test(tc, ev_11_a_table_of_the_program_waits_for_its_events,
                        0, 2 * REPLACED);
    tcase_add_loop_test(tc, ev_11_a_table_of_the_program_waits_for_one_array, 0,
                        REPLACED);
    return suite_main("device types", NULL, tear_down, tc, NULL);
}
