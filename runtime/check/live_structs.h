/* SPDX-License-Identifier: Apache-2.0 */
/* The schemas and arrays that passed a check: which of them are live, and
 * whether a struct that is released was. Entries stay at their addresses and
 * wait in a quarantine before they are used again, so that a release through a
 * stale copy of a struct is recognised instead of crashing. shim.h puts them
 * into the structs. */
#ifndef UVA_CHECK_LEDGER_H
#define UVA_CHECK_LEDGER_H

#include "base/slab.h"
#include "base/atomic.h"

struct uva__witness;

/* Functions by which a ledger holds a reference to the reporter that it is part
 * of. A table, as the reporter makes the ledger and so calls it. */
struct uva__ledger_ops {
    /* Adds a reference. Called with the ledger's lock held. Thread: any. */
    struct uva__witness *(*acquire)(struct uva__witness *witness);
    /* Drops it, which may free the ledger. Called without the lock.
     * Thread: any. */
    void (*release)(struct uva__witness *witness);
};

/* The kind of a struct. */
enum uva__ledger_kind { UVA__LEDGER_SCHEMA, UVA__LEDGER_ARRAY };
#define UVA__LEDGER_KINDS 2

/* The state of an entry. */
enum uva__ledger_state {
    UVA__LEDGER_FREE,      /* unused, or released and in quarantine */
    UVA__LEDGER_OUT,       /* its struct is live */
    UVA__LEDGER_RELEASING, /* its release is running */
    UVA__LEDGER_TRAP       /* for a struct that must not be released */
};

/* A struct that passed. Its mark, for `private_data`, is the address of one of
 * the entry's first bytes; the choice of the byte identifies the use of the
 * entry. */
struct uva__ledger_entry {
    uint64_t magic;         /* identifies an entry */
    struct uva__word state; /* a state, and above that the number of the use */
    struct uva__witness *witness; /* borrows; referenced while OUT */
    struct uva__link link;        /* in the slab's lists */
    enum uva__ledger_kind kind;
    int64_t ordinal;       /* of the struct, for reports */
    void (*release)(void); /* the struct's own */
    void *private_data;    /* the struct's own; borrows */
    uint64_t digest;       /* hash of what must not be changed */
    const char *clause;    /* of a trap: the clause that a release breaks */
    void *place;           /* of a child: its address in its parent; borrows */
    bool is_child;         /* has or had a parent */
    bool due; /* of a child: to be released by its parent's release */
    struct uva__ledger_entry *parent; /* of a child, while the parent is live */
    struct uva__ledger_entry *child;  /* the first */
    struct uva__ledger_entry *sibling; /* the parent's next child */
};

/* Part of a reporter. */
struct uva__ledger {
    struct uva__witness *witness;      /* borrows: its owner */
    const struct uva__ledger_ops *ops; /* static */
    struct {
        struct uva__lock lock;
        struct uva__slab slab;           /* memory of the entries */
        int64_t live[UVA__LEDGER_KINDS]; /* live structs of each kind */
        int64_t holds; /* calls of hold, and live structs: together they have
                          one reference to the reporter */
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

/* Adds, and drops, a share in the ledger's one reference to the reporter, so
 * that live structs need none each. Unhold may free the reporter. Thread: any.
 */
void uva__ledger_hold(struct uva__ledger *ledger);
void uva__ledger_unhold(struct uva__ledger *ledger);

/* Returns an entry in `state`, OUT or TRAP; NULL if there is no memory. One
 * that is OUT holds the reporter, a trap does not. Thread: any. */
struct uva__ledger_entry *uva__ledger_open(struct uva__ledger *ledger,
                                           enum uva__ledger_kind kind,
                                           enum uva__ledger_state state);

/* Takes an entry back after its release, which may free the reporter.
 * Thread: any. */
void uva__ledger_close(struct uva__ledger *ledger,
                       struct uva__ledger_entry *entry);

/* Returns the value of `private_data` for this use of the entry. Thread: any.
 */
void *uva__ledger_mark(const struct uva__ledger_entry *entry);

/* Returns the entry that `private_data` points to, of any use; NULL if it
 * points to none. Thread: any. */
struct uva__ledger_entry *uva__ledger_find(void *private_data);

/* Makes a live entry RELEASING, if `private_data` is of this use of it; exactly
 * one caller succeeds. Thread: any. */
bool uva__ledger_claim(struct uva__ledger_entry *entry, void *private_data);

/* Returns the state of an entry. Thread: any. */
enum uva__ledger_state
uva__ledger_state_of(const struct uva__ledger_entry *entry);

/* Returns how many structs of a kind are live. Thread: any. */
int64_t uva__ledger_live(struct uva__ledger *ledger,
                         enum uva__ledger_kind kind);

/* Fills `left` with the structs that are still live. Thread: any, when nothing
 * will be released any more. */
void uva__ledger_count_leftovers(struct uva__ledger *ledger,
                                 struct uva__ledger_leftovers *left);

/* ---- families ----------------------------------------------------------- */

/* Makes `child` one of `parent`. Thread: any. */
void uva__ledger_join(struct uva__ledger *ledger,
                      struct uva__ledger_entry *parent,
                      struct uva__ledger_entry *child);

/* Takes `child` from its parent. Returns that parent, or NULL, and sets
 * `releasing` if the parent is being released. Thread: any. */
struct uva__ledger_entry *uva__ledger_leave(struct uva__ledger *ledger,
                                            struct uva__ledger_entry *child,
                                            bool *releasing);

/* Before the release of a parent: marks its children, and theirs, that it has
 * to release because they are `in_place`. Thread: any. */
void uva__ledger_find_due(
    struct uva__ledger *ledger, struct uva__ledger_entry *parent,
    bool (*in_place)(const struct uva__ledger_entry *child));

/* After the release of a parent: leaves it without children. Returns how many
 * of those that were marked are not released, and closes them, as their structs
 * are gone. Thread: any. */
int uva__ledger_write_off(struct uva__ledger *ledger,
                          struct uva__ledger_entry *parent);

#endif
