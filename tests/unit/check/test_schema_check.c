/* SPDX-License-Identifier: Apache-2.0 */
/* Whether two schemas are equal. test_array_check.c has the faults of one
 * schema. */
#include "check/schema_check.h"

#include <check.h>

#include "support/check_suite.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

enum { TEXT, WORDS, FIELDS };

static void make_schema(struct ArrowSchema *schema)
{
    plain_schema(schema, "+s", NULL, FIELDS);
    plain_schema(schema->children[TEXT], "u", "text", 0);
    plain_schema(schema->children[WORDS], "c", "words", 0);
    plain_schema(plain_schema_dictionary(schema->children[WORDS]), "g", "", 0);
}

static bool equals(const struct ArrowSchema *a, const struct ArrowSchema *b)
{
    ck_assert(uva__schema_equals(a, b) == uva__schema_equals(b, a));
    return uva__schema_equals(a, b);
}

START_TEST(schemas_are_equal_that_say_the_same)
{
    static const int32_t NONE[] = {0}, ONE[] = {1, 0, 0};
    struct ArrowSchema a, b;

    make_schema(&a);
    make_schema(&b);
    a.name = "";
    b.metadata = (const char *)NONE;
    ck_assert(equals(&a, &b));
    a.metadata = (const char *)NONE;
    ck_assert(equals(&a, &b));
    a.metadata = b.metadata = (const char *)ONE;
    ck_assert(equals(&a, &b));
    uva_schema_release(&a);
    uva_schema_release(&b);
}
END_TEST

/* Changes one field. */
static void vary(struct ArrowSchema *schema, int how)
{
    static const int32_t ONE[] = {1, 0, 0}, OTHER[] = {1, 0, 1, 0x61},
                         MINUS[] = {-1};

    if (how == 0)
        schema->children[TEXT]->name = "txt";
    else if (how == 1)
        schema->children[TEXT]->format = "U";
    else if (how == 2)
        schema->children[TEXT]->flags = ARROW_FLAG_NULLABLE;
    else if (how == 3)
        schema->metadata = (const char *)ONE;
    else if (how == 4)
        schema->metadata = (const char *)OTHER;
    else if (how == 5)
        schema->metadata = (const char *)MINUS;
    else if (how == 6)
        schema->children[WORDS]->dictionary->format = "f";
    else if (how == 7)
        schema->children[TEXT]->n_children = -1;
    else if (how == 8)
        schema->children[TEXT]->release(schema->children[TEXT]);
}

START_TEST(schemas_differ_by_any_detail)
{
    struct ArrowSchema a, b, *dictionary, **children;

    for (int i = 0; i < 9; i++) {
        make_schema(&a);
        make_schema(&b);
        vary(&b, i);
        ck_assert_msg(!equals(&a, &b), "%d", i);
        if (i == 4) {
            vary(&a, 3);
            ck_assert(!equals(&a, &b));
        } else if (i == 5 || i == 7 || i == 8) {
            vary(&a, i);
            ck_assert(!equals(&a, &b)); /* their content is unknown */
        }
        a.children[TEXT]->n_children = b.children[TEXT]->n_children = 0;
        uva_schema_release(&a);
        uva_schema_release(&b);
    }
    make_schema(&a);
    make_schema(&b);
    a.metadata = (const char *)(const int32_t[]){1, 1, 0x61, 0};
    b.metadata = (const char *)(const int32_t[]){1, 1, 0x62, 0};
    ck_assert(!equals(&a, &b));
    uva_schema_release(&a);
    uva_schema_release(&b);
    make_schema(&a);
    make_schema(&b);
    dictionary = b.children[WORDS]->dictionary;
    b.children[WORDS]->dictionary = NULL;
    ck_assert(!equals(&a, &b));
    b.children[WORDS]->dictionary = dictionary;
    children = b.children;
    b.children = NULL;
    ck_assert(!equals(&a, &b));
    b.children = children;
    uva_schema_release(&a);
    uva_schema_release(&b);
    ck_assert_int_eq(plain_live(), 0);
}
END_TEST

START_TEST(schemas_without_an_end_are_never_equal)
{
    struct ArrowSchema a, b, *item;

    plain_schema(&a, "+s", "", 1);
    plain_schema(a.children[0], "+s", "", 1);
    item = a.children[0]->children[0];
    a.children[0]->children[0] = a.children[0];
    b = a;
    ck_assert(!equals(&a, &b));
    a.children[0]->children[0] = item;
    uva_schema_release(&a);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("schemas");

    tcase_add_test(tcase, schemas_are_equal_that_say_the_same);
    tcase_add_test(tcase, schemas_differ_by_any_detail);
    tcase_add_test(tcase, schemas_without_an_end_are_never_equal);
    return suite_main("schema_check", NULL, NULL, tcase, NULL);
}
