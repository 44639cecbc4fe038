/* SPDX-License-Identifier: Apache-2.0 */
/* Event waits: when and with which result the client is notified, that the
 * event is not polled after that, and that a vendor's callback may be late or
 * never come. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/watch_fixture.h"
#include "uvarrow/arrow.h"

static const enum soft_mode all_modes[] = {SOFT_POLLS, SOFT_POLLS_ON_LOOP,
                                           SOFT_CALLS, SOFT_CALLS_ON_LOOP,
                                           SOFT_FORGETS};

enum { MODES = sizeof(all_modes) / sizeof(all_modes[0]) };

static bool mode_calls(enum soft_mode mode)
{
    return mode >= SOFT_CALLS && mode <= SOFT_FORGETS;
}

/* ---- outcomes ----------------------------------------------------------- */

START_TEST(an_event_that_is_complete_is_delivered_so)
{
    struct event_wait_fixture s;
    struct uva_watch *watch;

    event_wait_open(&s, all_modes[_i]);
    watch = event_wait_watch(&s, 0);
    soft_event_end(&s.device, 0, 0);
    uva__event_wait_begin(watch);
    ck_assert_int_eq(event_wait_await(&s, watch), 0);
    uva__event_wait_release(watch);
    event_wait_close(&s);
    ck_assert_int_eq(s.device.settles, s.device.arms);
}
END_TEST

START_TEST(an_event_that_fails_is_delivered_with_what_the_vendor_said)
{
    struct event_wait_fixture s;
    struct uva_watch *watch;

    event_wait_open(&s, all_modes[_i]);
    watch = event_wait_watch(&s, 3);
    uva__event_wait_begin(watch);
    event_wait_flush(&s);
    soft_event_end(&s.device, 3, ENODEV);
    ck_assert_int_eq(event_wait_await(&s, watch), ENODEV);
    ck_assert_int_eq(s.outcome.code, ENODEV);
    ck_assert_int_eq(s.outcome.vendor_code, 700);
    ck_assert_str_eq(s.outcome.vendor, "soft");
    uva__event_wait_release(watch);
    event_wait_close(&s);
    ck_assert_int_eq(s.device.settles, s.device.arms);
}
END_TEST

START_TEST(a_callback_that_says_all_is_well_is_not_believed)
{
    struct event_wait_fixture s;
    struct uva_watch *watch;
    struct uva_error error;

    event_wait_open(&s, _i == 0 ? SOFT_CALLS : SOFT_CALLS_ON_LOOP);
    watch = event_wait_watch(&s, 3);
    uva__event_wait_begin(watch);
    event_wait_flush(&s);
    soft_event_lie(&s.device, 3, EIO);
    ck_assert_int_eq(event_wait_await(&s, watch), EIO);
    ck_assert_int_eq(uva__event_wait_outcome(watch, &error), EIO);
    ck_assert_int_eq(error.vendor_code, 700);
    uva__event_wait_release(watch);
    event_wait_close(&s);
    ck_assert_int_eq(s.device.settles, 1);
}
END_TEST

/* Whichever of the two is further counts. */
START_TEST(a_callback_may_come_before_its_own_device_says_so)
{
    struct event_wait_fixture s;
    struct uva_watch *watch;

    event_wait_open(&s, SOFT_CALLS_ON_LOOP);
    watch = event_wait_watch(&s, 3);
    uva__event_wait_begin(watch);
    event_wait_flush(&s);
    soft_event_lie(&s.device, 3, -1);
    ck_assert_int_eq(event_wait_await(&s, watch), 0);
    ck_assert_int_eq(s.outcome.code, 0);
    uva__event_wait_release(watch);
    event_wait_close(&s);
    ck_assert_int_eq(s.device.settles, 1);
}
END_TEST

/* ---- which thread may poll
 * ------------------------------------------------------- */

struct intruder {
    struct event_wait_fixture s;
    struct uva_watch *watch;
    int code;   /* the event ends with this code */
    bool done;  /* the event has ended */
    bool early; /* and the client was notified at once */
};

/* The vendor's callback comes while the service has the event in its hands. */
static void intrude(void *ctx)
{
    struct intruder *in = ctx;

    if (in->done || in->s.device.events[0].watch == NULL)
        return;
    in->done = true;
    soft_event_end(&in->s.device, 0, in->code);
    in->early = uva__event_wait_is_over(in->watch);
}

