/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of Check that come from a table, each with its own name. */
#ifndef UVA_SUPPORT_CASE_LIST_H
#define UVA_SUPPORT_CASE_LIST_H

#include <check.h>

/* Adds a case "clause_variant" that calls run(i). Its name is valid until the
 * process ends. */
void case_list_add(TCase *tcase, const char *clause, const char *variant,
                   void (*run)(int i), int i);

/* Runs the cases, which it takes, and returns the exit code for main(). */
int case_list_run(const char *name, TCase *tcase);

#endif
