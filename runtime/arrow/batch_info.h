/* SPDX-License-Identifier: Apache-2.0 */
/* The facts about a batch besides its array, and a batch that is in no task
 * (stream/task.h) so far. */
#ifndef UVA_ARROW_BATCH_INFO_H
#define UVA_ARROW_BATCH_INFO_H

#include "arrow/metadata.h"
#include "uvarrow/arrow_abi.h"

/* The facts about a batch besides its array. */
struct uva__batch_info {
    int64_t ordinal;               /* of the batch; -1: not known */
    int64_t bytes;                 /* of its buffers, as far as known */
    struct uva__metadata metadata; /* owns; perhaps in a room beside it */
};

/* A batch that is in no task. */
struct uva__loose_batch {
    struct ArrowDeviceArray array; /* owns, once there is one and code is 0 */
    struct uva__batch_info info;
    int code; /* why there is no array; 0: there is one, or there will be */
};

#endif
