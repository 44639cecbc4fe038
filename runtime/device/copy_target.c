/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a copied array. All structs and vectors are in one block. Each
 * buffer is a separate allocation, since device memory cannot be freed in
 * parts. Buffers of a vendor are freed by the device thread, which is in use as
 * long as they live.
 *
 * Failures: memory. */
#include "device/copy_target.h"

#include <errno.h>
#include <stdlib.h>

#include "arrow/layout.h"
#include "base/platform.h"
#include "base/unreachable.h"
#include "device/driver_gate.h"
#include "device/pinned_pool.h"

enum { ALIGNMENT = 64 }; /* as the Arrow format recommends */

/* After it in its block follow the nodes, the structs of all nodes but the
 * root, pointers to children, pointers to buffers, and their sizes. */
struct uva__copy_target {
    struct uva__devices *devices;          /* counts; uses, with a backend */
    struct uva__copy_target_memory memory; /* counts its allocator */
    ArrowDeviceType device_type;           /* of the buffers */
    int64_t device_id;
    struct uva__atomic64
        refs; /* of live nodes, and of the copy that fills it */
    struct uva__device_command command; /* frees the buffers */
    void *event; /* owns, through the backend: of the last copy; or NULL */
    struct ArrowDeviceArray root; /* until it is given */
    size_t count;                 /* of nodes */
    struct uva__copy_target_node *nodes;
};

/* The size of a tree; and, while its copy is made, where the next parts go. */
struct picture {
    size_t nodes, children, buffers;
    struct uva__copy_target_node *node;
    struct ArrowArray *array;
    struct ArrowArray **child;
    const void **buffer;
    int64_t *size;
    struct uva__copy_target *copy_target;
};

/* ---- memory of buffers -------------------------------------------------- */

static struct uva__copy_place
place_of(const struct uva__copy_target *copy_target)
{
    return (struct uva__copy_place){
        .backend = copy_target->memory.backend,
        .device_type = copy_target->device_type,
        .device_id = copy_target->memory.device_id,
        .device_stream = copy_target->memory.device_stream,
    };
}

/* Reports why there is no memory: the vendor's error, if it was the vendor's.
 */
static void memory_failed(const struct uva__copy_target *copy_target,
                          struct uva_error *error)
{
    const struct uva__backend *backend = copy_target->memory.backend;

    if (backend == NULL || copy_target->device_type == ARROW_DEVICE_CPU ||
        backend->vendor_info == NULL ||
        backend->vendor_info->alloc_failed == NULL)
        (void)uva_error_set(error, ENOMEM, "no memory for a copy");
    else
        (void)backend->vendor_info->alloc_failed(backend->state, error);
}

/* Gives memory of a vendor, or of the caller. */
static void *memory_new(struct uva__copy_target *copy_target, size_t size,
                        struct uva_error *error)
{
    const struct uva__copy_target_memory *memory = &copy_target->memory;
    const struct uva__copy_place place = place_of(copy_target);
    struct uva__backend *backend = memory->backend;
    void *made;

    if (memory->allocator != NULL)
        return uva__copy_allocator_take(memory->allocator, &place, size, error);
    if (memory->device_stream != NULL && !memory->pinned &&
        backend->vendor_info != NULL && backend->vendor_info->alloc_on != NULL)
        made = backend->vendor_info->alloc_on(
            backend->state, copy_target->device_type, memory->device_id,
            memory->device_stream, size);
    else if (memory->pinned)
        made = uva__pinned_pool_take(backend, memory->device_id, size);
    else
        made = backend->ops->alloc(backend->state, copy_target->device_type,
                                   memory->device_id, size);
    if (made == NULL)
        memory_failed(copy_target, error);
    else if (!memory->pinned)
        uva__driver_gate_watch(backend->device_type, UVA__DRIVER_GAVE_MEMORY);
    return made;
}

static void memory_give(struct uva__copy_target *copy_target, void *buffer,
                        size_t size)
{
    const struct uva__copy_target_memory *memory = &copy_target->memory;
    const struct uva__copy_place place = place_of(copy_target);
    struct uva__backend *backend = memory->backend;

    if (memory->allocator != NULL)
        uva__copy_allocator_give(memory->allocator, &place, buffer, size);
    else if (memory->pinned)
        uva__pinned_pool_give(backend, memory->device_id, buffer, size);
    else
        backend->ops->dealloc(backend->state, copy_target->device_type,
                              memory->device_id, buffer);
}

