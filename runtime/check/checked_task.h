/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of a checked stream: each is shown to the consumer as one of ours,
 * whose private_data names a slot, so that all its copies are the same task. */
#ifndef UVA_CHECK_CHECKED_TASK_H
#define UVA_CHECK_CHECKED_TASK_H

#include "check/checked_stream.h"

/* How far a task is. */
enum uva__checked_task_state {
    UVA__CHECKED_IDLE,       /* the slot is free, its task extracted */
    UVA__CHECKED_HELD,       /* offered, not extracted */
    UVA__CHECKED_EXTRACTING, /* being extracted */
    UVA__CHECKED_TAKEN_BACK  /* refused unextracted: it is the producer's */
};

/* A slot. Under the stream's lock, but for what belongs to one call. */
struct uva__checked_task {
    struct uva__checked *stream; /* borrows; never changes */
    struct uva__link link;       /* in the slab */
    struct ArrowAsyncTask real;  /* the producer's, copied */
    struct ArrowAsyncTask shown; /* ours, as the consumer sees it */
    int64_t ordinal;             /* of all that came, from 0 */
    enum uva__checked_task_state state;
    uint8_t generation; /* which of its uses this is */
    char *text;         /* owns: a copy of metadata, used again */
    size_t room;        /* bytes in that */
};

/* Makes the empty store of slots, and ends it. Thread: any one. */
void uva__checked_tasks_init(struct uva__checked *c);
void uva__checked_tasks_fini(struct uva__checked *c);

/* Gives a slot, held, for a task that comes; NULL if there is none: then one is
 * fetched, or NULL if there is no memory. Thread: any, without the lock. */
struct uva__checked_task *uva__checked_task_take_locked(struct uva__checked *c);
struct uva__checked_task *uva__checked_task_fetch(struct uva__checked *c);

/* Makes it stand for `real` (borrowed), ready to be shown. `size` bytes of
 * `metadata` are copied to its text, if there is memory. Thread: any. */
void uva__checked_task_fill(struct uva__checked_task *task,
                            const struct ArrowAsyncTask *real,
                            const char *metadata, size_t size, int64_t ordinal);

/* Gives the producer's own task behind one of ours, or behind a copy of it.
 * Borrowed, until it is extracted. Thread: its holder. */
const struct ArrowAsyncTask *
uva__checked_task_behind(const struct ArrowAsyncTask *task);

/* The callback that showed it is over: spoils what it saw. Thread: any. */
void uva__checked_task_spoil(struct uva__checked_task *task);

/* It was refused. False if it is (being) extracted; otherwise it goes back to
 * the producer unextracted. */
bool uva__checked_task_take_back_locked(struct uva__checked_task *task);

/* Scribbles on the producer's own struct, which it must not read again. */
void uva__checked_task_scribble(const struct uva__checked_task *task,
                                struct ArrowAsyncTask *real);

/* How many are held, and which came first of those. */
int64_t uva__checked_tasks_held_locked(struct uva__checked *c, int64_t *first);

#endif
