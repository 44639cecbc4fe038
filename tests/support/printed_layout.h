/* SPDX-License-Identifier: Apache-2.0 */
/* ArrowAsyncProducer as the Arrow document prints it, with a `release` that no
 * released header has (G-03). For peers built from that text: their reading of
 * our producer must be right, too (AB-09). It is named struct printed_producer,
 * so that both declarations can be used in one file. */
#ifndef UVA_TESTS_PRINTED_LAYOUT_H
#define UVA_TESTS_PRINTED_LAYOUT_H

#include <string.h>

#include "uvarrow/arrow_abi.h"

/* clang-format off */
#define ArrowAsyncProducer printed_producer
    struct ArrowAsyncProducer {
      ArrowDeviceType device_type;

      void (*request)(struct ArrowAsyncProducer* self, int64_t n);
      void (*cancel)(struct ArrowAsyncProducer* self);

      void (*release)(struct ArrowAsyncProducer* self);
      const char* additional_metadata;
      void* private_data;
    };
#undef ArrowAsyncProducer
/* clang-format on */

/* Returns the view of a peer built from the document at the address of
 * `producer`. It copies, because the object has another type; 48 bytes must be
 * readable there. */
static inline struct printed_producer printed_layout_read(const void *producer)
{
    struct printed_producer printed;

    memcpy(&printed, producer, sizeof(printed));
    return printed;
}

/* Returns the additional metadata that such a peer finds. */
static inline const char *printed_layout_metadata(const void *producer)
{
    return printed_layout_read(producer).additional_metadata;
}

#endif
