/* SPDX-License-Identifier: Apache-2.0 */
/* The reports of a check, kept for a test to compare. */
#ifndef UVA_SUPPORT_BREACH_LIST_H
#define UVA_SUPPORT_BREACH_LIST_H

#include <stdatomic.h>

#include "uvarrow/check.h"

enum { BREACH_LIST_MOST = 32 };

/* All zeroes: no report. */
struct breach_list {
    struct breach_list_entry {
        char clause[8];
        enum uva_party party;
        enum uva_severity severity;
        char message[160];
        char transcript[2048]; /* the end of the transcript */
        atomic_bool taken;     /* the test has checked it */
    } entries[BREACH_LIST_MOST];
    atomic_int count;
};

/* Returns a check that reports to `list`, which outlives it. */
struct uva_check breach_list_check(struct breach_list *list);

/* Fails unless a breach of `clause` by `party` was reported once, with at most
 * the severity that the table gives it; then marks it as taken. */
void breach_list_take(struct breach_list *list, const char *clause,
                      enum uva_party party);

/* Fails if a report was not taken, and prints those. */
void breach_list_is_empty(struct breach_list *list);

#endif
