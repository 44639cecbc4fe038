/* SPDX-License-Identifier: Apache-2.0 */
/* A server states a lost connection by an SQLSTATE. Where it is lost without a
 * word from the server, the driver has a text, and no SQLSTATE. Texts are
 * looked for where no query can put them: at their beginning, or where no
 * server has sent them. */
#include "adbc/loss.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Of PostgreSQL: classes and codes of connections that end. */
static const char *const states[] = {"08",    "57P01", "57P02",
                                     "57P03", "57P05", "25P03"};

/* Of libpq, and of gRPC. */
static const char *const texts[] = {"server closed the connection",
                                    "no connection to the server",
                                    "could not receive data",
                                    "could not send data",
                                    "terminating connection",
                                    "SSL connection has been closed",
                                    "SSL SYSCALL error",
                                    "(Unavailable;"};

/* Calls of PostgreSQL's driver before it executes. */
static const char *const unused[] = {
    "Failed to prepare query", "[libpq] Failed to prepare query",
    "[libpq] Failed to describe prepared statement"};

/* Of DuckDB. Its errors begin with their type: the process must open such a
 * database again. */
static const char *const fatal[] = {"FATAL Error"};

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

static bool begins(const char *text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(text, list[i], strlen(list[i])) == 0)
            return true;
    return false;
}

static bool contains(const char *text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(text, list[i]) != NULL)
            return true;
    return false;
}

enum uva__loss uva__loss_of(AdbcStatusCode status,
                            const struct AdbcError *error)
{
    const char *text = error->message != NULL ? error->message : "";
    char state[sizeof(error->sqlstate) + 1] = "";
    bool is_dead;

    memcpy(state, error->sqlstate, sizeof(error->sqlstate));
    if (begins(text, fatal, COUNT(fatal)))
        return UVA__LOSS_DATABASE;
    is_dead = state[0] != '\0' ? begins(state, states, COUNT(states))
                               : status == ADBC_STATUS_IO &&
                                     contains(text, texts, COUNT(texts));
    if (!is_dead)
        return UVA__LOSS_NONE;
    return begins(text, unused, COUNT(unused)) ? UVA__LOSS_UNUSED
                                               : UVA__LOSS_CONNECTION;
}
