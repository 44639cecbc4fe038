/* SPDX-License-Identifier: Apache-2.0 */
/* Events are atomics that the test sets; armed ones call back at once. */
#include "support/soft_device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/soft_copies.h"

void soft_device_init(struct soft_device *device, enum soft_mode mode)
{
    memset(device, 0, sizeof(*device));
    device->mode = mode;
    device->device_type = ARROW_DEVICE_EXT_DEV;
    pthread_mutex_init(&device->lock, NULL);
    for (int i = 0; i < SOFT_EVENTS; i++) {
        device->events[i].device = device;
        atomic_store(&device->events[i].state, -1);
    }
}

/* Makes the callbacks that are left, because vendors may be that late. */
void soft_device_fini(struct soft_device *device)
{
    for (int i = 0; i < SOFT_EVENTS; i++)
        if (device->events[i].watch != NULL)
            uva_watch_notify(device->events[i].watch, EIO, 999, "soft");
    soft_copies_forget(device);
    pthread_mutex_destroy(&device->lock);
}

/* ---- device functions --------------------------------------------------- */

static int soft_load(void *ctx, const char *path, void **state,
                     struct uva_error *error)
{
    struct soft_device *device = ctx;

    (void)path;
    atomic_fetch_add(&device->loads, 1);
    device->device_thread = pthread_self();
    *state = device;
    return device->load_code == 0
               ? 0
               : uva_error_set(error, device->load_code, "no soft device");
}

static void soft_unload(void *state)
{
    struct soft_device *device = state;

    if (!pthread_equal(device->device_thread, pthread_self()))
        atomic_store(&device->wrong_thread, true);
    atomic_fetch_add(&device->unloads, 1); /* last, because tests wait for it */
}

static int soft_query(void *state, const struct uva_device_event *event,
                      struct uva_error *error)
{
    struct soft_device *device = state;
    struct soft_event *soft = event->sync_event;
    const bool on_loop = device->mode == SOFT_POLLS_ON_LOOP ||
                         device->mode == SOFT_CALLS_ON_LOOP;
    int is;

    atomic_fetch_add(&device->queries, 1);
    if (device->asked != NULL)
        device->asked(device->ctx);
    if (!on_loop && !pthread_equal(device->device_thread, pthread_self()))
        atomic_store(&device->wrong_thread, true);
    soft_copies_advance(device);
    is = atomic_load(&soft->state);
    if (is <= 0)
        return is < 0 ? EAGAIN : 0;
    (void)uva_error_set(error, is, "soft_query failed with 700: event %d",
                        (int)(soft - device->events));
    error->vendor = "soft";
    error->vendor_code = 700;
    return is;
}

static int soft_arm(void *state, const struct uva_device_event *event,
                    struct uva_watch *watch, struct uva_error *error)
{
    struct soft_device *device = state;
    struct soft_event *soft = event->sync_event;
    bool over;

    if (device->arm_code != 0)
        return uva_error_set(error, device->arm_code, "cannot arm");
    *uva_watch_slots(watch) = soft;
    pthread_mutex_lock(&device->lock);
    over = atomic_load(&soft->state) >= 0;
    if (!over)
        soft->watch = watch;
    atomic_fetch_add(&device->arms, 1);
    pthread_mutex_unlock(&device->lock);
    if (device->armed != NULL)
        device->armed(device->ctx);
    if (over) /* inside arm, as OpenCL does */
        uva_watch_notify(watch, 0, 0, "soft");
    return EINPROGRESS;
}

static void soft_settle(void *state, struct uva_watch *watch)
{
    struct soft_device *device = state;

    if (!pthread_equal(device->device_thread, pthread_self()) ||
        *uva_watch_slots(watch) == NULL)
        atomic_store(&device->wrong_thread, true);
    atomic_fetch_add(&device->settles, 1);
    if (device->settled != NULL)
        device->settled(device->ctx);
}

static int soft_stream_wait(void *state, const struct uva_device_event *event,
                            void *device_stream, struct uva_error *error)
{
    struct soft_device *device = state;

    (void)event;
    (void)error;
    if (device->chaining != NULL)
        device->chaining(device->ctx);
    atomic_fetch_add((atomic_long *)device_stream, 1);
    atomic_fetch_add(&device->chained, 1);
    return 0;
}

/* The members that are equal in the tables of all modes. */
#define SOFT_COMMON                                                            \
    .version = UVA_DEVICE_OPS_VERSION, .name = "soft", .load = soft_load,      \
    .unload = soft_unload, .query = soft_query

