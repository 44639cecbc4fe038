/* SPDX-License-Identifier: Apache-2.0 */
/* Overwritten members do not affect the release, which uses the batch's own
 * copies. */
#include "support/reference_shape.h"

#include <stddef.h>

static void misshape_device(struct ArrowDeviceArray *out,
                            enum reference_shape shape)
{
    switch (shape) {
    case REFERENCE_CPU_NUMBERED:
        out->device_id = 0;
        break;
    case REFERENCE_RESERVED_SET:
        out->reserved[1] = 1;
        break;
    case REFERENCE_EVENT:
        out->sync_event = out;
        break;
    case REFERENCE_ID_UNSET:
        out->device_id = (int64_t)0xA5A5A5A5A5A5A5A5;
        break;
    case REFERENCE_TYPE_NONE:
        out->device_type = 0;
        break;
    case REFERENCE_TYPE_OTHER:
        out->device_type = ARROW_DEVICE_CUDA_HOST;
        break;
    default:
        break;
    }
}

static void misshape_column(struct ArrowArray *column,
                            enum reference_shape shape)
{
    switch (shape) {
    case REFERENCE_LENGTH_MINUS:
        column->length = -1;
        break;
    case REFERENCE_OFFSET_MINUS:
        column->offset = -1;
        break;
    case REFERENCE_NULLS_MINUS:
        column->null_count = -2;
        break;
    case REFERENCE_NULLS_MANY:
        column->null_count = column->length + 1;
        break;
    case REFERENCE_DATA_NONE:
        column->buffers[1] = NULL;
        break;
    case REFERENCE_BITMAP_NONE:
        column->null_count = 1;
        break;
    case REFERENCE_NULLS_UNKNOWN:
        column->null_count = -1;
        break;
    case REFERENCE_UNALIGNED:
        column->buffers[1] = (const char *)column->buffers[1] + 1;
        break;
    case REFERENCE_BUFFERS_MANY:
        column->n_buffers = 3;
        break;
    default:
        break;
    }
}

static const int32_t FALLING[REFERENCE_ROWS + 1] = {9, 6, 3, 0};

static void misshape_batch(struct ArrowArray *batch, enum reference_shape shape)
{
    switch (shape) {
    case REFERENCE_CHILDREN_NONE:
        batch->children = NULL;
        break;
    case REFERENCE_CHILD_NONE:
        batch->children[0] = NULL;
        break;
    case REFERENCE_CHILD_DEAD:
        batch->children[0]->release(batch->children[0]);
        break;
    case REFERENCE_OFFSETS_FALL:
        batch->children[1]->dictionary->buffers[1] = FALLING;
        break;
    case REFERENCE_WORDS_MANY:
        batch->children[0]->dictionary = batch->children[1]->dictionary;
        break;
    case REFERENCE_CHILDREN_FEW:
        batch->n_children = 1;
        break;
    case REFERENCE_WORDS_NONE:
        batch->children[1]->dictionary = NULL;
        break;
    case REFERENCE_WORDS_DEAD:
        batch->children[1]->dictionary->release(batch->children[1]->dictionary);
        break;
    case REFERENCE_MARK_STAYS:
        reference_array_unmarked(batch);
        break;
    case REFERENCE_CHILDREN_STAY:
        reference_array_childless(batch);
        break;
    default:
        break;
    }
}

/* Changes the numbers and buffers of the batch itself. */
static void misshape_root(struct ArrowArray *batch, enum reference_shape shape)
{
    switch (shape) {
    case REFERENCE_BATCH_MINUS:
        batch->length = -1;
        break;
    case REFERENCE_BATCH_BEHIND:
        batch->offset = -1;
        break;
    case REFERENCE_BATCH_NULLS:
        batch->null_count = 1;
        break;
    case REFERENCE_BATCH_BARE:
        batch->buffers = NULL;
        break;
    case REFERENCE_BATCH_FEW:
        batch->n_buffers = 0;
        break;
    default:
        break;
    }
}

void reference_array_misshape(struct ArrowDeviceArray *out,
                              enum reference_shape shape)
{
    misshape_device(out, shape);
    misshape_column(out->array.children[0], shape);
    misshape_batch(&out->array, shape);
    misshape_root(&out->array, shape);
}