static void memory_free(struct uva__copy_target *copy_target, void *buffer,
                        size_t size)
{
    if (!uva__driver_gate_enter())
        return;
    memory_give(copy_target, buffer, size);
    uva__driver_gate_leave();
}

/* The size of plain memory is stored as a negative number. If a vendor has run
 * out of pinned memory, plain memory of the host is used, which is slower. */
int uva__copy_target_buffer(struct uva__copy_target *copy_target,
                            struct uva__copy_target_node *node, int64_t i,
                            int64_t size_bytes, struct uva_error *error)
{
    const bool vendors = copy_target->memory.backend != NULL;
    void *memory =
        vendors ? memory_new(copy_target, (size_t)size_bytes, error) : NULL;

    node->sizes[i] = size_bytes;
    if (memory == NULL &&
        (!vendors || copy_target->device_type == ARROW_DEVICE_CPU)) {
        memory = uva__platform_alloc(ALIGNMENT, (size_t)size_bytes);
        node->sizes[i] = -size_bytes;
    }
    if (memory == NULL) {
        node->sizes[i] = 0;
        if (!vendors || copy_target->device_type == ARROW_DEVICE_CPU)
            memory_failed(copy_target, error);
        return error->code;
    }
    node->buffers[i] = memory;
    return 0;
}

/* ---- the end ------------------------------------------------------------ */

static void buffer_free(struct uva__copy_target *copy_target,
                        const struct uva__copy_target_node *node, int64_t i)
{
    void *memory = (void *)(uintptr_t)node->buffers[i];

    if (node->sizes[i] < 0)
        uva__platform_free(memory);
    else if (node->sizes[i] > 0)
        memory_free(copy_target, memory, (size_t)node->sizes[i]);
}

static void copy_target_dispose(struct uva__device_command *command)
{
    struct uva__copy_target *copy_target =
        uva__container_of(command, struct uva__copy_target, command);
    struct uva__devices *devices = copy_target->devices;
    const bool used = copy_target->memory.backend != NULL;
    struct uva__copy_target_node *node;

    for (size_t n = 0; n < copy_target->count; n++) {
        node = &copy_target->nodes[n];
        for (int64_t i = 0; i < node->n_buffers; i++)
            buffer_free(copy_target, node, i);
    }
    uva__backend_event_free(copy_target->memory.backend, copy_target->event);
    uva__copy_allocator_release(copy_target->memory.allocator);
    free(copy_target);
    if (used)
        uva__devices_quit(devices);
    uva__devices_release(devices);
}

/* Freeing takes vendor locks, so the device thread does it. */
static void copy_target_end(struct uva__copy_target *copy_target)
{
    copy_target->command.run = copy_target_dispose;
    if (copy_target->memory.backend == NULL)
        copy_target_dispose(&copy_target->command);
    else
        uva__devices_send(copy_target->devices, &copy_target->command);
}

void uva__copy_target_drop(struct uva__copy_target *copy_target)
{
    if (uva__atomic64_sub(&copy_target->refs, 1) == 1)
        copy_target_end(copy_target);
}

static void copy_target_release_node(struct ArrowArray *array)
{
    struct uva__copy_target *copy_target = array->private_data;
    struct ArrowArray *dictionary = array->dictionary;

    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release != NULL)
            array->children[i]->release(array->children[i]);
    if (dictionary != NULL && dictionary->release != NULL)
        dictionary->release(dictionary);
    array->release = NULL;
    uva__copy_target_drop(copy_target);
}

void uva__copy_target_mark(struct uva__copy_target *copy_target, void *event)
{
    uva__atomic64_add(&copy_target->refs, 1);
    copy_target->event = event;
    copy_target->root.sync_event = event;
}

void uva__copy_target_free(struct uva__copy_target *copy_target)
{
    copy_target_release_node(&copy_target->root.array);
}

/* ---- the shape ---------------------------------------------------------- */

/* uva__layout_measure() has checked that the array fits the schema. */
static void shape_count(const struct ArrowArray *from, struct picture *picture)
{
    picture->nodes++;
    picture->children += (size_t)from->n_children;
    picture->buffers += (size_t)from->n_buffers;
    for (int64_t i = 0; i < from->n_children; i++)
        shape_count(from->children[i], picture);
    if (from->dictionary != NULL)
        shape_count(from->dictionary, picture);
}

