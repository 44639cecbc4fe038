/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of which nobody can tell when a device is done with them: they are
 * released when the workers are gone. */
#ifndef UVA_DEVICES_KEPT_H
#define UVA_DEVICES_KEPT_H

#include <stdbool.h>

#include "uvarrow/arrow_abi.h"

/* One of them. From malloc(). */
struct uva__kept {
    struct uva__kept *next;        /* owns */
    struct ArrowDeviceArray array; /* owns */
};

/* All of them; all zeroes is none. The service's alone. */
struct uva__keeper {
    struct uva__kept *first; /* owns */
    bool over;               /* the workers are gone */
};

/* Takes `kept`, while there are workers: who gives it holds them.
 * Thread: service. */
void uva__keeper_take(struct uva__keeper *keeper, struct uva__kept *kept);

/* The workers are gone. Thread: service. */
void uva__keeper_end(struct uva__keeper *keeper);

#endif
