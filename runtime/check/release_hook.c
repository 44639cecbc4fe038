/* SPDX-License-Identifier: Apache-2.0 */
/* The hook in front of a release, for schemas and arrays; a table for each has
 * the differences.
 *
 * A struct is identified by its `private_data` alone, as it may be moved to any
 * address. Children are hooked where they lie, if at all; each has its own
 * entry, as it may be moved out and outlive its parent.
 * Clauses: LC-10. */
#include "check/release_hook.h"

#include <inttypes.h>

#include "arrow/structs.h"
#include "check/arrow_node.h"
#include "check/live_structs.h"
#include "check/reporter.h"

static void hook_release_array(struct ArrowArray *array);
static void hook_release_schema(struct ArrowSchema *schema);

/* The functions and words for a kind of struct. */
struct hook_ops {
    const struct uva__arrow_node_ops *node;
    enum uva__live_struct_kind kind;
    const char *noun;
    const char *note; /* for the transcript */
    uva__arrow_node_fn hook;
};

static const struct hook_ops HOOK_ARRAY = {
    .node = &UVA__ARROW_NODE_ARRAY,
    .kind = UVA__LIVE_STRUCT_ARRAY,
    .noun = "array",
    .note = "release of array %" PRId64,
    .hook = (uva__arrow_node_fn)hook_release_array};

static const struct hook_ops HOOK_SCHEMA = {
    .node = &UVA__ARROW_NODE_SCHEMA,
    .kind = UVA__LIVE_STRUCT_SCHEMA,
    .noun = "schema",
    .note = "release of schema %" PRId64,
    .hook = (uva__arrow_node_fn)hook_release_schema};

/* ---- put into a struct -------------------------------------------------- */

/* The data of one tree. */
struct hook_tree {
    const struct hook_ops *ops;
    struct uva__reporter *reporter; /* borrows */
    int64_t ordinal;                /* of the root */
    int64_t nodes;                  /* below the root, so far */
};

static struct uva__live_struct *hook_put(const struct hook_tree *tree,
                                         void *node)
{
    struct uva__live_struct *entry =
        uva__live_structs_add(uva__reporter_live_structs(tree->reporter),
                              tree->ops->kind, UVA__LIVE_STRUCT_LIVE);
    const struct uva__arrow_node_ops *ops = tree->ops->node;

    if (entry == NULL)
        return NULL;
    entry->ordinal = tree->ordinal;
    entry->release = uva__arrow_node_release(ops, node);
    entry->private_data = uva__arrow_node_private_data(ops, node);
    entry->digest = ops->digest(node);
    entry->place = node;
    uva__arrow_node_set(ops, node, tree->ops->hook,
                        uva__live_structs_tag(entry));
    return entry;
}

static void hook_put_below(struct hook_tree *tree,
                           struct uva__live_struct *parent, void *node,
                           int depth);

/* Hooks one node below the root, unless it is released, or hooked already, as
 * it would be in a tree with a circle. Without memory it goes unchecked. */
static void hook_put_child(struct hook_tree *tree,
                           struct uva__live_struct *parent, void *node,
                           int depth)
{
    struct uva__live_struct *entry;
    struct uva__arrow_node_view view;

    if (node == NULL || depth > UVA__STRUCTS_MAX_DEPTH ||
        ++tree->nodes > UVA__STRUCTS_MAX_NODES)
        return;
    view = tree->ops->node->inspect(node);
    if (view.release == NULL || view.release == tree->ops->hook)
        return;
    entry = hook_put(tree, node);
    if (entry == NULL)
        return;
    uva__live_structs_add_child(uva__reporter_live_structs(tree->reporter),
                                parent, entry);
    hook_put_below(tree, entry, node, depth);
}

static void hook_put_below(struct hook_tree *tree,
                           struct uva__live_struct *parent, void *node,
                           int depth)
{
    const struct uva__arrow_node_view view = tree->ops->node->inspect(node);

    for (int64_t i = 0; i < view.n_children; i++)
        hook_put_child(tree, parent, tree->ops->node->child(node, i),
                       depth + 1);
    hook_put_child(tree, parent, view.dictionary, depth + 1);
}