static void shape_node(const struct ArrowArray *from, struct picture *picture,
                       struct ArrowArray *to)
{
    to->length = from->length;
    to->null_count = from->null_count;
    to->offset = from->offset;
    to->n_buffers = from->n_buffers;
    to->n_children = from->n_children;
    to->buffers = picture->buffer;
    to->children = picture->child;
    to->release = copy_target_release_node;
    to->private_data = picture->copy_target;
    picture->buffer += from->n_buffers;
    picture->child += from->n_children;
}

static void shape_draw(const struct ArrowSchema *schema,
                       const struct ArrowArray *from, struct picture *picture,
                       struct ArrowArray *to)
{
    struct uva__copy_target_node *node = picture->node++;

    shape_node(from, picture, to);
    node->from = from;
    node->to = to;
    node->buffers = to->buffers;
    node->n_buffers = to->n_buffers;
    node->sizes = picture->size;
    picture->size += to->n_buffers;
    if (uva__format_read(schema->format, &node->layout) != 0)
        UVA__UNREACHABLE("the same format was read to measure the shape");
    for (int64_t i = 0; i < from->n_children; i++) {
        to->children[i] = picture->array++;
        shape_draw(schema->children[i], from->children[i], picture,
                   to->children[i]);
    }
    if (from->dictionary == NULL)
        return;
    to->dictionary = picture->array++;
    shape_draw(schema->dictionary, from->dictionary, picture, to->dictionary);
}

static struct uva__copy_target *shape_block(struct picture *picture)
{
    const size_t size = sizeof(struct uva__copy_target) +
                        picture->nodes * (sizeof(struct uva__copy_target_node) +
                                          sizeof(struct ArrowArray)) +
                        picture->children * sizeof(struct ArrowArray *) +
                        picture->buffers * (sizeof(void *) + sizeof(int64_t));
    struct uva__copy_target *copy_target = calloc(1, size);

    if (copy_target == NULL)
        return NULL;
    picture->copy_target = copy_target;
    picture->node = (struct uva__copy_target_node *)(void *)(copy_target + 1);
    picture->array =
        (struct ArrowArray *)(void *)(picture->node + picture->nodes);
    picture->child =
        (struct ArrowArray **)(void *)(picture->array + picture->nodes);
    picture->buffer =
        (const void **)(void *)(picture->child + picture->children);
    picture->size = (int64_t *)(void *)(picture->buffer + picture->buffers);
    copy_target->count = picture->nodes;
    copy_target->nodes = picture->node;
    return copy_target;
}

int uva__copy_target_new(struct uva__devices *devices,
                         const struct uva__copy_target_memory *memory,
                         ArrowDeviceType device_type, int64_t device_id,
                         const struct ArrowSchema *schema,
                         const struct ArrowDeviceArray *from,
                         struct uva__copy_target **out, struct uva_error *error)
{
    struct picture picture = {0};
    struct uva__copy_target *copy_target;
    int64_t size;
    int code = uva__layout_measure(schema, from, &size, error);

    if (code != 0)
        return code;
    shape_count(&from->array, &picture);
    copy_target = shape_block(&picture);
    if (copy_target == NULL)
        return uva_error_set(error, ENOMEM, "no memory for a copy");
    copy_target->devices = uva__devices_acquire(devices);
    copy_target->memory = *memory;
    (void)uva__copy_allocator_acquire(memory->allocator);
    if (memory->backend != NULL)
        uva__devices_use(devices);
    copy_target->device_type = device_type;
    copy_target->device_id = device_id;
    uva__atomic64_store(&copy_target->refs, picture.nodes);
    shape_draw(schema, &from->array, &picture, &copy_target->root.array);
    *out = copy_target;
    return 0;
}

struct uva__copy_target_node *
uva__copy_target_nodes(struct uva__copy_target *copy_target, size_t *count)
{
    *count = copy_target->count;
    return copy_target->nodes;
}

void uva__copy_target_give(struct uva__copy_target *copy_target,
                           struct ArrowDeviceArray *out)
{
    *out = copy_target->root;
    out->device_type = copy_target->device_type;
    out->device_id = copy_target->device_id;
    copy_target->root.array.release = NULL;
}
