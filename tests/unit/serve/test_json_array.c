/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of an array of JSON, of lines in one buffer or in many. */
#include "json_array.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/faulty_libc.h"

/* Adds a part to a text; `texts` ends with NULL. */
static void add(char *all, int64_t rows, const char *const *texts)
{
    uv_buf_t buffers[8];
    struct uva_part part = {.buffers = buffers, .rows = rows};
    struct uva__transport_part out;
    const size_t before = strlen(all);
    int64_t size;

    for (; *texts != NULL; texts++) {
        buffers[part.count++] =
            uv_buf_init((char *)(uintptr_t)*texts, (unsigned)strlen(*texts));
        part.bytes += (int64_t)strlen(*texts);
    }
    size = uva__json_array_next(&part, before == 0, &out);
    ck_assert_int_gt(size, 0);
    ck_assert_uint_eq(out.count, 1);
    ck_assert_uint_eq(out.buffers[0].len, (size_t)size);
    memcpy(all + before, out.buffers[0].base, (size_t)size);
    all[before + (size_t)size] = '\0';
    out.release(out.owner);
}

static void add_last(char *all)
{
    struct uva__transport_part out;
    const int64_t size = uva__json_array_last(*all == '\0', &out);

    (void)strncat(all, out.buffers[0].base, (size_t)size);
    ck_assert(out.release == NULL);
}

START_TEST(lines_become_an_array)
{
    char all[100] = "";

    add(all, 1, (const char *const[]){"{}\n", NULL});
    add(all, 2, (const char *const[]){"{\"a\"", ":1}\n{}", "\n", NULL});
    add(all, 3, (const char *const[]){"{}\n{}\n{}\n", NULL});
    add_last(all);
    ck_assert_str_eq(all, "[{},\n{\"a\":1},\n{},\n{},\n{},\n{}]\n");
}
END_TEST

START_TEST(no_lines_are_an_empty_array)
{
    char all[100] = "";

    add_last(all);
    ck_assert_str_eq(all, "[]\n");
}
END_TEST

START_TEST(without_memory_there_is_no_part)
{
    char line[] = "{}\n";
    const uv_buf_t buffer = {.base = line, .len = 3};
    struct uva_part part = {
        .buffers = &buffer, .count = 1, .bytes = 3, .rows = 1};
    struct uva__transport_part out;

    faulty_libc_fail(1);
    ck_assert_int_eq(uva__json_array_next(&part, true, &out), -ENOMEM);
    ck_assert(faulty_libc_stop());
}
END_TEST

int main(void)
{
    return suite_main("json_array", NULL, NULL,
                      suite_tests("json_array", lines_become_an_array,
                                  no_lines_are_an_empty_array,
                                  without_memory_there_is_no_part, NULL),
                      NULL);
}
