/* SPDX-License-Identifier: Apache-2.0 */
/* Batches with one fault each. */
#ifndef UVA_SUPPORT_REFERENCE_SHAPE_H
#define UVA_SUPPORT_REFERENCE_SHAPE_H

#include "support/reference_data.h"

enum reference_shape {
    REFERENCE_CPU_NUMBERED,  /* device_id 0 */
    REFERENCE_RESERVED_SET,  /* a reserved word is 1 */
    REFERENCE_LENGTH_MINUS,  /* a column's length is -1 */
    REFERENCE_OFFSET_MINUS,  /* its offset is -1 */
    REFERENCE_NULLS_MINUS,   /* its null_count is -2 */
    REFERENCE_NULLS_MANY,    /* its null_count exceeds its length */
    REFERENCE_DATA_NONE,     /* its data slot is NULL */
    REFERENCE_BITMAP_NONE,   /* it has nulls and no bitmap */
    REFERENCE_NULLS_UNKNOWN, /* it has no bitmap, and does not count its nulls
                              */
    REFERENCE_UNALIGNED,     /* its data is at an odd address */
    REFERENCE_CHILDREN_NONE, /* children is NULL */
    REFERENCE_CHILD_NONE,    /* the pointer to a child is NULL */
    REFERENCE_EVENT,         /* there is an event */
    REFERENCE_TYPE_OTHER,    /* the device type is CUDA_HOST */
    REFERENCE_BUFFERS_MANY,  /* a column has one buffer too many */
    REFERENCE_CHILDREN_FEW,  /* there is one child less */
    REFERENCE_WORDS_NONE,    /* the dictionary is missing */
    REFERENCE_WORDS_DEAD,    /* the dictionary is released */
    REFERENCE_MARK_STAYS,    /* its release leaves `release` set */
    REFERENCE_CHILDREN_STAY, /* its release does not release the children */
    REFERENCE_CHILD_DEAD,    /* a child is released */
    REFERENCE_TYPE_NONE,     /* the device type is 0 */
    REFERENCE_ID_UNSET,      /* device_id looks as if never written */
    REFERENCE_OFFSETS_FALL,  /* the dictionary's offsets decrease */
    REFERENCE_WORDS_MANY,    /* a plain column has a dictionary */
    REFERENCE_BATCH_MINUS,   /* the batch's own length is -1 */
    REFERENCE_BATCH_BEHIND,  /* the batch's own offset is -1 */
    REFERENCE_BATCH_NULLS,   /* it has a null and no bitmap */
    REFERENCE_BATCH_BARE,    /* its buffers vector is NULL */
    REFERENCE_BATCH_FEW      /* it has no buffers, not even a bitmap slot */
};

/* Puts a fault into a batch of reference_array(). It can still be released. */
void reference_array_misshape(struct ArrowDeviceArray *out,
                              enum reference_shape shape);

#endif
