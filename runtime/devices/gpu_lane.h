/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of ours on one device, made at first need, in a context that somebody
 * else has made: one for copies in each direction, a few for arming. Drivers
 * may wait for all that is queued before a copy from memory that is not pinned:
 * to the device nothing is queued behind events that are not complete. */
#ifndef UVA_DEVICES_GPU_LANE_H
#define UVA_DEVICES_GPU_LANE_H

#include "core/sync.h"
#include "devices/gpu_driver.h"

enum {
    UVA__GPU_POSTS = 8,       /* streams for arming; more share them */
    UVA__GPU_ARMED_MOST = 256 /* on one: what is queued is bounded by drivers,
                                 who then block */
};

/* A stream on which callbacks wait. Counted: by its lane and by each of them,
 * for they may come when all else is gone. */
struct uva__gpu_post {
    uva__gpu_stream stream; /* owned by the lane */
    struct uva__word refs;
    struct uva__word armed; /* callbacks yet to come */
};

/* The service's alone. */
struct uva__gpu_lane {
    struct uva__gpu_lane *before; /* owns */
    int64_t device_id;
    struct uva__gpu_place place;
    uva__gpu_stream streams[2]; /* owns: for copies, [1] to the device; NULL:
                                   not yet */
    struct uva__gpu_post *posts[UVA__GPU_POSTS]; /* counts; NULL: not yet */
};

/* Finds or makes the lane of a device. 0, or why there is no way to use it.
 * Thread: service. */
UVA_MUST_CHECK int uva__gpu_lane_find(struct uva__gpu *gpu, int64_t device_id,
                                      struct uva__gpu_lane **out,
                                      struct uva_error *error);

/* Gives the stream for copies in one direction; inside the lane's place.
 * Thread: service. */
UVA_MUST_CHECK int uva__gpu_lane_stream(struct uva__gpu *gpu,
                                        struct uva__gpu_lane *lane,
                                        bool to_device, uva__gpu_stream *out,
                                        struct uva_error *error);

/* Gives a post with room for one more, and counts that; NULL: there is none.
 * Inside the lane's place. Thread: service. */
struct uva__gpu_post *uva__gpu_lane_post(struct uva__gpu *gpu,
                                         struct uva__gpu_lane *lane);

/* Takes it back. Calls nothing of the vendor's. Thread: any. */
void uva__gpu_post_drop(struct uva__gpu_post *post);

/* Frees all lanes. Thread: service. */
void uva__gpu_lanes_free(struct uva__gpu *gpu);

#endif
