/* SPDX-License-Identifier: Apache-2.0 */
/* Decides how much to fetch ahead. Requests go out at half a window, not for
 * each batch, so that two threads do not keep waking each other. */
#include "stream/window.h"

#include "base/memory.h"

enum { DEFAULT_BATCHES = 64, DEFAULT_BYTES = 32 << 20, MAX_BATCHES = 1 << 20 };

int uva__window_complete(const struct uva_window *given,
                         struct uva__window *out)
{
    if (given->batches < 0 || given->batches > MAX_BATCHES ||
        given->bytes < 0 || !uva__memory_is_clear(given->reserved, 2))
        return EINVAL;
    out->batches = given->batches == 0 ? DEFAULT_BATCHES : given->batches;
    out->bytes = given->bytes == 0 ? DEFAULT_BYTES : given->bytes;
    out->refill = out->batches / 2;
    return 0;
}

int uva__window_follow(const struct uva_window *given, struct uva__window *out)
{
    const int code = uva__window_complete(given, out);

    if (code == 0 && given->batches == 0)
        out->refill = UVA__WINDOW_FOLLOWS;
    return code;
}

struct uva_window uva__window_given(const struct uva__window *window)
{
    return (struct uva_window){
        .batches = window->refill == UVA__WINDOW_FOLLOWS ? 0 : window->batches,
        .bytes = window->bytes};
}

int64_t uva__window_allowed(const struct uva__window *window, int64_t demand)
{
    if (window->refill == UVA__WINDOW_FOLLOWS)
        return demand < window->batches ? demand : window->batches;
    return demand == 0 ? window->batches - 1 : window->batches;
}

int64_t uva__window_room(const struct uva__window *window, int64_t demand,
                         int64_t used)
{
    const int64_t allowed = uva__window_allowed(window, demand);

    if (used >= allowed)
        return 0;
    if (used > window->refill && window->refill != UVA__WINDOW_FOLLOWS)
        return 0;
    return allowed - used;
}

int64_t uva__window_fit(const struct uva__window *window, int64_t room,
                        int64_t bytes, int64_t asked, int64_t largest)
{
    int64_t fits, all;

    if (largest <= 0)
        return room;
    if (!__builtin_mul_overflow(asked + room, largest, &all) &&
        all <= window->bytes - bytes)
        return room; /* without a division, for most */
    fits = (window->bytes - bytes) / largest - asked;
    if (fits < 1)
        fits = bytes == 0 && asked == 0;
    return fits < room ? fits : room;
}

uint64_t uva__window_ring(int64_t n)
{
    uint64_t size = 1;

    while (size < (uint64_t)n)
        size *= 2;
    return size;
}
