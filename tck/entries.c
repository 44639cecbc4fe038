/* SPDX-License-Identifier: Apache-2.0 */
/* Selects cases and stores their results. */
#include "tck/entries.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const enum uva_tck_role ROLES[] = {UVA_TCK_PRODUCER, UVA_TCK_HANDLER,
                                          UVA_TCK_STREAM};

const char *uva__entries_role(enum uva_tck_role role)
{
    switch (role) {
    case UVA_TCK_PRODUCER:
        return "producer";
    case UVA_TCK_HANDLER:
        return "handler";
    default:
        return "stream";
    }
}

/* Returns whether `filter` is the clause, with or without its dash, or a part
 * of the name. */
static bool entry_fits(const char *name, const char *filter)
{
    char clause[8];
    char bare[8];

    if (filter == NULL)
        return true;
    uva__cases_clause(name, clause);
    memcpy(bare, clause, 2);
    memcpy(bare + 2, clause + 3, sizeof(bare) - 3);
    return strcasecmp(filter, clause) == 0 || strcasecmp(filter, bare) == 0 ||
           strstr(name, filter) != NULL;
}

/* Counts the cases that fit, and writes them to `to` unless that is NULL. */
static size_t entries_choose(struct uva__tck_entry *to, unsigned roles,
                             const char *filter)
{
    size_t count = 0;

    for (size_t r = 0; r < sizeof(ROLES) / sizeof(*ROLES); r++) {
        const struct uva__tck_case *what;

        for (size_t n = 0; (what = uva__cases_at(ROLES[r], n)) != NULL; n++) {
            if ((roles & ROLES[r]) == 0 || !entry_fits(what->name, filter))
                continue;
            if (to != NULL)
                to[count] = (struct uva__tck_entry){
                    .what = what,
                    .result = {.role = ROLES[r],
                               .name = what->name,
                               .required =
                                   strncmp(what->name, "required_", 9) == 0}};
            count++;
        }
    }
    return count;
}

