/* SPDX-License-Identifier: Apache-2.0 */
/* The producer of a checked stream, as it was met. Who looks at it again, and
 * when, is checked_producer.h. */
#ifndef UVA_CHECK_CHECKED_PEER_H
#define UVA_CHECK_CHECKED_PEER_H

#include <stddef.h>

#include "core/sync.h"
#include "uvarrow/arrow_abi.h"

/* What the producer said of itself when it was first seen. Written by callbacks
 * alone. */
struct uva__checked_peer {
    struct uva__shared producer; /* borrows: struct ArrowAsyncProducer; NULL
                                    until a callback brought it */
    ArrowDeviceType device_type; /* in on_schema */
    const char *metadata;        /* borrows: its additional_metadata */
    size_t size;                 /* of that; 0: none, or not known */
    uint64_t sum;                /* over that */
    unsigned looks;              /* at large metadata, since */
};

#endif
