/* SPDX-License-Identifier: Apache-2.0 */
/* Copies one array between a device and the host, or two devices, in steps.
 *
 * Happy path, to the host: every buffer of a known size is copied, after the
 *              array's event -> these hold the sizes of the other buffers,
 *              which are copied next -> the source is released, the result can
 *              be given.
 * Happy path, to a device: the array's event, if any, completes -> all copies
 *              are queued -> the result is given with the last event; the
 *              device thread waits for that event and releases the source.
 *
 * Happy path, between devices: as to the host, and each buffer on to the
 * target; if these are peers, only sizes go to the host -> the result is given
 * as to a device.
 *
 * Failures:    memory, a call, an event. Copies that were begun are completed
 *              before the failure is reported. */
#include "device/copy.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "arrow/buffer.h"
#include "arrow/device_traits.h"
#include "device/copy_target.h"
#include "device/driver_gate.h"
#include "device/pinned_pool.h"
#include "device/staging.h"
#include "uvarrow/arrow.h"

enum round { FIXED, VARIABLE, DONE };

struct uva__copy {
    struct uva__work work;          /* first */
    struct uva__devices *devices;   /* borrows: of the wait, or of a use */
    struct uva__backend *backend;   /* borrows: the device's row */
    struct uva_device_event device; /* of the array, with its event */
    struct ArrowDeviceArray source; /* owns, until it is copied */
    struct uva__copy_target *copy_target; /* owns, until given */
    struct uva__copy_tail_client client;  /* called when no work is in flight */
    void *device_stream; /* borrows: the caller's; NULL: our streams */
    bool to_device;      /* from the host */
    bool between;        /* from a device to another one */
    bool direct;         /* between: not by way of the host */
    int64_t target_id;   /* between: the device that is copied to */
    struct uva__copy_target *shadow; /* owns; between: buffers on the host from
                                        which sizes are read, or all */
    enum round round;                /* the next round */
    bool staged;                     /* that was decided: to a device */
    struct uva__staging staging;     /* owns the pinned memory it has taken */
    struct {                         /* to a device: the next piece to copy */
        size_t node;
        int64_t buffer;
        size_t done; /* bytes of it */
    } next;
    bool behind;            /* work was begun after the array's event */
    void *event;            /* owns: of the last copy begun; or NULL */
    struct uva_error error; /* of a round that has failed; code 0: no error */
};

static struct uva__copy *copy_of(struct uva__work *work)
{
    return uva__container_of(work, struct uva__copy, work);
}

/* ---- one buffer --------------------------------------------------------- */

static void event_drop(struct uva__copy *copy)
{
    uva__backend_event_free(copy->backend, copy->event);
    copy->event = NULL;
}

/* Where one piece is copied. */
enum leg { TO_HOST, TO_DEVICE, TO_PEER };

static int leg_begin(struct uva__copy *copy, enum leg leg,
                     const struct uva_device_copy *one, void **event,
                     struct uva_error *error)
{
    const struct uva__backend *backend = copy->backend;
    void *stream = copy->device_stream;

    if (leg == TO_PEER)
        return backend->vendor_info->copy_peer(
            backend->state, one, copy->target_id, stream, event, error);
    if (stream == NULL || (copy->between && leg == TO_HOST))
        return backend->ops->copy(backend->state, one, event, error);
    return backend->ops->copy_on(backend->state, one, stream, event, error);
}

static int piece_begin(struct uva__copy *copy, enum leg leg, const void *target,
                       const void *source, size_t size, struct uva_error *error)
{
    struct uva_device_copy one = {
        .after = copy->device,
        .target = (void *)(uintptr_t)target,
        .source = source,
        .size_bytes = size,
        .to_device = leg == TO_DEVICE,
    };
    void *event = NULL;
    int code;

    if (copy->behind) /* a failure of that copy fails this one too */
        one.after.sync_event = copy->event;
    if (copy->between && leg == TO_DEVICE)
        one.after.device_id = copy->target_id;
    code = leg_begin(copy, leg, &one, &event, error);
    if (code != 0)
        return uva__backend_failed(copy->backend, code,
                                   "a copy could not be begun", error);
    copy->behind = true;
    event_drop(copy); /* the new copy waits for the one before it */
    copy->event = event;
    return 0;
}