int uva__entries_init(struct uva__tck_entries *entries, unsigned roles,
                      const char *filter, struct uva_error *error)
{
    const size_t count = entries_choose(NULL, roles, filter);

    *entries = (struct uva__tck_entries){0};
    if (count == 0)
        return uva_error_set(error, EINVAL,
                             "no case of this role fits '%s'; --list shows "
                             "them",
                             filter != NULL ? filter : "");
    entries->all = calloc(count, sizeof(*entries->all));
    if (entries->all == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    entries->count = entries_choose(entries->all, roles, filter);
    return 0;
}

void uva__entries_fini(struct uva__tck_entries *entries)
{
    for (size_t i = 0; i < entries->count; i++) {
        free(entries->all[i].message);
        free(entries->all[i].transcript);
        free(entries->all[i].output);
        free(entries->all[i].breaches);
    }
    free(entries->all);
    *entries = (struct uva__tck_entries){0};
}

static const char *entry_keep(char **place, const char *text)
{
    if (text != NULL && text[0] != '\0')
        *place = strdup(text);
    return *place != NULL ? *place : "";
}

void uva__entry_finish(struct uva__tck_entry *entry,
                       enum uva_tck_verdict verdict, const char *message,
                       const char *transcript, const char *output)
{
    entry->result.verdict = verdict;
    entry->result.message = entry_keep(&entry->message, message);
    entry->result.transcript = entry_keep(&entry->transcript, transcript);
    entry->result.output = entry_keep(&entry->output, output);
    entry->over = true;
}

/* ---- breaches of other clauses ------------------------------------------ */

int uva__entry_breached(struct uva__tck_entry *entry,
                        const struct uva__case_run_page *page,
                        struct uva_error *error)
{
    uint64_t count = uva__atomic64_load(&page->breached);

    if (count > UVA__CASE_RUN_BREACHES)
        count = UVA__CASE_RUN_BREACHES;
    if (count == 0)
        return 0;
    entry->breaches = calloc(count, sizeof(*entry->breaches));
    if (entry->breaches == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    for (uint64_t n = 0; n < count; n++) {
        struct uva__case_run_breach *breach = &entry->breaches[n];

        *breach = page->breaches[n];
        breach->clause[sizeof(breach->clause) - 1] = '\0';
        breach->text[sizeof(breach->text) - 1] = '\0';
        breach->transcript[sizeof(breach->transcript) - 1] = '\0';
    }
    entry->breached = count;
    return 0;
}

/* All breaches of one clause. */
struct finding {
    const struct uva__tck_entry *first; /* the first case they were seen in */
    const struct uva__case_run_breach *breach; /* the first one */
    bool required;
    size_t cases;
};

/* Returns the breaches of this clause in a case, or NULL. */
static const struct uva__case_run_breach *
entry_breach_of(const struct uva__tck_entry *entry, const char *clause)
{
    for (size_t i = 0; i < entry->breached; i++)
        if (strcmp(entry->breaches[i].clause, clause) == 0)
            return &entry->breaches[i];
    return NULL;
}

/* Collects the breaches of a clause in all cases of a role. */
static struct finding finding_collect(const struct uva__tck_entries *entries,
                                      enum uva_tck_role role,
                                      const char *clause)
{
    struct finding finding = {0};

    for (size_t i = 0; i < entries->count; i++) {
        const struct uva__tck_entry *entry = &entries->all[i];
        const struct uva__case_run_breach *breach =
            entry->result.role == role ? entry_breach_of(entry, clause) : NULL;

        if (breach == NULL)
            continue;
        if (finding.first == NULL) {
            finding.first = entry;
            finding.breach = breach;
        }
        finding.required |= breach->required != 0;
        finding.cases++;
    }
    return finding;
}

/* Returns whether a result about this clause is broken, and counts as much. */
static bool finding_is_known(const struct uva__tck_entries *entries,
                             const struct finding *finding)
{
    for (size_t i = 0; i < entries->count; i++) {
        const struct uva_tck_result *result = &entries->all[i].result;
        char clause[8];

        uva__cases_clause(result->name, clause);
        if (result->role == finding->first->result.role &&
            result->verdict == UVA_TCK_BROKEN &&
            (result->required || !finding->required) &&
            strcmp(clause, finding->breach->clause) == 0)
            return true;
    }
    return false;
}

static void finding_finish(const struct finding *finding,
                           struct uva__tck_entry *entry)
{
    const char *clause = finding->breach->clause;
    char message[UVA__CASE_RUN_MESSAGE];
    char more[32] = "";

    if (finding->cases > 1)
        (void)snprintf(more, sizeof(more), " and %zu more", finding->cases - 1);
    (void)snprintf(message, sizeof(message), "%s: %s (seen in %s%s)", clause,
                   finding->breach->text, finding->first->result.name, more);
    *entry =
        (struct uva__tck_entry){.result = {.role = finding->first->result.role,
                                           .required = finding->required}};
    (void)snprintf(
        entry->name, sizeof(entry->name), "%s_%.2s%.2s_is_kept_in_all_cases",
        finding->required ? "required" : "recommended", clause, clause + 3);
    uva__entry_finish(entry, UVA_TCK_BROKEN, message,
                      finding->breach->transcript,
                      finding->first->result.output);
}

/* Adds the results of breaches to `to`, after the results of `from`. */
static void entries_find(const struct uva__tck_entries *from,
                         struct uva__tck_entries *to)
{
    for (size_t i = 0; i < from->count; i++)
        for (size_t n = 0; n < from->all[i].breached; n++) {
            const struct uva__tck_entry *entry = &from->all[i];
            const struct finding finding = finding_collect(
                from, entry->result.role, entry->breaches[n].clause);
            struct uva__tck_entry *next = &to->all[to->count];

            if (finding.breach != &entry->breaches[n] ||
                finding_is_known(from, &finding))
                continue;
            finding_finish(&finding, next);
            to->count++;
        }
}

int uva__entries_add_breaches(struct uva__tck_entries *entries,
                              struct uva_error *error)
{
    struct uva__tck_entries all = {.count = entries->count};
    size_t most = entries->count;

    for (size_t i = 0; i < entries->count; i++)
        most += entries->all[i].breached;
    all.all = calloc(most, sizeof(*all.all));
    if (all.all == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    memcpy(all.all, entries->all, entries->count * sizeof(*all.all));
    entries_find(entries, &all);
    free(entries->all);
    *entries = all;
    for (size_t i = 0; i < all.count; i++)
        if (all.all[i].what == NULL)
            all.all[i].result.name = all.all[i].name;
    return 0;
}
