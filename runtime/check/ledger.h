/* SPDX-License-Identifier: Apache-2.0 */
/* Account of the schemas and arrays that pass a checker: which are out, and
 * whether what comes back was. Its entries are type-stable and rest before they
 * are used again, so that a release by a stale copy of a struct is recognised
 * and not a crash. The structs themselves are shim.h. */
#ifndef UVA_CHECK_LEDGER_H
#define UVA_CHECK_LEDGER_H

#include "core/slab.h"
#include "core/sync.h"

struct uva__witness;

/* References of a ledger to the witness that it is part of: a ledger lies below
 * its witness and does not call it by name. */
struct uva__ledger_ops {
    /* Adds a reference. Called with the ledger's lock held. Thread: any. */
    struct uva__witness *(*acquire)(struct uva__witness *witness);
    /* Drops it, which may free the ledger. Called without the lock.
     * Thread: any. */
    void (*release)(struct uva__witness *witness);
};

/* What is kept account of. */
enum uva__ledger_kind { UVA__LEDGER_SCHEMA, UVA__LEDGER_ARRAY };
#define UVA__LEDGER_KINDS 2

/* How far an entry is. */
enum uva__ledger_state {
    UVA__LEDGER_FREE,      /* nothing has it; or it is released, and rests */
    UVA__LEDGER_OUT,       /* its struct is live, somewhere */
    UVA__LEDGER_RELEASING, /* its release runs */
    UVA__LEDGER_TRAP       /* stands for a struct that nobody may release */
};

/* One struct that passed. Its mark is the address of one of the first bytes:
 * which one tells which use of the entry is meant. */
struct uva__ledger_entry {
    uint64_t magic;         /* tells it from what is no entry */
    struct uva__word state; /* a state, and above it the number of the use */
    struct uva__witness *witness; /* borrows; counted while out */
    struct uva__link link;        /* in the slab */
    enum uva__ledger_kind kind;
    int64_t ordinal;       /* of the struct, to tell which */
    void (*release)(void); /* the struct's own */
    void *private_data;    /* the struct's own; borrows */
    uint64_t digest;       /* of what may not be changed */
    const char *clause;    /* of a trap: what its use breaks */
    void *place;           /* of a child: where its parent has it; borrows */
    bool is_child;         /* it has or had a parent */
    bool due; /* of a child: its parent's release has to release it */
    struct uva__ledger_entry *parent;  /* of a child, while that is out */
    struct uva__ledger_entry *child;   /* the first */
    struct uva__ledger_entry *sibling; /* the next child of the parent */
};

/* Part of a witness. */
struct uva__ledger {
    struct uva__witness *witness;      /* borrows: its owner */
    const struct uva__ledger_ops *ops; /* static */
    struct {
        struct uva__lock lock;
        struct uva__slab slab;           /* of the entries */
        int64_t live[UVA__LEDGER_KINDS]; /* out, of each kind */
        int64_t holds; /* of who holds it, and of all that is out: together
                          they are one count on the witness */
    } shared;
};

/* The structs of a ledger that were never released. */
struct uva__ledger_leftovers {
    const struct uva__ledger_entry *first; /* borrows: the lowest ordinal */
    int64_t roots;                         /* not counting children */
    int64_t structs;                       /* counting children */
};

/* Makes an empty one. `ops` is static, `allocator` is borrowed. Thread: any. */
void uva__ledger_init(struct uva__ledger *ledger, struct uva__witness *witness,
                      const struct uva__ledger_ops *ops,
                      const struct uva_allocator *allocator);

/* Frees all entries. Thread: any. */
void uva__ledger_fini(struct uva__ledger *ledger);

/* Counts on the witness, as all that is out does: for who opens one entry after
 * the other, and spares each its count. Unhold may free the witness.
 * Thread: any. */
void uva__ledger_hold(struct uva__ledger *ledger);
void uva__ledger_unhold(struct uva__ledger *ledger);

/* Gives an entry, out, which counts on the witness; NULL if there is no memory.
 * A trap does not count. Thread: any. */
struct uva__ledger_entry *uva__ledger_open(struct uva__ledger *ledger,
                                           enum uva__ledger_kind kind,
                                           enum uva__ledger_state state);

/* Takes one back after its release, and uncounts. Thread: any. */
void uva__ledger_close(struct uva__ledger *ledger,
                       struct uva__ledger_entry *entry);

/* What to put into `private_data` for this use of the entry. Thread: any. */
void *uva__ledger_mark(const struct uva__ledger_entry *entry);

/* The entry that `private_data` leads to, of whichever use; NULL if to none.
 * Thread: any. */
struct uva__ledger_entry *uva__ledger_find(void *private_data);

/* Turns an entry that is out to releasing, if `private_data` means this use of
 * it; exactly one caller can. Thread: any. */
bool uva__ledger_claim(struct uva__ledger_entry *entry, void *private_data);

/* How far the entry is. Thread: any. */
enum uva__ledger_state
uva__ledger_state_of(const struct uva__ledger_entry *entry);

/* How many of a kind are out. Thread: any. */
int64_t uva__ledger_live(struct uva__ledger *ledger,
                         enum uva__ledger_kind kind);

/* Fills `left` with the structs that are still out. Thread: any, when nothing
 * will be released any more. */
void uva__ledger_count_leftovers(struct uva__ledger *ledger,
                                 struct uva__ledger_leftovers *left);

/* ---- families ----------------------------------------------------------- */

/* Makes `child` one of `parent`. Thread: any. */
void uva__ledger_join(struct uva__ledger *ledger,
                      struct uva__ledger_entry *parent,
                      struct uva__ledger_entry *child);

/* Makes it nobody's. Gives the parent it had, or NULL, and in `releasing`
 * whether that is being released. Thread: any. */
struct uva__ledger_entry *uva__ledger_leave(struct uva__ledger *ledger,
                                            struct uva__ledger_entry *child,
                                            bool *releasing);

/* Before the release of a parent: notes which children, and theirs, it has to
 * release, by what `in_place` says. Thread: any. */
void uva__ledger_find_due(
    struct uva__ledger *ledger, struct uva__ledger_entry *parent,
    bool (*in_place)(const struct uva__ledger_entry *child));

/* After it: leaves the parent without children. Gives how many of those that
 * were due are not released, and closes them: their structs are gone.
 * Thread: any. */
int uva__ledger_write_off(struct uva__ledger *ledger,
                          struct uva__ledger_entry *parent);

#endif
