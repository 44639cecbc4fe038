/* SPDX-License-Identifier: Apache-2.0 */
/* Fills in by hand the structs that START_TEST makes. */
#include "support/case_list.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/check_suite.h"

/* Check keeps only a pointer to each, so they live as long as the program. */
static struct made {
    struct made *next;
    TTest test;
    char name[48];
} * _Atomic made_list;

void case_list_add(TCase *tcase, const char *clause, const char *variant,
                   void (*run)(int i), int i)
{
    struct made *made = calloc(1, sizeof(*made));

    if (made == NULL)
        abort();
    snprintf(made->name, sizeof(made->name), "%s%s%s", clause,
             variant[0] == '\0' ? "" : "_", variant);
    made->test = (TTest){made->name, run, __FILE__, __LINE__};
    made->next = made_list;
    made_list = made;
    _tcase_add_test(tcase, &made->test, 0, 0, i, i + 1);
}

static void made_free(void)
{
    struct made *made;

    while ((made = made_list) != NULL) {
        made_list = made->next;
        free(made);
    }
}

int case_list_run(const char *name, TCase *tcase)
{
    const int code = suite_main(name, NULL, NULL, tcase, NULL);

    made_free();
    return code;
}
