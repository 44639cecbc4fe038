/* SPDX-License-Identifier: Apache-2.0 */
/* A batch that waits: a queue or a stage keeps this of it until it goes into a
 * task (stream/task.h). Whatever holds a batch as a task, and not as an array,
 * keeps only the second part of it. */
#ifndef UVA_ARROW_ENTRY_H
#define UVA_ARROW_ENTRY_H

#include "arrow/metadata.h"
#include "uvarrow/arrow_abi.h"

/* The facts about a batch besides its array. */
struct uva__batch_info {
    int64_t ordinal;               /* of the batch; -1: not known */
    int64_t bytes;                 /* of its buffers, as far as known */
    struct uva__metadata metadata; /* owns; perhaps in a room beside it */
};

struct uva__entry {
    struct ArrowDeviceArray array; /* owns, once there is one and code is 0 */
    struct uva__batch_info info;
    int code; /* why there is no array; 0: there is one, or there will be */
};

#endif
