/* SPDX-License-Identifier: Apache-2.0 */
/* A line for each batch, and one for the end. */
#include "show.h"

#include <inttypes.h>
#include <stdio.h>

#include "readings.h"

int show_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    printf("%" PRId64 " readings from %.1f\n", batch->data.array.length,
           (double)*readings_of(&batch->data) / 10);
    return 0;
}

void show_end(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    printf("%s\n",
           outcome->error.code == 0 ? "the end" : outcome->error.message);
}
