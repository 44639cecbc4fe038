/* SPDX-License-Identifier: Apache-2.0 */
/* The cases chosen for a run, each with its result, and the files that are
 * written of them. */
#ifndef UVA_TCK_ENTRIES_H
#define UVA_TCK_ENTRIES_H

#include "tck/cases.h"

/* One case of a run. */
struct uva__tck_entry {
    const struct uva__tck_case *what;
    struct uva_tck_result result; /* its texts are those below */
    bool over;                    /* the result is there */
    char *message;                /* owns, as the next two; NULL: "" */
    char *transcript;
    char *output;
};

/* All of them, in order. */
struct uva__tck_entries {
    struct uva__tck_entry *all; /* owns */
    size_t count;
};

/* Gives the cases of `roles` (bits) that fit `filter` (NULL: all). 0; ENOMEM;
 * EINVAL if none does. Thread: any. */
UVA_MUST_CHECK int uva__entries_init(struct uva__tck_entries *entries,
                                     unsigned roles, const char *filter,
                                     struct uva_error *error);

/* Frees what it owns. Thread: any. */
void uva__entries_fini(struct uva__tck_entries *entries);

/* Sets the result, from texts that are copied (NULL: ""). What there is no
 * memory for is left out. Thread: any. */
void uva__entry_finish(struct uva__tck_entry *entry,
                       enum uva_tck_verdict verdict, const char *message,
                       const char *transcript, const char *output);

/* The name of a role: "producer". Static. Thread: any. */
const char *uva__entries_role(enum uva_tck_role role);

/* Write all results to the file at `path`. 0 or an errno. Thread: any. */
UVA_MUST_CHECK int uva__entries_write_tap(const struct uva__tck_entries *from,
                                          const char *path);
UVA_MUST_CHECK int uva__entries_write_junit(const struct uva__tck_entries *from,
                                            const char *path);

#endif
