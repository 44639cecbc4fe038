/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters that are added to the text by which PostgreSQL's driver connects.
 */
#include <check.h>
#include <stdlib.h>

#include "adbc/libpq.h"
#include "support/check_suite.h"
#include "support/faulty_libc.h"

static const char *const two[] = {"name", "x", "connect_timeout", "2", NULL};

START_TEST(what_is_not_set_is_added)
{
    static const struct {
        const char *given, *want;
    } cases[] = {
        {"postgresql://h/d", "postgresql://h/d?name=x&connect_timeout=2"},
        {"postgres://h/d?a=b", "postgres://h/d?a=b&name=x&connect_timeout=2"},
        {"postgresql://h?", "postgresql://h?name=x&connect_timeout=2"},
        {"postgresql://h?a=b&", "postgresql://h?a=b&name=x&connect_timeout=2"},
        {"postgresql://h?name=y", "postgresql://h?name=y&connect_timeout=2"},
        {"postgresql://h?connect_timeout=9&name=",
         "postgresql://h?connect_timeout=9&name="},
        {"postgresql://h?surname=y&names=z",
         "postgresql://h?surname=y&names=z&name=x&connect_timeout=2"},
        {"postgresql://u:a?b@/d", "postgresql://u:a?b@/d?name=x&"
                                  "connect_timeout=2"},
        {"postgresql://u:a?name=b@h?c=d",
         "postgresql://u:a?name=b@h?c=d&name=x&connect_timeout=2"},
        {"postgresql://u?name=b@h", "postgresql://u?name=b@h?name=x&"
                                    "connect_timeout=2"},
        {"postgresql://?host=/s&user=u@e",
         "postgresql://?host=/s&user=u@e&name=x&connect_timeout=2"},
        {"host=h dbname=d", "host=h dbname=d name=x connect_timeout=2"},
        {"host=h connect_timeout = 9", "host=h connect_timeout = 9 name=x"},
        {"name=y", "name=y connect_timeout=2"},
        {"", " name=x connect_timeout=2"},
    };
    char *got;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        got = uva__libpq_with(cases[i].given, two);
        ck_assert_str_eq(got, cases[i].want);
        free(got);
    }
}
END_TEST

START_TEST(without_memory_there_is_none)
{
    faulty_libc_fail(1);
    ck_assert_ptr_null(uva__libpq_with("postgresql://h", two));
    ck_assert(faulty_libc_stop());
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("libpq");

    suite_add(tc, what_is_not_set_is_added, without_memory_there_is_none, NULL);
    return suite_main("libpq", NULL, NULL, tc, NULL);
}