const struct uva_device_ops *soft_device_ops(const struct soft_device *device)
{
    static const struct uva_device_ops polls = {
        SOFT_COMMON, .host_readable = true, .stream_wait = soft_stream_wait};
    static const struct uva_device_ops polls_on_loop = {
        SOFT_COMMON, .host_readable = true, .query_on_loop = true};
    static const struct uva_device_ops calls = {
        SOFT_COMMON, .host_readable = true, .arm = soft_arm,
        .settle = soft_settle};
    static const struct uva_device_ops calls_on_loop = {
        SOFT_COMMON, .host_readable = true, .query_on_loop = true,
        .arm = soft_arm, .settle = soft_settle};
    static const struct uva_device_ops copies = {SOFT_COMMON,
                                                 .copy = soft_copy,
                                                 .copy_on = soft_copy_on,
                                                 .record = soft_record,
                                                 .stream_wait =
                                                     soft_stream_wait,
                                                 .event_free = soft_event_free,
                                                 .alloc = soft_alloc,
                                                 .dealloc = soft_dealloc};
    const struct uva_device_ops *const tables[] = {
        &polls, &polls_on_loop, &calls, &calls_on_loop, &calls, &copies};

    return tables[device->mode];
}

/* ---- functions for tests ------------------------------------------------ */

/* Sets the state of an event to `code`, and reports `result` to its watch, if
 * it has one and `notifies`. */
static void event_set(struct soft_device *device, int index, int code,
                      bool notifies, int result)
{
    struct soft_event *soft = &device->events[index];
    struct uva_watch *watch = NULL;

    pthread_mutex_lock(&device->lock);
    atomic_store(&soft->state, code);
    if (notifies) {
        watch = soft->watch;
        soft->watch = NULL;
    }
    pthread_mutex_unlock(&device->lock);
    if (watch != NULL)
        uva_watch_notify(watch, result, result == 0 ? 0 : 700, "soft");
}

void soft_event_end(struct soft_device *device, int index, int code)
{
    event_set(device, index, code, code == 0 || device->mode != SOFT_FORGETS,
              code);
}

void soft_event_lie(struct soft_device *device, int index, int code)
{
    event_set(device, index, code, true, 0);
}

/* ---- batches with events ------------------------------------------------ */

/* A stream around the fake source's. */
struct soft_stream {
    struct ArrowDeviceArrayStream inner; /* owns */
    struct soft_device *device;          /* borrows */
    int next;                            /* index of the next event */
};

static int soft_get_schema(struct ArrowDeviceArrayStream *self,
                           struct ArrowSchema *out)
{
    struct soft_stream *soft = self->private_data;

    return soft->inner.get_schema(&soft->inner, out);
}

static int soft_get_next(struct ArrowDeviceArrayStream *self,
                         struct ArrowDeviceArray *out)
{
    struct soft_stream *soft = self->private_data;
    const int code = soft->inner.get_next(&soft->inner, out);

    if (code == 0 && out->array.release != NULL)
        out->sync_event = &soft->device->events[soft->next++];
    return code;
}

static const char *soft_get_last_error(struct ArrowDeviceArrayStream *self)
{
    struct soft_stream *soft = self->private_data;

    return soft->inner.get_last_error(&soft->inner);
}

static void soft_release(struct ArrowDeviceArrayStream *self)
{
    struct soft_stream *soft = self->private_data;

    soft->inner.release(&soft->inner);
    free(soft);
    self->release = NULL;
}

void soft_device_stream(struct soft_device *device, struct fake_source *fake,
                        struct ArrowDeviceArrayStream *out)
{
    struct soft_stream *soft = calloc(1, sizeof(*soft));

    fake_source_device(fake, device->device_type, &soft->inner);
    soft->device = device;
    *out = (struct ArrowDeviceArrayStream){
        .device_type = device->device_type,
        .get_schema = soft_get_schema,
        .get_next = soft_get_next,
        .get_last_error = soft_get_last_error,
        .release = soft_release,
        .private_data = soft,
    };
}

void soft_device_batch(struct soft_device *device, struct fake_source *fake,
                       int k, struct ArrowDeviceArray *out)
{
    fake_source_batch(fake, k, out);
    out->device_type = device->device_type;
    out->device_id = 0;
    out->sync_event = &device->events[k];
}
