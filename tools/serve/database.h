/* SPDX-License-Identifier: Apache-2.0 */
/* Which database the server asks: a driver and its options, as the command line
 * names them, and how it is opened so that nothing can be changed in it. */
#ifndef UVA_SERVE_DATABASE_H
#define UVA_SERVE_DATABASE_H

#include <stdbool.h>
#include <stddef.h>

#include "kind.h"
#include "uvarrow/adbc.h"

/* Most options of one object. */
#define UVA__DATABASE_OPTIONS 32

/* A list of key, value, ..., NULL. */
struct uva__database_list {
    char *texts[2 * UVA__DATABASE_OPTIONS + 1]; /* owns */
    size_t count;                               /* of options */
};

/* What is configured. */
struct uva__database {
    const char *driver;                    /* borrows; NULL: by the URI */
    const char *entrypoint;                /* borrows; NULL: guessed */
    const char *name;                      /* borrows: file, URI; or NULL */
    char *own_name;                        /* owns; of an option, or NULL */
    bool is_writable;                      /* changes are allowed */
    bool trusts_user;                      /* whatever its rights are */
    struct uva__database_list options;     /* of the database */
    struct uva__database_list connections; /* of each connection */
};

/* Adds a "KEY=VALUE" with a new key. Returns 0; EINVAL or ENOMEM with an
 * error. Thread: loop, as all here. */
UVA_MUST_CHECK int uva__database_add(struct uva__database_list *list,
                                     const char *text, struct uva_error *error);

/* Sets the options that `name`, or the option instead of it, and `is_writable`
 * mean; once. Returns 0; EINVAL or ENOMEM with an error. */
UVA_MUST_CHECK int uva__database_settle(struct uva__database *database,
                                        struct uva_error *error);

/* Settles the options, and makes a pool of them. Returns as
 * uva__database_settle() or uva_adbc_pool_new(). */
UVA_MUST_CHECK int
uva__database_pool(struct uva__database *database, struct uva_runtime *runtime,
                   int64_t connections, int64_t wait_ms, int64_t lock_ms,
                   struct uva_adbc_pool **out, struct uva_error *error);

/* Which one it is, by the driver or the URI. */
enum uva__kind uva__database_kind(const struct uva__database *database);

/* Whether queries must not run before uva__rights_ask(), once it is settled. */
bool uva__database_needs_rights(const struct uva__database *database);

/* Returns 0 if a query may run: then the driver and the database decide;
 * otherwise a status, and why, as a static text. */
int uva__database_check(const struct uva__database *database, const char *sql,
                        const char **why);

/* Returns what is set on the statement of a query: key, value, ..., NULL, or
 * NULL. Static. */
const char *const *
uva__database_query_options(const struct uva__database *database,
                            const char *sql);

/* Frees what it owns. */
void uva__database_fini(struct uva__database *database);

#endif