START_TEST(the_client_is_not_delivered_while_the_service_looks_at_the_event)
{
    static const int codes[] = {0, ENXIO};
    struct intruder in = {.code = codes[_i % 2]};

    event_wait_open(&in.s, _i / 2 == 0 ? SOFT_CALLS : SOFT_CALLS_ON_LOOP);
    in.s.device.asked = intrude; /* by the net under the callback */
    in.s.device.ctx = &in;
    in.watch = event_wait_watch(&in.s, 0);
    uva__event_wait_begin(in.watch);
    ck_assert_int_eq(event_wait_await(&in.s, in.watch), in.code);
    ck_assert(in.done);
    ck_assert(!in.early);
    uva__event_wait_release(in.watch);
    event_wait_close(&in.s);
    ck_assert_int_eq(in.s.device.settles, 1);
}
END_TEST

START_TEST(the_client_is_not_delivered_while_the_service_arms_the_event)
{
    static const int codes[] = {0, ENXIO};
    struct intruder in = {.code = codes[_i % 2]};

    event_wait_open(&in.s, _i / 2 == 0 ? SOFT_CALLS : SOFT_CALLS_ON_LOOP);
    in.s.device.armed = intrude;
    in.s.device.ctx = &in;
    in.watch = event_wait_watch(&in.s, 0);
    uva__event_wait_begin(in.watch);
    ck_assert_int_eq(event_wait_await(&in.s, in.watch), in.code);
    ck_assert_int_eq(in.s.outcome.vendor_code, in.code == 0 ? 0 : 700);
    ck_assert(in.done);
    ck_assert(!in.early);
    uva__event_wait_release(in.watch);
    event_wait_close(&in.s);
    ck_assert_int_eq(in.s.device.settles, 1);
}
END_TEST

/* ---- early ends --------------------------------------------------------- */

START_TEST(a_cancelled_watch_is_delivered_so_and_a_late_vendor_is_harmless)
{
    struct event_wait_fixture s;
    struct uva_watch *watch;

    event_wait_open(&s, all_modes[_i]);
    watch = event_wait_watch(&s, 0);
    uva__event_wait_begin(watch);
    uva__event_wait_cancel(watch);
    ck_assert_int_eq(event_wait_await(&s, watch), ECANCELED);
    uva__event_wait_release(watch);
    event_wait_flush(&s);
    ck_assert_int_eq(s.device.settles, 0);
    soft_event_end(&s.device, 0, 0);
    event_wait_flush(&s);
    ck_assert_int_eq(s.device.settles, mode_calls(all_modes[_i]));
    event_wait_close(&s);
}
END_TEST

static void post_settled(void *ctx)
{
    (void)sem_post(ctx);
}

START_TEST(a_late_vendor_wakes_a_service_that_has_nothing_to_do)
{
    struct event_wait_fixture s;
    struct uva_watch *watch;
    sem_t woken;

    ck_assert_int_eq(sem_init(&woken, 0, 0), 0);
    event_wait_open(&s, SOFT_CALLS_ON_LOOP);
    s.device.settled = post_settled;
    s.device.ctx = &woken;
    watch = event_wait_watch(&s, 0);
    uva__event_wait_begin(watch);
    uva__event_wait_cancel(watch);
    ck_assert_int_eq(event_wait_await(&s, watch), ECANCELED);
    uva__event_wait_release(watch);
    event_wait_flush(&s);
    soft_event_end(&s.device, 0, _i == 0 ? 0 : EIO);
    while (sem_wait(&woken) != 0)
        continue;
    event_wait_close(&s);
    (void)sem_destroy(&woken);
}
END_TEST

START_TEST(cancel_and_a_vendor_race_and_one_of_them_is_delivered)
{
    struct event_wait_fixture s;
    struct uva_watch *watch;
    int code;

    event_wait_open(&s, all_modes[_i]);
    for (int k = 0; k < 500; k++) {
        watch = event_wait_watch(&s, k);
        uva__event_wait_begin(watch);
        if (k % 2 == 0)
            event_wait_flush(&s);
        uva__event_wait_cancel(watch);
        soft_event_end(&s.device, k, 0);
        code = event_wait_await(&s, watch);
        ck_assert(code == 0 || code == ECANCELED);
        uva__event_wait_release(watch);
    }
    ck_assert_int_ne(sem_trywait(&s.over), 0);
    event_wait_close(&s);
}
END_TEST

