/* SPDX-License-Identifier: Apache-2.0 */
/* The hook in front of a release, for schemas and arrays; a table for each has
 * what differs.
 *
 * A struct is identified by its `private_data` alone, as it may be moved to any
 * address. Children are hooked where they lie, if at all; each has an entry of
 * its own, as it may be moved out and outlive its parent.
 * Clauses: LC-10. */
#include "check/release_hook.h"

#include <inttypes.h>

#include "check/arrow_node.h"
#include "check/live_structs.h"
#include "check/reporter.h"
#include "arrow/structs.h"

static void shim_release_array(struct ArrowArray *array);
static void shim_release_schema(struct ArrowSchema *schema);

/* The functions and words for a kind of struct. */
struct shim_ops {
    const struct uva__arrow_node_ops *node;
    enum uva__ledger_kind kind;
    const char *noun;
    const char *note; /* for the transcript */
    uva__arrow_node_fn shim;
};

static const struct shim_ops SHIM_ARRAY = {
    .node = &UVA__ARROW_NODE_ARRAY,
    .kind = UVA__LEDGER_ARRAY,
    .noun = "array",
    .note = "release of array %" PRId64,
    .shim = (uva__arrow_node_fn)shim_release_array};

static const struct shim_ops SHIM_SCHEMA = {
    .node = &UVA__ARROW_NODE_SCHEMA,
    .kind = UVA__LEDGER_SCHEMA,
    .noun = "schema",
    .note = "release of schema %" PRId64,
    .shim = (uva__arrow_node_fn)shim_release_schema};

/* ---- put into a struct -------------------------------------------------- */

/* The data of one tree. */
struct shim_tree {
    const struct shim_ops *ops;
    struct uva__witness *witness; /* borrows */
    int64_t ordinal;              /* of the root */
    int64_t nodes;                /* below the root, so far */
};

static struct uva__ledger_entry *shim_put(const struct shim_tree *tree,
                                          void *node)
{
    struct uva__ledger_entry *entry = uva__ledger_open(
        uva__witness_ledger(tree->witness), tree->ops->kind, UVA__LEDGER_OUT);
    const struct uva__arrow_node_ops *ops = tree->ops->node;

    if (entry == NULL)
        return NULL;
    entry->ordinal = tree->ordinal;
    entry->release = uva__arrow_node_release(ops, node);
    entry->private_data = uva__arrow_node_private_data(ops, node);
    entry->digest = ops->digest(node);
    entry->place = node;
    uva__arrow_node_set(ops, node, tree->ops->shim, uva__ledger_mark(entry));
    return entry;
}

static void shim_put_below(struct shim_tree *tree,
                           struct uva__ledger_entry *parent, void *node,
                           int depth);

/* Hooks one node below the root, unless it is released, or hooked already, as
 * it would be in a tree with a circle. Without memory it goes unchecked. */
static void shim_put_child(struct shim_tree *tree,
                           struct uva__ledger_entry *parent, void *node,
                           int depth)
{
    struct uva__ledger_entry *entry;
    struct uva__arrow_node_view view;

    if (node == NULL || depth > UVA__STRUCTS_MAX_DEPTH ||
        ++tree->nodes > UVA__STRUCTS_MAX_NODES)
        return;
    view = tree->ops->node->look(node);
    if (view.release == NULL || view.release == tree->ops->shim)
        return;
    entry = shim_put(tree, node);
    if (entry == NULL)
        return;
    uva__ledger_join(uva__witness_ledger(tree->witness), parent, entry);
    shim_put_below(tree, entry, node, depth);
}

static void shim_put_below(struct shim_tree *tree,
                           struct uva__ledger_entry *parent, void *node,
                           int depth)
{
    const struct uva__arrow_node_view view = tree->ops->node->look(node);

    for (int64_t i = 0; i < view.n_children; i++)
        shim_put_child(tree, parent, tree->ops->node->child(node, i),
                       depth + 1);
    shim_put_child(tree, parent, view.dictionary, depth + 1);
}

static int shim_put_root(const struct shim_ops *ops,
                         struct uva__witness *witness, void *node,
                         int64_t ordinal)
{
    struct shim_tree tree = {
        .ops = ops, .witness = witness, .ordinal = ordinal};
    struct uva__ledger_entry *entry = shim_put(&tree, node);

    if (entry == NULL)
        return ENOMEM;
    if (uva__witness_how(witness)->deep)
        shim_put_below(&tree, entry, node, 0);
    return 0;
}

int uva__shim_array(struct uva__witness *witness, struct ArrowArray *array,
                    int64_t ordinal)
{
    return shim_put_root(&SHIM_ARRAY, witness, array, ordinal);
}

int uva__shim_schema(struct uva__witness *witness, struct ArrowSchema *schema,
                     int64_t ordinal)
{
    return shim_put_root(&SHIM_SCHEMA, witness, schema, ordinal);
}

static void shim_put_trap(const struct shim_ops *ops,
                          struct uva__witness *witness, void *node,
                          const char *clause)
{
    struct uva__ledger_entry *entry;

    if (!uva__witness_how(witness)->keep ||
        uva__arrow_node_release(ops->node, node) == NULL ||
        uva__arrow_node_release(ops->node, node) == ops->shim)
        return;
    entry = uva__ledger_open(uva__witness_ledger(witness), ops->kind,
                             UVA__LEDGER_TRAP);
    if (entry == NULL)
        return;
    entry->clause = clause;
    uva__arrow_node_set(ops->node, node, ops->shim, uva__ledger_mark(entry));
}

void uva__shim_trap_array(struct uva__witness *witness,
                          struct ArrowArray *array, const char *clause)
{
    shim_put_trap(&SHIM_ARRAY, witness, array, clause);
}

