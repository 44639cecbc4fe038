/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of hostile databases: bytes that a terminal would obey, and columns
 * without names. */
#include "plan.h"
#include "support/check_suite.h"
#include "text_rows.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* Makes the plan of one row of `columns` texts, of which the last is `text`. */
static char *plan_of(const char *const *names, int columns, const char *text)
{
    struct uva__text_rows rows = {.columns = columns};
    struct uva__plan plan = {0};
    struct ArrowSchema schema;
    struct ArrowDeviceArray batch;
    struct uva_error error = {0};
    char *out;
    size_t size;

    ck_assert_int_eq(uva__text_rows_schema(names, columns, &schema), 0);
    for (int i = 1; i < columns; i++)
        uva__text_rows_add(&rows, "1", 1);
    uva__text_rows_add(&rows, text, strlen(text));
    ck_assert_int_eq(uva__text_rows_take(&rows, &batch), 0);
    uva__text_rows_fini(&rows);
    ck_assert_int_eq(
        uva__plan_text(&plan, &schema, &batch, &out, &size, &error), 0);
    if (batch.array.release != NULL)
        batch.array.release(&batch.array);
    schema.release(&schema);
    ck_assert_uint_eq(size, strlen(out));
    return out;
}

static const struct {
    const char *text, *shown;
} TEXTS[] = {
    {"SCAN t\033]0;pwned\007", "SCAN t\\x1b]0;pwned\\x07\n"},
    {"a\rb\tc\x7f", "a\\rb\\tc\\x7f\n"},
    {"a\xff", "a\\xff\n"},
    {"a\xe2\x80\xae", "a\\u202e\n"},
    {"┌──┐\n│é │\n└──┘\n\n", "┌──┐\n│é │\n└──┘\n"},
    {"\n", "\n"},
    {"", "\n"},
};

START_TEST(a_plan_moves_no_cursor)
{
    static const char *const NAMES[] = {"plan"};
    char *text = plan_of(NAMES, 1, TEXTS[_i].text);

    ck_assert_str_eq(text, TEXTS[_i].shown);
    free(text);
}
END_TEST

START_TEST(columns_need_no_names)
{
    static const char *const NAMES[][4] = {{NULL, NULL, NULL, NULL},
                                           {"id", NULL, NULL, "detail"}};
    char *text = plan_of(NAMES[_i], 4, "SCAN t");

    ck_assert_str_eq(text, "SCAN t\n");
    free(text);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("plan");

    suite_add_loops(tc, 0, sizeof(TEXTS) / sizeof(*TEXTS),
                    a_plan_moves_no_cursor, NULL);
    suite_add_loops(tc, 0, 2, columns_need_no_names, NULL);
    return suite_main("plan_text", NULL, NULL, tc, NULL);
}
