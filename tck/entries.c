/* SPDX-License-Identifier: Apache-2.0 */
/* Selects cases and stores their results. */
#include "tck/entries.h"

#include <ctype.h>
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
    uva__case_run_clause(name, clause);
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
