/* SPDX-License-Identifier: Apache-2.0 */
/* Valid and invalid command lines. */
#include "options.h"
#include "support/check_suite.h"

#include <check.h>
#include <string.h>

#define WORDS_MAX 12

/* Reads a command line of words that are separated by blanks. */
static int read_line(struct uva__options *options, char *line,
                     struct uva_error *error)
{
    char *words[WORDS_MAX] = {0};
    int count = 0;
    char *word;

    for (word = strtok(line, " "); word != NULL; word = strtok(NULL, " "))
        words[count++] = word;
    return uva__options_init(options, words, UVA__OPTIONS_OUTPUT, error);
}

START_TEST(options_stand_before_and_after_the_query)
{
    char line[] = "--driver d.so SELECT --uri=file:x?a=b --quiet --output o "
                  "--trace=t";
    struct uva__options options;

    ck_assert_int_eq(read_line(&options, line, NULL), 0);
    ck_assert_str_eq(options.driver, "d.so");
    ck_assert_ptr_null(options.entrypoint);
    ck_assert_str_eq(options.uri, "file:x?a=b");
    ck_assert_str_eq(options.sql, "SELECT");
    ck_assert_str_eq(options.output, "o");
    ck_assert_str_eq(options.trace, "t");
    ck_assert(options.quiet && !options.help);
    uva__options_fini(&options);
}
END_TEST

START_TEST(the_database_stands_before_the_query)
{
    char line[] = "grpc://d --quiet SELECT", named[] = "--driver d a.db SELECT";
    struct uva__options options;

    ck_assert_int_eq(read_line(&options, line, NULL), 0);
    ck_assert_ptr_null(options.driver);
    ck_assert_str_eq(options.uri, "grpc://d");
    ck_assert_str_eq(options.sql, "SELECT");
    uva__options_fini(&options);
    ck_assert_int_eq(read_line(&options, named, NULL), 0);
    ck_assert_str_eq(options.uri, "a.db");
    uva__options_fini(&options);
}
END_TEST

START_TEST(settings_keep_their_place_and_order)
{
    char line[] = "--driver d --option a=1 --statement-option b=c=2 "
                  "--connection-option=c= S";
    struct uva__options options;

    ck_assert_int_eq(read_line(&options, line, NULL), 0);
    ck_assert_uint_eq(options.n_settings, 3);
    ck_assert_int_eq(options.settings[0].place, UVA__SETTING_DATABASE);
    ck_assert_int_eq(options.settings[1].place, UVA__SETTING_STATEMENT);
    ck_assert_int_eq(options.settings[2].place, UVA__SETTING_CONNECTION);
    ck_assert_str_eq(options.settings[1].key, "b");
    ck_assert_str_eq(options.settings[1].value, "c=2");
    ck_assert_str_eq(options.settings[2].value, "");
    uva__options_fini(&options);
}
END_TEST

START_TEST(two_dashes_end_the_options)
{
    char line[] = "--driver d -- --not-an-option";
    struct uva__options options;

    ck_assert_int_eq(read_line(&options, line, NULL), 0);
    ck_assert_str_eq(options.sql, "--not-an-option");
    uva__options_fini(&options);
}
END_TEST

START_TEST(help_needs_nothing_else)
{
    char line[] = "--help";
    struct uva__options options;

    ck_assert_int_eq(read_line(&options, line, NULL), 0);
    ck_assert(options.help);
    uva__options_fini(&options);
}
END_TEST

START_TEST(mistakes_are_explained)
{
    static const struct {
        const char *line, *part;
    } MISTAKES[] = {
        {"SELECT", "no driver"},
        {"--driver d", "no query"},
        {"a.db SELECT", "no driver"},
        {"--driver d D S E", "more than one database"},
        {"--driver d --uri u S E", "more than one database"},
        {"--driver d S --uri", "--uri needs a value"},
        {"--driver d S --quiet=x", "--quiet takes no value"},
        {"--driver d S --quie", "no option '--quie'"},
        {"--driver d S --driverx y", "no option '--driverx'"},
        {"--driver d S --sync", "no option '--sync'"},
        {"--driver d S --option a", "'a' is no setting"},
        {"--driver d S --option =a", "'=a' is no setting"},
    };
    size_t i;

    for (i = 0; i < sizeof(MISTAKES) / sizeof(*MISTAKES); i++) {
        struct uva__options options;
        struct uva_error error = {0};
        char line[100];

        (void)strcpy(line, MISTAKES[i].line);
        ck_assert_int_eq(read_line(&options, line, &error), EINVAL);
        ck_assert_msg(strstr(error.message, MISTAKES[i].part) != NULL, "%s",
                      error.message);
        uva__options_fini(&options);
    }
}
END_TEST

int main(void)
{
    TCase *lines = tcase_create("command lines");

    tcase_add_test(lines, options_stand_before_and_after_the_query);
    tcase_add_test(lines, the_database_stands_before_the_query);
    tcase_add_test(lines, settings_keep_their_place_and_order);
    tcase_add_test(lines, two_dashes_end_the_options);
    tcase_add_test(lines, help_needs_nothing_else);
    tcase_add_test(lines, mistakes_are_explained);
    return suite_main("options", NULL, NULL, lines, NULL);
}
