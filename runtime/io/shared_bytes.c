/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes lie after the struct, in one allocation.
 *
 * A store has two lists: any thread puts a block before `returned`, and the one
 * thread that takes blocks takes that list as a whole, so that no block can
 * leave it and come again meanwhile. A block in use counts the store; a kept
 * one does not. */
#include "io/shared_bytes.h"

#include <stdbool.h>
#include <stdlib.h>

enum { ALIGN = 64 };

/* What a store keeps at most, where each block counts KEPT_EACH beside its
 * bytes: less than 32, and less than 31 MiB. */
enum { KEPT_MOST = 32 << 20, KEPT_EACH = 1 << 20, SPARE_LEAST = 4096 };

/* A block of a store. */
struct kept_block {
    struct uva__shared_bytes shared; /* first */
    size_t room;                     /* bytes that fit */
    struct uva__kept_bytes *kept;    /* counts, while it is in use */
    struct kept_block *next;         /* in a list of the store */
};

struct uva__kept_bytes {
    atomic_int users; /* the taker, and blocks in use */
    atomic_bool is_closed;
    atomic_llong charge;                   /* for the blocks in the lists */
    _Atomic(struct kept_block *) returned; /* owns: the last one first */
    struct kept_block *own;                /* owns: the taker's list */
};

/* Allocates a struct of `head` bytes, with `room` bytes after it. */
static void *shared_room(size_t head, size_t room)
{
    return room > SIZE_MAX - head - ALIGN ? NULL : malloc(head + ALIGN + room);
}

/* Sets up a block whose bytes follow a struct of `head` bytes. */
static void shared_init(struct uva__shared_bytes *shared, size_t head,
                        size_t size)
{
    atomic_init(&shared->users, 1);
    shared->size = size;
    shared->bytes = (uint8_t *)shared + head;
    shared->bytes += -(uintptr_t)shared->bytes % ALIGN;
    shared->end = NULL;
}

struct uva__shared_bytes *uva__shared_bytes_new(size_t size)
{
    struct uva__shared_bytes *shared = shared_room(sizeof(*shared), size);

    if (shared != NULL)
        shared_init(shared, sizeof(*shared), size);
    return shared;
}

struct uva__shared_bytes *
uva__shared_bytes_acquire(struct uva__shared_bytes *shared)
{
    (void)atomic_fetch_add_explicit(&shared->users, 1, memory_order_relaxed);
    return shared;
}

void uva__shared_bytes_release(struct uva__shared_bytes *shared)
{
    if (shared == NULL ||
        atomic_fetch_sub_explicit(&shared->users, 1, memory_order_acq_rel) != 1)
        return;
    if (shared->end != NULL)
        shared->end(shared);
    else
        free(shared);
}

/* ---- kept blocks -------------------------------------------------------- */

struct uva__kept_bytes *uva__kept_bytes_new(void)
{
    struct uva__kept_bytes *kept = calloc(1, sizeof(*kept));

    if (kept != NULL)
        atomic_init(&kept->users, 1);
    return kept;
}

/* Frees a list of blocks that are in no store any more. */
static void kept_free_list(struct kept_block *block)
{
    while (block != NULL) {
        struct kept_block *next = block->next;

        free(block);
        block = next;
    }
}

static void kept_release(struct uva__kept_bytes *kept)
{
    if (atomic_fetch_sub_explicit(&kept->users, 1, memory_order_acq_rel) != 1)
        return;
    kept_free_list(atomic_load_explicit(&kept->returned, memory_order_relaxed));
    free(kept);
}

static long long kept_charge(const struct kept_block *block)
{
    return block->room < KEPT_MOST ? (long long)block->room + KEPT_EACH
                                   : KEPT_MOST + 1;
}

/* Counts a block as kept, if there is room for it. */
static bool kept_admit(struct uva__kept_bytes *kept,
                       const struct kept_block *block)
{
    const long long charge = kept_charge(block);

    if (atomic_load_explicit(&kept->is_closed, memory_order_relaxed))
        return false;
    if (atomic_fetch_add_explicit(&kept->charge, charge,
                                  memory_order_relaxed) <= KEPT_MOST - charge)
        return true;
    (void)atomic_fetch_sub_explicit(&kept->charge, charge,
                                    memory_order_relaxed);
    return false;
}

/* The end of a block of a store. */
static void kept_block_end(struct uva__shared_bytes *shared)
{
    struct kept_block *block = (struct kept_block *)shared;
    struct uva__kept_bytes *kept = block->kept;

    if (kept_admit(kept, block)) {
        block->next =
            atomic_load_explicit(&kept->returned, memory_order_relaxed);
        while (!atomic_compare_exchange_weak_explicit(
            &kept->returned, &block->next, block, memory_order_release,
            memory_order_relaxed))
            ;
    } else {
        free(block);
    }
    kept_release(kept);
}

/* What a block may be larger than its bytes: no budget counts it. */
static size_t kept_spare(size_t size)
{
    return size / 4 + SPARE_LEAST;
}

/* Takes a block with that much room, and not far more, out of the taker's list.
 * NULL if there is none. */
static struct kept_block *kept_find(struct uva__kept_bytes *kept, size_t size)
{
    struct kept_block **at = &kept->own, *block;

    while (*at != NULL &&
           ((*at)->room < size || (*at)->room - size > kept_spare(size)))
        at = &(*at)->next;
    block = *at;
    if (block != NULL) {
        *at = block->next;
        (void)atomic_fetch_sub_explicit(&kept->charge, kept_charge(block),
                                        memory_order_relaxed);
    }
    return block;
}

/* Frees a block that does not fit, as later ones may not: so the store follows
 * the sizes of bodies. */
static void kept_drop_one(struct uva__kept_bytes *kept)
{
    struct kept_block *block = kept->own;

    if (block == NULL)
        return;
    kept->own = block->next;
    (void)atomic_fetch_sub_explicit(&kept->charge, kept_charge(block),
                                    memory_order_relaxed);
    free(block);
}

/* Makes a block with room for somewhat larger ones. */
static struct kept_block *kept_new(size_t size)
{
    const size_t room = size > KEPT_MOST / 2 ? size : size + size / 8;
    struct kept_block *block = shared_room(sizeof(*block), room);

    if (block != NULL)
        block->room = room;
    return block;
}

struct uva__shared_bytes *uva__kept_bytes_take(struct uva__kept_bytes *kept,
                                               size_t size)
{
    struct kept_block *block = kept_find(kept, size);

    if (block == NULL) {
        struct kept_block *returned = atomic_exchange_explicit(
            &kept->returned, NULL, memory_order_acquire);
        struct kept_block **last = &returned;

        while (*last != NULL)
            last = &(*last)->next;
        *last = kept->own;
        kept->own = returned;
        block = kept_find(kept, size);
    }
    if (block == NULL) {
        kept_drop_one(kept);
        block = kept_new(size);
    }
    if (block == NULL)
        return NULL;
    shared_init(&block->shared, sizeof(*block), size);
    block->shared.end = kept_block_end;
    block->kept = kept;
    (void)atomic_fetch_add_explicit(&kept->users, 1, memory_order_relaxed);
    return &block->shared;
}

void uva__kept_bytes_close(struct uva__kept_bytes *kept)
{
    if (kept == NULL)
        return;
    atomic_store_explicit(&kept->is_closed, true, memory_order_relaxed);
    kept_free_list(kept->own);
    kept->own = NULL;
    kept_free_list(
        atomic_exchange_explicit(&kept->returned, NULL, memory_order_acquire));
    kept_release(kept);
}
