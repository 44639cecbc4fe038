/* SPDX-License-Identifier: Apache-2.0 */
/* The errors that are reported when a device of the user fails: by its table,
 * by its callback alone, after stages, and over a foreign hop. Another stream
 * goes on. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fault_fixture.h"
#include "support/soft_device.h"

static struct fault_fixture s;
static struct soft_device device;

static void table_register(const struct uva_device_ops *ops, void *ctx)
{
    struct uva_error error;

    ck_assert_int_eq(uva_device_register(s.f.loop.runtime, ARROW_DEVICE_EXT_DEV,
                                         ops, ctx, &error),
                     0);
}

static void nudge(void *ctx)
{
    loop_nudge(ctx);
}

/* Completes the first event of the other stream, but not the second. */
static void revive(void *ctx)
{
    soft_event_end(ctx, 9, 0);
}

static void soft_open(enum soft_mode mode)
{
    fault_open(&s);
    soft_device_init(&device, mode);
    device.armed = nudge;
    device.ctx = &s.f.loop;
    table_register(soft_device_ops(&device), &device);
    for (int k = 0; k < 2; k++) {
        s.others[k].device_type = ARROW_DEVICE_EXT_DEV;
        s.others[k].sync_event = &device.events[8 + k];
    }
    soft_event_end(&device, 8, 0);
    s.revive = revive;
    s.ctx = &device;
    for (int k = 0; k < FAULT_ARRAYS; k++)
        fault_array(&s, ARROW_DEVICE_EXT_DEV, 0, &device.events[k]);
}

static void soft_close(void)
{
    fault_close(&s);
    soft_device_fini(&device);
}

static const struct fault soft_fault = {EIO, "soft", 700, "soft_query"};

static const enum soft_mode all_modes[] = {SOFT_POLLS, SOFT_POLLS_ON_LOOP,
                                           SOFT_CALLS, SOFT_CALLS_ON_LOOP,
                                           SOFT_FORGETS};

START_TEST(a_failed_event_is_told_with_its_vendor_and_call)
{
    soft_open(all_modes[_i]);
    soft_event_end(&device, 0, 0);
    fault_ready(&s, NULL);
    loop_settle(&s.f.loop);
    soft_event_end(&device, 1, EIO);
    fault_expect(&s, &soft_fault);
    ck_assert_int_eq(s.f.got.batches, 1);
    soft_close();
}
END_TEST

static int map_nothing(void *ctx, struct uva_batch *in,
                       struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    return 0;
}

START_TEST(what_is_known_passes_through_stages)
{
    const struct uva_map same = {.batch = map_nothing, .on_loop = true};

    soft_open(SOFT_POLLS);
    fault_stream(&s);
    ck_assert_int_eq(uva_stream_ready(s.f.stream, NULL), 0);
    ck_assert_int_eq(uva_stream_map(s.f.stream, &same), 0);
    ck_assert_int_eq(uva_stream_ready(s.f.stream, NULL), 0);
    fault_start(&s);
    soft_event_end(&device, 0, EIO);
    fault_expect(&s, &soft_fault);
    soft_close();
}
END_TEST

START_TEST(a_stuck_event_of_a_users_table_is_told_by_its_name)
{
    const struct fault fault = {ETIMEDOUT, NULL, 0, NULL};

    soft_open(all_modes[_i]);
    fault_ready(&s, &(struct uva_ready){.timeout_ms = 5});
    fault_expect(&s, &fault);
    text_contains(s.f.got.outcome.error.message,
                  "soft: an event was not complete");
    for (int k = 0; k < FAULT_ARRAYS; k++)
        soft_event_end(&device, k, 0);
    soft_close();
}
END_TEST

