/* SPDX-License-Identifier: Apache-2.0 */
/* Ways in which a batch becomes invalid after it was given: while it is held,
 * or when it is released. Used by the mutants of producers and of streams. */
#ifndef UVA_TCK_ARRAY_SPOIL_H
#define UVA_TCK_ARRAY_SPOIL_H

#include "uvarrow/arrow_abi.h"

enum array_spoil {
    ARRAY_UNREADABLE,       /* its values cannot be read */
    ARRAY_CHANGES,          /* its values change when the next batch is given */
    ARRAY_OTHER,            /* it has the values of the next batch */
    ARRAY_BOUND_TO_ADDRESS, /* its release crashes if the struct was moved */
    ARRAY_ORDERLY,          /* its release crashes unless it is next in order */
    ARRAY_THREADED,         /* its release crashes on another thread */
    ARRAY_SELFISH,          /* its release destroys children that were moved
                               out */
    ARRAY_OVERFLOWS         /* something was written past its end */
};

/* Spoils `out`. Thread: any. */
void array_spoil(struct ArrowDeviceArray *out, enum array_spoil how);

#endif
