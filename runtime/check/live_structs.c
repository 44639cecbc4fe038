/* SPDX-License-Identifier: Apache-2.0 */
/* Entries are in a slab, and wait long enough between two uses. A struct keeps
 * the address of an early byte of its entry; the choice of the byte depends on
 * the number of the use. So a copy from an earlier use differs from a copy from
 * this use. */
#include "check/live_structs.h"

#include <assert.h>

#include "base/memory.h"

#define LIVE_STRUCT_MAGIC UINT64_C(0x7561727265646765)
#define LIVE_STRUCT_ALIGN 64 /* alignment of an entry; a power of two */
#define LIVE_STRUCT_USES  LIVE_STRUCT_ALIGN /* uses with a tag of their own */
#define LIVE_STRUCT_QUARANTINE                                                 \
    128 /* entries in quarantine before one is used again */
#define LIVE_STRUCT_STEP   16 /* entries allocated at once */
#define LIVE_STRUCT_STATES 4

static_assert(sizeof(struct uva__live_struct) >= LIVE_STRUCT_USES,
              "every tag points into its entry");

void uva__live_structs_init(struct uva__live_structs *live_structs,
                            struct uva__reporter *reporter,
                            const struct uva__live_structs_ops *ops,
                            const struct uva_allocator *allocator)
{
    const size_t size = sizeof(struct uva__live_struct);

    live_structs->reporter = reporter;
    live_structs->ops = ops;
    live_structs->shared.slab = (struct uva__slab){
        .allocator = allocator,
        .size = (size + LIVE_STRUCT_ALIGN - 1) / LIVE_STRUCT_ALIGN *
                LIVE_STRUCT_ALIGN,
        .align = LIVE_STRUCT_ALIGN,
        .link_offset = offsetof(struct uva__live_struct, link),
        .rest = LIVE_STRUCT_QUARANTINE,
        .step = LIVE_STRUCT_STEP};
}

void uva__live_structs_fini(struct uva__live_structs *live_structs)
{
    uva__slab_fini(&live_structs->shared.slab);
}

/* ---- states ------------------------------------------------------------- */

static uint64_t live_structs_pack(uint64_t use,
                                  enum uva__live_struct_state state)
{
    return use % LIVE_STRUCT_USES * LIVE_STRUCT_STATES + state;
}

static uint64_t live_structs_use(const struct uva__live_struct *entry)
{
    return uva__atomic64_load(&entry->state) / LIVE_STRUCT_STATES;
}

/* ---- references --------------------------------------------------------- */

static void live_structs_hold_locked(struct uva__live_structs *live_structs)
{
    if (live_structs->shared.holds++ == 0)
        (void)live_structs->ops->acquire(live_structs->reporter);
}

/* Also drops the lock. */
static void live_structs_unhold_unlock(struct uva__live_structs *live_structs)
{
    const bool last = --live_structs->shared.holds == 0;

    uva__lock_drop(&live_structs->shared.lock);
    if (last)
        live_structs->ops->release(live_structs->reporter);
}

void uva__live_structs_hold(struct uva__live_structs *live_structs)
{
    uva__lock_take(&live_structs->shared.lock);
    live_structs_hold_locked(live_structs);
    uva__lock_drop(&live_structs->shared.lock);
}

void uva__live_structs_unhold(struct uva__live_structs *live_structs)
{
    uva__lock_take(&live_structs->shared.lock);
    live_structs_unhold_unlock(live_structs);
}

/* ---- opened ------------------------------------------------------------- */

static struct uva__live_struct *
live_structs_take_locked(struct uva__live_structs *live_structs,
                         enum uva__live_struct_kind kind, bool stats)
{
    struct uva__live_struct *entry =
        uva__slab_take(&live_structs->shared.slab, NULL);

    if (entry != NULL && stats) {
        live_structs->shared.live[kind]++;
        live_structs_hold_locked(live_structs);
    }
    return entry;
}