/* The error must not name a function of the built-in table. */
START_TEST(a_table_in_the_place_of_one_that_is_built_in_is_told_by_its_name)
{
    const struct fault fault = {ETIMEDOUT, NULL, 0, NULL};
    struct uva_error error;

    fault_open(&s);
    soft_device_init(&device, SOFT_POLLS);
    ck_assert_int_eq(uva_device_register(s.f.loop.runtime, ARROW_DEVICE_CUDA,
                                         soft_device_ops(&device), &device,
                                         &error),
                     0);
    fault_array(&s, ARROW_DEVICE_CUDA, 0, &device.events[0]);
    fault_ready(&s, &(struct uva_ready){.timeout_ms = 5});
    fault_expect(&s, &fault);
    ck_assert_ptr_null(strstr(s.f.got.outcome.error.message, "cuEventQuery"));
    soft_close();
}
END_TEST

/* ---- tables that report other results ----------------------------------- */

/* The state of the table's events, which never report a failure. */
static atomic_int event_is; /* EAGAIN or 0 */

static int mine_load(void *ctx, const char *path, void **state,
                     struct uva_error *error)
{
    (void)path;
    *state = ctx;
    if (ctx == NULL)
        return 0;
    (void)uva_error_set(error, *(int *)ctx, "mine_open failed with 3: gone");
    error->vendor = "mine";
    error->vendor_code = 3;
    return *(int *)ctx;
}

static int mine_query(void *state, const struct uva_device_event *event,
                      struct uva_error *error)
{
    (void)state;
    (void)event;
    (void)error;
    return atomic_load(&event_is);
}

static int mine_arm(void *state, const struct uva_device_event *event,
                    struct uva_watch *watch, struct uva_error *error)
{
    (void)state;
    (void)event;
    (void)error;
    uva_watch_notify(watch, EIO, -5, "opencl");
    return EINPROGRESS;
}

static const struct uva_device_ops mine[] = {
    {.version = UVA_DEVICE_OPS_VERSION,
     .name = "MINE",
     .load = mine_load,
     .query = mine_query,
     .arm = mine_arm},
    {.version = UVA_DEVICE_OPS_VERSION,
     .name = "MINE",
     .query_on_loop = true,
     .load = mine_load,
     .query = mine_query,
     .arm = mine_arm},
};

/* Some platforms do so for an event after a failed command. */
START_TEST(a_failure_that_the_callback_alone_knows_of_is_told)
{
    const struct fault fault = {EIO, "opencl", -5, "callback"};
    int event;

    atomic_store(&event_is, _i < 2 ? EAGAIN : 0);
    fault_open(&s);
    table_register(&mine[_i % 2], NULL);
    fault_array(&s, ARROW_DEVICE_EXT_DEV, 0, &event);
    fault_ready(&s, NULL);
    fault_expect(&s, &fault);
    fault_close(&s);
}
END_TEST

START_TEST(a_table_that_cannot_be_loaded_is_told_with_its_call)
{
    static const int codes[] = {ENOTSUP, ENODEV, ENOSYS};
    const struct fault fault = {codes[_i], "mine", 3, "mine_open"};
    int event, code = codes[_i];

    fault_open(&s);
    table_register(&mine[0], &code);
    fault_array(&s, ARROW_DEVICE_EXT_DEV, 0, &event);
    fault_ready(&s, NULL);
    fault_expect(&s, &fault);
    fault_close(&s);
}
END_TEST

/* ---- a foreign hop ------------------------------------------------------ */

/* A handler that passes every callback on to another handler. */
struct hop {
    struct ArrowAsyncDeviceStreamHandler handler; /* must be the first member */
    struct ArrowAsyncDeviceStreamHandler *to;     /* borrows */
    struct uva_stream *from;                      /* owns, until started */
};

static struct hop *hop_of(struct ArrowAsyncDeviceStreamHandler *self)
{
    return (struct hop *)(void *)self;
}

static int hop_on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                         struct ArrowSchema *schema)
{
    struct hop *hop = hop_of(self);

    hop->to->producer = self->producer;
    return hop->to->on_schema(hop->to, schema);
}

static int hop_on_task(struct ArrowAsyncDeviceStreamHandler *self,
                       struct ArrowAsyncTask *task, const char *metadata)
{
    struct hop *hop = hop_of(self);

    return hop->to->on_next_task(hop->to, task, metadata);
}

