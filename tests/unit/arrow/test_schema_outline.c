/* SPDX-License-Identifier: Apache-2.0 */
/* An outline has the formats, names, children and dictionaries of its schema,
 * in a block of the size that was measured, and outlives it. A schema that
 * uva_schema_copy() refuses has no outline. */
#include "arrow/schema_outline.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/structs.h"
#include "support/check_suite.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

/* Makes one with children, a dictionary, and nodes with and without names. */
static void make_schema(struct ArrowSchema *out)
{
    plain_schema(out, "+s", "", 3);
    plain_schema(out->children[0], "tsu:Europe/Berlin", "a long name", 0);
    out->children[0]->flags = ARROW_FLAG_NULLABLE;
    plain_schema(out->children[1], "+l", "tags", 1);
    plain_schema(out->children[1]->children[0], "u", "item", 0);
    plain_schema(out->children[2], "i", NULL, 0);
    plain_schema(plain_schema_dictionary(out->children[2]), "U", "word", 0);
}

static void check_text(const char *a, const char *b)
{
    ck_assert_int_eq(a == NULL, b == NULL);
    if (a != NULL)
        ck_assert_str_eq(a, b);
    if (a != NULL)
        ck_assert_ptr_ne(a, b);
}

static void check_outline(const struct ArrowSchema *a,
                          const struct ArrowSchema *b)
{
    ck_assert(b->release != NULL);
    check_text(a->format, b->format);
    check_text(a->name, b->name);
    ck_assert_ptr_null(b->metadata);
    ck_assert_int_eq(a->flags, b->flags);
    ck_assert_int_eq(a->n_children, b->n_children);
    ck_assert_int_eq(b->n_children == 0, b->children == NULL);
    ck_assert_int_eq(a->dictionary == NULL, b->dictionary == NULL);
    for (int64_t i = 0; i < a->n_children; i++)
        check_outline(a->children[i], b->children[i]);
    if (a->dictionary != NULL)
        check_outline(a->dictionary, b->dictionary);
}

/* Gives the block, of exactly its size. */
static void *outline_of(const struct ArrowSchema *schema,
                        struct ArrowSchema *out)
{
    struct uva__schema_outline outline;
    void *block;

    ck_assert_int_eq(uva__schema_outline_measure(&outline, schema), 0);
    block = malloc(uva__schema_outline_size(&outline));
    ck_assert_ptr_nonnull(block);
    uva__schema_outline_fill(&outline, schema, block, out);
    return block;
}

START_TEST(an_outline_has_the_shape_of_its_schema)
{
    static const int32_t metadata[] = {0};
    struct ArrowSchema schema, outline;
    void *block;

    make_schema(&schema);
    schema.metadata = (const char *)metadata;
    block = outline_of(&schema, &outline);
    check_outline(&schema, &outline);
    uva_schema_release(&schema);
    free(block);
}
END_TEST

START_TEST(an_outline_outlives_its_schema)
{
    struct ArrowSchema schema, same, outline;
    void *block;

    make_schema(&schema);
    make_schema(&same);
    block = outline_of(&schema, &outline);
    uva_schema_release(&schema);
    check_outline(&same, &outline);
    uva_schema_release(&same);
    ck_assert_int_eq(plain_live(), 0);
    uva_schema_release(&outline);
    ck_assert(outline.release == NULL);
    free(block);
}
END_TEST

START_TEST(an_outline_of_a_single_node_is_its_text)
{
    struct uva__schema_outline outline;
    struct ArrowSchema schema;

    plain_schema(&schema, "l", "id", 0);
    ck_assert_int_eq(uva__schema_outline_measure(&outline, &schema), 0);
    ck_assert_uint_eq(uva__schema_outline_size(&outline), 5);
    uva_schema_release(&schema);
}
END_TEST

/* Returns the code of measuring `schema`, which is the code of copying it;
 * releases the schema. */
