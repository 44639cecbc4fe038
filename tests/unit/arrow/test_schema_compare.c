/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing schemas: the parts that count, and how the field that differs is
 * named. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "arrow/schema_compare.h"
#include "support/check_suite.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

static struct ArrowSchema expected, given;

/* A record batch of a list "a" of structs with the columns "x" and "", and of a
 * column "d" with a dictionary. */
static void make(struct ArrowSchema *out)
{
    struct ArrowSchema *list, *item;

    plain_schema(out, "+s", "", 2);
    list = out->children[0];
    plain_schema(list, "+l", "a", 1);
    item = list->children[0];
    plain_schema(item, "+s", "item", 2);
    plain_schema(item->children[0], "l", "x", 0);
    plain_schema(item->children[1], "u", NULL, 0);
    plain_schema(out->children[1], "i", "d", 0);
    plain_schema(plain_schema_dictionary(out->children[1]), "u", "values", 0);
}

static void set_up(void)
{
    make(&expected);
    make(&given);
}

static void tear_down(void)
{
    uva_schema_release(&expected);
    uva_schema_release(&given);
    ck_assert_int_eq(plain_live(), 0);
}

static void equal(void)
{
    struct uva_error error = {0};

    ck_assert_int_eq(uva__schema_compare(&expected, &given, &error), 0);
    ck_assert_int_eq(error.code, 0);
}

static void differs(const char *text)
{
    struct uva_error error = {0};

    ck_assert_int_eq(uva__schema_compare(&expected, &given, &error), EINVAL);
    ck_assert_int_eq(error.code, EINVAL);
    ck_assert_str_eq(error.message, text);
}

static struct ArrowSchema *item_of(struct ArrowSchema *root)
{
    return root->children[0]->children[0];
}

START_TEST(some_things_do_not_count)
{
    equal();
    given.name = "root";
    given.flags = ARROW_FLAG_NULLABLE;
    given.metadata = "\0\0\0";
    item_of(&given)->children[1]->name = "";
    equal();
}
END_TEST

START_TEST(the_root_is_compared)
{
    given.format = "+l";
    differs("its format is +l, not +s");
    given.format = NULL;
    differs("its format is missing, not +s");
    given.format = "+s";
    given.n_children = 1;
    differs("its number of children is 1, not 2");
    given.n_children = 2;
}
END_TEST

START_TEST(a_root_that_is_no_struct_may_differ_in_nullability)
{
    struct ArrowSchema plain[2];
    struct uva_error error;

    for (int i = 0; i < 2; i++)
        plain_schema(&plain[i], "l", i == 0 ? "a" : "b", 0);
    ck_assert_int_eq(uva__schema_compare(&plain[0], &plain[1], &error), 0);
    plain[1].flags = ARROW_FLAG_NULLABLE;
    ck_assert_int_eq(uva__schema_compare(&plain[0], &plain[1], &error), EINVAL);
    ck_assert_str_eq(error.message, "its nullability is true, not false");
    for (int i = 0; i < 2; i++)
        uva_schema_release(&plain[i]);
}
END_TEST

START_TEST(fields_are_named_by_their_paths)
{
    struct ArrowSchema *item = item_of(&given);

    item->children[0]->format = "i";
    differs("field 'a.item.x': its format is i, not l");
    item->children[0]->format = "l";
    item->children[1]->format = "U";
    differs("field 'a.item.#1': its format is U, not u");
    item->children[1]->format = "u";
    item->children[0]->name = "y";
    differs("field 'a.item.x': its name is y, not x");
    item->children[0]->name = NULL;
    differs("field 'a.item.x': its name is , not x");
}
END_TEST

START_TEST(flags_are_compared)
{
    struct ArrowSchema *d = given.children[1];

    expected.children[1]->flags = ARROW_FLAG_NULLABLE;
    differs("field 'd': its nullability is false, not true");
    d->flags = ARROW_FLAG_NULLABLE | ARROW_FLAG_DICTIONARY_ORDERED;
    differs("field 'd': its order of the dictionary is true, not false");
    d->flags = ARROW_FLAG_NULLABLE | ARROW_FLAG_MAP_KEYS_SORTED;
    differs("field 'd': its order of the keys is true, not false");
    d->flags = ARROW_FLAG_NULLABLE | 64;
    equal(); /* an unknown flag */
}
END_TEST

START_TEST(dictionaries_are_compared)
{
    struct ArrowSchema *d = given.children[1];
    struct ArrowSchema *dictionary = d->dictionary, *own;

    dictionary->format = "U";
    differs("field 'd.values': its format is U, not u");
    d->dictionary = NULL;
    differs("field 'd': its dictionary is missing, not given");
    own = expected.children[1]->dictionary;
    expected.children[1]->dictionary = NULL;
    d->dictionary = dictionary;
    differs("field 'd': its dictionary is given, not missing");
    expected.children[1]->dictionary = own;
}
END_TEST

START_TEST(broken_schemas_are_not_followed)
{
    struct ArrowSchema *d = given.children[1], *const * children;
    const struct ArrowSchema whole = *d;

    given.children[1] = NULL;
    differs("field 'd': its format is missing, not i");
    given.children[1] = d;
    d->release = NULL;
    differs("field 'd': its format is missing, not i");
    *d = whole;
    d->format = NULL;
    differs("field 'd': its format is missing, not i");
    *d = whole;
    children = given.children;
    given.children = NULL;
    differs("its vector of children is missing, not given");
    given.children = (struct ArrowSchema **)children;
}
END_TEST

START_TEST(long_paths_are_cut)
{
    static char name[150];
    struct uva_error error;

    memset(name, 'n', sizeof(name) - 1);
    expected.children[0]->name = given.children[0]->name = name;
    item_of(&expected)->name = item_of(&given)->name = name;
    item_of(&given)->children[0]->format = "i";
    ck_assert_int_eq(uva__schema_compare(&expected, &given, &error), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "nnn.nnn"));
    ck_assert_ptr_nonnull(strstr(error.message, "': its format is i, not l"));
}
END_TEST

int main(void)
{
    return suite_main(
        "schema_compare", set_up, tear_down,
        suite_tests("comparing", some_things_do_not_count, the_root_is_compared,
                    a_root_that_is_no_struct_may_differ_in_nullability,
                    fields_are_named_by_their_paths, flags_are_compared,
                    dictionaries_are_compared, broken_schemas_are_not_followed,
                    long_paths_are_cut, NULL),
        NULL);
}