static int buffer_copy(struct uva__copy *copy,
                       struct uva__copy_target_node *node, int64_t i,
                       int64_t size, struct uva_error *error)
{
    int code;

    if (node->from->buffers[i] == NULL || size == 0)
        return 0;
    code = uva__copy_target_buffer(copy->copy_target, node, i, size, error);
    if (code != 0)
        return code;
    return piece_begin(copy, TO_HOST, node->buffers[i], node->from->buffers[i],
                       (size_t)size, error);
}

/* Begins to copy the rest of a buffer to a device, in pieces. EAGAIN: the work
 * in flight has to be complete first. */
static int buffer_upload(struct uva__copy *copy,
                         struct uva__copy_target_node *node, int64_t i,
                         int64_t size, struct uva_error *error)
{
    const char *source = node->from->buffers[i];
    const void *from;
    size_t piece;
    int code = 0;

    if (source == NULL || size == 0)
        return 0;
    if (node->buffers[i] == NULL)
        code = uva__copy_target_buffer(copy->copy_target, node, i, size, error);
    while (code == 0 && copy->next.done < (size_t)size) {
        piece = uva__staging_put(&copy->staging, source + copy->next.done,
                                 (size_t)size - copy->next.done, &from);
        if (piece == 0)
            return EAGAIN;
        code = piece_begin(copy, TO_DEVICE,
                           (const char *)node->buffers[i] + copy->next.done,
                           from, piece, error);
        copy->next.done += piece;
    }
    return code;
}

/* ---- rounds ------------------------------------------------------------- */

/* Returns whether the buffer's size stands in another buffer. */
static bool buffer_is_variable(const struct uva__copy_target_node *node,
                               int64_t i)
{
    if (i < node->layout.n_buffers)
        return node->layout.buffers[i].kind == UVA__BUFFER_DATA;
    return i < node->n_buffers - 1;
}

/* Sizes are read from the tree that is on the host: the source, or the copy of
 * it.
 */
static int size_find(const struct uva__copy_target_node *node,
                     const struct ArrowArray *host, int64_t i, bool known,
                     int64_t *size, struct uva_error *error)
{
    const int code = uva__buffer_needed(&node->layout, host, i, known, size);

    return code == 0 ? 0
                     : uva_error_set(error, code,
                                     "the offsets of an array make no sense");
}

/* To a device: copies the next buffers of a node. */
static int node_upload(struct uva__copy *copy,
                       struct uva__copy_target_node *node,
                       struct uva_error *error)
{
    int64_t size;
    int code = 0;

    for (; copy->next.buffer < node->n_buffers; copy->next.buffer++) {
        code =
            size_find(node, node->from, copy->next.buffer, true, &size, error);
        if (code == 0)
            code = buffer_upload(copy, node, copy->next.buffer, size, error);
        if (code != 0)
            return code;
        copy->next.done = 0;
    }
    copy->next.buffer = 0;
    return 0;
}

/* Memory of the host that is not pinned is staged. A size that makes no sense
 * is reported when its buffer's turn comes. */
static void upload_stage(struct uva__copy *copy)
{
    size_t count;
    struct uva__copy_target_node *nodes =
        uva__copy_target_nodes(copy->copy_target, &count);
    struct uva_error none;
    int64_t size;

    if (copy->source.device_type != ARROW_DEVICE_CPU)
        return;
    uva__staging_begin(&copy->staging, copy->backend, copy->device.device_id);
    for (size_t n = 0; n < count; n++)
        for (int64_t i = 0; i < nodes[n].n_buffers; i++)
            if (nodes[n].from->buffers[i] != NULL &&
                size_find(&nodes[n], nodes[n].from, i, true, &size, &none) == 0)
                uva__staging_announce(&copy->staging, (size_t)size);
}

/* Begins as much as the staging takes. */
static int upload_begin(struct uva__copy *copy, struct uva_error *error)
{
    size_t count;
    struct uva__copy_target_node *nodes =
        uva__copy_target_nodes(copy->copy_target, &count);
    int code = 0;

    if (!copy->staged)
        upload_stage(copy);
    copy->staged = true;
    for (; copy->next.node < count && code == 0; copy->next.node += code == 0)
        code = node_upload(copy, &nodes[copy->next.node], error);
    if (code == EAGAIN)
        return 0;
    copy->round = DONE;
    return code;
}

