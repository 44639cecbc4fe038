/* SPDX-License-Identifier: Apache-2.0 */
/* Selects cases, and stores their results. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tck/entries.h"

enum { ALL = UVA_TCK_PRODUCER | UVA_TCK_HANDLER | UVA_TCK_STREAM };

static bool memory_is_out;
static struct uva__case_run_page shared_page;

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

/* ---- breaches of other clauses ------------------------------------------ */

/* Adds a breach to a page, with a line of the transcript. */
static void page_add(const char *clause, bool required)
{
    const uint64_t lines = uva__atomic64_load(&shared_page.lines);
    const uint64_t n = uva__atomic64_load(&shared_page.breached);
    struct uva__case_run_breach *breach = &shared_page.breaches[n];

    (void)snprintf(shared_page.line[lines % UVA__CASE_RUN_LINES],
                   UVA__CASE_RUN_LINE, "line %d of %s", (int)lines + 1, clause);
    uva__atomic64_store(&shared_page.lines, lines + 1);
    *breach = (struct uva__case_run_breach){
        .required = required, .count = 1, .text = "it broke"};
    uva__case_run_page_join(&shared_page, lines + 1, breach->transcript,
                            sizeof(breach->transcript));
    (void)snprintf(breach->clause, sizeof(breach->clause), "%s", clause);
    uva__atomic64_store(&shared_page.breached, n + 1);
}

/* Takes the first `count` cases of a role, all held, and clears the page. */
static void entries_hold(struct uva__tck_entries *entries, size_t count)
{
    ck_assert_int_eq(uva__entries_init(entries, UVA_TCK_PRODUCER, NULL, NULL),
                     0);
    entries->count = count;
    for (size_t i = 0; i < count; i++)
        uva__entry_finish(&entries->all[i], UVA_TCK_HELD, "", "all", "");
    memset(&shared_page, 0, sizeof(shared_page));
}

START_TEST(breaches_of_other_clauses_become_results)
{
    struct uva__tck_entries entries;
    const struct uva_tck_result *result;

    entries_hold(&entries, 3);
    page_add("AT-23", true);
    page_add("AP-09", false);
    for (int i = 1; i < 3; i++)
        ck_assert_int_eq(
            uva__entry_breached(&entries.all[i], &shared_page, NULL), 0);
    ck_assert_int_eq(uva__entries_add_breaches(&entries, NULL), 0);
    ck_assert_uint_eq(entries.count, 5);
    result = &entries.all[3].result;
    ck_assert_str_eq(result->name, "required_AT23_is_kept_in_all_cases");
    ck_assert(result->required && result->verdict == UVA_TCK_BROKEN);
    ck_assert_int_eq(result->role, UVA_TCK_PRODUCER);
    ck_assert_str_eq(result->transcript, "line 1 of AT-23");
    ck_assert_ptr_nonnull(strstr(result->message, "AT-23: it broke (seen in "));
    ck_assert_ptr_nonnull(strstr(result->message, entries.all[1].result.name));
    ck_assert_ptr_nonnull(strstr(result->message, " and 1 more)"));
    result = &entries.all[4].result;
    ck_assert_str_eq(result->name, "recommended_AP09_is_kept_in_all_cases");
    ck_assert(!result->required);
    ck_assert_str_eq(result->transcript, "line 1 of AT-23\nline 2 of AP-09");
    uva__entries_fini(&entries);
}
END_TEST

START_TEST(a_clause_with_a_broken_case_gets_no_other_result)
{
    struct uva__tck_entries entries;
    char clause[8];

    entries_hold(&entries, 2);
    uva__cases_clause(entries.all[0].result.name, clause);
    page_add(clause, true);
    ck_assert_int_eq(uva__entry_breached(&entries.all[1], &shared_page, NULL),
                     0);
    entries.all[0].result.verdict = UVA_TCK_BROKEN;
    ck_assert_int_eq(uva__entries_add_breaches(&entries, NULL), 0);
    ck_assert_uint_eq(entries.count, 2);
    entries.all[0].result.required = false; /* less than this breach */
    ck_assert_int_eq(uva__entries_add_breaches(&entries, NULL), 0);
    ck_assert_uint_eq(entries.count, 3);
    uva__entries_fini(&entries);
}
END_TEST