START_TEST(an_abandoned_watch_releases_its_array_and_tells_nobody)
{
    struct event_wait_fixture s;
    struct fake_source fake;
    struct uva_watch *watch;
    struct ArrowDeviceArray array;

    fake_source_init(&fake, 500);
    event_wait_open(&s, all_modes[_i]);
    for (int k = 0; k < 500; k++) {
        soft_device_batch(&s.device, &fake, k, &array);
        watch = event_wait_watch(&s, k);
        uva__event_wait_begin(watch);
        if (k % 3 == 0)
            soft_event_end(&s.device, k, 0);
        if (k % 7 == 0)
            event_wait_flush(&s);
        if (uva__event_wait_abandon(watch, &array)) {
            ck_assert(array.array.release == NULL);
        } else {
            ck_assert_int_eq(event_wait_await(&s, watch), 0);
            uva_array_release(&array);
            uva__event_wait_release(watch);
        }
        if (k % 3 == 1)
            soft_event_end(&s.device, k, EIO); /* others when all is gone */
    }
    event_wait_flush(&s);
    ck_assert_int_ne(sem_trywait(&s.over), 0);
    ck_assert_int_eq(atomic_load(&fake.live), 0);
    event_wait_close(&s);
    fake_source_fini(&fake);
}
END_TEST

START_TEST(when_the_service_ends_what_waits_is_delivered)
{
    struct event_wait_fixture s;
    struct uva_watch *watch;

    event_wait_open(&s, all_modes[_i]);
    watch = event_wait_watch(&s, 0);
    uva__event_wait_begin(watch);
    if (mode_calls(all_modes[_i]))
        event_wait_flush(&s);
    event_wait_end(&s);
    ck_assert_int_eq(event_wait_await(&s, watch), ECANCELED);
    uva__event_wait_release(watch);
    soft_event_end(&s.device, 0, all_modes[_i] == SOFT_FORGETS ? 0 : EIO);
    event_wait_close(&s);
    ck_assert_int_eq(s.device.settles, 0);
}
END_TEST

/* The vendor calls back when the thread has polled for the last time. */
static void called_back_over(struct uva_watch *watch)
{
    struct event_wait_fixture *s = watch->client;

    soft_event_end(&s->device, 0, EIO);
    (void)sem_post(&s->over);
}

START_TEST(a_callback_that_comes_while_the_service_ends_is_settled)
{
    struct event_wait_fixture s;
    struct uva_watch *watch;

    event_wait_open(&s, SOFT_CALLS);
    watch = event_wait_watch(&s, 0);
    watch->over = called_back_over;
    uva__event_wait_begin(watch);
    event_wait_flush(&s);
    event_wait_end(&s);
    ck_assert_int_eq(event_wait_await(&s, watch), ECANCELED);
    uva__event_wait_release(watch);
    event_wait_close(&s);
    ck_assert_int_eq(s.device.arms, 1);
    ck_assert_int_eq(s.device.settles, 1);
}
END_TEST

START_TEST(a_watch_begun_after_the_end_is_delivered_at_once)
{
    struct event_wait_fixture s;
    struct uva_watch *watch;

    event_wait_open(&s, SOFT_POLLS);
    watch = event_wait_watch(&s, 0);
    event_wait_end(&s);
    uva__event_wait_begin(watch);
    ck_assert_int_eq(event_wait_await(&s, watch), ESHUTDOWN);
    uva__event_wait_cancel(watch);
    uva__event_wait_release(watch);
    ck_assert_int_eq(uva__device_thread_start(&s.devices->device_thread),
                     ESHUTDOWN);
    event_wait_close(&s);
}
END_TEST

/* ---- tables with odd results ----------------------------------------- */

struct script {
    int load, arm, notified, query, chain;
    int queries, arms, settles;
    bool quiet;  /* a failure comes without a text */
    int late;    /* as many more do, although arm succeeds at once */
    int pending; /* this many queries return EAGAIN first */
    struct uva_watch *armed;
};

static int script_load(void *ctx, const char *path, void **state,
                       struct uva_error *error)
{
    const struct script *script = ctx;

    (void)path, (void)error;
    *state = ctx;
    return script->load;
}

static int script_query(void *state, const struct uva_device_event *event,
                        struct uva_error *error)
{
    struct script *script = state;

    (void)event;
    if (script->queries++ < script->pending + script->late)
        return EAGAIN;
    if (script->query != 0 && !script->quiet)
        (void)uva_error_set(error, script->query, "as the script says");
    return script->query;
}

static int script_arm(void *state, const struct uva_device_event *event,
                      struct uva_watch *watch, struct uva_error *error)
{
    struct script *script = state;

