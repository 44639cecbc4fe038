/* SPDX-License-Identifier: Apache-2.0 */
/* An extension of SQLite, a separate module, which both SQLite and the library
 * open. The driver keeps the handle of its connection to itself; an extension
 * gets it. How it is loaded: adbc/interrupt.c. */
#include "adbc/sqlite/abi.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int sqlite3_uvarrow_init(struct sqlite3 *db, char **text,
                                const struct uva__sqlite_api *api);
EXPORT struct uva__interrupt uva__sqlite_take(void);

/* Of the connection that this thread has loaded it for. */
static _Thread_local struct uva__interrupt last;

int sqlite3_uvarrow_init(struct sqlite3 *db, char **text,
                         const struct uva__sqlite_api *api)
{
    (void)text;
    last = (struct uva__interrupt){api->interrupt, db};
    return UVA__SQLITE_LOADED_FOR_GOOD;
}

/* Gives it once: the connection may be closed later. */
struct uva__interrupt uva__sqlite_take(void)
{
    const struct uva__interrupt taken = last;

    last = (struct uva__interrupt){0};
    return taken;
}
