/* SPDX-License-Identifier: Apache-2.0 */
/* What adapters/reader.c and its lane have in common: the bits of their shared
 * words, and how the one sets off the other. For no other file. */
#ifndef UVA_ADAPTERS_LANE_SIDE_H
#define UVA_ADAPTERS_LANE_SIDE_H

#include "adapters/reader.h"

/* Of reader->news. */
enum { NEWS_SCHEMA = 1, NEWS_END = 2 };

/* Sets the lane off, by whoever turned RUNNING on. */
void uva__lane_side_set_off(struct uva__reader *reader);

/* Marks a cancel where the lane looks before and after each call, and has a
 * call in progress interrupted: true if there is one. Thread: loop. */
bool uva__lane_side_break(struct uva__reader *reader);

/* The jobs: for reader->job and reader->breaker. */
void uva__lane_side_run(struct uva_job *job);
void uva__lane_side_interrupt(struct uva_job *job);

/* Counts. Thread: any. */
void uva__reader_acquire(struct uva__reader *reader);
void uva__reader_release(struct uva__reader *reader);

#endif
