/* SPDX-License-Identifier: Apache-2.0 */
/* One array's data for several owners, which release it independently.
 *
 * There are two kinds of objects. The *origin* holds the array that was given;
 * the blocks hold references to it. Each owner has a copy of the tree of
 * structs, which point to the origin's buffers. Its root lies with the owner,
 * the other nodes in a *block*, with the nodes of some other copies; the first
 * block follows the origin. The block counts the nodes of all its copies that
 * are not released, as each may be moved out and outlive the rest.
 *
 * Clauses: LC-10. */
#include "arrow/share.h"

#include <assert.h>
#include <string.h>

#include "arrow/structs.h"
#include "base/atomic.h"
#include "base/memory.h"
#include "uvarrow/arrow.h"

enum { COPIES_MAX = 16 }; /* in one block */

struct share_origin {
    struct uva_allocator allocator; /* gave this and the blocks */
    struct uva__atomic64 blocks;    /* not freed so far */
    int64_t number;                 /* of no other origin, from 1 */
    struct ArrowDeviceArray array;  /* owns: the shared array, with its event */
    size_t size;                    /* of this and the first block after it */
};

struct share_block {
    struct share_origin *origin; /* holds a reference */
    struct uva__atomic64 nodes;  /* of all copies, not released so far, the
                                    roots included */
    size_t size;                 /* of this block; 0: it follows the origin.
                                    After it, for each copy, the structs of all
                                    nodes but the root, then their pointer
                                    vectors */
};

static struct uva__atomic64 share_origins; /* made so far */

/* The size of a tree. */
struct share_size {
    size_t nodes;    /* structs below the root */
    size_t pointers; /* members of all children vectors */
    uint64_t live;   /* nodes that are not released, the root included */
};

/* While a tree is copied: the places for the next parts. */
struct share_tree {
    struct ArrowArray *node;  /* the next free struct */
    struct ArrowArray **slot; /* the next free pointer */
    struct share_block *block;
};

/* Drops `nodes` of the nodes that a block counts. */
static void share_drop_block(struct share_block *block, uint64_t nodes)
{
    struct share_origin *const origin = block->origin;
    const struct uva_allocator allocator = origin->allocator;

    assert(uva__atomic64_peek(&block->nodes) >= nodes);
    if (uva__atomic64_sub(&block->nodes, nodes) != nodes)
        return;
    if (block->size > 0)
        uva__memory_free(&allocator, block, block->size);
    assert(uva__atomic64_peek(&origin->blocks) > 0);
    if (uva__atomic64_sub(&origin->blocks, 1) != 1)
        return;
    uva_array_release(&origin->array);
    uva__memory_free(&allocator, origin, origin->size);
}

static void share_release_node(struct ArrowArray *array);

/* Releases a node and its children. Returns how many of these nodes the block
 * counts, as one atomic operation is enough for all. */
static uint64_t share_release_tree(struct ArrowArray *array,
                                   const struct share_block *block)
{
    struct ArrowArray *const dictionary = array->dictionary;
    uint64_t nodes = 1;

    if (array->release != share_release_node || array->private_data != block) {
        if (array->release != NULL)
            array->release(array);
        return 0;
    }
    for (int64_t i = 0; i < array->n_children; i++)
        nodes += share_release_tree(array->children[i], block);
    if (dictionary != NULL)
        nodes += share_release_tree(dictionary, block);
    array->release = NULL;
    return nodes;
}

/* The release of every node of a copy, moved out or not.
 * Clauses: LC-05, LC-10. */
static void share_release_node(struct ArrowArray *array)
{
    struct share_block *const block = array->private_data;

    share_drop_block(block, share_release_tree(array, block));
}

/* Counts the nodes below `array`. A released child counts, but not its former
 * children. EINVAL if the tree is impossible. */
