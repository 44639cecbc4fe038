/* SPDX-License-Identifier: Apache-2.0 */
/* A node is one block, which contains the structs of its children. The
 * children's own nodes are separate blocks, so that a child can be moved out
 * and outlive its parent. */
#include "support/reference_data.h"

#include <stdlib.h>
#include <string.h>

enum { KIDS = 2 };

/* A node of an array; columns use values, a batch uses kids. */
struct array_node {
    struct reference_counts *live_structs;
    struct array_node *next_lost;
    bool batch; /* a whole batch, not a column */
    const void *buffers[3];
    struct ArrowArray *children[KIDS];
    struct ArrowArray kids[KIDS], dictionary;
    struct array_node *below[KIDS + 1]; /* originals, for the release */
    int64_t values[REFERENCE_ROWS + 1];
};

struct schema_node {
    struct reference_counts *live_structs;
    char format[4], name[8];
    char metadata[REFERENCE_BLOCK_SIZE];
    struct ArrowSchema *children[KIDS];
    struct ArrowSchema kids[KIDS], dictionary;
};

static void *node_new(struct reference_counts *live_structs, size_t size)
{
    void *node = calloc(1, size);

    if (node == NULL)
        abort();
    atomic_fetch_add(&live_structs->live, 1);
    return node;
}

/* ---- schemas ------------------------------------------------------------ */

static void schema_free(struct ArrowSchema *schema)
{
    struct schema_node *node = schema->private_data;

    for (int i = 0; i < KIDS; i++)
        if (node->kids[i].release != NULL)
            node->kids[i].release(&node->kids[i]);
    if (node->dictionary.release != NULL)
        node->dictionary.release(&node->dictionary);
    atomic_fetch_sub(&node->live_structs->live, 1);
    memset(node, 0x5A, sizeof(*node));
    free(node);
}

static void schema_release(struct ArrowSchema *schema)
{
    schema_free(schema);
    schema->release = NULL;
}

void reference_schema_unmarked(struct ArrowSchema *schema)
{
    schema->release = schema_free;
}

static struct schema_node *schema_make(struct reference_counts *live_structs,
                                       const char *format, const char *name,
                                       struct ArrowSchema *out)
{
    struct schema_node *node = node_new(live_structs, sizeof(*node));

    node->live_structs = live_structs;
    strcpy(node->format, format);
    strcpy(node->name, name);
    *out = (struct ArrowSchema){
        .format = node->format,
        .name = node->name,
        .flags = ARROW_FLAG_NULLABLE,
        .release = schema_release,
        .private_data = node,
    };
    return node;
}

void reference_schema(struct reference_counts *live_structs,
                      const char *metadata, struct ArrowSchema *out)
{
    struct schema_node *node = schema_make(live_structs, "+s", "", out);
    struct schema_node *word;

    schema_make(live_structs, "l", "n", &node->kids[0]);
    word = schema_make(live_structs, "i", "word", &node->kids[1]);
    schema_make(live_structs, "u", "", &word->dictionary);
    node->kids[1].dictionary = &word->dictionary;
    for (int i = 0; i < KIDS; i++)
        node->children[i] = &node->kids[i];
    out->n_children = KIDS;
    out->children = node->children;
    if (metadata != NULL)
        out->metadata =
            memcpy(node->metadata, metadata, sizeof(node->metadata));
}

/* ---- arrays ------------------------------------------------------------- */

static void array_node_free(struct array_node *node)
{
    atomic_fetch_sub(&node->live_structs->live, 1);
    memset(node, 0x5A, sizeof(*node));
    free(node);
}

static void array_node_tell(const struct array_node *node)
{
    if (node->batch && node->live_structs->on_release != NULL)
        node->live_structs->on_release(node->live_structs->ctx);
}

static void array_free(struct ArrowArray *array)
{
    struct array_node *node = array->private_data;

    array_node_tell(node);
    for (int i = 0; i < KIDS; i++)
        if (node->kids[i].release != NULL)
            node->kids[i].release(&node->kids[i]);
    if (node->dictionary.release != NULL)
        node->dictionary.release(&node->dictionary);
    array_node_free(node);
}

static void array_release(struct ArrowArray *array)
{
    array_free(array);
    array->release = NULL;
}

void reference_array_unmarked(struct ArrowArray *array)
{
    array->release = array_free;
}

static void array_node_lose(struct array_node *node)
{
    void *top = atomic_load(&node->live_structs->lost);

    do {
        node->next_lost = top;
    } while (
        !atomic_compare_exchange_weak(&node->live_structs->lost, &top, node));
    for (int i = 0; i < KIDS; i++)
        if (node->kids[i].release != NULL) /* unless it was moved out */
            array_node_lose(node->below[i]);
    if (node->dictionary.release != NULL)
        array_node_lose(node->below[KIDS]);
}