/* Returns whether sizes of other buffers stand in the buffer. */
static bool buffer_has_sizes(const struct uva__copy_target_node *node,
                             int64_t i)
{
    if (i >= node->layout.n_buffers)
        return i == node->n_buffers - 1;
    return i + 1 < node->layout.n_buffers &&
           node->layout.buffers[i + 1].kind == UVA__BUFFER_DATA;
}

/* From a device to another one: by way of the host, if there is no other; sizes
 * go there in any case. `shadow` is the node there. */
static int buffer_pass(struct uva__copy *copy,
                       struct uva__copy_target_node *node,
                       struct uva__copy_target_node *shadow, int64_t i,
                       int64_t size, struct uva_error *error)
{
    const void *source = node->from->buffers[i];
    int code = 0;

    if (source == NULL || size == 0)
        return 0;
    if (!copy->direct || buffer_has_sizes(node, i)) {
        code = uva__copy_target_buffer(copy->shadow, shadow, i, size, error);
        if (code == 0)
            code = piece_begin(copy, TO_HOST, shadow->buffers[i], source,
                               (size_t)size, error);
    }
    if (code == 0)
        code = uva__copy_target_buffer(copy->copy_target, node, i, size, error);
    if (code != 0)
        return code;
    return piece_begin(
        copy, copy->direct ? TO_PEER : TO_DEVICE, node->buffers[i],
        copy->direct ? source : shadow->buffers[i], (size_t)size, error);
}

/* From a device. */
static int node_copy(struct uva__copy *copy, struct uva__copy_target_node *node,
                     struct uva__copy_target_node *shadow,
                     struct uva_error *error)
{
    const struct ArrowArray *host = shadow != NULL ? shadow->to : node->to;
    const bool variable = copy->round == VARIABLE;
    int64_t size;
    int code = 0;

    for (int64_t i = 0; i < node->n_buffers && code == 0; i++) {
        if (buffer_is_variable(node, i) != variable)
            continue;
        code = size_find(node, host, i, variable, &size, error);
        if (code != 0)
            return code;
        code = shadow != NULL ? buffer_pass(copy, node, shadow, i, size, error)
                              : buffer_copy(copy, node, i, size, error);
    }
    return code;
}

static bool nodes_have_variable(const struct uva__copy_target_node *nodes,
                                size_t count)
{
    for (size_t n = 0; n < count; n++)
        for (int64_t i = 0; i < nodes[n].n_buffers; i++)
            if (buffer_is_variable(&nodes[n], i))
                return true;
    return false;
}

/* Both trees have the same nodes in the same order. */
static int round_begin(struct uva__copy *copy, struct uva_error *error)
{
    struct uva__copy_target_node *nodes, *shadows = NULL;
    size_t count;
    int code = 0;

    if (copy->to_device)
        return upload_begin(copy, error);
    if (copy->between && copy->round == FIXED)
        code = copy->backend->vendor_info->peers(
            copy->backend->state, copy->device.device_id, copy->target_id,
            &copy->direct, error);
    nodes = uva__copy_target_nodes(copy->copy_target, &count);
    if (copy->between)
        shadows = uva__copy_target_nodes(copy->shadow, &count);
    for (size_t n = 0; n < count && code == 0; n++)
        code = node_copy(copy, &nodes[n], shadows != NULL ? &shadows[n] : NULL,
                         error);
    copy->round = copy->round == FIXED && nodes_have_variable(nodes, count)
                      ? VARIABLE
                      : DONE;
    return code;
}

/* ---- after the result --------------------------------------------------- */

/* The part of a copy that is in flight after its result was passed on: the
 * source, and the copy target that is being filled, are kept until the last
 * event is complete. An event that fails ends it too: the consumer of the
 * result sees the failure. */
struct tail {
    struct uva__devices *devices;         /* uses */
    struct uva__copy_target *copy_target; /* counts: it owns the event */
    struct ArrowDeviceArray source;       /* owns */
    struct uva__copy_target *shadow;      /* owns; or NULL */
    struct uva__staging staging;          /* owns the pinned memory it has
                                             taken */
    struct uva_watch *watch;              /* counts */
    struct uva__copy_tail_client client;
    struct uva__device_command command; /* frees it */
};

static void copy_tail_end(struct uva__device_command *command)
{
    struct tail *tail = uva__container_of(command, struct tail, command);
    struct uva__devices *devices = tail->devices;

    uva__event_wait_release(tail->watch);
    uva__staging_clear(&tail->staging);
    if (tail->shadow != NULL)
        uva__copy_target_free(tail->shadow);
    uva__driver_gate_release(&tail->source);
    uva__copy_target_drop(tail->copy_target);
    if (tail->client.over != NULL) /* a close waits for this */
        tail->client.over(tail->client.ctx, tail->client.weight);
    free(tail);
    uva__devices_quit(devices);
}

