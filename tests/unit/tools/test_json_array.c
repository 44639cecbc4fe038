/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of an array of JSON, of lines in one buffer or in many. */
#include "json_array.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "support/check_suite.h"
#include "support/faulty_libc.h"

/* Adds a part to a text; `texts` ends with NULL. */
static void add(struct uva__json_array *array, char *all, int64_t rows,
                const char *const *texts)
{
    uv_buf_t buffers[8];
    struct uva_part part = {.buffers = buffers, .rows = rows};
    size_t size;
    char *text;

    for (; *texts != NULL; texts++) {
        buffers[part.count++] =
            uv_buf_init((char *)(uintptr_t)*texts, (unsigned)strlen(*texts));
        part.bytes += (int64_t)strlen(*texts);
    }
    text = uva__json_array_text(array, &part, &size);
    ck_assert_ptr_nonnull(text);
    (void)strncat(all, text, size);
    free(text);
}

START_TEST(lines_become_an_array)
{
    struct uva__json_array array = {0};
    char all[100] = "";

    add(&array, all, 1, (const char *const[]){"{}\n", NULL});
    add(&array, all, 2, (const char *const[]){"{\"a\"", ":1}\n{}", "\n", NULL});
    add(&array, all, 3, (const char *const[]){"{}\n{}\n{}\n", NULL});
    (void)strcat(all, uva__json_array_end(&array));
    ck_assert_str_eq(all, "[{},\n{\"a\":1},\n{},\n{},\n{},\n{}]\n");
}
END_TEST

START_TEST(no_lines_are_an_empty_array)
{
    const struct uva__json_array array = {0};

    ck_assert_str_eq(uva__json_array_end(&array), "[]\n");
}
END_TEST

START_TEST(without_memory_there_is_no_text)
{
    char line[] = "{}\n";
    const uv_buf_t buffer = {.base = line, .len = 3};
    struct uva_part part = {
        .buffers = &buffer, .count = 1, .bytes = 3, .rows = 1};
    struct uva__json_array array = {0};
    size_t size;

    faulty_libc_fail(1);
    ck_assert_ptr_null(uva__json_array_text(&array, &part, &size));
    ck_assert(faulty_libc_stop());
}
END_TEST

int main(void)
{
    return suite_main("json_array", NULL, NULL,
                      suite_tests("json_array", lines_become_an_array,
                                  no_lines_are_an_empty_array,
                                  without_memory_there_is_no_text, NULL),
                      NULL);
}
