/* SPDX-License-Identifier: Apache-2.0 */
/* The cases selected for a run, with their results, and the writers of the
 * result files. */
#ifndef UVA_TCK_ENTRIES_H
#define UVA_TCK_ENTRIES_H

#include "tck/cases.h"

/* One case of a run. */
struct uva__tck_entry {
    const struct uva__tck_case *what; /* NULL: it is a result only */
    struct uva_tck_result result;     /* its texts point to the copies below */
    bool over;                        /* the result has been set */
    char *message;                    /* owns, as do the next three; NULL: "" */
    char *transcript;
    char *output;
    /* the breaches of other clauses in this case */
    struct uva__case_run_breach *breaches;
    size_t breached;
    char name[48]; /* the result's, if no case has it */
};

/* All entries, in order. */
struct uva__tck_entries {
    struct uva__tck_entry *all; /* owns */
    size_t count;
};

/* Selects the cases of `roles` (bits) that match `filter` (NULL: every case).
 * Returns 0, ENOMEM, or EINVAL if no case matches. Thread: any. */
UVA_MUST_CHECK int uva__entries_init(struct uva__tck_entries *entries,
                                     unsigned roles, const char *filter,
                                     struct uva_error *error);

/* Frees the memory of `entries`. Thread: any. */
void uva__entries_fini(struct uva__tck_entries *entries);

/* Sets the result and copies its texts (NULL: ""). A text for which there is no
 * memory is left out. Thread: any. */
void uva__entry_finish(struct uva__tck_entry *entry,
                       enum uva_tck_verdict verdict, const char *message,
                       const char *transcript, const char *output);

/* Keeps the breaches of other clauses that a case has come upon. Returns 0 or
 * ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__entry_breached(struct uva__tck_entry *entry,
                                       const struct uva__case_run_page *page,
                                       struct uva_error *error);

/* Adds a broken result for each clause that was broken in any case, unless a
 * case about it has failed. Returns 0 or ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__entries_add_breaches(struct uva__tck_entries *entries,
                                             struct uva_error *error);

/* Returns the name of a role, such as "producer". Static. Thread: any. */
const char *uva__entries_role(enum uva_tck_role role);

/* Write all results to the file at `path`. Return 0 or an errno. Thread:
 * any. */
UVA_MUST_CHECK int uva__entries_write_tap(const struct uva__tck_entries *from,
                                          const char *path);
UVA_MUST_CHECK int uva__entries_write_junit(const struct uva__tck_entries *from,
                                            const char *path);

#endif
