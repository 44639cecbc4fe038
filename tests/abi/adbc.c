/* SPDX-License-Identifier: Apache-2.0 */
/* Our structs of ADBC beside the real adbc.h: before it, after it, alone.
 * -DREAL_FIRST, -DREAL_LAST. The run compares their text with the real one. */
#ifdef REAL_FIRST
#include <arrow-adbc/adbc.h>
#endif
#include "uvarrow/adbc.h"
#ifdef REAL_LAST
#include <arrow-adbc/adbc.h>
#endif

/* Functions of the driver manager are declared, whichever header came first. */
AdbcStatusCode use(struct AdbcStatement *statement,
                   struct ArrowArrayStream *out);
AdbcStatusCode use(struct AdbcStatement *statement,
                   struct ArrowArrayStream *out)
{
    struct AdbcError error = ADBC_ERROR_INIT;

    return AdbcStatementExecuteQuery(statement, out, NULL, &error);
}
