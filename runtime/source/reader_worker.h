/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's side of a reader, as source/reader.c uses it. Private to these
 * two files. */
#ifndef UVA_SOURCE_READER_WORKER_H
#define UVA_SOURCE_READER_WORKER_H

#include "source/reader.h"

/* Bits of reader->events. */
enum { READER_EVENT_SCHEMA = 1, READER_EVENT_END = 2 };

/* Starts the worker. Called by the thread that has set RUNNING. Thread: any. */
void uva__reader_worker_start(struct uva__reader *reader);

/* Marks a cancel, which the worker checks before and after each call, and has a
 * call in progress interrupted: true if there is one. Thread: loop. */
bool uva__reader_worker_cancel(struct uva__reader *reader);

/* The functions of reader->job and reader->interrupter. */
void uva__reader_worker_run(struct uva_job *job);
void uva__reader_worker_interrupt(struct uva_job *job);

/* Drops a reference; the last release frees the reader. Thread: any. */
void uva__reader_release(struct uva__reader *reader);

/* Frees the turn of a source with a limit. Thread: any. */
void uva__reader_free_turn(struct uva__reader *reader, struct uva__rt *rt);

/* For uva__wakeup_ops: frees the reader. Thread: any. */
void uva__reader_free(struct uva__wakeup *wakeup);

/* No one waits for the source any more: the worker's thread may be written off.
 * If the worker waits for a thread while all are busy, an extra thread closes
 * the source. The caller holds a reference to the reader. Thread: any. */
void uva__reader_worker_give_up(struct uva__reader *reader);

#endif
