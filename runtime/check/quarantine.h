/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps blocks that are no longer in use, so that a call that comes too late
 * finds memory of the checker and can be reported. A quarantine has room for a
 * number of blocks; each one beyond that expires the oldest, and close expires
 * them all. It is part of its owner, or made by new and counted. */
#ifndef UVA_CHECK_QUARANTINE_H
#define UVA_CHECK_QUARANTINE_H

#include <stdint.h>

#include "base/atomic.h"
#include "base/list.h"
#include "uvarrow/base.h"

/* Part of a block; its head, if the quarantine frees the block itself. */
struct uva__quarantined {
    struct uva__link link;
    size_t size; /* of the whole block */
};

/* Ends a block that leaves the quarantine. Called with no lock held, by put or
 * close. Thread: any. */
typedef void uva__quarantine_expire_fn(struct uva__quarantined *block);

struct uva__quarantine {
    struct uva_allocator allocator;    /* of the blocks; by new, of this too */
    uva__quarantine_expire_fn *expire; /* NULL: frees the block */
    size_t capacity;                   /* blocks that it keeps */
    struct uva__lock lock;
    struct {
        struct uva__list blocks; /* owns: the oldest first */
        size_t count;            /* of those */
        int64_t refs;            /* references, if made by new */
        bool closed;             /* it keeps no blocks any more */
    } locked;
};

/* ---- part of its owner -------------------------------------------------- */

/* A capacity without a limit. */
#define UVA__QUARANTINE_UNLIMITED SIZE_MAX

/* Makes an empty one in cleared memory. Each block begins with its struct
 * uva__quarantined and is freed by `allocator` (copied). The owner ends it by
 * close. Thread: any. */
void uva__quarantine_init(struct uva__quarantine *quarantine,
                          const struct uva_allocator *allocator,
                          size_t capacity);

/* ---- counted ------------------------------------------------------------ */

/* Makes one with one reference, for `capacity` blocks, which `expire` ends.
 * `allocator` is copied; both of its functions are set. Returns 0, or ENOMEM.
 * Thread: any. */
UVA_MUST_CHECK int uva__quarantine_new(const struct uva_allocator *allocator,
                                       size_t capacity,
                                       uva__quarantine_expire_fn *expire,
                                       struct uva__quarantine **out);

/* Adds a reference, and drops one; the last frees it. Thread: any. */
void uva__quarantine_acquire(struct uva__quarantine *quarantine);
void uva__quarantine_release(struct uva__quarantine *quarantine);

/* ---- blocks ------------------------------------------------------------- */

/* Allocates `size` bytes that are in quarantine from the start, for memory that
 * lasts as long as the quarantine. Returns NULL if there is no memory.
 * Thread: any. */
void *uva__quarantine_alloc(struct uva__quarantine *quarantine, size_t size);

/* Takes over a block of `size` bytes; expires the oldest block if there is no
 * room, or this one after close. Thread: any, with no lock held. */
void uva__quarantine_put(struct uva__quarantine *quarantine,
                         struct uva__quarantined *block, size_t size);

/* Moves all blocks of `from` to `to`, which has room without a limit and the
 * same allocator. Thread: any, when no one else uses `from`. */
void uva__quarantine_move(struct uva__quarantine *from,
                          struct uva__quarantine *to);

/* Expires all blocks; later ones expire at once. Idempotent. Thread: any, with
 * no lock held. */
void uva__quarantine_close(struct uva__quarantine *quarantine);

#endif