void uva__shim_trap_schema(struct uva__witness *witness,
                           struct ArrowSchema *schema, const char *clause)
{
    shim_put_trap(&SHIM_SCHEMA, witness, schema, clause);
}

static bool shim_is_trap(void (*release)(void), void (*shim)(void),
                         void *private_data)
{
    const struct uva__ledger_entry *entry =
        release == shim ? uva__ledger_find(private_data) : NULL;

    return entry != NULL && uva__ledger_state_of(entry) == UVA__LEDGER_TRAP;
}

bool uva__shim_array_is_trap(const struct ArrowArray *array)
{
    return shim_is_trap((uva__arrow_node_fn)array->release, SHIM_ARRAY.shim,
                        array->private_data);
}

bool uva__shim_schema_is_trap(const struct ArrowSchema *schema)
{
    return shim_is_trap((uva__arrow_node_fn)schema->release, SHIM_SCHEMA.shim,
                        schema->private_data);
}

/* ---- called ------------------------------------------------------------- */

/* Whether this is the one release that is expected; otherwise reports it and
 * marks the struct, so that it is not tried again. */
static bool shim_is_due(const struct shim_ops *ops,
                        struct uva__ledger_entry *entry, void *node)
{
    struct uva__witness *witness = entry->witness;

    if (uva__arrow_node_release(ops->node, node) != ops->shim) {
        uva__witness_breach(witness, "DA-13", 0,
                            "release of %s %" PRId64 " is called with a struct "
                            "that does not hold it",
                            ops->noun, entry->ordinal);
        return false;
    }
    if (uva__ledger_claim(entry, uva__arrow_node_private_data(ops->node, node)))
        return true;
    uva__arrow_node_set(ops->node, node, NULL, NULL);
    if (uva__ledger_state_of(entry) == UVA__LEDGER_TRAP)
        uva__witness_breach(witness, entry->clause, UVA_PARTY_CONSUMER,
                            "%s released that a failed call left behind",
                            ops->noun);
    else
        uva__witness_breach(witness, "LC-02", 0,
                            "%s %" PRId64 " is released a second time",
                            ops->noun, entry->ordinal);
    return false;
}

/* Checks that a child is released by its parent, or after it was moved out. */
static void shim_check_parent(const struct shim_ops *ops,
                              struct uva__ledger_entry *entry, void *node)
{
    bool releasing;
    const struct uva__ledger_entry *parent = uva__ledger_leave(
        uva__witness_ledger(entry->witness), entry, &releasing);

    if (parent == NULL || releasing)
        return;
    if (node == entry->place)
        uva__witness_breach(entry->witness, "LC-03", 0,
                            "a child of %s %" PRId64
                            " is released while its parent owns it",
                            ops->noun, entry->ordinal);
    else
        uva__witness_breach(entry->witness, "LC-10", 0,
                            "a child was moved out of %s %" PRId64
                            " and is released before its parent",
                            ops->noun, entry->ordinal);
}

static void shim_check_unchanged(const struct shim_ops *ops,
                                 struct uva__ledger_entry *entry, void *node)
{
    if (ops->node->digest(node) != entry->digest)
        uva__witness_breach(entry->witness, "LC-11", 0,
                            "%s %" PRId64 " was altered before its release",
                            ops->noun, entry->ordinal);
}

/* Whether the struct of a child is where its parent has it. */
static bool shim_is_in_place(const struct uva__ledger_entry *child)
{
    const struct shim_ops *ops =
        child->kind == UVA__LEDGER_ARRAY ? &SHIM_ARRAY : &SHIM_SCHEMA;

    return uva__arrow_node_release(ops->node, child->place) == ops->shim &&
           uva__arrow_node_private_data(ops->node, child->place) ==
               uva__ledger_mark(child);
}

/* Runs the struct's own release, and checks the result. */
static void shim_forward(const struct shim_ops *ops,
                         struct uva__ledger_entry *entry, void *node)
{
    struct uva__ledger *ledger = uva__witness_ledger(entry->witness);
    const bool deep = uva__witness_how(entry->witness)->deep;
    int left = 0;

    if (deep)
        uva__ledger_find_due(ledger, entry, shim_is_in_place);
    uva__arrow_node_set(ops->node, node, entry->release, entry->private_data);
    ops->node->call(node, entry->release);
    if (deep)
        left = uva__ledger_write_off(ledger, entry);
    if (left > 0)
        uva__witness_breach(entry->witness, "LC-05", 0,
                            "the release of %s %" PRId64
                            " left %d live below it",
                            ops->noun, entry->ordinal, left);
    if (uva__arrow_node_release(ops->node, node) == NULL)
        return;
    uva__arrow_node_set(ops->node, node, NULL, NULL);
    uva__witness_breach(entry->witness, "LC-07", 0,
                        "the release of %s %" PRId64 " did not mark it",
                        ops->noun, entry->ordinal);
}

static void shim_release(const struct shim_ops *ops, void *node)
{
    struct uva__ledger_entry *entry =
        uva__ledger_find(uva__arrow_node_private_data(ops->node, node));

    if (entry == NULL) /* and so no reporter either */
        return;
    uva__witness_perturb(entry->witness);
    if (!shim_is_due(ops, entry, node))
        return;
    uva__witness_note(entry->witness, ops->note, entry->ordinal, 0);
    if (entry->is_child)
        shim_check_parent(ops, entry, node);
    shim_check_unchanged(ops, entry, node);
    shim_forward(ops, entry, node);
    uva__ledger_close(uva__witness_ledger(entry->witness), entry);
}

static void shim_release_array(struct ArrowArray *array)
{
    shim_release(&SHIM_ARRAY, array);
}

static void shim_release_schema(struct ArrowSchema *schema)
{
    shim_release(&SHIM_SCHEMA, schema);
}