static void array_release_childless(struct ArrowArray *array)
{
    array_node_lose(array->private_data);
    array->release = NULL;
}

void reference_array_childless(struct ArrowArray *array)
{
    array->release = array_release_childless;
}

void reference_counts_fini(struct reference_counts *live_structs)
{
    struct array_node *node = atomic_exchange(&live_structs->lost, NULL), *next;

    for (; node != NULL; node = next) {
        next = node->next_lost;
        array_node_free(node);
    }
}

static struct array_node *array_make(struct reference_counts *live_structs,
                                     int64_t n_buffers, struct ArrowArray *out)
{
    struct array_node *node = node_new(live_structs, sizeof(*node));

    node->live_structs = live_structs;
    node->buffers[1] = node->values;
    *out = (struct ArrowArray){
        .length = REFERENCE_ROWS,
        .n_buffers = n_buffers,
        .buffers = node->buffers,
        .release = array_release,
        .private_data = node,
    };
    return node;
}

static const int32_t WORD_ENDS[REFERENCE_ROWS + 1] = {0, 3, 6, 9};
static const int32_t WORDS[REFERENCE_ROWS] = {2, 0, 1};

static struct array_node *
array_make_words(struct reference_counts *live_structs, struct ArrowArray *out)
{
    struct array_node *node = array_make(live_structs, 2, out);

    node->buffers[1] = WORDS;
    out->dictionary = &node->dictionary;
    node->below[KIDS] = array_make(live_structs, 3, out->dictionary);
    node->below[KIDS]->buffers[1] = WORD_ENDS;
    node->below[KIDS]->buffers[2] = "onetwosix";
    return node;
}

void reference_array(struct reference_counts *live_structs, int64_t ordinal,
                     struct ArrowDeviceArray *out)
{
    struct array_node *node;

    memset(out, 0, sizeof(*out));
    out->device_id = -1;
    out->device_type = ARROW_DEVICE_CPU;
    node = array_make(live_structs, 1, &out->array);
    node->batch = true;
    node->below[0] = array_make(live_structs, 2, &node->kids[0]);
    node->below[1] = array_make_words(live_structs, &node->kids[1]);
    for (int i = 0; i < REFERENCE_ROWS; i++)
        node->below[0]->values[i] = ordinal * REFERENCE_ROWS + i;
    for (int i = 0; i < KIDS; i++)
        node->children[i] = &node->kids[i];
    out->array.n_children = KIDS;
    out->array.children = node->children;
}

int64_t reference_array_ordinal(const struct ArrowArray *array)
{
    const struct ArrowArray *words = array->children[1];
    const int64_t *n = array->children[0]->buffers[1];

    for (int i = 0; i < REFERENCE_ROWS; i++)
        if (n[i] != n[0] + i)
            return -1;
    if (words->dictionary->length != REFERENCE_ROWS ||
        ((const int32_t *)words->buffers[1])[0] != WORDS[0])
        return -1;
    return n[0] % REFERENCE_ROWS == 0 ? n[0] / REFERENCE_ROWS : -1;
}

/* ---- metadata ----------------------------------------------------------- */

struct block {
    int32_t pairs, key_size;
    char key[4];
    int32_t value_size;
    char value[4];
};
_Static_assert(sizeof(struct block) == REFERENCE_BLOCK_SIZE, "no padding");

#define KIND                                                                   \
    {                                                                          \
        'k', 'i', 'n', 'd'                                                     \
    }
#define FACT                                                                   \
    {                                                                          \
        'f', 'a', 'c', 't'                                                     \
    }

static const struct block BLOCKS[] = {
    [REFERENCE_SOUND] = {1, 4, KIND, 4, FACT},
    [REFERENCE_OTHER] = {1, 4, KIND, 4, {'v', 'o', 'i', 'd'}},
    [REFERENCE_EMPTY] = {0},
    [REFERENCE_MINUS] = {-1, 4, KIND, 4, FACT},
    [REFERENCE_MINUS_KEY] = {1, -1, KIND, 4, FACT},
    [REFERENCE_MINUS_WORD] = {1, 4, KIND, -1, FACT},
    [REFERENCE_CROWD] = {1 << 30, 4, KIND, 4, FACT},
    [REFERENCE_GIANT] = {1, INT32_MAX, KIND, 4, FACT},
};

const char *reference_block(enum reference_block which)
{
    return which == REFERENCE_NONE ? NULL : (const char *)&BLOCKS[which];
}