static int hook_put_root(const struct hook_ops *ops,
                         struct uva__reporter *reporter, void *node,
                         int64_t ordinal)
{
    struct hook_tree tree = {
        .ops = ops, .reporter = reporter, .ordinal = ordinal};
    struct uva__live_struct *entry = hook_put(&tree, node);

    if (entry == NULL)
        return ENOMEM;
    if (uva__reporter_options(reporter)->deep)
        hook_put_below(&tree, entry, node, 0);
    return 0;
}

int uva__release_hook_array(struct uva__reporter *reporter,
                            struct ArrowArray *array, int64_t ordinal)
{
    return hook_put_root(&HOOK_ARRAY, reporter, array, ordinal);
}

int uva__release_hook_schema(struct uva__reporter *reporter,
                             struct ArrowSchema *schema, int64_t ordinal)
{
    return hook_put_root(&HOOK_SCHEMA, reporter, schema, ordinal);
}

static void hook_put_trap(const struct hook_ops *ops,
                          struct uva__reporter *reporter, void *node,
                          const char *clause)
{
    struct uva__live_struct *entry;

    if (!uva__reporter_options(reporter)->keep ||
        uva__arrow_node_release(ops->node, node) == NULL ||
        uva__arrow_node_release(ops->node, node) == ops->hook)
        return;
    entry = uva__live_structs_add(uva__reporter_live_structs(reporter),
                                  ops->kind, UVA__LIVE_STRUCT_TRAP);
    if (entry == NULL)
        return;
    entry->clause = clause;
    uva__arrow_node_set(ops->node, node, ops->hook,
                        uva__live_structs_tag(entry));
}

void uva__release_hook_trap_array(struct uva__reporter *reporter,
                                  struct ArrowArray *array, const char *clause)
{
    hook_put_trap(&HOOK_ARRAY, reporter, array, clause);
}

void uva__release_hook_trap_schema(struct uva__reporter *reporter,
                                   struct ArrowSchema *schema,
                                   const char *clause)
{
    hook_put_trap(&HOOK_SCHEMA, reporter, schema, clause);
}

static bool hook_is_trap(void (*release)(void), void (*hook)(void),
                         void *private_data)
{
    const struct uva__live_struct *entry =
        release == hook ? uva__live_structs_find(private_data) : NULL;

    return entry != NULL &&
           uva__live_structs_state_of(entry) == UVA__LIVE_STRUCT_TRAP;
}

bool uva__release_hook_array_is_trap(const struct ArrowArray *array)
{
    return hook_is_trap((uva__arrow_node_fn)array->release, HOOK_ARRAY.hook,
                        array->private_data);
}

bool uva__release_hook_schema_is_trap(const struct ArrowSchema *schema)
{
    return hook_is_trap((uva__arrow_node_fn)schema->release, HOOK_SCHEMA.hook,
                        schema->private_data);
}

/* ---- called ------------------------------------------------------------- */

/* Whether this is the one release that is expected; otherwise reports it and
 * marks the struct, so that it is not tried again. */
static bool hook_is_due(const struct hook_ops *ops,
                        struct uva__live_struct *entry, void *node)
{
    struct uva__reporter *reporter = entry->reporter;

    if (uva__arrow_node_release(ops->node, node) != ops->hook) {
        uva__reporter_breach(reporter, "DA-13", 0,
                             "release of %s %" PRId64
                             " is called with a struct "
                             "that does not hold it",
                             ops->noun, entry->ordinal);
        return false;
    }
    if (uva__live_structs_claim(entry,
                                uva__arrow_node_private_data(ops->node, node)))
        return true;
    uva__arrow_node_set(ops->node, node, NULL, NULL);
    if (uva__live_structs_state_of(entry) == UVA__LIVE_STRUCT_TRAP)
        uva__reporter_breach(reporter, entry->clause, UVA_PARTY_CONSUMER,
                             "%s released that a failed call left", ops->noun);
    else
        uva__reporter_breach(reporter, "LC-02", 0,
                             "%s %" PRId64 " is released a second time",
                             ops->noun, entry->ordinal);
    return false;
}

