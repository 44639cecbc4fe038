/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of the reported breaches, in an array. */
#include "support/breach_log.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

void breach_log_init(struct breach_log *log)
{
    memset(log, 0, sizeof(*log));
    pthread_mutex_init(&log->lock, NULL);
}

static void breach_log_copy(const char *from, char *to, size_t room)
{
    ck_assert_ptr_nonnull(from);
    (void)snprintf(to, room, "%s", from);
}

static void breach_log_add(struct breach_log *log,
                           const struct uva_breach *breach)
{
    const int at = log->count++;
    struct breach_log_entry *entry;

    if (at >= BREACH_LOG_MOST)
        return;
    entry = &log->entries[at];
    entry->severity = breach->severity;
    entry->party = breach->party;
    breach_log_copy(breach->clause, entry->clause, sizeof(entry->clause));
    breach_log_copy(breach->name, entry->name, sizeof(entry->name));
    breach_log_copy(breach->message, entry->message, sizeof(entry->message));
    breach_log_copy(breach->transcript, entry->transcript,
                    sizeof(entry->transcript));
}

static void breach_log_report(void *ctx, const struct uva_breach *breach)
{
    struct breach_log *log = ctx;

    pthread_mutex_lock(&log->lock);
    breach_log_add(log, breach);
    pthread_mutex_unlock(&log->lock);
}

static void breach_log_free(void *ctx)
{
    struct breach_log *log = ctx;

    pthread_mutex_lock(&log->lock);
    log->freed++;
    pthread_mutex_unlock(&log->lock);
}

struct uva_check breach_log_options(struct breach_log *log)
{
    return (struct uva_check){.report = breach_log_report,
                              .free_ctx = breach_log_free,
                              .ctx = log,
                              .name = "test"};
}

void breach_log_expect(struct breach_log *log, const char *clauses)
{
    char found[16 * BREACH_LOG_MOST] = "";
    size_t used = 0;

    for (int i = 0; i < log->count && i < BREACH_LOG_MOST; i++)
        used += (size_t)snprintf(found + used, sizeof(found) - used, "%s%s",
                                 i == 0 ? "" : " ", log->entries[i].clause);
    ck_assert_msg(strcmp(found, clauses) == 0,
                  "expected '%s', told were '%s'; the last: %s", clauses, found,
                  log->count == 0 ? "-" : log->entries[log->count - 1].message);
    log->count = 0;
}

void breach_log_expect_one(struct breach_log *log, const char *clause,
                           enum uva_party party, enum uva_severity severity)
{
    const struct breach_log_entry *entry = &log->entries[0];

    breach_log_expect(log, clause);
    ck_assert_int_eq(entry->party, party);
    ck_assert_int_eq(entry->severity, severity);
}
