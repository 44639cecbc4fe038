/* SPDX-License-Identifier: Apache-2.0 */
/* What a check reports, kept for a test to compare. */
#ifndef UVA_SUPPORT_BREACH_LIST_H
#define UVA_SUPPORT_BREACH_LIST_H

#include <stdatomic.h>

#include "uvarrow/check.h"

enum { BREACH_LIST_MOST = 32 };

/* Zeroes: nothing told. */
struct breach_list {
    struct told {
        char clause[8];
        enum uva_party party;
        enum uva_severity severity;
        char message[160];
        char transcript[2048]; /* its end */
        atomic_bool taken;     /* by the test */
    } told[BREACH_LIST_MOST];
    atomic_int count;
};

/* A check that tells `list`, which outlives it. */
struct uva_check breach_list_check(struct breach_list *list);

/* Fails unless `clause` was told of `party`, once, no worse than the table
 * says; then takes it off the list. */
void breach_list_take(struct breach_list *list, const char *clause,
                      enum uva_party party);

/* Fails unless all that was told is taken; says what is not. */
void breach_list_is_empty(struct breach_list *list);

#endif
