/* SPDX-License-Identifier: Apache-2.0 */
/* All event waits of a fixture post one semaphore. */
#include "support/watch_fixture.h"

#include <check.h>
#include <string.h>

#include "uvarrow/arrow.h"

void event_wait_open_with(struct event_wait_fixture *s,
                          const struct uva_device_ops *ops, void *ctx)
{
    struct uva_error error;

    ck_assert_int_eq(sem_init(&s->over, 0, 0), 0);
    s->devices = uva__devices_new();
    ck_assert_ptr_nonnull(s->devices);
    uva__devices_acquire(s->devices);
    s->ended = false;
    ck_assert_int_eq(uva__devices_register(s->devices, ARROW_DEVICE_EXT_DEV,
                                           ops, ctx, &error),
                     0);
    ck_assert_int_eq(uva__device_thread_start(&s->devices->device_thread), 0);
}

void event_wait_open(struct event_wait_fixture *s, enum soft_mode mode)
{
    soft_device_init(&s->device, mode);
    event_wait_open_with(s, soft_device_ops(&s->device), &s->device);
}

void event_wait_end(struct event_wait_fixture *s)
{
    if (!s->ended)
        uva__devices_leave(s->devices);
    s->ended = true;
}

/* The device thread ends some time after it was released. */
static void device_thread_await(struct uva__device_thread *device_thread)
{
    uint32_t seen = uva__futex_now(&device_thread->changed);

    while (uva__atomic64_load(&device_thread->over) == 0) {
        (void)uva__futex_wait(&device_thread->changed, seen, -1);
        seen = uva__futex_now(&device_thread->changed);
    }
}

void event_wait_close(struct event_wait_fixture *s)
{
    event_wait_end(s);
    device_thread_await(&s->devices->device_thread);
    uva__devices_release(s->devices);
    ck_assert(!atomic_load(&s->device.wrong_thread));
    ck_assert_int_eq(atomic_load(&s->device.loads),
                     atomic_load(&s->device.unloads));
    ck_assert_int_eq(atomic_load(&s->device.events_live), 0);
    ck_assert_ptr_null(s->device.steps);
    soft_device_fini(&s->device);
    (void)sem_destroy(&s->over);
}

/* ---- event waits -------------------------------------------------------- */

static void event_wait_over(struct uva_watch *watch)
{
    (void)sem_post(&((struct event_wait_fixture *)watch->client)->over);
}

struct uva_watch *event_wait_watch(struct event_wait_fixture *s, int k)
{
    const struct uva_device_event event = {ARROW_DEVICE_EXT_DEV, 0,
                                           &s->device.events[k]};
    struct uva_watch *watch = NULL;

    ck_assert_ptr_nonnull(
        uva__devices_first_use(s->devices, ARROW_DEVICE_EXT_DEV));
    ck_assert_int_eq(
        uva__event_wait_new(s->devices, &event, event_wait_over, s, &watch), 0);
    return watch;
}

int event_wait_await(struct event_wait_fixture *s, struct uva_watch *watch)
{
    while (sem_wait(&s->over) != 0)
        continue;
    ck_assert(uva__event_wait_is_over(watch));
    return uva__event_wait_outcome(watch, &s->outcome);
}

/* A command for the device thread. */
struct stop {
    struct uva__device_command command;
    sem_t passed;
};

static void stop_run(struct uva__device_command *command)
{
    (void)sem_post(&uva__container_of(command, struct stop, command)->passed);
}

void event_wait_flush(struct event_wait_fixture *s)
{
    struct stop stop = {.command.run = stop_run};

    ck_assert_int_eq(sem_init(&stop.passed, 0, 0), 0);
    ck_assert(
        uva__device_thread_send(&s->devices->device_thread, &stop.command));
    while (sem_wait(&stop.passed) != 0)
        continue;
    (void)sem_destroy(&stop.passed);
}

int event_wait_begin_copy(struct event_wait_fixture *s, ArrowDeviceType target,
                          const struct ArrowSchema *schema,
                          struct ArrowDeviceArray *array,
                          struct uva_watch **out, struct uva_error *error)
{
    const struct uva__copy_destination where = {.device_type = target};
    struct uva_device_event event;
    struct uva__copy *copy = NULL;
    int code;

    memset(error, 0, sizeof(*error));
    ck_assert_int_eq(uva__copy_find(s->devices, &where, array, error),
                     UVA__COPY_MOVE);
    code = uva__copy_new(s->devices, &where, schema, array, &copy, error);
    if (code != 0) {
        uva_array_release(array);
        return code;
    }
    event = uva__copy_event(copy);
    if (uva__event_wait_new(s->devices, &event, event_wait_over, s, out) != 0) {
        uva__copy_work(copy)->free(uva__copy_work(copy));
        return uva_error_set(error, ENOMEM, "no watch");
    }
    (*out)->work = uva__copy_work(copy);
    uva__event_wait_begin(*out);
    return 0;
}

int event_wait_copy(struct event_wait_fixture *s, ArrowDeviceType target,
                    const struct ArrowSchema *schema,
                    struct ArrowDeviceArray *array,
                    struct ArrowDeviceArray *out, struct uva_error *error)
{
    struct uva_watch *watch;
    int code = event_wait_begin_copy(s, target, schema, array, &watch, error);

    memset(out, 0, sizeof(*out));
    if (code != 0)
        return code;
    code = event_wait_await(s, watch);
    if (code == 0)
        uva__copy_give(watch->work, out);
    *error = s->outcome;
    uva__event_wait_release(watch);
    return code;
}