/* Thread: any, a vendor's too. */
static void copy_tail_over(struct uva_watch *watch)
{
    struct tail *tail = watch->client;

    uva__devices_send(tail->devices, &tail->command);
}

/* Takes the source, the staged pieces, and `event`, which the result of the
 * target gets. False without memory: no argument was taken. Thread: the device
 * thread. */
static bool copy_tail_new(struct uva__copy *copy,
                          const struct uva_device_event *event)
{
    struct tail *tail = calloc(1, sizeof(*tail));

    if (tail == NULL)
        return false;
    if (uva__event_wait_new(copy->devices, event, copy_tail_over, tail,
                            &tail->watch) != 0) {
        free(tail);
        return false;
    }
    tail->watch->poll_only = true;
    uva__devices_use(copy->devices);
    tail->devices = copy->devices;
    tail->client = copy->client;
    tail->staging = copy->staging;
    copy->staging.count = 0;
    tail->shadow = copy->shadow;
    copy->shadow = NULL;
    tail->command.run = copy_tail_end;
    tail->copy_target = copy->copy_target;
    uva__copy_target_mark(copy->copy_target, event->sync_event);
    uva_array_move(&copy->source, &tail->source);
    uva__event_wait_begin(tail->watch);
    return true;
}

/* ---- steps -------------------------------------------------------------- */

/* To a device, sizes are read from memory of the host that a device may still
 * fill, and our queued work must not hold up the work of others: the first step
 * only waits for the array's event. */
static bool copy_is_early(struct uva__copy *copy)
{
    const bool early = (copy->to_device || copy->between) && !copy->behind &&
                       copy->device.sync_event != NULL;

    copy->behind = copy->behind || early;
    return early;
}

/* Only the first copy waits for the array's event: the last one may succeed
 * although that event has failed. */
static void copy_confirm(struct uva__copy *copy)
{
    struct uva_error why = {0};
    int code;

    if (copy->event == NULL || copy->device.sync_event == NULL ||
        copy->error.code != 0)
        return;
    code = uva__backend_query(copy->backend, &copy->device, &why);
    if (code != 0 && code != EAGAIN)
        copy->error = why;
}

/* Hands the work in flight to a tail, so that the result can be given now; its
 * consumer waits for the event. Without memory for a tail the copy itself waits
 * for the event. */
static bool copy_leave(struct uva__copy *copy)
{
    struct uva_device_event last = copy->device;

    if (!uva__copy_may_be_in_flight(copy) || copy->event == NULL ||
        copy->error.code != 0 || copy->round != DONE)
        return false;
    if (copy->between)
        last.device_id = copy->target_id;
    last.sync_event = copy->event;
    if (!copy_tail_new(copy, &last))
        return false;
    copy->event = NULL;
    copy->client.over = NULL;
    return true;
}

/* A failure is reported when the copies that were begun before are complete. */
static int copy_step(struct uva__work *work, struct uva_device_event *event,
                     struct uva_error *error)
{
    struct uva__copy *copy = copy_of(work);

    if (copy_is_early(copy))
        return EINPROGRESS;
    copy_confirm(copy);
    event_drop(copy);
    uva__staging_clear(&copy->staging);
    while (copy->error.code == 0 && copy->round != DONE &&
           copy->event == NULL) {
        struct uva_error why = {0};
        if (round_begin(copy, &why) != 0)
            copy->error = why;
        if (copy->event == NULL) /* a table may copy before it returns */
            uva__staging_clear(&copy->staging);
    }
    if (copy_leave(copy))
        return 0;
    if (copy->event != NULL) {
        event->sync_event = copy->event;
        return EINPROGRESS;
    }
    *error = copy->error;
    uva__staging_clear(&copy->staging);
    uva__driver_gate_release(&copy->source);
    return copy->error.code;
}

static void copy_stop(struct uva__work *work)
{
    struct uva__copy *copy = copy_of(work);

    event_drop(copy);
    uva__staging_clear(&copy->staging);
    uva__driver_gate_release(&copy->source);
}

/* ---- life --------------------------------------------------------------- */

