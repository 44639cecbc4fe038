/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's side of a reader, as source/reader.c uses it. Private to these
 * two files. */
#ifndef UVA_ADAPTERS_LANE_SIDE_H
#define UVA_ADAPTERS_LANE_SIDE_H

#include "source/reader.h"

/* Bits of reader->news. */
enum { NEWS_SCHEMA = 1, NEWS_END = 2 };

/* Starts the worker. Called by the thread that has set RUNNING. Thread: any. */
void uva__lane_side_set_off(struct uva__reader *reader);

/* Marks a cancel, which the worker checks before and after each call, and has a
 * call in progress interrupted: true if there is one. Thread: loop. */
bool uva__lane_side_break(struct uva__reader *reader);

/* The functions of reader->job and reader->breaker. */
void uva__lane_side_run(struct uva_job *job);
void uva__lane_side_interrupt(struct uva_job *job);

/* Counts references; the last release frees. Thread: any. */
void uva__reader_acquire(struct uva__reader *reader);
void uva__reader_release(struct uva__reader *reader);

/* For uva__node_ops: frees it. Thread: any. */
void uva__reader_free(struct uva__node *node);

#endif
