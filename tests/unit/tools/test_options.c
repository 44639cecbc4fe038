/* SPDX-License-Identifier: Apache-2.0 */
/* Valid and invalid command lines. */
#include "options.h"
#include "support/check_suite.h"

#include <check.h>
#include <stdio.h>
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

START_TEST(formats_have_options)
{
    char plain[] = "--driver d S", arrow[] = "--driver d --format arrow S";
    char csv[] = "--driver d --format=csv --null=N --delimiter \\t --no-header "
                 "--as-stored "
                 "--verbose S";
    struct uva__options options;

    ck_assert_int_eq(read_line(&options, plain, NULL), 0);
    ck_assert_int_eq(options.encode.format, UVA_FORMAT_CSV);
    ck_assert(!options.encode.csv.rows_only && !options.verbose);
    ck_assert(!options.encode.as_stored);
    ck_assert_int_eq(options.encode.csv.delimiter, 0);
    ck_assert_int_eq(read_line(&options, arrow, NULL), 0);
    ck_assert_int_eq(options.encode.format, UVA_FORMAT_ARROW);
    ck_assert_int_eq(read_line(&options, csv, NULL), 0);
    ck_assert_int_eq(options.encode.format, UVA_FORMAT_CSV);
    ck_assert_str_eq(options.encode.csv.null_text, "N");
    ck_assert_int_eq(options.encode.csv.delimiter, '\t');
    ck_assert(options.encode.csv.rows_only && options.verbose);
    ck_assert(options.encode.as_stored);
    uva__options_fini(&options);
}
END_TEST

START_TEST(the_ending_of_the_output_is_a_format)
{
    static const struct {
        const char *words;
        enum uva_format format;
    } LINES[] = {
        {"--output a.arrow", UVA_FORMAT_ARROW_FILE},
        {"--output a.feather", UVA_FORMAT_ARROW_FILE},
        {"--output a.arrows", UVA_FORMAT_ARROW},
        {"--output b.c/a.JSONL", UVA_FORMAT_JSON},
        {"--output=a.ndjson", UVA_FORMAT_JSON},
        {"--output a.csv", UVA_FORMAT_CSV},
        {"--output b.json/a", UVA_FORMAT_CSV},
        {"--output b/.json", UVA_FORMAT_CSV},
        {"--output a.csv --format arrow-file", UVA_FORMAT_ARROW_FILE},
        {"--format csv --output a.parquet", UVA_FORMAT_CSV},
    };
    size_t i;

    for (i = 0; i < sizeof(LINES) / sizeof(*LINES); i++) {
        struct uva__options options;
        char line[100];

        (void)snprintf(line, sizeof(line), "--driver d S %s", LINES[i].words);
        ck_assert_int_eq(read_line(&options, line, NULL), 0);
        ck_assert_int_eq(options.encode.format, LINES[i].format);
        uva__options_fini(&options);
    }
}
END_TEST

/* Writes `text` into a file, the path of which is returned. */
static const char *file_of(const char *text, size_t size)
{
    static char path[] = UVA_TEST_BUILD "/test_options.sql";
    FILE *file = fopen(path, "we");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

static int read_file(const char *path, struct uva__options *options,
                     struct uva_error *error)
{
    static char line[500]; /* the options point into it */

    (void)snprintf(line, sizeof(line), "--driver d a.db --file %s", path);
    return read_line(options, line, error);
}

START_TEST(a_query_is_read_from_a_file)
{
    static char large[(16 << 20) + 100];
    struct uva__options options;
    struct uva_error error = {0};
    char input[] = "--driver d -";

    ck_assert_int_eq(read_file(file_of("SELECT\n1", 8), &options, NULL), 0);
    ck_assert_str_eq(options.sql, "SELECT\n1");
    ck_assert_str_eq(options.uri, "a.db");
    uva__options_fini(&options);
    memset(large, 'x', sizeof(large));
    ck_assert_int_eq(read_file(file_of(large, 100000), &options, NULL), 0);
    ck_assert_uint_eq(strlen(options.sql), 100000);
    uva__options_fini(&options);
    ck_assert_int_eq(read_file(file_of(large, sizeof(large)), &options, &error),
                     EFBIG);
    ck_assert_int_eq(read_file(file_of("a\0b", 3), &options, &error), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "NUL"));
    ck_assert_int_eq(read_file(file_of(" ;\n", 3), &options, &error), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "no query in"));
    ck_assert_int_eq(read_file("/nowhere.sql", &options, &error), ENOENT);
    ck_assert_ptr_nonnull(strstr(error.message, "/nowhere.sql"));
    ck_assert_int_eq(read_file(UVA_TEST_BUILD, &options, &error), EISDIR);
    ck_assert_ptr_nonnull(freopen(file_of("SELECT 2", 8), "re", stdin));
    ck_assert_int_eq(read_line(&options, input, NULL), 0);
    ck_assert_str_eq(options.sql, "SELECT 2");
    uva__options_fini(&options);
    (void)remove(UVA_TEST_BUILD "/test_options.sql");
}
END_TEST