/* Takes an entry, and allocates more if the list is empty. */
static struct uva__live_struct *
live_structs_take(struct uva__live_structs *live_structs,
                  enum uva__live_struct_kind kind, bool stats)
{
    struct uva__live_struct *entry;
    struct slab_chunk *chunk;

    uva__lock_take(&live_structs->shared.lock);
    entry = live_structs_take_locked(live_structs, kind, stats);
    uva__lock_drop(&live_structs->shared.lock);
    if (entry != NULL)
        return entry;
    chunk = uva__slab_fetch(&live_structs->shared.slab);
    if (chunk == NULL)
        return NULL;
    uva__lock_take(&live_structs->shared.lock);
    uva__slab_add(&live_structs->shared.slab, chunk);
    entry = live_structs_take_locked(live_structs, kind, stats);
    uva__lock_drop(&live_structs->shared.lock);
    return entry;
}

struct uva__live_struct *
uva__live_structs_add(struct uva__live_structs *live_structs,
                      enum uva__live_struct_kind kind,
                      enum uva__live_struct_state state)
{
    const bool stats = state != UVA__LIVE_STRUCT_TRAP;
    struct uva__live_struct *entry =
        live_structs_take(live_structs, kind, stats);

    if (entry == NULL)
        return NULL;
    /* Written only before the first use: later, any thread may read it. */
    if (entry->magic != LIVE_STRUCT_MAGIC) {
        entry->reporter = live_structs->reporter;
        entry->magic = LIVE_STRUCT_MAGIC;
    }
    entry->kind = kind;
    entry->parent = entry->child = entry->sibling = NULL;
    entry->is_child = false;
    uva__atomic64_store(&entry->state,
                        live_structs_pack(live_structs_use(entry) + 1, state));
    return entry;
}

void *uva__live_structs_tag(const struct uva__live_struct *entry)
{
    return (char *)(uintptr_t)entry + live_structs_use(entry);
}

/* ---- found and removed -------------------------------------------------- */

struct uva__live_struct *uva__live_structs_find(void *private_data)
{
    struct uva__live_struct *entry;

    if ((uintptr_t)private_data < LIVE_STRUCT_ALIGN)
        return NULL;
    entry = (void *)((char *)private_data -
                     (uintptr_t)private_data % LIVE_STRUCT_ALIGN);
    return entry->magic == LIVE_STRUCT_MAGIC ? entry : NULL;
}

bool uva__live_structs_claim(struct uva__live_struct *entry, void *private_data)
{
    const uint64_t use = (uintptr_t)private_data % LIVE_STRUCT_ALIGN;
    uint64_t expected = live_structs_pack(use, UVA__LIVE_STRUCT_LIVE);

    return uva__atomic64_cas(
        &entry->state, &expected,
        live_structs_pack(use, UVA__LIVE_STRUCT_RELEASING));
}

enum uva__live_struct_state
uva__live_structs_state_of(const struct uva__live_struct *entry)
{
    return uva__atomic64_load(&entry->state) % LIVE_STRUCT_STATES;
}

void uva__live_structs_remove(struct uva__live_structs *live_structs,
                              struct uva__live_struct *entry)
{
    assert(uva__live_structs_state_of(entry) == UVA__LIVE_STRUCT_RELEASING);
    uva__atomic64_store(
        &entry->state,
        live_structs_pack(live_structs_use(entry), UVA__LIVE_STRUCT_FREE));
    uva__lock_take(&live_structs->shared.lock);
    live_structs->shared.live[entry->kind]--;
    uva__slab_put(&live_structs->shared.slab, entry);
    live_structs_unhold_unlock(live_structs);
}

int64_t uva__live_structs_live(struct uva__live_structs *live_structs,
                               enum uva__live_struct_kind kind)
{
    int64_t live;

    uva__lock_take(&live_structs->shared.lock);
    live = live_structs->shared.live[kind];
    uva__lock_drop(&live_structs->shared.lock);
    return live;
}

