/* SPDX-License-Identifier: Apache-2.0 */
/* The batches that one place takes in: how many it has requested and holds, and
 * how large they are, for its window, the budget of the runtime and the
 * statistics.
 *
 *     request -> come -> hold -> begin -> end -> leave
 *
 * A batch that is held is *done* once its size is final. Until then it counts
 * as much as the largest batch so far, or as its size before the work. A place
 * that does no work calls uva__intake_put() in place of hold, begin and end. A
 * transform writes the numbers itself, as its runs count them under a lock.
 *
 * Pure but for uva__intake_account(). */
#ifndef UVA_STREAM_INTAKE_H
#define UVA_STREAM_INTAKE_H

#include <assert.h>

#include "stream/source.h"
#include "stream/window.h"

struct uva__intake {
    struct uva__window window; /* with its defaults filled in */
    int64_t requested;         /* batches requested that have not come */
    int64_t held;              /* batches that have come and have not left */
    int64_t begun;             /* held batches that are being worked at */
    int64_t done;              /* held batches of which the size is final */
    int64_t bytes;             /* in the batches that are done */
    int64_t undone_bytes;      /* in the held batches that are not done, as far
                                  as known */
    int64_t largest;           /* size of the largest batch so far; -1: no size
                                  is known */
    bool started;              /* a batch has been requested here */
};

/* Begins with a window that is complete. */
void uva__intake_init(struct uva__intake *intake,
                      const struct uva__window *window);

/* Returns how many of `room` more batches fit by their size beside `unknown`
 * batches of unknown size. Until a size is known, as many as bring the number
 * to `first` together with the `unknown` batches. */
int64_t uva__intake_fit(const struct uva__intake *intake, int64_t room,
                        int64_t unknown, int64_t first);

/* Returns how many batches to request above while `demand` are requested here;
 * `first` as above. 0 before the first demand. */
int64_t uva__intake_room(struct uva__intake *intake, int64_t demand,
                         int64_t first);

/* Notes that `demand` batches are requested here. False: none was so far. */
static inline bool uva__intake_start(struct uva__intake *intake, int64_t demand)
{
    intake->started = intake->started || demand > 0;
    return intake->started;
}

/* States the held bytes to the budget and to the statistics of `source`. */
void uva__intake_account(const struct uva__intake *intake,
                         struct uva__source *source);

/* A batch was seen that counts `bytes`. */
static inline void uva__intake_note_size(struct uva__intake *intake,
                                         int64_t bytes)
{
    if (bytes > intake->largest)
        intake->largest = bytes;
}

/* A batch that was requested has come. */
static inline void uva__intake_come(struct uva__intake *intake)
{
    intake->requested--;
    assert(intake->requested >= 0);
}

/* It is held, and will be worked at; `bytes` as far as known, or 0. */
static inline void uva__intake_hold(struct uva__intake *intake, int64_t bytes)
{
    intake->held++;
    intake->undone_bytes += bytes;
    if (bytes > 0)
        uva__intake_note_size(intake, bytes);
}

/* The work has ended, with a batch that counts `bytes`; `before` as when it was
 * held. Without a batch: 0. */
static inline void uva__intake_end(struct uva__intake *intake, int64_t before,
                                   int64_t bytes)
{
    intake->begun--;
    intake->done++;
    intake->undone_bytes -= before;
    intake->bytes += bytes;
    uva__intake_note_size(intake, bytes);
}

/* It is held, and needs no work. */
static inline void uva__intake_put(struct uva__intake *intake, int64_t bytes)
{
    intake->held++;
    intake->done++;
    intake->bytes += bytes;
    uva__intake_note_size(intake, bytes);
}

/* A batch that is done, and counts `bytes`, is passed on or dropped. */
static inline void uva__intake_leave(struct uva__intake *intake, int64_t bytes)
{
    intake->held--;
    intake->done--;
    intake->bytes -= bytes;
}

#endif
