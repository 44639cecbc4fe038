/* SPDX-License-Identifier: Apache-2.0 */
/* The facts about a batch besides its array. */
#ifndef UVA_ARROW_BATCH_INFO_H
#define UVA_ARROW_BATCH_INFO_H

#include "arrow/metadata.h"
#include "uvarrow/arrow_abi.h"

struct uva__batch_info {
    int64_t ordinal;               /* of the batch; -1: not known */
    int64_t bytes;                 /* of its buffers, as far as known */
    struct uva__metadata metadata; /* owns; perhaps in a room beside it */
};

#endif