static void copy_free(struct uva__work *work)
{
    struct uva__copy *copy = copy_of(work);

    assert(copy->event == NULL && copy->staging.count == 0);
    uva__driver_gate_release(&copy->source);
    if (copy->copy_target != NULL)
        uva__copy_target_free(copy->copy_target);
    if (copy->shadow != NULL)
        uva__copy_target_free(copy->shadow);
    if (copy->client.over != NULL)
        copy->client.over(copy->client.ctx, copy->client.weight);
    free(copy);
}

/* Returns the event of the array. The CPU has no event.
 * Clauses: EV-04. */
static void *event_of(const struct ArrowDeviceArray *array)
{
    return array->device_type == ARROW_DEVICE_CPU ? NULL : array->sync_event;
}

/* Returns whether a table of `type` can wait for the event of an array on the
 * host. */
static bool event_is_known(const struct ArrowDeviceArray *array,
                           ArrowDeviceType type)
{
    return event_of(array) == NULL ||
           uva__device_traits(array->device_type)->events ==
               uva__device_traits(type)->events;
}

/* Returns whether a table has the functions for the copy. */
static bool backend_can_copy(const struct uva__backend *backend,
                             const struct uva__copy_destination *target,
                             const struct ArrowDeviceArray *array)
{
    const struct uva_device_ops *ops = backend->ops;

    if (ops->copy == NULL || !uva__device_is_host(array->device_type))
        return ops->copy != NULL;
    return (target->allocator != NULL ||
            (ops->alloc != NULL && ops->dealloc != NULL)) &&
           event_is_known(array, backend->device_type);
}

/* Returns whether the memory that the copy is made to is of the target's type:
 * one vendor's pinned memory is not another one's. Clauses: DA-03. */
static bool target_is_true(const struct uva__copy_destination *target,
                           const struct uva__backend *backend)
{
    return !uva__device_is_host(target->device_type) ||
           target->device_type == ARROW_DEVICE_CPU ||
           target->device_type == uva__pinned_pool_type(backend);
}

static bool backend_lacks_stream(const struct uva__backend *backend,
                                 const struct uva__copy_destination *target,
                                 struct uva_error *error)
{
    const bool lacks =
        target->device_stream != NULL && backend->ops->copy_on == NULL;

    if (lacks)
        (void)uva_error_set(
            error, ENOTSUP,
            "uva_stream_transfer: %s cannot copy on the caller's stream",
            backend->ops->name);
    return lacks;
}

/* Returns whether the copy is one between two devices of one type, and its
 * table is ours. */
static bool backend_has_peers(const struct uva__backend *backend,
                              const struct uva__copy_destination *target,
                              const struct ArrowDeviceArray *array)
{
    return array->device_type == target->device_type &&
           uva__device_traits(array->device_type)->memory ==
               UVA__MEMORY_DEVICE &&
           backend->vendor_info != NULL && backend->vendor_info->peers != NULL;
}

/* Returns the type that has the table for the copy: the type that is not on the
 * host. */
static ArrowDeviceType copy_type(const struct uva__copy_destination *target,
                                 const struct ArrowDeviceArray *array)
{
    return uva__device_is_host(array->device_type) ? target->device_type
                                                   : array->device_type;
}

static enum uva__copy_way
way_is_lost(const struct uva__copy_destination *target,
            const struct ArrowDeviceArray *array, struct uva_error *error)
{
    (void)uva_error_set(error, ENOTSUP,
                        "uva_stream_transfer: there is no way from device "
                        "type %d to %d: a table that can copy is registered "
                        "with uva_device_register()",
                        (int)array->device_type, (int)target->device_type);
    return UVA__COPY_LOST;
}

enum uva__copy_way uva__copy_find(struct uva__devices *devices,
                                  const struct uva__copy_destination *target,
                                  const struct ArrowDeviceArray *array,
                                  struct uva_error *error)
{
    const bool from_host = uva__device_is_host(array->device_type);
    const bool to_host = uva__device_is_host(target->device_type);
    const struct uva__backend *backend;

