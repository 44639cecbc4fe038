/* SPDX-License-Identifier: Apache-2.0 */
/* Reports may arrive on any thread, so each one claims its own entry. */
#include "support/breach_list.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "protocol/clauses.h"

static void report(void *ctx, const struct uva_breach *breach)
{
    struct breach_list *list = ctx;
    const int place = atomic_fetch_add(&list->count, 1);
    struct breach_list_entry *entry = &list->entries[place];
    const size_t size = strlen(breach->transcript);
    const size_t most = sizeof(entry->transcript) - 1;

    if (place >= BREACH_LIST_MOST)
        return;
    snprintf(entry->clause, sizeof(entry->clause), "%s", breach->clause);
    snprintf(entry->message, sizeof(entry->message), "%s", breach->message);
    snprintf(entry->transcript, sizeof(entry->transcript), "%s",
             breach->transcript + (size > most ? size - most : 0));
    entry->party = breach->party;
    entry->severity = breach->severity;
}

struct uva_check breach_list_check(struct breach_list *list)
{
    return (struct uva_check){.report = report, .ctx = list, .name = "test"};
}

static int breach_list_size(const struct breach_list *list)
{
    const int count = atomic_load(&list->count);

    return count < BREACH_LIST_MOST ? count : BREACH_LIST_MOST;
}

/* Prints all reports, one line each. */
static const char *breach_list_print(const struct breach_list *list, char *out,
                                     size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (int i = 0; i < breach_list_size(list) && used < size; i++)
        used += (size_t)snprintf(
            out + used, size - used, "\n  %s %s: %s\n%s",
            list->entries[i].clause,
            list->entries[i].party == UVA_PARTY_PRODUCER ? "producer"
                                                         : "consumer",
            list->entries[i].message, list->entries[i].transcript);
    return out;
}

/* Returns whether the check may leave the party open, as the table of clauses
 * does. */
static bool breach_list_is_open(const struct breach_list_entry *entry)
{
    return entry->party == UVA_PARTY_EITHER &&
           uva__clause_find(entry->clause)->party == UVA_PARTY_EITHER;
}

void breach_list_take(struct breach_list *list, const char *clause,
                      enum uva_party party)
{
    char all[4096];

    for (int i = 0; i < breach_list_size(list); i++) {
        struct breach_list_entry *entry = &list->entries[i];

        if (strcmp(entry->clause, clause) != 0 ||
            (entry->party != party && !breach_list_is_open(entry)) ||
            atomic_exchange(&entry->taken, true))
            continue;
        ck_assert_int_le(entry->severity, uva__clause_find(clause)->severity);
        return;
    }
    ck_abort_msg("%s by party %d was not told, but:%s", clause, (int)party,
                 breach_list_print(list, all, sizeof(all)));
}

void breach_list_is_empty(struct breach_list *list)
{
    char all[4096];

    for (int i = 0; i < breach_list_size(list); i++)
        if (!atomic_load(&list->entries[i].taken))
            ck_abort_msg("told besides:%s",
                         breach_list_print(list, all, sizeof(all)));
}
