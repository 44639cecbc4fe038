/* SPDX-License-Identifier: Apache-2.0 */
/* A schema is like a copy if it has the same contents, wherever they lie. */
#include "arrow/structs.h"

#include <check.h>
#include <string.h>

#include "base/memory.h"
#include "support/check_suite.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

static const struct pair {
    int32_t pairs, key;
    char text[4];
    int32_t size;
    char value[4];
} one = {1, 4, "kkk", 4, "one"}, two = {1, 4, "kkk", 4, "two"};

/* A column of numbers with metadata, and a dictionary of texts. */
static void make(struct ArrowSchema *out)
{
    plain_schema(out, "+s", "", 2);
    plain_schema(out->children[0], "l", "n", 0);
    out->children[0]->metadata = (const char *)&one;
    plain_schema(out->children[1], "i", NULL, 0);
    plain_schema(plain_schema_dictionary(out->children[1]), "u", "t", 0);
}

static void change_nothing(struct ArrowSchema *schema)
{
    (void)schema;
}

static void change_format(struct ArrowSchema *schema)
{
    schema->children[0]->format = "i";
}

static void change_name(struct ArrowSchema *schema)
{
    schema->children[0]->name = "m";
}

static void lose_name(struct ArrowSchema *schema)
{
    schema->name = NULL;
}

static void give_name(struct ArrowSchema *schema)
{
    schema->children[1]->name = "";
}

static void change_flags(struct ArrowSchema *schema)
{
    schema->children[1]->flags |= ARROW_FLAG_NULLABLE;
}

static void change_metadata(struct ArrowSchema *schema)
{
    schema->children[0]->metadata = (const char *)&two;
}

static void lose_metadata(struct ArrowSchema *schema)
{
    schema->children[0]->metadata = NULL;
}

static void give_metadata(struct ArrowSchema *schema)
{
    schema->metadata = (const char *)&one;
}

static void change_dictionary(struct ArrowSchema *schema)
{
    schema->children[1]->dictionary->format = "U";
}

static void lose_format(struct ArrowSchema *schema)
{
    schema->children[0]->format = NULL;
}

static void release_child(struct ArrowSchema *schema)
{
    uva_schema_release(schema->children[0]);
}

/* These are undone before the release, which needs the true values. */
static void lose_child(struct ArrowSchema *schema)
{
    schema->n_children = 1;
}

static void lose_vector(struct ArrowSchema *schema)
{
    schema->children = NULL;
}

static void lose_dictionary(struct ArrowSchema *schema)
{
    schema->children[1]->dictionary = NULL;
}

static void malform_metadata(struct ArrowSchema *schema)
{
    static const int32_t negative = -1;

    schema->children[0]->metadata = (const char *)&negative;
}

static const struct {
    void (*change)(struct ArrowSchema *schema);
    bool is_like;
} cases[] = {
    {change_nothing, true},   {change_format, false},
    {change_name, false},     {lose_name, false},
    {give_name, false},       {change_flags, false},
    {change_metadata, false}, {lose_metadata, false},
    {give_metadata, false},   {change_dictionary, false},
    {lose_format, false},     {release_child, false},
    {lose_child, false},      {lose_vector, false},
    {lose_dictionary, false}, {malform_metadata, false},
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

START_TEST(a_schema_is_like_its_copy_until_a_part_differs)
{
    struct ArrowSchema schema, copy, changed, *children[2];
    struct ArrowSchema column;

    make(&schema);
    ck_assert_int_eq(uva_schema_copy(&schema, &copy), 0);
    changed = schema;
    memcpy(children, schema.children, sizeof(children));
    changed.children = children;
    column = *schema.children[1];
    if (cases[_i].change == lose_dictionary)
        children[1] = &column;
    cases[_i].change(&changed);
    ck_assert_int_eq(uva__structs_is_like(&copy, &changed), cases[_i].is_like);
    uva_schema_release(&copy);
    if (cases[_i].change == change_dictionary)
        schema.children[1]->dictionary->format = "u";
    uva_schema_release(&schema);
    ck_assert_int_eq(plain_live(), 0);
}
END_TEST

START_TEST(a_released_schema_is_like_no_copy)
{
    struct ArrowSchema schema, copy;

    make(&schema);
    ck_assert_int_eq(uva_schema_copy(&schema, &copy), 0);
    uva_schema_release(&schema);
    ck_assert(!uva__structs_is_like(&copy, &schema));
    ck_assert(!uva__structs_is_like(&copy, NULL));
    uva_schema_release(&copy);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("structs_like");

    suite_add_loops(tests, 0, CASES,
                    a_schema_is_like_its_copy_until_a_part_differs, NULL);
    suite_add(tests, a_released_schema_is_like_no_copy, NULL);
    return suite_main("structs_like", NULL, NULL, tests, NULL);
}
