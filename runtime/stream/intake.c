/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the batches that a place takes in. */
#include "stream/intake.h"

void uva__intake_init(struct uva__intake *intake,
                      const struct uva__window *window)
{
    *intake = (struct uva__intake){.window = *window, .largest = -1};
}

int64_t uva__intake_fit(const struct uva__intake *in, int64_t room,
                        int64_t unknown, int64_t first)
{
    if (in->largest >= 0)
        return uva__window_fit(&in->window, room, in->bytes, unknown,
                               in->largest);
    if (room > first - unknown)
        room = first - unknown;
    return room > 0 ? room : 0;
}

int64_t uva__intake_room(struct uva__intake *in, int64_t demand, int64_t first)
{
    const int64_t under_way = in->held + in->requested;
    int64_t n;

    if (!uva__intake_start(in, demand))
        return 0;
    n = uva__window_room(&in->window, demand, under_way);
    if (n > 0)
        n = uva__intake_fit(in, n, under_way - in->done, first);
    return n;
}

void uva__intake_account(const struct uva__intake *in,
                         struct uva__source *source)
{
    int64_t undone = in->begun * in->largest;

    if (undone < in->undone_bytes)
        undone = in->undone_bytes;
    uva__share_hold(&source->share, in->held, in->bytes + undone);
    uva__meter_hold(source->meter, in->held, in->bytes + in->undone_bytes);
}