static int share_count(const struct ArrowArray *array, struct share_size *size,
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
    size->live++;
    size->pointers += (size_t)array->n_children;
    size->nodes += (size_t)array->n_children + (array->dictionary != NULL);
    if (size->nodes > UVA__STRUCTS_MAX_NODES)
        return EINVAL;
    for (int64_t i = 0; i < array->n_children && code == 0; i++)
        code = share_count(array->children[i], size, depth + 1);
    if (code == 0 && array->dictionary != NULL)
        code = share_count(array->dictionary, size, depth + 1);
    return code;
}

/* Makes `to` a copy of `from`, apart from its children. Returns whether it is
 * live. */
static inline bool share_node(const struct ArrowArray *from,
                              const struct share_tree *tree,
                              struct ArrowArray *to)
{
    *to = *from;
    if (from->release == NULL)
        return false;
    to->release = share_release_node;
    to->private_data = tree->block;
    return true;
}

static void share_picture(const struct ArrowArray *from,
                          struct share_tree *tree, struct ArrowArray *to);

/* Most nodes have no children. */
static inline void share_below(const struct ArrowArray *from,
                               struct share_tree *tree, struct ArrowArray *to)
{
    if (from->n_children == 0 && from->dictionary == NULL)
        (void)share_node(from, tree, to);
    else
        share_picture(from, tree, to);
}

/* Makes `to` a copy of `from`, with structs of the block below it. */
static void share_picture(const struct ArrowArray *from,
                          struct share_tree *tree, struct ArrowArray *to)
{
    const size_t n = (size_t)from->n_children;

    if (!share_node(from, tree, to))
        return;
    if (n != 0)
        to->children = tree->slot;
    tree->slot += n;
    for (size_t i = 0; i < n; i++) {
        to->children[i] = tree->node++;
        share_below(from->children[i], tree, to->children[i]);
    }
    if (from->dictionary != NULL) {
        to->dictionary = tree->node++;
        share_below(from->dictionary, tree, to->dictionary);
    }
}

/* Gives the size of a block for some copies of `like`. */
static int share_measure(const struct ArrowArray *like, size_t copies,
                         struct share_size *one, size_t *size)
{
    const int code = share_count(like, one, 0);

    *size = sizeof(struct share_block) +
            copies * (one->nodes * sizeof(struct ArrowArray) +
                      one->pointers * sizeof(void *));
    return code;
}

/* Begins a block, of which all copies must be made or given up; `size` is 0 if
 * its memory is the origin's. */
static void share_begin_block(struct share_origin *origin,
                              struct share_block *block, size_t size,
                              const struct share_size *one, size_t copies,
                              struct uva__array_share_room *room)
{
    block->origin = origin;
    block->size = size;
    uva__atomic64_store(&block->nodes, copies * one->live);
    *room = (struct uva__array_share_room){block, block + 1, one->nodes,
                                           one->live, copies};
}

/* Makes the next copy of `like` in a block. */
static void share_copy(struct uva__array_share_room *room,
                       const struct ArrowArray *like, struct ArrowArray *to)
{
    struct share_tree tree = {.block = room->block, .node = room->next};

    assert(room->left > 0);
    tree.slot = (struct ArrowArray **)(void *)(tree.node + room->nodes);
    share_picture(like, &tree, to);
    room->next = tree.slot;
    room->left--;
}

static void *share_alloc(const struct uva_allocator *allocator, size_t size)
{
    return allocator->alloc(allocator->ctx, size, _Alignof(max_align_t));
}

/* Shares an array for the first time: a copy takes its place. */
static int share_first(const struct uva_allocator *allocator,
                       struct ArrowDeviceArray *array, size_t copies,
                       struct uva__array_share_room *room)
{
    struct ArrowDeviceArray own = *array;
    struct share_size one = {0};
    struct share_origin *origin;
    size_t size;
    const int code = share_measure(&array->array, copies + 1, &one, &size);

