/* SPDX-License-Identifier: Apache-2.0 */
/* One queue for the whole device. A copy accesses its memory only when it runs,
 * so that memory that was freed too early is detected. */
#include "support/soft_copies.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/soft_memory.h"

/* An event made by the device, not by the test. */
struct soft_made {
    struct soft_event event; /* first */
};

struct soft_step {
    struct soft_step *next;      /* next step begun */
    struct uva_device_copy copy; /* size 0: no copy */
    struct soft_event *event;    /* event of its end; NULL once freed */
    bool follows;                /* fails if the previous step has failed */
    int code;                    /* code to end with */
};

static struct soft_event *made_new(struct soft_device *device)
{
    struct soft_made *made = calloc(1, sizeof(*made));

    if (made == NULL)
        return NULL;
    made->event.device = device;
    atomic_store(&made->event.state, -1);
    atomic_fetch_add(&device->events_live, 1);
    return &made->event;
}

/* Begins `step`; returns ENOMEM without memory, as vendors do. */
static int step_put(struct soft_device *device, const struct soft_step *given,
                    void **event_out)
{
    struct soft_step **last = &device->steps;
    struct soft_step *step = malloc(sizeof(*step));

    if (step == NULL)
        return ENOMEM;
    *step = *given;
    step->event = made_new(device);
    if (step->event == NULL) {
        free(step);
        return ENOMEM;
    }
    *event_out = step->event;
    pthread_mutex_lock(&device->lock);
    while (*last != NULL)
        last = &(*last)->next;
    *last = step;
    pthread_mutex_unlock(&device->lock);
    return 0;
}

/* Returns -1 if it has to wait; otherwise the code it ends with. */
static int step_run(const struct soft_device *device,
                    const struct soft_step *step)
{
    const struct uva_device_copy *copy = &step->copy;
    const struct soft_event *after = copy->after.sync_event;
    const int before = after == NULL ? 0 : atomic_load(&after->state);

    if (before != 0)
        return before;
    if (step->follows && device->last_code != 0)
        return device->last_code;
    if (step->code == 0 && copy->size_bytes > 0)
        memcpy(soft_memory_at(copy->target, copy->size_bytes),
               soft_memory_at(copy->source, copy->size_bytes),
               copy->size_bytes);
    return step->code;
}

void soft_copies_advance(struct soft_device *device)
{
    struct soft_step *step;
    int code;

    pthread_mutex_lock(&device->lock);
    while ((step = device->steps) != NULL && !atomic_load(&device->held)) {
        code = step_run(device, step);
        if (code < 0)
            break;
        if (step->event != NULL)
            atomic_store(&step->event->state, code);
        device->last_code = code;
        device->steps = step->next;
        free(step);
    }
    pthread_mutex_unlock(&device->lock);
}

void soft_copies_forget(struct soft_device *device)
{
    struct soft_step *step;

    while ((step = device->steps) != NULL) {
        assert(step->event == NULL && step->copy.size_bytes == 0);
        device->steps = step->next;
        free(step);
    }
}

/* ---- device functions --------------------------------------------------- */

static void event_wait_thread(struct soft_device *device)
{
    if (!pthread_equal(device->device_thread, pthread_self()))
        atomic_store(&device->wrong_thread, true);
}

int soft_copy(void *state, const struct uva_device_copy *copy, void **event_out,
              struct uva_error *error)
{
    struct soft_device *device = state;
    const long n = atomic_fetch_add(&device->copies, 1) + 1;
    const struct soft_event *after = copy->after.sync_event;
    const bool ours =
        after >= device->events && after < device->events + SOFT_EVENTS;
    struct soft_step step = {.copy = *copy,
                             .code = n == device->step_fails_at ? EIO : 0};

    event_wait_thread(device);
    if (after != NULL && ours)
        atomic_fetch_add(&device->chained, 1);
    step.follows = after != NULL && !ours;
    if (step.follows) /* it may be freed before this runs */
        step.copy.after.sync_event = NULL;
    if (n == device->copy_fails_at)
        return device->copy_code != 0
                   ? device->copy_code
                   : uva_error_set(error, EIO, "soft copy %ld has failed", n);
    return step_put(device, &step, event_out);
}

/* A stream is a counter of its uses. */
int soft_copy_on(void *state, const struct uva_device_copy *copy,
                 void *device_stream, void **event_out, struct uva_error *error)
{
    struct soft_device *device = state;

    if (device->chaining != NULL)
        device->chaining(device->ctx);
    atomic_fetch_add((atomic_long *)device_stream, 1);
    return soft_copy(state, copy, event_out, error);
}

int soft_record(void *state, const struct uva_device_event *device_event,
                void *device_stream, void **event_out, struct uva_error *error)
{
    struct soft_device *device = state;
    const struct soft_step step = {.code = device->recorded_code};

    (void)device_event;
    (void)device_stream;
    if (device->record_code != 0)
        return uva_error_set(error, device->record_code, "cannot record");
    return step_put(device, &step, event_out);
}

void soft_event_free(void *state, void *event)
{
    struct soft_device *device = state;

    pthread_mutex_lock(&device->lock);
    for (struct soft_step *step = device->steps; step != NULL;
         step = step->next)
        if (step->event == event)
            step->event = NULL;
    pthread_mutex_unlock(&device->lock);
    atomic_fetch_sub(&device->events_live, 1);
    free(event);
}

void *soft_alloc(void *state, ArrowDeviceType device_type, int64_t device_id,
                 size_t size_bytes)
{
    struct soft_device *device = state;

    (void)device_type;
    (void)device_id;
    event_wait_thread(device);
    if (atomic_fetch_add(&device->allocs, 1) + 1 == device->alloc_fails_at)
        return NULL;
    return soft_memory_new(size_bytes);
}

void soft_dealloc(void *state, ArrowDeviceType device_type, int64_t device_id,
                  void *memory)
{
    (void)device_type;
    (void)device_id;
    event_wait_thread(state);
    soft_memory_free(memory);
}