    (void)event, (void)error;
    if (script->arms++ == 0 && script->pending > 0)
        return EAGAIN;
    script->armed = watch;
    if (script->arm == EINPROGRESS)
        uva_watch_notify(watch, script->notified, 5, NULL);
    return script->arm;
}

static void script_settle(void *state, struct uva_watch *watch)
{
    struct script *script = state;

    ck_assert_ptr_eq(watch, script->armed);
    script->settles++;
}

static int script_chain(void *state, const struct uva_device_event *event,
                        void *device_stream, struct uva_error *error)
{
    (void)event, (void)device_stream, (void)error;
    return ((struct script *)state)->chain;
}

static struct uva_device_ops script_ops(void)
{
    return (struct uva_device_ops){
        .version = UVA_DEVICE_OPS_VERSION,
        .name = "script",
        .load = script_load,
        .query = script_query,
        .arm = script_arm,
        .settle = script_settle,
        .stream_wait = script_chain,
    };
}

/* Gives the outcome of a watch of a scripted table. */
static int script_run(const struct uva_device_ops *ops, struct script *script,
                      void *device_stream, struct uva_error *error)
{
    static struct event_wait_fixture s;
    struct uva_watch *watch;
    int code;

    soft_device_init(&s.device, SOFT_POLLS);
    event_wait_open_with(&s, ops, script);
    watch = event_wait_watch(&s, 0);
    watch->chains = device_stream != NULL;
    watch->device_stream = device_stream;
    uva__event_wait_begin(watch);
    code = event_wait_await(&s, watch);
    *error = s.outcome;
    ck_assert_int_eq(code, error->code);
    uva__event_wait_release(watch);
    event_wait_close(&s);
    return code;
}

static const int not_yet[] = {EAGAIN, EINPROGRESS, -ENODEV};

START_TEST(a_load_that_says_not_yet_has_failed)
{
    const struct uva_device_ops ops = script_ops();
    struct script script = {.load = not_yet[_i]};
    struct uva_error error;

    ck_assert_int_eq(script_run(&ops, &script, NULL, &error), EIO);
    ck_assert_str_eq(error.message, "script: it cannot be used here");
    ck_assert_int_eq(script.queries, 0);
}
END_TEST

START_TEST(a_query_that_fails_without_a_text_or_a_sane_code_gets_them)
{
    const struct uva_device_ops ops = script_ops();
    struct script script = {
        .arm = EAGAIN, .quiet = _i == 0, .query = EINPROGRESS};
    struct uva_error error;

    if (_i == 2)
        script.query = -EIO;
    ck_assert_int_eq(script_run(&ops, &script, NULL, &error), EIO);
    ck_assert_str_eq(error.message,
                     _i == 0 ? "script: the event of a batch has failed"
                             : "as the script says");
}
END_TEST

START_TEST(an_arm_that_fails_is_the_outcome)
{
    const struct uva_device_ops ops = script_ops();
    struct script script = {.arm = _i == 0 ? EMFILE : -EMFILE};
    struct uva_error error;

    ck_assert_int_eq(script_run(&ops, &script, NULL, &error),
                     _i == 0 ? EMFILE : EIO);
    ck_assert_str_eq(error.message, "script: cannot wait for the event");
    ck_assert_int_eq(script.settles, 0);
}
END_TEST

START_TEST(a_callback_with_a_code_that_means_not_yet_is_a_failure)
{
    const struct uva_device_ops ops = script_ops();
    struct script script = {
        .arm = EINPROGRESS, .notified = not_yet[_i], .query = EAGAIN};
    struct uva_error error;

    ck_assert_int_eq(script_run(&ops, &script, NULL, &error), EIO);
    ck_assert_int_eq(error.vendor_code, 5);
    ck_assert_ptr_null(error.vendor);
    ck_assert_int_eq(script.settles, 1);
}
END_TEST

START_TEST(a_callback_that_comes_too_early_leaves_it_to_the_queries)
{
    struct uva_device_ops ops = script_ops();
    struct script script = {.arm = EINPROGRESS, .query = EPIPE};
    struct uva_error error;

    ops.settle = NULL; /* no settle */
    script.late = 20;
    ck_assert_int_eq(script_run(&ops, &script, NULL, &error), EPIPE);
    ck_assert_int_eq(script.queries, 21);
}
END_TEST

