/* SPDX-License-Identifier: Apache-2.0 */
/* Options in a file: its lines, the command line before it, each allocation
 * that fails, and the comparison with what is given later. */
#include "settings.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check_suite.h"
#include "support/faulty_libc.h"

enum { ROOM = 256 };

static char path[] = "/tmp/uvarrow-settings-XXXXXX";
static struct uva__settings settings;
static struct uva_error error;

static void write_file(const char *text, size_t size)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

static void file_is(const char *text)
{
    write_file(text, strlen(text));
}

/* Reads the file, after up to three other words. */
static int read_with(const char *a, const char *b, const char *c)
{
    char *args[] = {"--config", path, (char *)a, (char *)b, (char *)c, NULL};

    error = (struct uva_error){0};
    return uva__settings_init(&settings, args, &error);
}

static void set_up(void)
{
    const int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    (void)close(fd);
}

static void tear_down(void)
{
    uva__settings_fini(&settings);
    (void)unlink(path);
    memcpy(path + strlen(path) - 6, "XXXXXX", 6);
}

/* ---- lines --------------------------------------------------------------- */

START_TEST(each_kind_of_option_may_stand_in_a_file)
{
    file_is("\xef\xbb\xbf# a remark\n"
            "\n"
            " \t # another one\r\n"
            "driver=sqlite\n"
            "database = my flights.db  \r\n"
            "\toption\t=\tmemory_limit=1GB # of it\n"
            "max-head = 4096\n"
            "host = a.example\n"
            "host = b.example\n"
            "trusted-proxy = 10.0.0.0/8\n"
            "writable = true\n"
            "quiet = false"); /* without a line break */
    ck_assert_int_eq(read_with(NULL, NULL, NULL), 0);
    ck_assert_str_eq(settings.database.driver, "sqlite");
    ck_assert_str_eq(settings.database.name, "my flights.db");
    ck_assert_uint_eq(settings.database.options.count, 1);
    ck_assert_str_eq(settings.database.options.pairs[0].key, "memory_limit");
    ck_assert_str_eq(settings.database.options.pairs[0].value, "1GB # of it");
    ck_assert_int_eq(settings.limits.head_bytes, 4096);
    ck_assert_uint_eq(settings.access.n_hosts, 2);
    ck_assert_str_eq(settings.access.hosts[1], "b.example");
    ck_assert_uint_eq(settings.proxies.count, 1);
    ck_assert(settings.database.is_writable);
    ck_assert(!settings.is_quiet);
}
END_TEST

static const struct {
    const char *text, *fault; /* after the path */
} faults[] = {
    {"driver = sqlite\n\nlisten\n", ":3: no setting; write it as NAME = VALUE"},
    {" = x\n", ":1: no setting; write it as NAME = VALUE"},
    {"[serve]\n", ":1: no setting; write it as NAME = VALUE"},
    {"listen =\n", ":1: there is no value behind the '='"},
    {"listen = \t \r\n", ":1: there is no value behind the '='"},
    {"#\nnothing = 1\n", ":2: there is no option 'nothing'; see --help"},
    {"--driver = x\n", ":1: there is no option '--driver'; see --help"},
    {"LISTEN = x\n", ":1: there is no option 'LISTEN'; see --help"},
    {"help = true\n", ":1: there is no option 'help'; see --help"},
    {"config = other\n", ":1: config is for the command line"},
    {"max-head = 1x\n",
     ":1: --max-head takes a number from 256 to 1048576, not '1x'"},
    {"writable = yes\n",
     ":1: an option without a value is true or false, not 'yes'"},
    {"database = a\ndatabase = b\n", ":2: more than one database: 'b'"},
    {"trusted-proxy = 10.0.0.0/33\n", ":1: '10.0.0.0/33' is neither an address "
                                      "nor a network, such as 10.0.0.0/8 or "
                                      "fd00::/8"},
    {"listen = a\x1b[0m\n", ":1: a control character"},
    {"listen = a\x7f\n", ":1: a control character"},
};

START_TEST(a_fault_names_file_and_line)
{
    char expected[ROOM];

    (void)snprintf(expected, sizeof(expected), "%s%s", path, faults[_i].fault);
    file_is(faults[_i].text);
    ck_assert_int_eq(read_with("--driver", "sqlite", NULL), EINVAL);
    ck_assert_int_eq(error.code, EINVAL);
    ck_assert_str_eq(error.message, expected);
}
END_TEST

START_TEST(a_file_that_is_none_is_a_fault)
{
    char *big;

    write_file("quiet = true\0\n", 14);
    ck_assert_int_eq(read_with("x", NULL, NULL), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "it has a NUL"));
    uva__settings_fini(&settings);
    big = malloc(2 << 20);
    ck_assert_ptr_nonnull(big);
    memset(big, '#', 2 << 20);
    write_file(big, 2 << 20);
    free(big);
    ck_assert_int_eq(read_with("x", NULL, NULL), EFBIG);
    uva__settings_fini(&settings);
    ck_assert_int_eq(
        uva__settings_init(&settings, (char *[]){"--config", "/tmp", "x", NULL},
                           &error),
        EISDIR);
    ck_assert_ptr_nonnull(strstr(error.message, "cannot read /tmp: "));
    uva__settings_fini(&settings);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(read_with("x", NULL, NULL), ENOENT);
    ck_assert_ptr_nonnull(strstr(error.message, "cannot open "));
}
END_TEST