static void live_structs_count_entry(void *block, void *ctx)
{
    const struct uva__live_struct *entry = block;
    struct uva__live_structs_leftovers *left = ctx;

    if (uva__live_structs_state_of(entry) != UVA__LIVE_STRUCT_LIVE ||
        entry->parent != NULL)
        return;
    if (left->roots == 0 || entry->ordinal < left->first->ordinal)
        left->first = entry;
    left->roots++;
}

void uva__live_structs_count_leftovers(struct uva__live_structs *live_structs,
                                       struct uva__live_structs_leftovers *left)
{
    *left = (struct uva__live_structs_leftovers){.roots = 0};
    uva__slab_each(&live_structs->shared.slab, live_structs_count_entry, left);
    left->structs =
        uva__live_structs_live(live_structs, UVA__LIVE_STRUCT_SCHEMA) +
        uva__live_structs_live(live_structs, UVA__LIVE_STRUCT_ARRAY);
}

/* ---- families ----------------------------------------------------------- */

void uva__live_structs_add_child(struct uva__live_structs *live_structs,
                                 struct uva__live_struct *parent,
                                 struct uva__live_struct *child)
{
    uva__lock_take(&live_structs->shared.lock);
    child->is_child = true;
    child->parent = parent;
    child->sibling = parent->child;
    parent->child = child;
    uva__lock_drop(&live_structs->shared.lock);
}

static void live_structs_unlink_locked(struct uva__live_struct *child)
{
    struct uva__live_struct **at = &child->parent->child;

    while (*at != child)
        at = &(*at)->sibling;
    *at = child->sibling;
    child->parent = NULL;
}

struct uva__live_struct *
uva__live_structs_remove_child(struct uva__live_structs *live_structs,
                               struct uva__live_struct *child, bool *releasing)
{
    struct uva__live_struct *parent;

    uva__lock_take(&live_structs->shared.lock);
    parent = child->parent;
    *releasing = parent != NULL && uva__live_structs_state_of(parent) ==
                                       UVA__LIVE_STRUCT_RELEASING;
    if (parent != NULL)
        live_structs_unlink_locked(child);
    uva__lock_drop(&live_structs->shared.lock);
    return parent;
}

static void live_structs_find_expected_locked(
    struct uva__live_struct *parent,
    bool (*in_place)(const struct uva__live_struct *child))
{
    struct uva__live_struct *child;

    for (child = parent->child; child != NULL; child = child->sibling) {
        child->release_expected = in_place(child);
        if (child->release_expected)
            live_structs_find_expected_locked(child, in_place);
    }
}

void uva__live_structs_find_expected(
    struct uva__live_structs *live_structs, struct uva__live_struct *parent,
    bool (*in_place)(const struct uva__live_struct *child))
{
    uva__lock_take(&live_structs->shared.lock);
    live_structs_find_expected_locked(parent, in_place);
    uva__lock_drop(&live_structs->shared.lock);
}

/* Removes the children of the parent; returns the marked, unreleased ones,
 * linked as siblings. The claim fails only where another thread is releasing
 * one. */
static struct uva__live_struct *
live_structs_take_expected_locked(struct uva__live_struct *parent)
{
    struct uva__live_struct *child = parent->child, *next, *due = NULL;

    parent->child = NULL;
    for (; child != NULL; child = next) {
        next = child->sibling;
        child->parent = NULL;
        if (!child->release_expected ||
            !uva__live_structs_claim(child, uva__live_structs_tag(child)))
            continue;
        child->sibling = due;
        due = child;
    }
    return due;
}

int uva__live_structs_close_children(struct uva__live_structs *live_structs,
                                     struct uva__live_struct *parent)
{
    struct uva__live_struct *due, *next;
    int count = 0;

    uva__lock_take(&live_structs->shared.lock);
    due = live_structs_take_expected_locked(parent);
    uva__lock_drop(&live_structs->shared.lock);
    for (; due != NULL; due = next) {
        next = due->sibling;
        count += 1 + uva__live_structs_close_children(live_structs, due);
        uva__live_structs_remove(live_structs, due);
    }
    return count;
}