START_TEST(what_is_polled_for_long_is_offered_a_callback_once_more)
{
    const struct uva_device_ops ops = script_ops();
    struct script script = {.arm = _i == 0 ? EMFILE : 0, .pending = 1000000};
    struct uva_error error;

    ck_assert_int_eq(script_run(&ops, &script, NULL, &error), script.arm);
    ck_assert_int_eq(script.arms, 2);
}
END_TEST

START_TEST(a_stream_that_cannot_be_made_to_wait_says_so)
{
    struct uva_device_ops ops = script_ops();
    struct script script = {.chain = _i == 1 ? EAGAIN : EPERM};
    struct uva_error error;
    int device_stream;

    if (_i == 0)
        ops.stream_wait = NULL;
    ck_assert_int_eq(script_run(&ops, &script, &device_stream, &error),
                     _i == 0   ? ENOTSUP
                     : _i == 1 ? EIO
                               : EPERM);
    ck_assert_ptr_nonnull(strstr(error.message, "script: "));
    ck_assert_int_eq(script.queries, 0);
}
END_TEST

/* The device thread is inside stream_wait, or has not reached it. */
struct gone {
    struct event_wait_fixture s;
    struct uva__device_command command;
    sem_t here, go;
    atomic_bool touched; /* the stream was used */
};

static void sem_await(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        continue;
}

static void ended_run(struct uva__device_command *command)
{
    sem_await(&uva__container_of(command, struct gone, command)->go);
}

static int ended_load(void *ctx, const char *path, void **state,
                      struct uva_error *error)
{
    (void)path, (void)error;
    *state = ctx;
    return 0;
}

static int ended_query(void *state, const struct uva_device_event *event,
                       struct uva_error *error)
{
    (void)state, (void)event, (void)error;
    return EAGAIN;
}

static int ended_chain(void *state, const struct uva_device_event *event,
                       void *device_stream, struct uva_error *error)
{
    struct gone *gone = state;

    (void)event, (void)device_stream, (void)error;
    (void)sem_post(&gone->here);
    sem_await(&gone->go);
    atomic_store(&gone->touched, true);
    return 0;
}

static const struct uva_device_ops ended_ops = {.version =
                                                    UVA_DEVICE_OPS_VERSION,
                                                .name = "gone",
                                                .load = ended_load,
                                                .query = ended_query,
                                                .stream_wait = ended_chain};

static struct uva_watch *gone_open(struct gone *gone)
{
    struct uva_watch *watch;

    ck_assert_int_eq(sem_init(&gone->here, 0, 0), 0);
    ck_assert_int_eq(sem_init(&gone->go, 0, 0), 0);
    soft_device_init(&gone->s.device, SOFT_POLLS);
    event_wait_open_with(&gone->s, &ended_ops, gone);
    watch = event_wait_watch(&gone->s, 0);
    watch->chains = true;
    watch->device_stream = gone;
    return watch;
}

static void gone_close(struct gone *gone)
{
    event_wait_close(&gone->s);
    (void)sem_destroy(&gone->here);
    (void)sem_destroy(&gone->go);
}

START_TEST(a_stream_is_not_touched_once_its_watch_is_abandoned)
{
    struct ArrowDeviceArray nothing = {0};
    struct gone gone = {.command.run = ended_run};
    struct uva_watch *watch = gone_open(&gone);

    ck_assert(
        uva__device_thread_send(&gone.s.devices->device_thread, &gone.command));
    uva__event_wait_begin(watch);
    ck_assert(uva__event_wait_unchain(watch));
    ck_assert(uva__event_wait_abandon(watch, &nothing));
    (void)sem_post(&gone.go);
    event_wait_flush(&gone.s);
    ck_assert(!atomic_load(&gone.touched));
    gone_close(&gone);
}
END_TEST

/* These calls do not wait for the vendor's: that would hang the test. */
START_TEST(a_stream_that_is_being_made_to_wait_is_delivered_afterwards)
{
    struct gone gone = {0};
    struct uva_watch *watch = gone_open(&gone);

    uva__event_wait_begin(watch);
    sem_await(&gone.here);
    ck_assert(!uva__event_wait_unchain(watch));
    ck_assert(!uva__event_wait_is_over(watch));
    (void)sem_post(&gone.go);
    ck_assert_int_eq(event_wait_await(&gone.s, watch), 0);
    ck_assert(atomic_load(&gone.touched));
    ck_assert(!uva__event_wait_unchain(watch));
    uva__event_wait_release(watch);
    gone_close(&gone);
}
END_TEST

