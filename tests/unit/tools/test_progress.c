/* SPDX-License-Identifier: Apache-2.0 */
/* The line of progress, and what it says is waited for. */
#include "progress.h"
#include "support/check_suite.h"

#include <check.h>
#include <string.h>

/* Two seconds have passed. */
static struct uva__tally tally = {.begin_ns = 1, .end_ns = 2000000001};
static struct uva__progress progress = {.tally = &tally,
                                        .source = "the database"};

static void shows(const char *text, enum uva_waiting waiting, bool is_full)
{
    char line[200];

    uva__progress_text(&progress, waiting, is_full, 200, line, sizeof(line));
    ck_assert_str_eq(line, text);
}

START_TEST(it_says_what_is_waited_for)
{
    shows("2.0 s  waits for the database", UVA_WAITING_NONE, false);
    shows("2.0 s  waits for a connection", UVA_WAITING_PERMIT, false);
    shows("2.0 s  waits for a thread", UVA_WAITING_WORKER, false);
    shows("2.0 s  waits for its reader", UVA_WAITING_NONE, true);
    tally.rows = 3000;
    tally.bytes = 1200000;
    shows("2.0 s  3,000 rows  1.2 MB  1,500 rows/s  0.6 MB/s", UVA_WAITING_NONE,
          false);
    shows("2.0 s  3,000 rows  1.2 MB  1,500 rows/s  0.6 MB/s  waits for the "
          "database",
          UVA_WAITING_NONE, false);
    tally.rows = 3001; /* some came */
    shows("2.0 s  3,001 rows  1.2 MB  1,500 rows/s  0.6 MB/s",
          UVA_WAITING_PERMIT, false);
}
END_TEST

START_TEST(it_says_of_how_many)
{
    tally.rows = 1;
    tally.bytes_expected = 200;
    shows("2.0 s  1 row  0.0 MB  0 rows/s  0.0 MB/s", UVA_WAITING_NONE, false);
    tally.bytes_read = 50;
    tally.rows = 2;
    shows("2.0 s  2 rows (25 % read)  0.0 MB  1 rows/s  0.0 MB/s",
          UVA_WAITING_NONE, false);
    tally.bytes_read = 201;
    tally.rows = 4;
    shows("2.0 s  4 rows (100 % read)  0.0 MB  2 rows/s  0.0 MB/s",
          UVA_WAITING_NONE, false);
    tally.rows_expected = 1;
    tally.rows = 1;
    shows("2.0 s  1 of 1 row  0.0 MB  0 rows/s  0.0 MB/s", UVA_WAITING_NONE,
          false);
    tally.rows_expected = 2000;
    tally.rows = 1000;
    shows("2.0 s  1,000 of 2,000 rows  0.0 MB  500 rows/s  0.0 MB/s",
          UVA_WAITING_NONE, false);
}
END_TEST

START_TEST(it_is_shorter_than_the_terminal)
{
    char line[30];

    uva__progress_text(&progress, UVA_WAITING_NONE, false, 12, line,
                       sizeof(line));
    ck_assert_str_eq(line, "2.0 s  wait");
    uva__progress_text(&progress, UVA_WAITING_NONE, false, 0, line,
                       sizeof(line));
    ck_assert_str_eq(line, "2.0 s  waits for the database");
    uva__progress_text(&progress, UVA_WAITING_NONE, false, 100, line, 10);
    ck_assert_str_eq(line, "2.0 s  wa");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("progress");

    suite_add(tc, it_says_what_is_waited_for, it_says_of_how_many,
              it_is_shorter_than_the_terminal, NULL);
    return suite_main("progress", NULL, NULL, tc, NULL);
}
