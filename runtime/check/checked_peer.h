/* SPDX-License-Identifier: Apache-2.0 */
/* The facts about the producer of a checked stream, as it was first seen.
 * checked_producer.h compares it with them later. */
#ifndef UVA_CHECK_CHECKED_PEER_H
#define UVA_CHECK_CHECKED_PEER_H

#include <stddef.h>

#include "base/atomic.h"
#include "uvarrow/arrow_abi.h"

/* The producer's fields when it was first seen. Written only by callbacks. */
struct uva__checked_peer {
    struct uva__atomic_ptr producer; /* borrows: struct ArrowAsyncProducer; NULL
                                    before the first callback that has it */
    ArrowDeviceType device_type;     /* in on_schema */
    const char *metadata;            /* borrows: its additional_metadata */
    size_t size;                     /* its size; 0: not known */
    uint64_t sum;                    /* checksum of that */
    unsigned
        comparisons; /* comparisons that were due since, of large metadata */
};

#endif
