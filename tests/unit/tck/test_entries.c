/* SPDX-License-Identifier: Apache-2.0 */
/* Selects cases, and stores their results. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tck/entries.h"

enum { ALL = UVA_TCK_PRODUCER | UVA_TCK_HANDLER | UVA_TCK_STREAM };

static bool memory_is_out;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);

void *__wrap_calloc(size_t count, size_t size)
{
    return memory_is_out ? NULL : __real_calloc(count, size);
}

char *__wrap_strdup(const char *text)
{
    return memory_is_out ? NULL : __real_strdup(text);
}

/* ---- selection ---------------------------------------------------------- */

static size_t count_of(unsigned roles, const char *filter)
{
    struct uva__tck_entries entries;
    struct uva_error error = {0};
    size_t count;

    if (uva__entries_init(&entries, roles, filter, &error) != 0)
        return 0;
    count = entries.count;
    uva__entries_fini(&entries);
    ck_assert_ptr_null(entries.all);
    return count;
}

START_TEST(the_cases_of_all_roles_are_those_of_each)
{
    ck_assert_uint_gt(count_of(UVA_TCK_PRODUCER, NULL), 100);
    ck_assert_uint_gt(count_of(UVA_TCK_HANDLER, NULL), 50);
    ck_assert_uint_gt(count_of(UVA_TCK_STREAM, NULL), 20);
    ck_assert_uint_eq(count_of(ALL, NULL), count_of(UVA_TCK_PRODUCER, NULL) +
                                               count_of(UVA_TCK_HANDLER, NULL) +
                                               count_of(UVA_TCK_STREAM, NULL));
}
END_TEST

START_TEST(a_filter_is_a_clause_however_written_or_a_part_of_names)
{
    const size_t count = count_of(UVA_TCK_PRODUCER, "AP-06");

    ck_assert_uint_gt(count, 1);
    ck_assert_uint_eq(count_of(UVA_TCK_PRODUCER, "AP06"), count);
    ck_assert_uint_eq(count_of(UVA_TCK_PRODUCER, "ap-06"), count);
    ck_assert_uint_eq(count_of(UVA_TCK_PRODUCER, "ap06"), count);
    ck_assert_uint_eq(count_of(UVA_TCK_PRODUCER, "required_AP06_"), count);
    ck_assert_uint_eq(
        count_of(UVA_TCK_PRODUCER, "never_more_tasks_than_requested"), 1);
    ck_assert_uint_eq(count_of(UVA_TCK_HANDLER, "AP-06"), 0);
}
END_TEST

START_TEST(a_filter_that_fits_nothing_is_an_error_and_named)
{
    struct uva__tck_entries entries;
    struct uva_error error = {0};

    ck_assert_int_eq(uva__entries_init(&entries, ALL, "AP-99", &error), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "'AP-99'"));
    uva__entries_fini(&entries);
    ck_assert_int_eq(uva__entries_init(&entries, 0, NULL, &error), EINVAL);
    uva__entries_fini(&entries);
}
END_TEST

START_TEST(each_entry_is_what_its_name_says)
{
    struct uva__tck_entries entries;

    ck_assert_int_eq(uva__entries_init(&entries, ALL, NULL, NULL), 0);
    for (size_t i = 0; i < entries.count; i++) {
        const struct uva__tck_entry *entry = &entries.all[i];

        ck_assert_str_eq(entry->result.name, entry->what->name);
        ck_assert_int_eq(entry->result.required,
                         strstr(entry->what->name, "required_") ==
                             entry->what->name);
        ck_assert(i == 0 || entry->result.role >= entry[-1].result.role);
        ck_assert(!entry->over);
    }
    uva__entries_fini(&entries);
}
END_TEST

START_TEST(every_role_has_a_name)
{
    ck_assert_str_eq(uva__entries_role(UVA_TCK_PRODUCER), "producer");
    ck_assert_str_eq(uva__entries_role(UVA_TCK_HANDLER), "handler");
    ck_assert_str_eq(uva__entries_role(UVA_TCK_STREAM), "stream");
}
END_TEST

/* ---- results ------------------------------------------------------------ */

START_TEST(the_texts_of_a_result_are_copied)
{
    struct uva__tck_entries entries;
    struct uva__tck_entry *entry;
    char why[] = "why not";

    ck_assert_int_eq(uva__entries_init(&entries, ALL, NULL, NULL), 0);
    entry = &entries.all[0];
    uva__entry_finish(entry, UVA_TCK_BROKEN, why, NULL, "");
    why[0] = 'W';
    ck_assert(entry->over);
    ck_assert_int_eq(entry->result.verdict, UVA_TCK_BROKEN);
    ck_assert_str_eq(entry->result.message, "why not");
    ck_assert_str_eq(entry->result.transcript, "");
    ck_assert_str_eq(entry->result.output, "");
    uva__entries_fini(&entries);
}
END_TEST

START_TEST(without_memory_there_are_no_cases_and_no_texts)
{
    struct uva__tck_entries entries;
    struct uva_error error = {0};

    memory_is_out = true;
    ck_assert_int_eq(uva__entries_init(&entries, ALL, NULL, &error), ENOMEM);
    memory_is_out = false;
    ck_assert_str_eq(error.message, "out of memory");
    uva__entries_fini(&entries);
    ck_assert_int_eq(uva__entries_init(&entries, ALL, NULL, NULL), 0);
    memory_is_out = true;
    uva__entry_finish(&entries.all[0], UVA_TCK_HELD, "a", "b", "c");
    memory_is_out = false;
    ck_assert_str_eq(entries.all[0].result.message, "");
    ck_assert_str_eq(entries.all[0].result.transcript, "");
    ck_assert_str_eq(entries.all[0].result.output, "");
    ck_assert(entries.all[0].over);
    uva__entries_fini(&entries);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("entries");
    TCase *all = tcase_create("entries");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_test(all, the_cases_of_all_roles_are_those_of_each);
    tcase_add_test(all,
                   a_filter_is_a_clause_however_written_or_a_part_of_names);
    tcase_add_test(all, a_filter_that_fits_nothing_is_an_error_and_named);
    tcase_add_test(all, each_entry_is_what_its_name_says);
    tcase_add_test(all, every_role_has_a_name);
    tcase_add_test(all, the_texts_of_a_result_are_copied);
    tcase_add_test(all, without_memory_there_are_no_cases_and_no_texts);
    suite_add_tcase(suite, all);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
