/* SPDX-License-Identifier: Apache-2.0 */
/* The maps of a producer: functions that are part of the extraction of its
 * tasks, which stream/task.c runs one after the other. */
#ifndef UVA_STREAM_MAPS_H
#define UVA_STREAM_MAPS_H

#include "stream/producer.h"

/* Adds a map at the end, takes its ctx also on failure. 0 or ENOMEM.
 * Thread: builder. */
UVA_MUST_CHECK int uva__maps_add(struct uva__producer *producer,
                                 const struct uva_map *options);

/* Passes `schema`, that of the source, through the maps, each of which has the
 * outline of its input. A failure becomes the urgent failure of the producer.
 * Thread: loop. */
UVA_MUST_CHECK int uva__maps_open(struct uva__producer *producer,
                                  struct ArrowSchema *schema);

/* Frees the maps. Thread: the last that uses the producer. */
void uva__maps_free(struct uva__producer *producer);

#endif
