/* SPDX-License-Identifier: Apache-2.0 */
/* A short list under a lock. The lock is not held while handles are in use:
 * uses are counted. */
#include "device/native_handles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NATIVE_SIZE = 32 }; /* the largest of the structs of handles */

struct uva__native_handle {
    struct uva__native_handle *before; /* owns: the one attached before */
    ArrowDeviceType device_type;
    int64_t device_id;
    int32_t uses; /* in flight; locked */
    bool removed; /* a detach waits for the last use; locked */
    union {
        max_align_t align;
        unsigned char bytes[NATIVE_SIZE];
    } native; /* the struct of handles */
};

/* Returns the link that points to it, or that holds NULL if it is not attached.
 */
static struct uva__native_handle **
native_handles_find_locked(struct uva__native_handles *native_handles,
                           ArrowDeviceType device_type, int64_t device_id)
{
    struct uva__native_handle **at = &native_handles->newest;

    while (*at != NULL &&
           ((*at)->device_type != device_type || (*at)->device_id != device_id))
        at = &(*at)->before;
    return at;
}

int uva__native_handles_add(struct uva__native_handles *native_handles,
                            ArrowDeviceType device_type, int64_t device_id,
                            const void *native, size_t size)
{
    struct uva__native_handle *fresh = calloc(1, sizeof(*fresh)), **at;
    bool taken;

    if (fresh == NULL)
        return ENOMEM;
    fresh->device_type = device_type;
    fresh->device_id = device_id;
    memcpy(fresh->native.bytes, native, size);
    uva__lock_take(&native_handles->lock);
    at = native_handles_find_locked(native_handles, device_type, device_id);
    taken = *at != NULL;
    if (!taken)
        *at = fresh;
    uva__lock_drop(&native_handles->lock);
    if (taken)
        free(fresh);
    return taken ? EBUSY : 0;
}

/* Takes it out of the list; NULL: it is not attached. */
static struct uva__native_handle *
native_handles_unlink(struct uva__native_handles *native_handles,
                      ArrowDeviceType device_type, int64_t device_id)
{
    struct uva__native_handle **at, *found;

    uva__lock_take(&native_handles->lock);
    at = native_handles_find_locked(native_handles, device_type, device_id);
    found = *at;
    if (found != NULL) {
        *at = found->before;
        found->removed = true;
    }
    uva__lock_drop(&native_handles->lock);
    return found;
}

static bool
native_handle_is_used(struct uva__native_handles *native_handles,
                      const struct uva__native_handle *native_handle)
{
    bool used;

    uva__lock_take(&native_handles->lock);
    used = native_handle->uses > 0;
    uva__lock_drop(&native_handles->lock);
    return used;
}

bool uva__native_handles_remove(struct uva__native_handles *native_handles,
                                ArrowDeviceType device_type, int64_t device_id)
{
    struct uva__native_handle *found =
        native_handles_unlink(native_handles, device_type, device_id);
    uint32_t seen;

    if (found == NULL)
        return false;
    seen = uva__futex_now(&native_handles->changed);
    while (native_handle_is_used(native_handles, found)) {
        (void)uva__futex_wait(&native_handles->changed, seen, -1);
        seen = uva__futex_now(&native_handles->changed);
    }
    free(found);
    return true;
}

struct uva__native_handle *
uva__native_handles_use(struct uva__native_handles *native_handles,
                        ArrowDeviceType device_type, int64_t device_id)
{
    struct uva__native_handle *found;

    uva__lock_take(&native_handles->lock);
    found = *native_handles_find_locked(native_handles, device_type, device_id);
    if (found != NULL)
        found->uses++;
    uva__lock_drop(&native_handles->lock);
    return found;
}

void uva__native_handles_drop(struct uva__native_handles *native_handles,
                              struct uva__native_handle *native_handle)
{
    uva__lock_take(&native_handles->lock);
    native_handle->uses--;
    if (native_handle->removed)
        uva__futex_raise(&native_handles->changed);
    uva__lock_drop(&native_handles->lock);
}

const void *
uva__native_handle_native(const struct uva__native_handle *native_handle)
{
    return native_handle->native.bytes;
}

void uva__native_handles_fini(struct uva__native_handles *native_handles)
{
    struct uva__native_handle *native_handle = native_handles->newest, *before;

    for (; native_handle != NULL; native_handle = before) {
        before = native_handle->before;
        free(native_handle);
    }
    native_handles->newest = NULL;
}
