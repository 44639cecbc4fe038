/* SPDX-License-Identifier: Apache-2.0 */
/* The schemas and arrays that passed a check: which of them are live, and
 * whether a struct that is released was. Entries stay at their addresses and
 * wait in a quarantine before they are used again, so that a release through a
 * stale copy of a struct is recognised instead of crashing. release_hook.h puts
 * them into the structs. */
#ifndef UVA_CHECK_LIVE_STRUCTS_H
#define UVA_CHECK_LIVE_STRUCTS_H

#include "base/atomic.h"
#include "base/slab.h"

struct uva__reporter;

/* Functions by which live structs hold a reference to the reporter that it is
 * part of. A table, as the reporter makes the set and so calls it. */
struct uva__live_structs_ops {
    /* Adds a reference. Called with the set's lock held. Thread: any. */
    struct uva__reporter *(*acquire)(struct uva__reporter *reporter);
    /* Drops it, which may free the set. Called without the lock.
     * Thread: any. */
    void (*release)(struct uva__reporter *reporter);
};

/* The kind of a struct. */
enum uva__live_struct_kind { UVA__LIVE_STRUCT_SCHEMA, UVA__LIVE_STRUCT_ARRAY };
#define UVA__LIVE_STRUCT_KINDS 2

/* The state of an entry. */
enum uva__live_struct_state {
    UVA__LIVE_STRUCT_FREE,      /* unused, or released and in quarantine */
    UVA__LIVE_STRUCT_LIVE,      /* its struct is live */
    UVA__LIVE_STRUCT_RELEASING, /* its release is running */
    UVA__LIVE_STRUCT_TRAP       /* output of a failed call: its release is a
                                   breach, to be reported */
};

/* A struct that passed. Its tag, for `private_data`, is the address of an early
 * byte of the entry; the choice of the byte identifies the use of the entry. */
struct uva__live_struct {
    uint64_t magic; /* identifies an entry */
    struct uva__atomic64
        state; /* a state, and above that the number of the use */
    struct uva__reporter *reporter; /* borrows; referenced while LIVE */
    struct uva__link link;          /* in the slab's lists */
    enum uva__live_struct_kind kind;
    int64_t ordinal;       /* of the struct, for reports */
    void (*release)(void); /* the struct's own */
    void *private_data;    /* the struct's own; borrows */
    uint64_t digest;       /* hash of the constant part */
    const char *clause;    /* of a trap: the clause that a release breaks */
    void *place;           /* of a child: its address in its parent; borrows */
    bool is_child;         /* has or had a parent */
    bool
        release_expected; /* of a child: its parent's release must release it */
    struct uva__live_struct *parent;  /* of a child, while the parent is live */
    struct uva__live_struct *child;   /* the first */
    struct uva__live_struct *sibling; /* the parent's next child */
};

/* Part of a reporter. */
struct uva__live_structs {
    struct uva__reporter *reporter;          /* borrows: its owner */
    const struct uva__live_structs_ops *ops; /* static */
    struct {
        struct uva__lock lock;
        struct uva__slab slab;                /* memory of the entries */
        int64_t live[UVA__LIVE_STRUCT_KINDS]; /* live structs of each kind */
        int64_t holds; /* calls of hold, and live structs: together they have
                          one reference to the reporter */
    } shared;
};

/* The structs of a set that were never released. */
struct uva__live_structs_leftovers {
    const struct uva__live_struct *first; /* borrows: the lowest ordinal */
    int64_t roots;                        /* not counting children */
    int64_t structs;                      /* counting children */
};

/* Makes an empty one. `ops` is static, `allocator` is borrowed. Thread: any. */
void uva__live_structs_init(struct uva__live_structs *live_structs,
                            struct uva__reporter *reporter,
                            const struct uva__live_structs_ops *ops,
                            const struct uva_allocator *allocator);

/* Frees all entries. Thread: any. */
void uva__live_structs_fini(struct uva__live_structs *live_structs);

/* Adds, and drops, a share in the set's one reference to the reporter, so
 * that live structs need no reference each. Unhold may free the reporter.
 * Thread: any. */
void uva__live_structs_hold(struct uva__live_structs *live_structs);
void uva__live_structs_unhold(struct uva__live_structs *live_structs);

/* Adds an entry in `state`, LIVE or TRAP; NULL if there is no memory. A LIVE
 * entry keeps the reporter alive, a trap does not. Thread: any. */
struct uva__live_struct *
uva__live_structs_add(struct uva__live_structs *live_structs,
                      enum uva__live_struct_kind kind,
                      enum uva__live_struct_state state);

/* Takes an entry back after its release, which may free the reporter.
 * Thread: any. */
void uva__live_structs_remove(struct uva__live_structs *live_structs,
                              struct uva__live_struct *entry);

/* Returns the value of `private_data` for this use of the entry. Thread: any.
 */
void *uva__live_structs_tag(const struct uva__live_struct *entry);

/* Returns the entry that `private_data` points to, of any use; NULL if it
 * points elsewhere. Thread: any. */
struct uva__live_struct *uva__live_structs_find(void *private_data);

/* Makes a live entry RELEASING, if `private_data` is of this use of it; exactly
 * one caller succeeds. Thread: any. */
bool uva__live_structs_claim(struct uva__live_struct *entry,
                             void *private_data);

/* Returns the state of an entry. Thread: any. */
enum uva__live_struct_state
uva__live_structs_state_of(const struct uva__live_struct *entry);

/* Returns how many structs of a kind are live. Thread: any. */
int64_t uva__live_structs_live(struct uva__live_structs *live_structs,
                               enum uva__live_struct_kind kind);

/* Fills `left` with the structs that are still live. Thread: any, when no
 * struct will be released any more. */
void uva__live_structs_count_leftovers(
    struct uva__live_structs *live_structs,
    struct uva__live_structs_leftovers *left);

/* ---- families ----------------------------------------------------------- */

/* Makes `child` a child of `parent`. Thread: any. */
void uva__live_structs_add_child(struct uva__live_structs *live_structs,
                                 struct uva__live_struct *parent,
                                 struct uva__live_struct *child);

/* Takes `child` from its parent. Returns that parent, or NULL, and sets
 * `releasing` if the parent is being released. Thread: any. */
struct uva__live_struct *
uva__live_structs_remove_child(struct uva__live_structs *live_structs,
                               struct uva__live_struct *child, bool *releasing);

/* Before the release of a parent: marks its children, and theirs, that it has
 * to release because they are `in_place`. Thread: any. */
void uva__live_structs_find_expected(
    struct uva__live_structs *live_structs, struct uva__live_struct *parent,
    bool (*in_place)(const struct uva__live_struct *child));

/* After the release of a parent: leaves it without children. Returns how many
 * of the marked ones are not released, and removes them, as their structs are
 * gone. Thread: any. */
int uva__live_structs_close_children(struct uva__live_structs *live_structs,
                                     struct uva__live_struct *parent);

#endif