/* Checks that a child is released by its parent, or after it was moved out. */
static void hook_check_parent(const struct hook_ops *ops,
                              struct uva__live_struct *entry, void *node)
{
    bool releasing;
    const struct uva__live_struct *parent = uva__live_structs_remove_child(
        uva__reporter_live_structs(entry->reporter), entry, &releasing);

    if (parent == NULL || releasing)
        return;
    if (node == entry->place)
        uva__reporter_breach(entry->reporter, "LC-03", 0,
                             "a child of %s %" PRId64
                             " is released while its parent owns it",
                             ops->noun, entry->ordinal);
    else
        uva__reporter_breach(entry->reporter, "LC-10", 0,
                             "a child was moved out of %s %" PRId64
                             " and is released before its parent",
                             ops->noun, entry->ordinal);
}

static void hook_check_unchanged(const struct hook_ops *ops,
                                 struct uva__live_struct *entry, void *node)
{
    if (ops->node->digest(node) != entry->digest)
        uva__reporter_breach(entry->reporter, "LC-11", 0,
                             "%s %" PRId64 " was altered before its release",
                             ops->noun, entry->ordinal);
}

/* Whether the struct of a child is where its parent has it. */
static bool hook_is_in_place(const struct uva__live_struct *child)
{
    const struct hook_ops *ops =
        child->kind == UVA__LIVE_STRUCT_ARRAY ? &HOOK_ARRAY : &HOOK_SCHEMA;

    return uva__arrow_node_release(ops->node, child->place) == ops->hook &&
           uva__arrow_node_private_data(ops->node, child->place) ==
               uva__live_structs_tag(child);
}

/* Runs the struct's own release, and checks the result. */
static void hook_forward(const struct hook_ops *ops,
                         struct uva__live_struct *entry, void *node)
{
    struct uva__live_structs *live_structs =
        uva__reporter_live_structs(entry->reporter);
    const bool deep = uva__reporter_options(entry->reporter)->deep;
    int left = 0;

    if (deep)
        uva__live_structs_find_expected(live_structs, entry, hook_is_in_place);
    uva__arrow_node_set(ops->node, node, entry->release, entry->private_data);
    ops->node->call(node, entry->release);
    if (deep)
        left = uva__live_structs_close_children(live_structs, entry);
    if (left > 0)
        uva__reporter_breach(entry->reporter, "LC-05", 0,
                             "the release of %s %" PRId64
                             " left %d live below it",
                             ops->noun, entry->ordinal, left);
    if (uva__arrow_node_release(ops->node, node) == NULL)
        return;
    uva__arrow_node_set(ops->node, node, NULL, NULL);
    uva__reporter_breach(entry->reporter, "LC-07", 0,
                         "the release of %s %" PRId64 " did not mark it",
                         ops->noun, entry->ordinal);
}

static void hook_release(const struct hook_ops *ops, void *node)
{
    struct uva__live_struct *entry =
        uva__live_structs_find(uva__arrow_node_private_data(ops->node, node));

    if (entry == NULL) /* and so no reporter either */
        return;
    uva__reporter_perturb(entry->reporter);
    if (!hook_is_due(ops, entry, node))
        return;
    uva__reporter_note(entry->reporter, ops->note, entry->ordinal, 0);
    if (entry->is_child)
        hook_check_parent(ops, entry, node);
    hook_check_unchanged(ops, entry, node);
    hook_forward(ops, entry, node);
    uva__live_structs_remove(uva__reporter_live_structs(entry->reporter),
                             entry);
}

static void hook_release_array(struct ArrowArray *array)
{
    hook_release(&HOOK_ARRAY, array);
}

static void hook_release_schema(struct ArrowSchema *schema)
{
    hook_release(&HOOK_SCHEMA, schema);
}
