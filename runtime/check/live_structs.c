/* SPDX-License-Identifier: Apache-2.0 */
/* Entries are in a slab, and wait long enough between two uses. A struct keeps
 * the address of one of the first bytes of its entry; which byte it is depends
 * on the number of the use. So a copy from an earlier use is distinguished from
 * one of this use. */
#include "check/live_structs.h"

#include <assert.h>

#include "base/memory.h"

#define LEDGER_MAGIC  UINT64_C(0x7561727265646765)
#define LEDGER_ALIGN  64           /* alignment of an entry; a power of two */
#define LEDGER_USES   LEDGER_ALIGN /* uses with a mark of their own */
#define LEDGER_REST   128 /* entries in quarantine before one is used again */
#define LEDGER_STEP   16  /* entries allocated at once */
#define LEDGER_STATES 4

static_assert(sizeof(struct uva__ledger_entry) >= LEDGER_USES,
              "every mark points into its entry");

void uva__ledger_init(struct uva__ledger *ledger, struct uva__witness *witness,
                      const struct uva__ledger_ops *ops,
                      const struct uva_allocator *allocator)
{
    const size_t size = sizeof(struct uva__ledger_entry);

    ledger->witness = witness;
    ledger->ops = ops;
    ledger->shared.slab = (struct uva__slab){
        .allocator = allocator,
        .size = (size + LEDGER_ALIGN - 1) / LEDGER_ALIGN * LEDGER_ALIGN,
        .align = LEDGER_ALIGN,
        .link_offset = offsetof(struct uva__ledger_entry, link),
        .rest = LEDGER_REST,
        .step = LEDGER_STEP};
}

void uva__ledger_fini(struct uva__ledger *ledger)
{
    uva__slab_fini(&ledger->shared.slab);
}

/* ---- states ------------------------------------------------------------- */

static uint64_t ledger_pack(uint64_t use, enum uva__ledger_state state)
{
    return use % LEDGER_USES * LEDGER_STATES + state;
}

static uint64_t ledger_use(const struct uva__ledger_entry *entry)
{
    return uva__word_load(&entry->state) / LEDGER_STATES;
}

/* ---- references --------------------------------------------------------- */

static void ledger_hold_locked(struct uva__ledger *ledger)
{
    if (ledger->shared.holds++ == 0)
        (void)ledger->ops->acquire(ledger->witness);
}

/* Also drops the lock. */
static void ledger_unhold_unlock(struct uva__ledger *ledger)
{
    const bool last = --ledger->shared.holds == 0;

    uva__lock_drop(&ledger->shared.lock);
    if (last)
        ledger->ops->release(ledger->witness);
}

void uva__ledger_hold(struct uva__ledger *ledger)
{
    uva__lock_take(&ledger->shared.lock);
    ledger_hold_locked(ledger);
    uva__lock_drop(&ledger->shared.lock);
}

void uva__ledger_unhold(struct uva__ledger *ledger)
{
    uva__lock_take(&ledger->shared.lock);
    ledger_unhold_unlock(ledger);
}

/* ---- opened ------------------------------------------------------------- */

static struct uva__ledger_entry *ledger_take_locked(struct uva__ledger *ledger,
                                                    enum uva__ledger_kind kind,
                                                    bool counts)
{
    struct uva__ledger_entry *entry =
        uva__slab_take(&ledger->shared.slab, NULL);

    if (entry != NULL && counts) {
        ledger->shared.live[kind]++;
        ledger_hold_locked(ledger);
    }
    return entry;
}

/* Takes an entry, and allocates more if there is none. */
static struct uva__ledger_entry *
ledger_take(struct uva__ledger *ledger, enum uva__ledger_kind kind, bool counts)
{
    struct uva__ledger_entry *entry;
    struct slab_chunk *chunk;

    uva__lock_take(&ledger->shared.lock);
    entry = ledger_take_locked(ledger, kind, counts);
    uva__lock_drop(&ledger->shared.lock);
    if (entry != NULL)
        return entry;
    chunk = uva__slab_fetch(&ledger->shared.slab);
    if (chunk == NULL)
        return NULL;
    uva__lock_take(&ledger->shared.lock);
    uva__slab_add(&ledger->shared.slab, chunk);
    entry = ledger_take_locked(ledger, kind, counts);
    uva__lock_drop(&ledger->shared.lock);
    return entry;
}

struct uva__ledger_entry *uva__ledger_open(struct uva__ledger *ledger,
                                           enum uva__ledger_kind kind,
                                           enum uva__ledger_state state)
{
    const bool counts = state != UVA__LEDGER_TRAP;
    struct uva__ledger_entry *entry = ledger_take(ledger, kind, counts);

    if (entry == NULL)
        return NULL;
    /* Written only before the first use: later, any thread may read it. */
    if (entry->magic != LEDGER_MAGIC) {
        entry->witness = ledger->witness;
        entry->magic = LEDGER_MAGIC;
    }
    entry->kind = kind;
    entry->parent = entry->child = entry->sibling = NULL;
    entry->is_child = false;
    uva__word_store(&entry->state, ledger_pack(ledger_use(entry) + 1, state));
    return entry;
}

void *uva__ledger_mark(const struct uva__ledger_entry *entry)
{
    return (char *)(uintptr_t)entry + ledger_use(entry);
}

/* ---- closed ------------------------------------------------------------- */

struct uva__ledger_entry *uva__ledger_find(void *private_data)
{
    struct uva__ledger_entry *entry;