    if (code != 0)
        return code;
    origin = share_alloc(allocator, sizeof(*origin) + size);
    if (origin == NULL)
        return ENOMEM;
    origin->allocator = *allocator;
    origin->size = sizeof(*origin) + size;
    uva__atomic64_store(&origin->blocks, 1);
    origin->number = (int64_t)uva__atomic64_add(&share_origins, 1) + 1;
    share_begin_block(origin, (struct share_block *)(void *)(origin + 1), 0,
                      &one, copies + 1, room);
    share_copy(room, &array->array, &own.array);
    uva_array_move(array, &origin->array);
    *array = own;
    return 0;
}

static int share_again(const struct ArrowDeviceArray *array, size_t copies,
                       struct uva__array_share_room *room)
{
    const struct share_block *const shared = array->array.private_data;
    struct share_origin *const origin = shared->origin;
    struct share_size one = {0};
    struct share_block *block;
    size_t size;
    const int code = share_measure(&array->array, copies, &one, &size);

    if (code != 0)
        return code;
    block = share_alloc(&origin->allocator, size);
    if (block == NULL)
        return ENOMEM;
    share_begin_block(origin, block, size, &one, copies, room);
    uva__atomic64_add(&origin->blocks, 1);
    return 0;
}

static int share_make_room(const struct uva_allocator *allocator,
                           struct ArrowDeviceArray *array, int64_t copies,
                           struct uva__array_share_room *room)
{
    const size_t some = copies < COPIES_MAX ? (size_t)copies : COPIES_MAX;

    if (!uva_array_is_live(array))
        return EINVAL;
    return array->array.release == share_release_node
               ? share_again(array, some, room)
               : share_first(allocator, array, some, room);
}

int uva__array_share_more(const struct uva_allocator *allocator,
                          struct uva__array_share_room *room,
                          struct ArrowDeviceArray *array, int64_t copies,
                          struct ArrowDeviceArray *out)
{
    int code = 0;

    assert(copies > 0);
    if (room->left == 0)
        code = share_make_room(allocator, array, copies, room);
    if (code != 0) {
        out->array.release = NULL;
        return code;
    }
    out->device_id = array->device_id;
    out->device_type = array->device_type;
    out->sync_event = array->sync_event;
    memcpy(out->reserved, array->reserved, sizeof(out->reserved));
    share_copy(room, &array->array, &out->array);
    return 0;
}

void uva__array_share_give_up(struct uva__array_share_room *room)
{
    if (room->left > 0)
        share_drop_block(room->block, room->left * room->live);
    room->left = 0;
}

int uva__array_share(const struct uva_allocator *allocator,
                     struct ArrowDeviceArray *array,
                     struct ArrowDeviceArray *out)
{
    return uva__array_share_more(allocator, &(struct uva__array_share_room){0},
                                 array, 1, out);
}

const void *const uva__array_share_no_bitmap[1] = {NULL};

/* Gives the origin of a root, or NULL. A copy has the vectors of its original,
 * and no two nodes share a vector with members; but of a root, the bitmap may
 * be left out. */
static const struct share_origin *
share_origin_of(const struct ArrowArray *array)
{
    const struct share_origin *origin;

    if (array->release != share_release_node)
        return NULL;
    origin = ((const struct share_block *)array->private_data)->origin;
    if (array->buffers == (const void **)uva__array_share_no_bitmap)
        return origin;
    return array->n_buffers > 0 && array->buffers == origin->array.array.buffers
               ? origin
               : NULL;
}

const struct ArrowArray *uva__array_share_whole(const struct ArrowArray *array)
{
    const struct share_origin *const origin = share_origin_of(array);

    return origin != NULL ? &origin->array.array : NULL;
}

int64_t uva__array_share_number(const struct ArrowArray *array)
{
    const struct share_origin *const origin = share_origin_of(array);

    return origin != NULL ? origin->number : 0;
}

int uva_array_share(struct ArrowDeviceArray *array,
                    struct ArrowDeviceArray *out)
{
    struct uva_allocator allocator;
    const int code = uva__memory_adopt(&(struct uva_allocator){0}, &allocator);

    assert(code == 0);
    (void)code;
    return uva__array_share(&allocator, array, out);
}