START_TEST(a_case_without_breaches_adds_nothing)
{
    struct uva__tck_entries entries;

    entries_hold(&entries, 2);
    ck_assert_int_eq(uva__entry_breached(&entries.all[0], &shared_page, NULL),
                     0);
    ck_assert_ptr_null(entries.all[0].breaches);
    ck_assert_int_eq(uva__entries_add_breaches(&entries, NULL), 0);
    ck_assert_uint_eq(entries.count, 2);
    uva__entries_fini(&entries);
}
END_TEST

START_TEST(a_page_that_a_crash_spoilt_is_read_all_the_same)
{
    struct uva__tck_entries entries;

    entries_hold(&entries, 1);
    memset(&shared_page, 'x', sizeof(shared_page));
    uva__atomic64_store(&shared_page.lines, UVA__CASE_RUN_LINES * 3);
    ck_assert_int_eq(uva__entry_breached(&entries.all[0], &shared_page, NULL),
                     0);
    ck_assert_uint_eq(entries.all[0].breached, UVA__CASE_RUN_BREACHES);
    ck_assert_int_eq(uva__entries_add_breaches(&entries, NULL), 0);
    ck_assert_uint_eq(entries.count, 2);
    ck_assert_uint_eq(strlen(entries.all[1].result.transcript),
                      sizeof(shared_page.breaches->transcript) - 1);
    uva__entries_fini(&entries);
}
END_TEST

START_TEST(only_lines_that_are_still_there_are_joined)
{
    char text[4 * UVA__CASE_RUN_LINE + 1];

    memset(&shared_page, 0, sizeof(shared_page));
    for (int i = 0; i < UVA__CASE_RUN_LINES + 2; i++)
        (void)snprintf(shared_page.line[i % UVA__CASE_RUN_LINES],
                       UVA__CASE_RUN_LINE, "%d", i);
    uva__atomic64_store(&shared_page.lines, UVA__CASE_RUN_LINES + 2);
    uva__case_run_page_join(&shared_page, UVA__CASE_RUN_LINES + 2, text,
                            sizeof(text));
    ck_assert_str_eq(text, "254\n255\n256\n257");
    uva__case_run_page_join(&shared_page, 4, text, sizeof(text));
    ck_assert_str_eq(text, "2\n3"); /* 0 and 1 were overwritten */
    uva__case_run_page_join(&shared_page, 0, text, sizeof(text));
    ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(without_memory_breaches_are_not_lost_in_silence)
{
    struct uva__tck_entries entries;
    struct uva_error error = {0};

    entries_hold(&entries, 1);
    page_add("AT-23", true);
    memory_is_out = true;
    ck_assert_int_eq(uva__entry_breached(&entries.all[0], &shared_page, &error),
                     ENOMEM);
    memory_is_out = false;
    ck_assert_str_eq(error.message, "out of memory");
    ck_assert_int_eq(uva__entry_breached(&entries.all[0], &shared_page, NULL),
                     0);
    error = (struct uva_error){0};
    memory_is_out = true;
    ck_assert_int_eq(uva__entries_add_breaches(&entries, &error), ENOMEM);
    memory_is_out = false;
    ck_assert_str_eq(error.message, "out of memory");
    ck_assert_uint_eq(entries.count, 1);
    uva__entries_fini(&entries);
}
END_TEST

START_TEST(the_level_of_a_clause_is_that_of_its_strictest_case)
{
    ck_assert_int_eq(uva__cases_level(UVA_TCK_PRODUCER, "AH-03"),
                     UVA__CASES_REQUIRED);
    ck_assert_int_eq(uva__cases_level(UVA_TCK_PRODUCER, "AP-09"),
                     UVA__CASES_RECOMMENDED);
    ck_assert_int_eq(uva__cases_level(UVA_TCK_PRODUCER, "DS-13"),
                     UVA__CASES_UNLISTED);
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
    tcase_add_test(all, breaches_of_other_clauses_become_results);
    tcase_add_test(all, a_clause_with_a_broken_case_gets_no_other_result);
    tcase_add_test(all, a_case_without_breaches_adds_nothing);
    tcase_add_test(all, a_page_that_a_crash_spoilt_is_read_all_the_same);
    tcase_add_test(all, only_lines_that_are_still_there_are_joined);
    tcase_add_test(all, without_memory_breaches_are_not_lost_in_silence);
    tcase_add_test(all, the_level_of_a_clause_is_that_of_its_strictest_case);
    suite_add_tcase(suite, all);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
