/* SPDX-License-Identifier: Apache-2.0 */
/* What SQL does to a transaction, by its first words. No more is read of it: a
 * database that executes several statements may do more. */
#ifndef UVA_ADBC_SQL_H
#define UVA_ADBC_SQL_H

enum uva__sql {
    UVA__SQL_OTHER,
    UVA__SQL_BEGIN,
    UVA__SQL_COMMIT,
    UVA__SQL_ROLLBACK, /* of the whole transaction */
    UVA__SQL_SAVEPOINT /* inside a transaction */
};

/* Reads the first words. Thread: any. */
enum uva__sql uva__sql_transaction(const char *sql);

/* Skips what may stand in front of a statement: blanks, comments, empty
 * statements. A comment without an end is not skipped. Thread: any. */
const char *uva__sql_skip(const char *at);

#endif
