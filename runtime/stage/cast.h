/* SPDX-License-Identifier: Apache-2.0 */
/* A cast as a map, for any stream whose batches are to have a schema that is
 * known before its own one: uva_stream_cast() adds it to one stream, a merge to
 * all but its first. */
#ifndef UVA_STAGE_CAST_H
#define UVA_STAGE_CAST_H

#include "loop/rt.h"
#include "uvarrow/stages.h"

/* The schema that streams are cast to. */
struct uva__cast_target;

/* Makes a target without a schema. NULL without memory. Thread: any. */
struct uva__cast_target *uva__cast_target_new(struct uva__rt *rt);

/* Gives it the schema (copies), once, before that of any stream is known. 0;
 * ENOMEM; EINVAL for a schema that cannot be copied. Thread: builder or loop.
 */
UVA_MUST_CHECK int uva__cast_target_set(struct uva__cast_target *target,
                                        const struct ArrowSchema *schema);

/* Adds a reference, and returns it; NULL is allowed. Thread: any. */
struct uva__cast_target *
uva__cast_target_acquire(struct uva__cast_target *target);

/* Drops a reference; NULL is allowed. Thread: any. */
void uva__cast_target_release(struct uva__cast_target *target);

/* Gives `map` the functions and the ctx of a cast, which has a reference to
 * `target` (borrows): for uva__maps_add(). 0 or ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__cast_map(struct uva__cast_target *target,
                                 struct uva_map *map);

#endif
