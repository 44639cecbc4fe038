/* SPDX-License-Identifier: Apache-2.0 */
/* What others may read of a tee, the stage that gives a stream's batches to
 * several streams. */
#ifndef UVA_STAGE_TEE_H
#define UVA_STAGE_TEE_H

#include "stream/source.h"

/* How many batches the branch that `source` belongs to has dropped; 0 for any
 * other source. Thread: loop. */
int64_t uva__tee_dropped(const struct uva__source *source);

#endif