START_TEST(a_watch_is_abandoned_while_the_vendor_is_stuck_in_a_call)
{
    struct ArrowDeviceArray nothing = {0};
    struct gone gone = {0};
    struct uva_watch *watch = gone_open(&gone);

    uva__event_wait_begin(watch);
    sem_await(&gone.here);
    ck_assert(uva__event_wait_abandon(watch, &nothing));
    (void)sem_post(&gone.go);
    event_wait_flush(&gone.s);
    ck_assert_int_ne(sem_trywait(&gone.s.over), 0);
    gone_close(&gone);
}
END_TEST

START_TEST(a_quick_look_gives_texts_and_codes_too)
{
    struct uva_device_ops ops = script_ops();
    struct script script = {.quiet = true, .query = EINPROGRESS};
    struct uva_device_event event = {ARROW_DEVICE_EXT_DEV, 0, &script};
    struct uva_error error = {0};
    struct event_wait_fixture s;

    ops.query_on_loop = true;
    soft_device_init(&s.device, SOFT_POLLS);
    event_wait_open_with(&s, &ops, &script);
    ck_assert_int_eq(uva__event_wait_peek(s.devices, &event, &error), EAGAIN);
    ck_assert_int_eq(uva__devices_load(s.devices, ARROW_DEVICE_EXT_DEV, &error),
                     0);
    ck_assert_int_eq(uva__event_wait_peek(s.devices, &event, &error), EIO);
    ck_assert_str_eq(error.message, "script: the event of a batch has failed");
    event_wait_close(&s);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, an_event_that_is_complete_is_delivered_so, 0,
                        MODES);
    tcase_add_loop_test(
        tc, an_event_that_fails_is_delivered_with_what_the_vendor_said, 0,
        MODES);
    tcase_add_loop_test(
        tc, the_client_is_not_delivered_while_the_service_looks_at_the_event, 0,
        4);
    tcase_add_loop_test(
        tc, the_client_is_not_delivered_while_the_service_arms_the_event, 0, 4);
    tcase_add_loop_test(
        tc, a_cancelled_watch_is_delivered_so_and_a_late_vendor_is_harmless, 0,
        MODES);
    tcase_add_loop_test(
        tc, a_late_vendor_wakes_a_service_that_has_nothing_to_do, 0, 2);
    tcase_add_loop_test(
        tc, cancel_and_a_vendor_race_and_one_of_them_is_delivered, 0, MODES);
    tcase_add_loop_test(
        tc, an_abandoned_watch_releases_its_array_and_tells_nobody, 0, MODES);
    tcase_add_loop_test(tc, when_the_service_ends_what_waits_is_delivered, 0,
                        MODES);
    tcase_add_test(tc, a_callback_that_comes_while_the_service_ends_is_settled);
    tcase_add_test(tc, a_watch_begun_after_the_end_is_delivered_at_once);
    tcase_add_loop_test(tc, a_load_that_says_not_yet_has_failed, 0, 3);
    tcase_add_loop_test(
        tc, a_query_that_fails_without_a_text_or_a_sane_code_gets_them, 0, 3);
    tcase_add_loop_test(tc, an_arm_that_fails_is_the_outcome, 0, 2);
    tcase_add_loop_test(
        tc, a_callback_with_a_code_that_means_not_yet_is_a_failure, 0, 3);
    tcase_add_test(tc,
                   a_callback_that_comes_too_early_leaves_it_to_the_queries);
    tcase_add_loop_test(tc, a_callback_that_says_all_is_well_is_not_believed, 0,
                        2);
    tcase_add_test(tc, a_callback_may_come_before_its_own_device_says_so);
    tcase_add_loop_test(
        tc, what_is_polled_for_long_is_offered_a_callback_once_more, 0, 2);
    tcase_add_loop_test(tc, a_stream_that_cannot_be_made_to_wait_says_so, 0, 3);
    tcase_add_test(tc, a_stream_is_not_touched_once_its_watch_is_abandoned);
    tcase_add_test(tc,
                   a_stream_that_is_being_made_to_wait_is_delivered_afterwards);
    tcase_add_test(tc,
                   a_watch_is_abandoned_while_the_vendor_is_stuck_in_a_call);
    tcase_add_test(tc, a_quick_look_gives_texts_and_codes_too);
}

int main(void)
{
    TCase *tc = tcase_create("waits");

    tcase_set_timeout(tc, 60);
    add_tests(tc);
    return suite_main("device watch", NULL, NULL, tc, NULL);
}