    if (array->device_type == target->device_type &&
        (to_host || array->device_id == target->device_id))
        return UVA__COPY_NONE;
    if (from_host && target->device_type == ARROW_DEVICE_CPU)
        return UVA__COPY_WAIT;
    backend = uva__devices_first_use(devices, copy_type(target, array));
    if (backend == NULL)
        return way_is_lost(target, array, error);
    if (backend_lacks_stream(backend, target, error))
        return UVA__COPY_LOST;
    if (from_host == to_host ? backend_has_peers(backend, target, array)
                             : backend_can_copy(backend, target, array) &&
                                   target_is_true(target, backend))
        return UVA__COPY_MOVE;
    if (target->device_type == ARROW_DEVICE_CPU && backend->ops->host_readable)
        return UVA__COPY_WAIT;
    return way_is_lost(target, array, error);
}

static struct uva__copy_target_memory
memory_on_device(const struct uva__copy *copy,
                 const struct uva__copy_destination *target)
{
    return (struct uva__copy_target_memory){.backend = copy->backend,
                                            .device_id = target->device_id,
                                            .allocator = target->allocator,
                                            .device_stream =
                                                target->device_stream};
}

/* Copies to the host use pinned memory, if the vendor has an allocator for it.
 */
static struct uva__copy_target_memory
memory_on_host(const struct uva__copy *copy)
{
    struct uva__copy_target_memory memory = {
        .backend = copy->backend, .device_id = copy->device.device_id};

    memory.pinned = uva__pinned_pool_type(copy->backend) != ARROW_DEVICE_CPU;
    if (!memory.pinned)
        memory.backend = NULL;
    return memory;
}

/* Makes the target, and the shadow of a copy between devices. */
static int copy_targets_new(struct uva__copy *copy,
                            const struct uva__copy_destination *target,
                            const struct ArrowSchema *schema,
                            struct uva_error *error)
{
    const struct uva__copy_target_memory on_host = memory_on_host(copy);
    const struct uva__copy_target_memory on_device =
        memory_on_device(copy, target);
    const bool to_host = uva__device_is_host(target->device_type);
    int code = uva__copy_target_new(
        copy->devices, to_host ? &on_host : &on_device, target->device_type,
        target->device_id, schema, &copy->source, &copy->copy_target, error);

    if (code != 0 || !copy->between)
        return code;
    code = uva__copy_target_new(copy->devices, &on_host, ARROW_DEVICE_CPU, -1,
                                schema, &copy->source, &copy->shadow, error);
    if (code != 0)
        uva__copy_target_free(copy->copy_target);
    return code;
}

int uva__copy_new(struct uva__devices *devices,
                  const struct uva__copy_destination *target,
                  const struct ArrowSchema *schema,
                  struct ArrowDeviceArray *array, struct uva__copy **out,
                  struct uva_error *error)
{
    struct uva__backend *backend =
        uva__devices_first_use(devices, copy_type(target, array));
    struct uva__copy *copy = calloc(1, sizeof(*copy));
    int code;

    if (copy == NULL)
        return uva_error_set(error, ENOMEM, "no memory for a copy");
    copy->work.step = copy_step;
    copy->work.stop = copy_stop;
    copy->work.free = copy_free;
    copy->devices = devices;
    copy->backend = backend;
    copy->device_stream = target->device_stream;
    copy->work.on_stream = target->device_stream != NULL;
    copy->to_device = uva__device_is_host(array->device_type);
    copy->between =
        !copy->to_device && !uva__device_is_host(target->device_type);
    copy->device = (struct uva_device_event){backend->device_type,
                                             copy->to_device ? target->device_id
                                                             : array->device_id,
                                             event_of(array)};
    copy->target_id = target->device_id;
    uva_array_move(array, &copy->source); /* the target points into it */
    code = copy_targets_new(copy, target, schema, error);
    if (code != 0) {
        uva_array_move(&copy->source, array);
        free(copy);
        return code;
    }
    *out = copy;
    return 0;
}

struct uva__work *uva__copy_work(struct uva__copy *copy)
{
    return &copy->work;
}

struct uva_device_event uva__copy_event(const struct uva__copy *copy)
{
    return copy->device;
}

bool uva__copy_may_be_in_flight(const struct uva__copy *copy)
{
    return copy->to_device || copy->between;
}

void uva__copy_set_client(struct uva__copy *copy,
                          const struct uva__copy_tail_client *client)
{
    copy->client = *client;
}

void uva__copy_give(struct uva__work *work, struct ArrowDeviceArray *out)
{
    struct uva__copy *copy = copy_of(work);

    assert(copy->round == DONE && copy->error.code == 0);
    uva__copy_target_give(copy->copy_target, out);
    copy->copy_target = NULL;
}
