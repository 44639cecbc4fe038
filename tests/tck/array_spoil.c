/* SPDX-License-Identifier: Apache-2.0 */
/* Puts its own release in front of the batch's. */
#include "tck/array_spoil.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A spoilt batch; never freed. */
struct spoilt {
    void (*release)(struct ArrowArray *array);
    void *private_data;
    enum array_spoil how;
    const struct ArrowArray *address;
    int64_t *values;
    int order;
    pthread_t thread;
};

static atomic_int given;
static atomic_int released;
static int64_t *_Atomic last_values;

static void spoilt_release(struct ArrowArray *array)
{
    struct spoilt *own = array->private_data;
    const int order = atomic_fetch_add(&released, 1);

    if ((own->how == ARRAY_BOUND_TO_ADDRESS && array != own->address) ||
        (own->how == ARRAY_ORDERLY && order != own->order) ||
        (own->how == ARRAY_THREADED &&
         !pthread_equal(own->thread, pthread_self())))
        abort();
    if (own->how == ARRAY_SELFISH)
        memset(own->values, 0x5A, sizeof(*own->values));
    array->release = own->release;
    array->private_data = own->private_data;
    array->release(array);
}

static void spoil_release(struct ArrowDeviceArray *out, enum array_spoil how)
{
    struct spoilt *own = calloc(1, sizeof(*own));

    if (own == NULL)
        abort();
    *own = (struct spoilt){
        .release = out->array.release,
        .private_data = out->array.private_data,
        .how = how,
        .address = &out->array,
        .values = (int64_t *)(uintptr_t)out->array.children[0]->buffers[1],
        .order = atomic_fetch_add(&given, 1),
        .thread = pthread_self()};
    out->array.release = spoilt_release;
    out->array.private_data = own;
}

void array_spoil(struct ArrowDeviceArray *out, enum array_spoil how)
{
    struct ArrowArray *n = out->array.children[0];
    int64_t *values = (int64_t *)(uintptr_t)n->buffers[1];
    unsigned char *behind = (unsigned char *)(out + 1);

    switch (how) {
    case ARRAY_UNREADABLE:
        n->buffers[1] = (const void *)(uintptr_t)8;
        break;
    case ARRAY_CHANGES:
        values = atomic_exchange(&last_values, values);
        if (values != NULL)
            values[0] = -1;
        break;
    case ARRAY_OTHER:
        values[0] += n->length;
        break;
    case ARRAY_OVERFLOWS:
        if (*behind == 0xA5)
            *behind = 0;
        break;
    default:
        spoil_release(out, how);
        break;
    }
}