static void hop_on_error(struct ArrowAsyncDeviceStreamHandler *self, int code,
                         const char *message, const char *metadata)
{
    struct hop *hop = hop_of(self);

    hop->to->on_error(hop->to, code, message, metadata);
}

static void hop_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    struct hop *hop = hop_of(self);

    self->release = NULL;
    hop->to->release(hop->to);
}

static int hop_start(void *ctx, struct ArrowAsyncDeviceStreamHandler *handler,
                     struct uva_error *error)
{
    struct hop *hop = ctx;
    int code;

    hop->handler = (struct ArrowAsyncDeviceStreamHandler){
        .on_schema = hop_on_schema,
        .on_next_task = hop_on_task,
        .on_error = hop_on_error,
        .release = hop_release,
    };
    hop->to = handler;
    code = uva_stream_drive(hop->from, &hop->handler, NULL, error);
    uva_stream_release(hop->from);
    return code;
}

static const char *query_vendor;

static int failing_query(void *state, const struct uva_device_event *event,
                         struct uva_error *error)
{
    (void)state;
    (void)event;
    (void)uva_error_set(error, EIO, "cuEventQuery failed with 719");
    error->vendor = query_vendor;
    error->vendor_code = 719;
    return EIO;
}

static const struct uva_device_ops failing = {.version = UVA_DEVICE_OPS_VERSION,
                                              .name = "FAILING",
                                              .load = mine_load,
                                              .query = failing_query};

static void behind_a_hop(struct hop *hop, int *event)
{
    struct uva_async_source source = {.start = hop_start, .ctx = hop};

    fault_open(&s);
    table_register(&failing, NULL);
    fault_array(&s, ARROW_DEVICE_EXT_DEV, 0, event);
    fault_stream(&s);
    ck_assert_int_eq(uva_stream_ready(s.f.stream, NULL), 0);
    hop->from = s.f.stream;
    s.f.stream = uva_stream_from_async(s.f.loop.runtime, &source);
    ck_assert_int_eq(uva_stream_ready(s.f.stream, NULL), 0);
    fault_start(&s);
}

START_TEST(the_vendor_is_known_behind_a_foreign_hop)
{
    const struct fault fault = {EIO, "cuda", 719, "cuEventQuery"};
    char name[] = "cuda"; /* not a constant of the library */
    struct hop hop;
    int event;

    query_vendor = name;
    behind_a_hop(&hop, &event);
    fault_expect(&s, &fault);
    ck_assert_ptr_ne(s.f.got.outcome.error.vendor, name);
    fault_close(&s);
}
END_TEST

START_TEST(a_vendor_unknown_here_is_in_the_metadata_alone)
{
    const struct fault fault = {EIO, NULL, 0, "cuEventQuery"};
    struct hop hop;
    int event;

    query_vendor = "somebody";
    behind_a_hop(&hop, &event);
    loop_settle(&s.f.loop);
    fault_expect(&s, &fault);
    ck_assert_str_eq(s.vendor, "somebody");
    ck_assert_str_eq(s.vendor_code, "719");
    fault_close(&s);
}
END_TEST

int main(void)
{
    const int modes = sizeof(all_modes) / sizeof(all_modes[0]);
    TCase *tc = tcase_create("faults");

    tcase_set_timeout(tc, 60);
    suite_add(tc, what_is_known_passes_through_stages,
              a_table_in_the_place_of_one_that_is_built_in_is_told_by_its_name,
              the_vendor_is_known_behind_a_foreign_hop,
              a_vendor_unknown_here_is_in_the_metadata_alone, NULL);
    suite_add_loops(tc, 0, modes,
                    a_failed_event_is_told_with_its_vendor_and_call,
                    a_stuck_event_of_a_users_table_is_told_by_its_name, NULL);
    suite_add_loops(tc, 0, 3,
                    a_failure_that_the_callback_alone_knows_of_is_told,
                    a_table_that_cannot_be_loaded_is_told_with_its_call, NULL);
    return suite_main("device faults", NULL, NULL, tc, NULL);
}
