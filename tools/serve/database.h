/* SPDX-License-Identifier: Apache-2.0 */
/* Which database the server asks: a driver and its options, as the command line
 * names them, and how it is opened so that it cannot be changed. */
#ifndef UVA_SERVE_DATABASE_H
#define UVA_SERVE_DATABASE_H

#include <stdbool.h>
#include <stddef.h>

#include "kind.h"
#include "server_limits.h"
#include "uvarrow/adbc.h"

/* Most options of one object. */
#define UVA__DATABASE_OPTIONS 32

/* A list of options that ends with {0}, and owns its texts. */
struct uva__database_list {
    struct uva_pair pairs[UVA__DATABASE_OPTIONS + 1];
    size_t count; /* of options */
};

/* The configuration. */
struct uva__database {
    const char *driver;                    /* borrows; NULL: by the URI */
    const char *entrypoint;                /* borrows; NULL: guessed */
    const char *name;                      /* borrows: file, URI; or NULL */
    char *own_name;                        /* owns; of an option, or NULL */
    char *own_driver;                      /* owns; of a URI, or NULL */
    enum uva__kind found;                  /* as the driver has stated */
    bool is_writable;                      /* changes are allowed */
    bool trusts_user;                      /* whatever its rights are */
    struct uva__database_list options;     /* of the database */
    struct uva__database_list connections; /* of each connection */
    struct uva__database_list statements;  /* of each statement */
    struct uva__database_list plain;       /* of texts that are no query */
};

/* Adds a "KEY=VALUE" with a new key. Returns 0; EINVAL or ENOMEM with an
 * error. Thread: loop, as all here. */
UVA_MUST_CHECK int uva__database_add(struct uva__database_list *list,
                                     const char *text, struct uva_error *error);

/* Whether the driver must be asked for its name before the database is settled,
 * as its file does not show it. */
bool uva__database_must_ask(const struct uva__database *database);

/* Makes a pool of the driver alone, without the database, to ask for that.
 * Returns as uva_adbc_pool_new(). */
UVA_MUST_CHECK int uva__database_probe(struct uva__database *database,
                                       struct uva_runtime *runtime,
                                       struct uva_adbc_pool **out,
                                       struct uva_error *error);

/* Returns the database of a driver with a name, as it gives it itself; NULL:
 * unknown. */
enum uva__kind uva__database_of_driver(const char *name);

/* Sets the options that `name`, or the option instead of it, and `is_writable`
 * mean; once. Returns 0; EINVAL or ENOMEM with an error. */
UVA_MUST_CHECK int uva__database_settle(struct uva__database *database,
                                        struct uva_error *error);

/* Settles the options, and makes a pool of them, within the limits. Returns as
 * uva__database_settle() or uva_adbc_pool_new(). */
UVA_MUST_CHECK int uva__database_pool(struct uva__database *database,
                                      struct uva_runtime *runtime,
                                      const struct uva__limits *limits,
                                      struct uva_adbc_pool **out,
                                      struct uva_error *error);

/* Makes one more, of a database that has one. Returns as that. */
UVA_MUST_CHECK int
uva__database_pool_again(const struct uva__database *database,
                         struct uva_runtime *runtime,
                         const struct uva__limits *limits,
                         struct uva_adbc_pool **out, struct uva_error *error);

/* Of a settled database that is writable: makes a pool for queries that may not
 * write, or gives NULL where the check of their texts is enough. Then the other
 * pool must exist. Returns as uva__database_pool(). */
UVA_MUST_CHECK int uva__database_reading_pool(struct uva__database *database,
                                              struct uva_runtime *runtime,
                                              const struct uva__limits *limits,
                                              struct uva_adbc_pool **out,
                                              struct uva_error *error);

/* Which one it is, by the driver or the URI. */
enum uva__kind uva__database_kind(const struct uva__database *database);

/* Whether queries must not run before uva__rights_ask(), once it is settled. */
bool uva__database_needs_rights(const struct uva__database *database);

/* Returns 0 if a query may run: then the driver and the database decide;
 * otherwise a status, and why, as a static text. `may_write` is whether it may
 * change a database that is writable: no link or image can make a POST. */
int uva__database_check(const struct uva__database *database, const char *sql,
                        bool may_write, const char **why);

/* Returns the options of the statement of a query: key, value, ..., NULL, which
 * the database owns. */
const struct uva_pair *
uva__database_query_options(const struct uva__database *database,
                            const char *sql);

/* Frees its content. */
void uva__database_fini(struct uva__database *database);

#endif
