/* SPDX-License-Identifier: Apache-2.0 */
/* The part of <sqlite3ext.h> that an extension of SQLite needs, which need not
 * be there to build it, and the part common to the extension and the library.
 * The order of SQLite's table never changes: later versions add to its end. */
#ifndef UVA_ADBC_SQLITE_ABI_H
#define UVA_ADBC_SQLITE_ABI_H

struct sqlite3; /* a connection */

/* The table of functions that SQLite gives an extension, as far as it is used.
 */
struct uva__sqlite_api {
    void (*others[64])(void);              /* of other types */
    void (*interrupt)(struct sqlite3 *db); /* sqlite3_interrupt() */
};

enum {
    UVA__SQLITE_LOADED_FOR_GOOD = 256 /* SQLITE_OK_LOAD_PERMANENTLY: the
                                         extension outlives its connection */
};

/* How the query of a connection is ended, by any thread. Zeroes: it cannot be.
 */
struct uva__interrupt {
    void (*call)(struct sqlite3 *db); /* of the SQLite that has it */
    struct sqlite3 *db;               /* borrows: the connection */
};

/* The functions of the extension, by these names. */
#define UVA__SQLITE_INIT "sqlite3_uvarrow_init"
#define UVA__SQLITE_TAKE "uva__sqlite_take"
typedef struct uva__interrupt (*uva__sqlite_take_fn)(void);

#endif
