/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the document's text of ArrowAsyncProducer with the released one
 * (AB-09, G-03). Compiled, not run, by tests/abi/run. */
#include <stddef.h>

#include "support/printed_layout.h"

#ifdef __cplusplus
#define HOLDS(what) static_assert(what, #what)
#else
#define HOLDS(what) _Static_assert(what, #what)
#endif

HOLDS(sizeof(struct printed_producer) == 48);
HOLDS(offsetof(struct printed_producer, device_type) == 0);
HOLDS(offsetof(struct printed_producer, request) == 8);
HOLDS(offsetof(struct printed_producer, cancel) == 16);
HOLDS(offsetof(struct printed_producer, release) == 24);
HOLDS(offsetof(struct printed_producer, additional_metadata) == 32);
HOLDS(offsetof(struct printed_producer, private_data) == 40);

/* The printed object has its release where the released one has
 * additional_metadata, and its additional_metadata where that one has
 * private_data, which belongs to the producer. Its private_data follows the
 * released object. */
HOLDS(offsetof(struct printed_producer, release) ==
      offsetof(struct ArrowAsyncProducer, additional_metadata));
HOLDS(offsetof(struct printed_producer, additional_metadata) ==
      offsetof(struct ArrowAsyncProducer, private_data));
HOLDS(offsetof(struct printed_producer, private_data) ==
      sizeof(struct ArrowAsyncProducer));

extern const char *(*const uva_abi_read)(const void *producer);
const char *(*const uva_abi_read)(const void *producer) =
    printed_layout_metadata;