START_TEST(parameters_keep_their_order)
{
    char line[] = "--driver d --param 1 S --param=a=b --param null";
    char missing[] = "--driver d S --param",
         large[] = "--driver d --param 1e999";
    char *many[2 * (UVA__OPTIONS_PARAMS + 1) + 1] = {NULL};
    char option[] = "--param", value[] = "\"x\"";
    struct uva__options options;
    struct uva_error error = {0};
    size_t i;

    ck_assert_int_eq(read_line(&options, line, NULL), 0);
    ck_assert_uint_eq(options.n_params, 3);
    ck_assert(options.params[0].type == UVA_VALUE_INT &&
              options.params[0].integer == 1);
    ck_assert_str_eq(options.params[1].data, "a=b");
    ck_assert_int_eq(options.params[2].type, UVA_VALUE_NULL);
    uva__options_fini(&options);
    ck_assert_int_eq(read_line(&options, missing, &error), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "--param needs"));
    uva__options_fini(&options);
    ck_assert_int_eq(read_line(&options, large, &error), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "1e999"));
    uva__options_fini(&options);
    for (i = 0; i <= UVA__OPTIONS_PARAMS; i++) {
        many[2 * i] = option;
        many[2 * i + 1] = value;
    }
    ck_assert_int_eq(
        uva__options_init(&options, many, UVA__OPTIONS_OUTPUT, &error), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "more than 100 parameters"));
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
        {"--driver d D S E", "more than one database"},
        {"--driver d --uri u S E", "more than one database"},
        {"--from f S", "--from reads rows"},
        {"--from f --file x", "--from reads rows"},
        {"--from f --driver d", "--from reads rows"},
        {"--from f --uri u", "--from reads rows"},
        {"--from f --option k=v", "--from reads rows"},
        {"--from f --format json --null=", "--null is for CSV"},
        {"--driver d S --uri", "--uri needs a value"},
        {"--driver d S --quiet=x", "--quiet takes no value"},
        {"--driver d D S --file x", "more than one query"},
        {"--driver d --uri D S --file x", "more than one query"},
        {"--driver d S --format xml", "no format 'xml'"},
        {"--from x --max-bytes 0", "--max-bytes takes a number of bytes"},
        {"--from x --max-bytes 1k", "a number of bytes, not '1k'"},
        {"--from x --max-bytes=", "a number of bytes, not ''"},
        {"--from x --max-bytes 9223372036854775808",
         "not '9223372036854775808'"},
        {"--driver d S --max-bytes 1", "--max-bytes is for --from"},
        {"--driver d S --output a.parquet", "name one with --format"},
        {"--driver d S --output a.json --null=", "--null is for CSV"},
        {"--driver d S --in-place", "--in-place is for --output"},
        {"--driver d S --delimiter ab", "not 'ab'"},
        {"--driver d S --delimiter=", "not ''"},
        {"--driver d S --format json --null=", "--null is for CSV"},
        {"--driver d S --format json --delimiter ;", "--delimiter is for CSV"},
        {"--driver d S --format arrow --no-header", "--no-header is for CSV"},
        {"--driver d S --output a.arrow --as-stored",
         "--as-stored is for CSV and JSON"},
        {"--driver d S --format arrow --as-stored",
         "--as-stored is for CSV and JSON"},
        {"--driver d S --quie", "no option '--quie'"},
        {"--driver d S --driverx y", "no option '--driverx'"},
        {"--driver d S --sync", "no option '--sync'"},
        {"--driver d S --option a", "'a' is not a setting"},
        {"--driver d S --option =a", "'=a' is not a setting"},
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
    tcase_add_test(lines, formats_have_options);
    tcase_add_test(lines, the_ending_of_the_output_is_a_format);
    tcase_add_test(lines, a_query_is_read_from_a_file);
    tcase_add_test(lines, parameters_keep_their_order);
    tcase_add_test(lines, settings_keep_their_place_and_order);
    tcase_add_test(lines, two_dashes_end_the_options);
    tcase_add_test(lines, help_needs_nothing_else);
    tcase_add_test(lines, mistakes_are_explained);
    return suite_main("options", NULL, NULL, lines, NULL);
}
