/* SPDX-License-Identifier: Apache-2.0 */
/* A cast to a schema as a map, for any stream whose batches are to have it:
 * uva_stream_cast() adds it to a stream that is built. */
#ifndef UVA_STAGE_CAST_H
#define UVA_STAGE_CAST_H

#include "loop/rt.h"
#include "uvarrow/stages.h"

/* Gives `map` the functions and the ctx of a cast to `target` (copies): to be
 * given to uva__maps_add(), which takes the ctx, before the schema of the
 * stream is known. 0; ENOMEM; EINVAL for a schema that cannot be copied.
 * Thread: any. */
UVA_MUST_CHECK int uva__cast_map(struct uva__rt *rt,
                                 const struct ArrowSchema *target,
                                 struct uva_map *map);

#endif
