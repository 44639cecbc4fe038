/* SPDX-License-Identifier: Apache-2.0 */
/* One array's data for two owners, which release it independently.
 *
 * There are two kinds of objects. The *origin* holds the array that was given;
 * the halves hold references to it. A *half* is one owner's copy of the tree of
 * structs, which point to the origin's buffers; it counts its nodes that are
 * not released, as each may be moved out and outlive the rest. The root of a
 * half lies with its owner, the other nodes in the half's own block.
 *
 * Clauses: LC-10. */
#include "arrow/share.h"

#include <assert.h>
#include <string.h>

#include "arrow/structs.h"
#include "base/atomic.h"
#include "base/memory.h"
#include "uvarrow/arrow.h"

struct share_origin {
    struct uva_allocator allocator; /* gave this and the halves */
    struct uva__atomic64 halves;    /* not freed so far */
    struct ArrowDeviceArray array;  /* owns: what was shared, with its event */
};

struct share_half {
    struct share_origin *origin; /* holds a reference */
    struct uva__atomic64 nodes;  /* not released so far, the root included */
    size_t size;                 /* of this block: behind it the structs of
       all nodes but the root, then their pointer vectors */
};

/* The size of a tree; and, while it is copied, the places for the next parts.
 */
struct share_tree {
    size_t nodes;             /* structs below the root */
    size_t pointers;          /* members of all children vectors */
    struct ArrowArray *node;  /* the next free struct */
    struct ArrowArray **slot; /* the next free pointer */
    struct share_half *half;
};

static void share_drop_half(struct share_half *half)
{
    struct share_origin *const origin = half->origin;
    const struct uva_allocator allocator = origin->allocator;

    assert(uva__atomic64_peek(&half->nodes) > 0);
    if (uva__atomic64_sub(&half->nodes, 1) != 1)
        return;
    uva__memory_free(&allocator, half, half->size);
    assert(uva__atomic64_peek(&origin->halves) > 0);
    if (uva__atomic64_sub(&origin->halves, 1) != 1)
        return;
    uva_array_release(&origin->array);
    uva__memory_free(&allocator, origin, sizeof(*origin));
}

/* The release of every node of a half, moved out or not.
 * Clauses: LC-05, LC-10. */
static void share_release_node(struct ArrowArray *array)
{
    struct share_half *const half = array->private_data;
    struct ArrowArray *const dictionary = array->dictionary;

    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release != NULL)
            array->children[i]->release(array->children[i]);
    if (dictionary != NULL && dictionary->release != NULL)
        dictionary->release(dictionary);
    array->release = NULL;
    share_drop_half(half);
}

/* Counts the nodes below `array`. A released child counts, but not its former
 * children. EINVAL if the tree is impossible. */
static int share_count(const struct ArrowArray *array, struct share_tree *tree,
                       int depth)
{
    int code = 0;

    if (array == NULL)
        return EINVAL;
    if (array->release == NULL)
        return 0;
    if (depth > UVA__STRUCTS_MAX_DEPTH ||
        !uva__structs_children_are_sound(array->n_children, array->children))
        return EINVAL;
    tree->pointers += (size_t)array->n_children;
    tree->nodes += (size_t)array->n_children + (array->dictionary != NULL);
    if (tree->nodes > UVA__STRUCTS_MAX_NODES)
        return EINVAL;
    for (int64_t i = 0; i < array->n_children && code == 0; i++)
        code = share_count(array->children[i], tree, depth + 1);
    if (code == 0 && array->dictionary != NULL)
        code = share_count(array->dictionary, tree, depth + 1);
    return code;
}

/* Makes `to` a copy of `from`, with structs of the half below it. */
static void share_picture(const struct ArrowArray *from,
                          struct share_tree *tree, struct ArrowArray *to)
{
    const size_t n = (size_t)(from->release == NULL ? 0 : from->n_children);

    *to = *from;
    if (from->release == NULL)
        return;
    to->release = share_release_node;
    to->private_data = tree->half;
    uva__atomic64_add(&tree->half->nodes, 1);
    if (n != 0)
        to->children = tree->slot;
    tree->slot += n;
    for (size_t i = 0; i < n; i++) {
        to->children[i] = tree->node++;
        share_picture(from->children[i], tree, to->children[i]);
    }
    if (from->dictionary != NULL) {
        to->dictionary = tree->node++;
        share_picture(from->dictionary, tree, to->dictionary);
    }
}

/* Makes a half of `origin` with the shape of `like` and the root `to`. The
 * caller adds the reference to the origin. */
static int share_new_half(struct share_origin *origin,
                          const struct ArrowArray *like, struct ArrowArray *to)
{
    struct share_tree tree = {0};
    size_t size;
    int code = share_count(like, &tree, 0);

    if (code != 0)
        return code;
    size = sizeof(struct share_half) + tree.nodes * sizeof(struct ArrowArray) +
           tree.pointers * sizeof(void *);
    tree.half = uva__memory_new(&origin->allocator, size);
    if (tree.half == NULL)
        return ENOMEM;
    tree.half->origin = origin;
    tree.half->size = size;
    tree.node = (struct ArrowArray *)(void *)(tree.half + 1);
    tree.slot = (struct ArrowArray **)(void *)(tree.node + tree.nodes);
    share_picture(like, &tree, to);
    assert((char *)tree.slot == (char *)tree.half + size);
    return 0;
}

/* Frees a half that holds no reference to its origin. */
static void share_undo_half(struct share_origin *origin,
                            struct ArrowArray *root)
{
    struct share_half *const half = root->private_data;

    assert(half->origin == origin);
    uva__memory_free(&origin->allocator, half, half->size);
}

/* One more half of an array that is shared already: no second origin. */
static int share_again(struct ArrowDeviceArray *array,
                       struct ArrowDeviceArray *out)
{
    struct share_half *const half = array->array.private_data;
    struct ArrowDeviceArray other = *array;
    const int code = share_new_half(half->origin, &array->array, &other.array);

    if (code != 0)
        return code;
    uva__atomic64_add(&half->origin->halves, 1);
    *out = other;
    return 0;
}

static int share_first(const struct uva_allocator *allocator,
                       struct ArrowDeviceArray *array,
                       struct ArrowDeviceArray *out)
{
    struct ArrowDeviceArray one = *array, other = *array;
    struct share_origin *origin = uva__memory_new(allocator, sizeof(*origin));
    int code;

    if (origin == NULL)
        return ENOMEM;
    origin->allocator = *allocator;
    code = share_new_half(origin, &array->array, &one.array);
    if (code != 0)
        goto fail_origin;
    code = share_new_half(origin, &array->array, &other.array);
    if (code != 0)
        goto fail_one;
    uva__atomic64_store(&origin->halves, 2);
    uva_array_move(array, &origin->array);
    *array = one;
    *out = other;
    return 0;
fail_one:
    share_undo_half(origin, &one.array);
fail_origin:
    uva__memory_free(allocator, origin, sizeof(*origin));
    return code;
}

int uva__share_array(const struct uva_allocator *allocator,
                     struct ArrowDeviceArray *array,
                     struct ArrowDeviceArray *out)
{
    out->array.release = NULL;
    if (!uva_array_is_live(array))
        return EINVAL;
    if (array->array.release == share_release_node)
        return share_again(array, out);
    return share_first(allocator, array, out);
}

int uva_array_share(struct ArrowDeviceArray *array,
                    struct ArrowDeviceArray *out)
{
    struct uva_allocator allocator;
    const int code = uva__memory_adopt(&(struct uva_allocator){0}, &allocator);

    assert(code == 0);
    (void)code;
    return uva__share_array(&allocator, array, out);
}
