/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's functions run with their device current, where the vendor has
 * such a thing, and get the stream that the memory is ordered by.
 *
 * Failures:    entering the device; the caller's function. Memory is given back
 *              even if the device cannot be entered: it may have failed.
 */
#include "device/copy_allocator.h"

#include <errno.h>
#include <stdlib.h>

#include "device/driver_gate.h"

struct uva__copy_allocator {
    struct uva__atomic64 refs;
    struct uva_device_allocator given; /* owns its ctx */
};

struct uva__copy_allocator *
uva__copy_allocator_new(const struct uva_device_allocator *given)
{
    struct uva__copy_allocator *allocator = calloc(1, sizeof(*allocator));

    if (allocator == NULL)
        return NULL;
    uva__atomic64_store(&allocator->refs, 1);
    allocator->given = *given;
    return allocator;
}

struct uva__copy_allocator *
uva__copy_allocator_acquire(struct uva__copy_allocator *allocator)
{
    if (allocator != NULL)
        uva__atomic64_add(&allocator->refs, 1);
    return allocator;
}

/* Once the process exits no memory is given back, so that it is still in use.
 */
void uva__copy_allocator_release(struct uva__copy_allocator *allocator)
{
    if (allocator == NULL || uva__atomic64_sub(&allocator->refs, 1) != 1)
        return;
    if (allocator->given.free_ctx != NULL && uva__driver_gate_enter()) {
        allocator->given.free_ctx(allocator->given.ctx);
        uva__driver_gate_leave();
    }
    free(allocator);
}

/* Makes the device current, and gives the stream of copies to it. */
static int place_enter(const struct uva__copy_place *place, void **stream,
                       struct uva_error *error)
{
    const struct uva__vendor_info *info = place->backend->vendor_info;
    int code = 0;

    *stream = NULL;
    if (info != NULL && info->begin_use != NULL)
        code = info->begin_use(place->backend->state, place->device_id, stream,
                               error);
    if (place->device_stream != NULL)
        *stream = place->device_stream;
    return code;
}

static void place_leave(const struct uva__copy_place *place)
{
    const struct uva__vendor_info *info = place->backend->vendor_info;

    if (info != NULL && info->begin_use != NULL)
        info->end_use(place->backend->state, place->device_id);
}

void *uva__copy_allocator_take(struct uva__copy_allocator *allocator,
                               const struct uva__copy_place *place,
                               size_t size_bytes, struct uva_error *error)
{
    const struct uva_device_allocator *given = &allocator->given;
    void *memory, *stream;

    if (place_enter(place, &stream, error) != 0)
        return NULL;
    memory = given->alloc(given->ctx, place->device_type, place->device_id,
                          size_bytes, stream);
    place_leave(place);
    if (memory == NULL)
        (void)uva_error_set(error, ENOMEM,
                            "the allocator of uva_transfer gave no memory");
    return memory;
}

void uva__copy_allocator_give(struct uva__copy_allocator *allocator,
                              const struct uva__copy_place *place, void *memory,
                              size_t size_bytes)
{
    const struct uva_device_allocator *given = &allocator->given;
    struct uva_error none;
    void *stream;
    const bool inside = place_enter(place, &stream, &none) == 0;

    given->free(given->ctx, place->device_type, place->device_id, memory,
                size_bytes, stream);
    if (inside)
        place_leave(place);
}
