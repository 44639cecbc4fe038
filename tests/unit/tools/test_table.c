/* SPDX-License-Identifier: Apache-2.0 */
/* A table and a plan of rows of texts, also without memory: each allocation
 * fails once. */
#include "plan.h"
#include "support/check_suite.h"
#include "support/faulty_libc.h"
#include "table.h"
#include "text_rows.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const NAMES[] = {"a", "b"};

/* Makes a batch of `count` rows: its number, and a null. */
static int make_batch(int count, struct ArrowDeviceArray *out)
{
    struct uva__text_rows rows = {.columns = 2};
    char text[16];
    int code;

    for (int i = 0; i < count; i++) {
        (void)snprintf(text, sizeof(text), "%d", i);
        uva__text_rows_add(&rows, text, strlen(text));
        uva__text_rows_add(&rows, NULL, 0);
    }
    code = uva__text_rows_take(&rows, out);
    uva__text_rows_fini(&rows);
    return code;
}

/* Prints the batch as a table; returns a code. */
static int show_table(int count, char **text, size_t *size)
{
    const struct uva__table_style style = {.is_ascii = true};
    struct uva__table table = {0};
    struct ArrowSchema schema;
    struct ArrowDeviceArray batch;
    struct uva_error error = {0};
    int code = uva__text_rows_schema(NAMES, 2, &schema);

    if (code != 0)
        return code;
    code = uva__table_begin(&table, &schema);
    schema.release(&schema);
    if (code == 0)
        code = make_batch(count, &batch);
    if (code == 0) {
        uva__table_add(&table, &batch);
        code = uva__table_print(&table, &style, text, size, &error);
    }
    uva__table_fini(&table);
    return code;
}

static int show_plan(char **text, size_t *size)
{
    struct uva__plan plan = {0};
    struct ArrowSchema schema;
    struct ArrowDeviceArray batch;
    struct uva_error error = {0};
    int code = uva__text_rows_schema(NAMES, 2, &schema);

    if (code != 0)
        return code;
    code = make_batch(3, &batch);
    if (code == 0) {
        code = uva__plan_text(&plan, &schema, &batch, text, size, &error);
        if (batch.array.release != NULL)
            batch.array.release(&batch.array);
    }
    schema.release(&schema);
    return code;
}

START_TEST(a_table_is_printed)
{
    char *text;
    size_t size;

    ck_assert_int_eq(show_table(2, &text, &size), 0);
    ck_assert_str_eq(text, " a    | b\n text | text\n------+------\n"
                           " 0    | NULL\n 1    | NULL\n");
    ck_assert_uint_eq(size, strlen(text));
    free(text);
    ck_assert_int_eq(show_table(0, &text, &size), 0);
    ck_assert_str_eq(text, " a    | b\n text | text\n------+------\n");
    free(text);
    ck_assert_int_eq(show_plan(&text, &size), 0);
    ck_assert_str_eq(text, "\n\n\n");
    free(text);
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    char *text;
    size_t size;
    int code = ENOMEM;

    for (int n = 1; code != 0 && n < 2000; n++) {
        text = NULL;
        faulty_libc_fail(n);
        code = _i == 0 ? show_table(50, &text, &size) : show_plan(&text, &size);
        if (!faulty_libc_stop()) /* there are not so many */
            break;
        ck_assert_msg(code == 0 || code == ENOMEM, "%d: %d", n, code);
        ck_assert(code == 0 || text == NULL);
        free(text);
        text = NULL;
        code = ENOMEM;
    }
    ck_assert_int_eq(code, 0);
    free(text);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("table");

    tcase_add_loop_test(tc, each_allocation_may_fail, 0, 2);
    suite_add(tc, a_table_is_printed, NULL);
    return suite_main("table", NULL, NULL, tc, NULL);
}