/* ---- the command line ---------------------------------------------------- */

START_TEST(the_command_line_replaces_the_lines_of_a_name)
{
    file_is("driver = duckdb\n"
            "database = file.db\n"
            "host = a.example\n"
            "host = b.example\n"
            "max-url = 100\n"
            "writable = true\n"
            "max-head = nonsense, which is not looked at\n");
    ck_assert_int_eq(
        read_with("--host=c.example", "--writable=false", "--max-head=512"), 0);
    ck_assert_uint_eq(settings.access.n_hosts, 1);
    ck_assert_str_eq(settings.access.hosts[0], "c.example");
    ck_assert(!settings.database.is_writable);
    ck_assert_int_eq(settings.limits.head_bytes, 512);
    ck_assert_str_eq(settings.database.driver, "duckdb");
    ck_assert_int_eq(settings.limits.url_bytes, 100);
    uva__settings_fini(&settings);
    ck_assert_int_eq(read_with("other.db", "--max-head=512", NULL), 0);
    ck_assert_str_eq(settings.database.name, "other.db");
    uva__settings_fini(&settings);
    ck_assert_int_eq(read_with("--database=other.db", "--quiet=x", NULL),
                     EINVAL);
    ck_assert_str_eq(error.message,
                     "an option without a value is true or false, not 'x'");
}
END_TEST

START_TEST(both_must_fit_together)
{
    file_is("driver = sqlite\nlisten = 0.0.0.0:80\n");
    ck_assert_int_eq(read_with(NULL, NULL, NULL), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "needs --token-file"));
    uva__settings_fini(&settings);
    file_is("driver = sqlite\ntls-key = x\n");
    ck_assert_int_eq(read_with(NULL, NULL, NULL), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "go together"));
}
END_TEST

START_TEST(proxies_have_a_limit)
{
    char text[4096] = "driver = sqlite\n";

    for (int i = 0; i <= UVA__PROXIES_MOST; i++)
        (void)strcat(text, "trusted-proxy = ::1\n");
    file_is(text);
    ck_assert_int_eq(read_with(NULL, NULL, NULL), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, ":18: more than 16"));
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    long n = 1;

    file_is("driver = sqlite\noption = a=b\nmax-head = 512\nquiet = true\n");
    for (;; n++) {
        int code;

        faulty_libc_fail(n);
        code = read_with("a.db", NULL, NULL);
        if (!faulty_libc_stop())
            break;
        if (code != 0) { /* fopen() may do without a buffer */
            ck_assert_int_eq(code, ENOMEM);
            ck_assert_int_eq(error.code, ENOMEM);
            ck_assert_str_ne(error.message, "");
        }
        uva__settings_fini(&settings);
    }
    ck_assert_int_gt(n, 5);
    ck_assert_int_eq(error.code, 0);
}
END_TEST

/* ---- the same, later ----------------------------------------------------- */

static const char before[] = "driver = sqlite\n"
                             "host = a.example\n"
                             "host = b.example\n"
                             "max-head = 512\n";

/* Compares with the file as it is now. */
static const char *changed(const char *text)
{
    char *args[] = {"--config", path, "--max-url=100", NULL};
    static char out[1024];

    file_is(before);
    error = (struct uva_error){0};
    ck_assert_int_eq(uva__settings_init(&settings, args, &error), 0);
    file_is(text);
    if (uva__settings_compare(&settings, args, out, sizeof(out), &error) != 0) {
        ck_assert_str_eq(out, "");
        return "error";
    }
    ck_assert_str_eq(settings.database.driver, "sqlite");
    return out;
}

START_TEST(what_is_given_in_another_way_is_named)
{
    static const char *const TEXTS[][2] = {
        {before, ""},
        {"# in another order\n"
         "max-head = 512\nhost=a.example\ndriver=sqlite\nhost = b.example\n",
         ""},
        {"driver = sqlite\nhost = a.example\nhost = b.example\nmax-head = 512\n"
         "max-url = 300\n",
         ""}, /* the command line has that */
        {"driver = sqlite\nhost = b.example\nhost = a.example\nmax-head = "
         "512\n",
         "host"},
        {"driver = sqlite\nhost = a.example\nmax-head = 512\n", "host"},
        {"driver = sqlite\nhost = a.example\nhost = b.example\n"
         "max-head = 513\nlog = x\ndatabase = y\n",
         "database, log, max-head"},
        {"driver = sqlite\nnonsense = 1\n", "error"},
        {"", "error"}};

    ck_assert_str_eq(changed(TEXTS[_i][0]), TEXTS[_i][1]);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("settings");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, each_kind_of_option_may_stand_in_a_file);
    tcase_add_loop_test(tc, a_fault_names_file_and_line, 0,
                        sizeof(faults) / sizeof(*faults));
    tcase_add_test(tc, a_file_that_is_none_is_a_fault);
    tcase_add_test(tc, the_command_line_replaces_the_lines_of_a_name);
    tcase_add_test(tc, both_must_fit_together);
    tcase_add_test(tc, proxies_have_a_limit);
    tcase_add_test(tc, every_allocation_may_fail);
    tcase_add_loop_test(tc, what_is_given_in_another_way_is_named, 0, 8);
    return suite_main("serve_settings", NULL, NULL, tc, NULL);
}
