/* SPDX-License-Identifier: Apache-2.0 */
/* Records the reports of a check, in order. Thread: any, except for the
 * expectations. */
#ifndef UVA_SUPPORT_BREACH_LOG_H
#define UVA_SUPPORT_BREACH_LOG_H

#include <pthread.h>

#include "uvarrow/check.h"

#define BREACH_LOG_MOST 64

struct breach_log_entry {
    char clause[8];
    enum uva_severity severity;
    enum uva_party party;
    char name[32];
    char message[512];
    char transcript[4096];
};

struct breach_log {
    pthread_mutex_t lock;
    struct breach_log_entry entries[BREACH_LOG_MOST]; /* the first breaches */
    int count;
    int freed; /* how often the ctx was freed */
};

void breach_log_init(struct breach_log *log);

/* A check that reports to `log` (borrowed), as "test". */
struct uva_check breach_log_options(struct breach_log *log);

/* Fails unless exactly these clauses were reported, in this order: ids with a
 * blank between them, "" for no clause. Then forgets them. */
void breach_log_expect(struct breach_log *log, const char *clauses);

/* As breach_log_expect(), for one breach by that party with that severity. */
void breach_log_expect_one(struct breach_log *log, const char *clause,
                           enum uva_party party, enum uva_severity severity);

#endif
