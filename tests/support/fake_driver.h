/* SPDX-License-Identifier: Apache-2.0 */
/* An ADBC driver whose acts are in the text of its queries:
 *
 *     rows N       N batches with one row each
 *     update N     no result, and N rows affected
 *     changes N    so, too, but the number only where no result is wanted
 *     prepare X    X happens in prepare; then it is "parameters"
 *     execute X    X happens in execute
 *     schema X     X happens in get_schema
 *     batch N X    X happens after N batches, in get_next
 *     parameters   the batches that were bound, with their schema
 *     lenient parameters  so, too, but a failure of them is taken for their end
 *     value N      one row, and N is its value; `small N` is of another type
 *     begin, commit, rollback, savepoint ...  no result
 *     partitions N N partitions; number i has "rows i"; bound rows are read as
 *                  leniently, as they are for a table that is written
 *
 * A partition, or the table of objects, is the text of a query too.
 *
 *     hollow0, hollow1, hollow2  a result that lacks a function, or a partition
 *                  without a descriptor; hollow3: one with an empty descriptor
 *
 *     strange T    one row of a type T, as PostgreSQL's driver names it
 *
 * X is `fails`, with an SQLSTATE, a vendor code and details; `plainly`, with a
 * code alone; `fatal`, as a database that cannot be used any more; `dies` and
 * `breaks`, for `deaths` times, with a connection that was lost before and
 * after it was executed; `blocks`, until it is cancelled; `ignores`, until it
 * is cancelled twice; or `stops`, which ignores cancels until fake_driver_go()
 * is called, as does `waits`, which then ends without a failure. Objects and
 * calls are counted. A separate library has entry points for it:
 * unit/adbc/fake_library.c. */
#ifndef UVA_SUPPORT_FAKE_DRIVER_H
#define UVA_SUPPORT_FAKE_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "uvarrow/adbc_abi.h"

enum fake_step { LACKS_NO_STEP, LACKS_SET, LACKS_COMMIT, LACKS_ROLLBACK };

struct fake_driver {
    /* its acts; set before it is used */
    bool is_old;               /* of ADBC 1.0: has no cancel, no details */
    int lacks;                 /* this function of the required ones; 0:
                                  complete */
    enum fake_step lacks_step; /* of a connection, this function */
    bool is_bare;              /* sets no options and no queries */
    bool binds_nothing;        /* does not prepare either */
    bool binds_in_order;       /* not by name */
    const char *parameter;     /* of each query, its name; "": it fails to give
                                  it; NULL: it lacks the function */
    /* queries for a setting, and for a process id, are replaced by these, in
     * turn: a digit is its value, see answer_of() for letters */
    const char *settings, *pids;
    bool is_static;           /* partitions and schemas are not released */
    bool is_simple;           /* has no partitions and no catalog */
    int row_code;             /* the code of a stream that fails; 0: EIO */
    int64_t stated;           /* rows that it says an execute has; 0: silent */
    bool no_database;         /* DatabaseNew fails */
    bool no_connection;       /* ConnectionNew fails */
    bool cancels_connections; /* only those can be cancelled */
    bool no_connect;          /* connections fail */
    bool clears;              /* ConnectionNew clears its output */
    bool closes_late;         /* ConnectionRelease stops */
    bool connects_late;       /* ConnectionInit stops */
    bool rolls_back_late;     /* ConnectionRollback stops */
    bool executes_late;       /* an execute stops before it gives its result */
    bool reads_late;          /* an ingest stops before it reads its rows */
    bool reads_ahead;         /* the release of a result that was not read to
                                 its end waits for a cancel after its execute */
    bool no_transactions;     /* autocommit cannot be turned off */
    bool has_given_up;        /* a query that failed has ended the transaction:
                                 "SELECT 1" fails, and a commit does not */
    const char *no_step;      /* the step of a transaction that fails, as in
                                 `transactions`; may be NULL */
    atomic_long late;         /* so many more calls of it do that alone */
    atomic_long deaths;       /* so many more connections are lost */
    /* its record */
    char transactions[200]; /* their steps: "begin ", "commit ",
                               "rollback ", "end " */
    char asked[120];        /* of the catalog, the last time */
    atomic_long drivers, databases, connections, statements; /* live */
    atomic_long results;                                     /* live */
    atomic_long connected, opened;                           /* in all */
    atomic_long most;              /* connections at one time */
    char uri[320];                 /* the database's, the last one */
    char batch_bytes[24];          /* PostgreSQL's option, the last one */
    atomic_long executed, cancels; /* calls */
    atomic_long schemaless;        /* ingests of rows without a schema */
    atomic_long restricted;        /* calls that make a connection read-only */
    atomic_long asked_settings, asked_pids;
    atomic_long blocked; /* calls that block now */
    atomic_long wrong;   /* calls that break a rule of ADBC */
    atomic_bool goes;    /* `stops` goes on */
};

extern struct fake_driver fake_driver;

/* Clears the counts. */
void fake_driver_reset(void);

/* Lets stopped calls go on. */
void fake_driver_go(void);

/* Fills in a driver. */
AdbcStatusCode fake_driver_init(int version, void *driver,
                                struct AdbcError *error);

/* Makes a statement with its own connection, which fake_driver_close() closes.
 */
struct fake_query {
    struct AdbcDriver driver;
    struct AdbcDatabase database;
    struct AdbcConnection connection;
    struct AdbcStatement statement;
    atomic_long closed; /* times that it was */
};

void fake_driver_open(struct fake_query *query, const char *sql);
void fake_driver_close(void *query);

#endif
