/* SPDX-License-Identifier: Apache-2.0 */
/* The cases selected for a run, with their results, and the writers of the
 * result files. */
#ifndef UVA_TCK_ENTRIES_H
#define UVA_TCK_ENTRIES_H

#include "tck/cases.h"

/* One case of a run. */
struct uva__tck_entry {
    const struct uva__tck_case *what;
    struct uva_tck_result result; /* its texts point to the copies below */
    bool over;                    /* the result has been set */
    char *message;                /* owns, as do the next two; NULL: "" */
    char *transcript;
    char *output;
};

/* All entries, in order. */
struct uva__tck_entries {
    struct uva__tck_entry *all; /* owns */
    size_t count;
};

/* Selects the cases of `roles` (bits) that match `filter` (NULL: all of them).
 * Returns 0, ENOMEM, or EINVAL if no case matches. Thread: any. */
UVA_MUST_CHECK int uva__entries_init(struct uva__tck_entries *entries,
                                     unsigned roles, const char *filter,
                                     struct uva_error *error);

/* Frees what `entries` owns. Thread: any. */
void uva__entries_fini(struct uva__tck_entries *entries);

/* Sets the result and copies its texts (NULL: ""). A text for which there is no
 * memory is left out. Thread: any. */
void uva__entry_finish(struct uva__tck_entry *entry,
                       enum uva_tck_verdict verdict, const char *message,
                       const char *transcript, const char *output);

/* Returns the name of a role, such as "producer". Static. Thread: any. */
const char *uva__entries_role(enum uva_tck_role role);

/* Write all results to the file at `path`. Return 0 or an errno. Thread:
 * any. */
UVA_MUST_CHECK int uva__entries_write_tap(const struct uva__tck_entries *from,
                                          const char *path);
UVA_MUST_CHECK int uva__entries_write_junit(const struct uva__tck_entries *from,
                                            const char *path);

#endif
