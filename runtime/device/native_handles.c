/* SPDX-License-Identifier: Apache-2.0 */
/* A short list under a lock. The lock is not held while handles are in use:
 * uses are counted. */
#include "device/native_handles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NATIVE_SIZE = 32 }; /* the largest of the structs of handles */

struct uva__attachment {
    struct uva__attachment *before; /* owns: the one attached before */
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
static struct uva__attachment **
attachments_find_locked(struct uva__attachments *attachments,
                        ArrowDeviceType device_type, int64_t device_id)
{
    struct uva__attachment **at = &attachments->newest;

    while (*at != NULL &&
           ((*at)->device_type != device_type || (*at)->device_id != device_id))
        at = &(*at)->before;
    return at;
}

int uva__attachments_add(struct uva__attachments *attachments,
                         ArrowDeviceType device_type, int64_t device_id,
                         const void *native, size_t size)
{
    struct uva__attachment *fresh = calloc(1, sizeof(*fresh)), **at;
    bool taken;

    if (fresh == NULL)
        return ENOMEM;
    fresh->device_type = device_type;
    fresh->device_id = device_id;
    memcpy(fresh->native.bytes, native, size);
    uva__lock_take(&attachments->lock);
    at = attachments_find_locked(attachments, device_type, device_id);
    taken = *at != NULL;
    if (!taken)
        *at = fresh;
    uva__lock_drop(&attachments->lock);
    if (taken)
        free(fresh);
    return taken ? EBUSY : 0;
}

/* Takes it out of the list; NULL: it is not attached. */
static struct uva__attachment *
attachments_unlink(struct uva__attachments *attachments,
                   ArrowDeviceType device_type, int64_t device_id)
{
    struct uva__attachment **at, *found;

    uva__lock_take(&attachments->lock);
    at = attachments_find_locked(attachments, device_type, device_id);
    found = *at;
    if (found != NULL) {
        *at = found->before;
        found->removed = true;
    }
    uva__lock_drop(&attachments->lock);
    return found;
}

static bool attachment_is_used(struct uva__attachments *attachments,
                               const struct uva__attachment *attachment)
{
    bool used;

    uva__lock_take(&attachments->lock);
    used = attachment->uses > 0;
    uva__lock_drop(&attachments->lock);
    return used;
}

bool uva__attachments_remove(struct uva__attachments *attachments,
                             ArrowDeviceType device_type, int64_t device_id)
{
    struct uva__attachment *found =
        attachments_unlink(attachments, device_type, device_id);
    uint32_t seen;

    if (found == NULL)
        return false;
    seen = uva__signal_now(&attachments->changed);
    while (attachment_is_used(attachments, found)) {
        (void)uva__signal_wait(&attachments->changed, seen, -1);
        seen = uva__signal_now(&attachments->changed);
    }
    free(found);
    return true;
}

struct uva__attachment *
uva__attachments_use(struct uva__attachments *attachments,
                     ArrowDeviceType device_type, int64_t device_id)
{
    struct uva__attachment *found;

    uva__lock_take(&attachments->lock);
    found = *attachments_find_locked(attachments, device_type, device_id);
    if (found != NULL)
        found->uses++;
    uva__lock_drop(&attachments->lock);
    return found;
}

void uva__attachments_drop(struct uva__attachments *attachments,
                           struct uva__attachment *attachment)
{
    uva__lock_take(&attachments->lock);
    attachment->uses--;
    if (attachment->removed)
        uva__signal_raise(&attachments->changed);
    uva__lock_drop(&attachments->lock);
}

const void *uva__attachment_native(const struct uva__attachment *attachment)
{
    return attachment->native.bytes;
}

void uva__attachments_fini(struct uva__attachments *attachments)
{
    struct uva__attachment *attachment = attachments->newest, *before;

    for (; attachment != NULL; attachment = before) {
        before = attachment->before;
        free(attachment);
    }
    attachments->newest = NULL;
}