    if ((uintptr_t)private_data < LEDGER_ALIGN)
        return NULL;
    entry =
        (void *)((char *)private_data - (uintptr_t)private_data % LEDGER_ALIGN);
    return entry->magic == LEDGER_MAGIC ? entry : NULL;
}

bool uva__ledger_claim(struct uva__ledger_entry *entry, void *private_data)
{
    const uint64_t use = (uintptr_t)private_data % LEDGER_ALIGN;
    uint64_t expected = ledger_pack(use, UVA__LEDGER_OUT);

    return uva__word_cas(&entry->state, &expected,
                         ledger_pack(use, UVA__LEDGER_RELEASING));
}

enum uva__ledger_state
uva__ledger_state_of(const struct uva__ledger_entry *entry)
{
    return uva__word_load(&entry->state) % LEDGER_STATES;
}

void uva__ledger_close(struct uva__ledger *ledger,
                       struct uva__ledger_entry *entry)
{
    assert(uva__ledger_state_of(entry) == UVA__LEDGER_RELEASING);
    uva__word_store(&entry->state,
                    ledger_pack(ledger_use(entry), UVA__LEDGER_FREE));
    uva__lock_take(&ledger->shared.lock);
    ledger->shared.live[entry->kind]--;
    uva__slab_put(&ledger->shared.slab, entry);
    ledger_unhold_unlock(ledger);
}

int64_t uva__ledger_live(struct uva__ledger *ledger, enum uva__ledger_kind kind)
{
    int64_t live;

    uva__lock_take(&ledger->shared.lock);
    live = ledger->shared.live[kind];
    uva__lock_drop(&ledger->shared.lock);
    return live;
}

static void ledger_count_entry(void *block, void *ctx)
{
    const struct uva__ledger_entry *entry = block;
    struct uva__ledger_leftovers *left = ctx;

    if (uva__ledger_state_of(entry) != UVA__LEDGER_OUT || entry->parent != NULL)
        return;
    if (left->roots == 0 || entry->ordinal < left->first->ordinal)
        left->first = entry;
    left->roots++;
}

void uva__ledger_count_leftovers(struct uva__ledger *ledger,
                                 struct uva__ledger_leftovers *left)
{
    *left = (struct uva__ledger_leftovers){.roots = 0};
    uva__slab_each(&ledger->shared.slab, ledger_count_entry, left);
    left->structs = uva__ledger_live(ledger, UVA__LEDGER_SCHEMA) +
                    uva__ledger_live(ledger, UVA__LEDGER_ARRAY);
}

/* ---- families ----------------------------------------------------------- */

void uva__ledger_join(struct uva__ledger *ledger,
                      struct uva__ledger_entry *parent,
                      struct uva__ledger_entry *child)
{
    uva__lock_take(&ledger->shared.lock);
    child->is_child = true;
    child->parent = parent;
    child->sibling = parent->child;
    parent->child = child;
    uva__lock_drop(&ledger->shared.lock);
}

static void ledger_unlink_locked(struct uva__ledger_entry *child)
{
    struct uva__ledger_entry **at = &child->parent->child;

    while (*at != child)
        at = &(*at)->sibling;
    *at = child->sibling;
    child->parent = NULL;
}

struct uva__ledger_entry *uva__ledger_leave(struct uva__ledger *ledger,
                                            struct uva__ledger_entry *child,
                                            bool *releasing)
{
    struct uva__ledger_entry *parent;

    uva__lock_take(&ledger->shared.lock);
    parent = child->parent;
    *releasing =
        parent != NULL && uva__ledger_state_of(parent) == UVA__LEDGER_RELEASING;
    if (parent != NULL)
        ledger_unlink_locked(child);
    uva__lock_drop(&ledger->shared.lock);
    return parent;
}

static void
ledger_find_due_locked(struct uva__ledger_entry *parent,
                       bool (*in_place)(const struct uva__ledger_entry *child))
{
    struct uva__ledger_entry *child;

    for (child = parent->child; child != NULL; child = child->sibling) {
        child->due = in_place(child);
        if (child->due)
            ledger_find_due_locked(child, in_place);
    }
}

void uva__ledger_find_due(
    struct uva__ledger *ledger, struct uva__ledger_entry *parent,
    bool (*in_place)(const struct uva__ledger_entry *child))
{
    uva__lock_take(&ledger->shared.lock);
    ledger_find_due_locked(parent, in_place);
    uva__lock_drop(&ledger->shared.lock);
}

/* Leaves the parent without children; returns the marked ones that were not
 * released, linked as siblings. The claim fails only where another thread is
 * releasing one. */
static struct uva__ledger_entry *
ledger_take_due_locked(struct uva__ledger_entry *parent)
{
    struct uva__ledger_entry *child = parent->child, *next, *due = NULL;

    parent->child = NULL;
    for (; child != NULL; child = next) {
        next = child->sibling;
        child->parent = NULL;
        if (!child->due || !uva__ledger_claim(child, uva__ledger_mark(child)))
            continue;
        child->sibling = due;
        due = child;
    }
    return due;
}

int uva__ledger_write_off(struct uva__ledger *ledger,
                          struct uva__ledger_entry *parent)
{
    struct uva__ledger_entry *due, *next;
    int count = 0;

    uva__lock_take(&ledger->shared.lock);
    due = ledger_take_due_locked(parent);
    uva__lock_drop(&ledger->shared.lock);
    for (; due != NULL; due = next) {
        next = due->sibling;
        count += 1 + uva__ledger_write_off(ledger, due);
        uva__ledger_close(ledger, due);
    }
    return count;
}
