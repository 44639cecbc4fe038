/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  check -> over: rests -> room is short: freed.
 *
 * On close:    all that rest are freed; what comes later is freed at once. */
#include "check/yard.h"

#include "check/checked_handler.h"
#include "core/list.h"
#include "core/memory.h"

struct uva__yard {
    struct uva_allocator allocator;
    int room; /* for so many */
    struct uva__lock lock;
    struct {
        struct uva__list resting; /* owns: struct uva__checked, the oldest
                                     first */
        int count;                /* of those */
        int64_t refs;             /* who may still touch this */
        bool closed;
    } locked;
};

int uva__yard_new(const struct uva_allocator *allocator, int room,
                  struct uva__yard **out)
{
    struct uva__yard *yard = uva__memory_new(allocator, sizeof(*yard));

    if (yard == NULL)
        return ENOMEM;
    yard->allocator = *allocator;
    yard->room = room;
    yard->locked.refs = 1;
    *out = yard;
    return 0;
}

int uva__yard_check(struct uva__yard *yard,
                    struct ArrowAsyncDeviceStreamHandler *handler,
                    const struct uva_check *how,
                    struct ArrowAsyncDeviceStreamHandler **out,
                    struct uva_error *error)
{
    const int code = uva_check_handler(handler, how, out, error);

    if (code != 0)
        return code;
    uva__lock_take(&yard->lock);
    yard->locked.refs++;
    uva__lock_drop(&yard->lock);
    uva__checked_handler_stream(*out)->yard = yard;
    return 0;
}

static struct uva__checked *yard_pop_locked(struct uva__yard *yard)
{
    struct uva__link *link = uva__list_pop(&yard->locked.resting);

    if (link == NULL)
        return NULL;
    yard->locked.count--;
    return uva__container_of(link, struct uva__checked, link);
}

void uva__yard_rest(struct uva__yard *yard, struct uva__checked *c)
{
    struct uva__checked *leaves = NULL;

    uva__lock_take(&yard->lock);
    uva__list_push(&yard->locked.resting, &c->link);
    yard->locked.count++;
    if (yard->locked.closed || yard->locked.count > yard->room)
        leaves = yard_pop_locked(yard);
    uva__lock_drop(&yard->lock);
    if (leaves != NULL)
        uva__checked_expire(leaves);
}

void uva__yard_shut(struct uva__yard *yard)
{
    struct uva__checked *leaves;

    do {
        uva__lock_take(&yard->lock);
        yard->locked.closed = true;
        leaves = yard_pop_locked(yard);
        uva__lock_drop(&yard->lock);
        if (leaves != NULL)
            uva__checked_expire(leaves);
    } while (leaves != NULL);
}

void uva__yard_close(struct uva__yard *yard)
{
    uva__yard_shut(yard);
    uva__yard_release(yard);
}

void uva__yard_release(struct uva__yard *yard)
{
    const struct uva_allocator allocator = yard->allocator;
    bool last;

    uva__lock_take(&yard->lock);
    last = --yard->locked.refs == 0;
    uva__lock_drop(&yard->lock);
    if (last)
        uva__memory_free(&allocator, yard, sizeof(*yard));
}
