/* SPDX-License-Identifier: Apache-2.0 */
/* A list, in no order. */
#include "devices/kept.h"

#include <assert.h>
#include <stdlib.h>

#include "uvarrow/arrow.h"

void uva__keeper_take(struct uva__keeper *keeper, struct uva__kept *kept)
{
    assert(!keeper->over);
    kept->next = keeper->first;
    keeper->first = kept;
}

void uva__keeper_end(struct uva__keeper *keeper)
{
    struct uva__kept *kept = keeper->first, *next;

    keeper->over = true;
    keeper->first = NULL;
    for (; kept != NULL; kept = next) {
        next = kept->next;
        uva_array_release(&kept->array);
        free(kept);
    }
}
