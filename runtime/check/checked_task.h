/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of a checked stream. The consumer gets a task of the check for
 * each, with a private_data that names a slot, so that all copies are
 * recognised as one task. */
#ifndef UVA_CHECK_CHECKED_TASK_H
#define UVA_CHECK_CHECKED_TASK_H

#include "check/checked_stream.h"

/* The state of a task. */
enum uva__checked_task_state {
    UVA__CHECKED_IDLE,       /* the slot is free, or its task extracted */
    UVA__CHECKED_HELD,       /* offered, not extracted */
    UVA__CHECKED_EXTRACTING, /* extraction is running */
    UVA__CHECKED_TAKEN_BACK  /* refused unextracted: the producer has it back */
};

/* A slot. Guarded by the stream's lock, except for fields of one call. */
struct uva__checked_task {
    struct uva__checked *stream; /* borrows; constant */
    struct uva__link link;       /* in the slab's lists */
    struct ArrowAsyncTask real;  /* a copy of the producer's */
    struct ArrowAsyncTask shown; /* the consumer's */
    int64_t ordinal;             /* its number in the stream, from 0 */
    enum uva__checked_task_state state;
    uint8_t generation; /* number of this use of the slot */
    char *text;         /* owns: a copy of metadata; reused */
    size_t room;        /* bytes allocated for that */
};

/* Make and free the store of slots. Thread: any one. */
void uva__checked_tasks_init(struct uva__checked *c);
void uva__checked_tasks_fini(struct uva__checked *c);

/* Return a slot, HELD, for a new task. _take_locked returns NULL if all are in
 * use: then _fetch allocates, and returns NULL if there is no memory.
 * Thread: any; _fetch without the lock. */
struct uva__checked_task *uva__checked_task_take_locked(struct uva__checked *c);
struct uva__checked_task *uva__checked_task_fetch(struct uva__checked *c);

/* Fills a slot with `real` (copied), ready for the consumer. `size` bytes of
 * `metadata` are copied to its text, if there is memory. Thread: any. */
void uva__checked_task_fill(struct uva__checked_task *task,
                            const struct ArrowAsyncTask *real,
                            const char *metadata, size_t size, int64_t ordinal);

/* Returns the producer's task of a task of the check, or of its copy; NULL for
 * other tasks. Borrowed, until it is extracted. Thread: its holder. */
const struct ArrowAsyncTask *
uva__checked_task_behind(const struct ArrowAsyncTask *task);

/* Overwrites the memory that the callback passed on, after it returned. Thread:
 * any. */
void uva__checked_task_poison(struct uva__checked_task *task);

/* Takes a refused task back for the producer, unextracted. Returns false if it
 * is extracted, or being so. */
bool uva__checked_task_take_back_locked(struct uva__checked_task *task);

/* Overwrites the producer's own struct, which the producer must not read again.
 */
void uva__checked_task_scribble(const struct uva__checked_task *task,
                                struct ArrowAsyncTask *real);

/* Returns how many are held, and the oldest of those. */
int64_t uva__checked_tasks_held_locked(struct uva__checked *c, int64_t *first);

#endif
