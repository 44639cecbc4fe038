/* SPDX-License-Identifier: Apache-2.0 */
/* Options as programs give them and as they are kept. */
#include "adbc/pairs.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_suite.h"

/* Expects the texts, up to a NULL; frees them. */
static void kept(char **is, const char *const *expected)
{
    ck_assert_ptr_nonnull(is);
    for (; *expected != NULL; expected++, is++)
        ck_assert_str_eq(*is, *expected);
    ck_assert_ptr_null(*is);
}

START_TEST(texts_are_copied_by_their_sizes)
{
    const struct uva_pair given[] = {
        {.key = "uri", .value = "flights.db"},
        {.key = "keys", .value = "values", .key_size = 3, .value_size = 5},
        {.key = "empty"},
        {0}};
    static const char *const expected[] = {
        "uri", "flights.db", "key", "value", "empty", "", NULL};
    char **copy = uva__pairs_read(given);

    kept(copy, expected);
    ck_assert_str_eq(*uva__pairs_find(copy, "key"), "value");
    ck_assert_ptr_null(uva__pairs_find(copy, "value"));
    free(copy);
}
END_TEST

START_TEST(no_list_is_an_empty_one)
{
    static const char *const expected[] = {NULL};
    char **copy = uva__pairs_read(NULL);

    kept(copy, expected);
    free(copy);
    ck_assert(uva__pairs_are_texts(NULL));
}
END_TEST

START_TEST(drivers_take_no_nul)
{
    struct uva_pair given[] = {{.key = "a", .value = "b\0c"}, {0}};

    ck_assert(uva__pairs_are_texts(given)); /* up to it */
    given[0].value_size = 3;
    ck_assert(!uva__pairs_are_texts(given));
    given[0] = (struct uva_pair){.key = "a\0b", .key_size = 3};
    ck_assert(!uva__pairs_are_texts(given));
    given[0].key_size = 1;
    ck_assert(uva__pairs_are_texts(given));
}
END_TEST

int main(void)
{
    return suite_main("pairs", NULL, NULL,
                      suite_tests("options", texts_are_copied_by_their_sizes,
                                  no_list_is_an_empty_one, drivers_take_no_nul,
                                  NULL),
                      NULL);
}
