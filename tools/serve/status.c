/* SPDX-License-Identifier: Apache-2.0 */
/* A database without a statement has an errno alone, as ADBC's status gives it:
 * often one code is both for faults of the query and for faults of the
 * database. */
#include "status.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "uvarrow/arrow.h"

/* A row of a table: a text that begins so, or this text, has that status. The
 * last row, which has no text, is for all the rest. */
struct rule {
    const char *text;
    int status;
};

static const struct rule SQLSTATES[] = {
    {"25006", 403}, /* read-only transaction */
    {"25P03", 504}, /* idle in a transaction for too long */
    {"42501", 403}, /* a right is missing */
    {"53300", 503}, /* too many connections */
    {"55P03", 504}, /* a lock takes too long */
    {"57014", 504}, /* the statement takes too long */
    {"08", 503},    /* the connection */
    {"0A", 501},    /* not supported */
    {"28", 403},    /* authorization */
    {"40", 503},    /* rolled back: serialization, a deadlock */
    {"53", 500},    /* resources: disk, memory */
    {"57", 503},    /* the server shuts down, or starts */
    {"58", 500},    /* the system */
    {"F0", 500},    /* the configuration */
    {"HV", 500},    /* foreign data */
    {"XX", 500},    /* internal */
    {NULL, 400},
};

/* By the type of an error, without blanks. */
static const struct rule DUCKDB_TYPES[] = {
    {"Permission", 403},
    {"NotImplemented", 501},
    {"Interrupt", 504},
    {"Connection", 503},
    {"TransactionContext", 503},
    {"OutOfMemory", 500},
    {"IO", 500},
    {"Internal", 500},
    {"Fatal", 500},
    {"HTTP", 500},
    {"Network", 500},
    {"Serialization", 500},
    {"NullPointer", 500},
    {"Transaction", 503},
    {NULL, 400},
};

/* Of types that have other errors, too. */
static const struct rule DUCKDB_TEXTS[] = {
    {"attached in read-only mode", 403},
    {"the configuration has been locked", 403},
    {NULL, 0},
};

/* The driver states no code, and the same status for most. */
static const struct rule SQLITE_TEXTS[] = {
    {"attempt to write a readonly database", 403},
    {"database is locked", 503},
    {"database table is locked", 503},
    {"unable to open database file", 503},
    {"interrupted", 504},
    {"disk I/O error", 500},
    {"database disk image is malformed", 500},
    {"file is not a database", 500},
    {"database or disk is full", 500},
    {"out of memory", 500},
    {"failed to open", 503},
    {NULL, 400},
};

static int rule_begins(const struct rule *rules, const char *text)
{
    while (rules->text != NULL &&
           strncmp(text, rules->text, strlen(rules->text)) != 0)
        rules++;
    return rules->status;
}

static int rule_is_in(const struct rule *rules, const char *text)
{
    while (rules->text != NULL && strstr(text, rules->text) == NULL)
        rules++;
    return rules->status;
}

/* ---- DuckDB -------------------------------------------------------------- */

/* Whether `size` bytes are `name`, but for blanks in them and the case. */
static bool is_named(const char *text, size_t size, const char *name)
{
    size_t i;

    for (i = 0; i < size; i++)
        if (text[i] != ' ' && strncasecmp(&text[i], name++, 1) != 0)
            return false;
    return *name == '\0';
}

/* The type stands in front of the first " Error: ", as not all errors have it
 * as a detail. */
static struct uva_pair duckdb_type(const char *message)
{
    const char *end = strstr(message, " Error: "), *begin = end;

    if (end == NULL)
        return (struct uva_pair){.value = ""};
    while (begin > message && begin[-1] != ':')
        begin--;
    return (struct uva_pair){.value = begin,
                             .value_size = (size_t)(end - begin)};
}

static int duckdb_status(const char *message, const char *metadata)
{
    const struct rule *rule = DUCKDB_TYPES;
    const int status = rule_is_in(DUCKDB_TEXTS, message);
    struct uva_pair type;

    if (status != 0)
        return status;
    if (uva_metadata_get(metadata, "adbc.detail.duckdb:error_type", &type) != 0)
        type = duckdb_type(message);
    while (rule->text != NULL &&
           !is_named(type.value, type.value_size, rule->text))
        rule++;
    return rule->status;
}

/* ---- all ----------------------------------------------------------------- */

/* By the errno alone. */
static int errno_status(int code, bool by_driver)
{
    switch (code) {
    case ENOMEM: /* of memory or threads */
    case ESHUTDOWN:
        return 503;
    case EMFILE:
    case ENFILE:
        return by_driver ? 400 : 503;
    case ETIMEDOUT:
        return by_driver ? 504 : 503;
    case EACCES:
        return 403;
    case ENOTSUP:
        return 501;
    case EFBIG: /* --max-batch-bytes */
        return 400;
    case EIO:
        return 500;
    default:
        return by_driver ? 400 : 500;
    }
}

int uva__status_of(enum uva__kind kind, const struct uva_error *error,
                   const char *metadata)
{
    struct uva_pair pair;
    char state[6] = "";

    if (uva_metadata_get(metadata, "adbc.step", &pair) == 0)
        return 503; /* only connecting is named */
    if (uva_metadata_get(metadata, "adbc.status", &pair) != 0)
        return errno_status(error->code, false);
    if (uva_metadata_get(metadata, "adbc.sqlstate", &pair) == 0 &&
        pair.value_size < sizeof(state)) {
        memcpy(state, pair.value, pair.value_size);
        return rule_begins(SQLSTATES, state);
    }
    if (error->code == ENOTSUP)
        return 501;
    switch (kind) {
    case UVA__KIND_SQLITE:
        return rule_is_in(SQLITE_TEXTS, error->message);
    case UVA__KIND_DUCKDB:
        return duckdb_status(error->message, metadata);
    case UVA__KIND_POSTGRESQL: /* which has one unless its server is gone */
        return error->code == EIO ? 503 : errno_status(error->code, true);
    case UVA__KIND_OTHER:
        break;
    }
    return errno_status(error->code, true);
}

/* ---- the start ----------------------------------------------------------- */

/* PostgreSQL's driver states no code of a failure to connect. */
static const struct rule POSTGRESQL_REFUSALS[] = {
    {"\" does not exist", 1}, /* the database, or the user */
    {"authentication failed", 1}, {"invalid connection option", 1},
    {"invalid URI", 1},           {NULL, 0},
};

bool uva__status_is_lasting(enum uva__kind kind, const struct uva_error *error,
                            const char *metadata)
{
    struct uva_pair pair;
    const bool connects = uva_metadata_get(metadata, "adbc.step", &pair) != 0;
    const bool is_loaded =
        uva_metadata_get(metadata, "adbc.status", &pair) == 0 ||
        error->code == ETIMEDOUT;

    switch (kind) {
    case UVA__KIND_POSTGRESQL:
        return !is_loaded || rule_is_in(POSTGRESQL_REFUSALS, error->message);
    case UVA__KIND_SQLITE:
        return strstr(error->message, "is locked") == NULL;
    case UVA__KIND_DUCKDB:
        return true;
    case UVA__KIND_OTHER:
        break;
    }
    return !connects;
}