static int code_of(struct ArrowSchema *schema)
{
    struct uva__schema_outline outline;
    struct ArrowSchema copy;
    const int code = uva__schema_outline_measure(&outline, schema);

    ck_assert_int_eq(code, uva_schema_copy(schema, &copy));
    uva_schema_release(&copy);
    uva_schema_release(schema);
    ck_assert_int_eq(plain_live(), 0);
    return code;
}

START_TEST(what_is_not_copied_has_no_outline)
{
    static const int32_t malformed[] = {-1}, huge[] = {1 << 21};
    struct ArrowSchema schema, released = {.format = "i"};

    ck_assert_int_eq(code_of(&released), EINVAL);
    plain_schema(&schema, NULL, NULL, 0);
    ck_assert_int_eq(code_of(&schema), EINVAL);
    plain_schema(&schema, "+s", NULL, 0);
    schema.n_children = 1;
    ck_assert_int_eq(code_of(&schema), EINVAL);
    plain_schema(&schema, "+s", NULL, 0);
    schema.n_children = -1;
    ck_assert_int_eq(code_of(&schema), EINVAL);
    plain_schema(&schema, "+s", NULL, 1); /* its child is released */
    ck_assert_int_eq(code_of(&schema), EINVAL);
    plain_schema(&schema, "+s", NULL, 1);
    free(schema.children[0]);
    schema.children[0] = NULL;
    ck_assert_int_eq(code_of(&schema), EINVAL);
    plain_schema(&schema, "i", NULL, 0);
    (void)plain_schema_dictionary(&schema); /* which is released */
    ck_assert_int_eq(code_of(&schema), EINVAL);
    plain_schema(&schema, "+s", NULL, 1);
    plain_schema(schema.children[0], "i", NULL, 0);
    schema.children[0]->metadata = (const char *)malformed;
    ck_assert_int_eq(code_of(&schema), EINVAL);
    plain_schema(&schema, "i", NULL, 0);
    schema.metadata = (const char *)huge;
    ck_assert_int_eq(code_of(&schema), EMSGSIZE);
}
END_TEST

START_TEST(a_schema_that_is_nested_too_deeply_has_no_outline)
{
    struct ArrowSchema root, *node = &root;

    for (int depth = 0; depth < UVA__STRUCTS_MAX_DEPTH; depth++) {
        plain_schema(node, "+l", NULL, 1);
        node = node->children[0];
    }
    plain_schema(node, "+l", NULL, 1);
    plain_schema(node->children[0], "i", NULL, 0);
    ck_assert_int_eq(code_of(&root), EINVAL);
}
END_TEST

static void keep_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

/* Of 1 + 1024 + 1024 * 1024 nodes: all nodes of a level are one struct. */
START_TEST(a_schema_with_too_many_nodes_has_no_outline)
{
    enum { CHILDREN = 1024 };
    struct ArrowSchema *leaves[CHILDREN], *nodes[CHILDREN];
    struct ArrowSchema leaf = {.format = "i", .release = keep_schema};
    struct ArrowSchema node = leaf, root;
    struct uva__schema_outline outline;

    for (int i = 0; i < CHILDREN; i++) {
        leaves[i] = &leaf;
        nodes[i] = &node;
    }
    node.n_children = CHILDREN;
    node.children = leaves;
    root = node;
    root.children = nodes;
    ck_assert_int_eq(uva__schema_outline_measure(&outline, &node), 0);
    ck_assert_uint_eq(outline.nodes, CHILDREN);
    ck_assert_int_eq(uva__schema_outline_measure(&outline, &root), EINVAL);
}
END_TEST

int main(void)
{
    TCase *outlines = suite_tests(
        "outlines", an_outline_has_the_shape_of_its_schema,
        an_outline_outlives_its_schema, an_outline_of_a_single_node_is_its_text,
        what_is_not_copied_has_no_outline,
        a_schema_that_is_nested_too_deeply_has_no_outline,
        a_schema_with_too_many_nodes_has_no_outline, NULL);

    return suite_main("outline", NULL, NULL, outlines, NULL);
}
