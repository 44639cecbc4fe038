/* SPDX-License-Identifier: Apache-2.0 */
/* The table of known databases, and the name of a driver, which is in the
 * stream of ConnectionGetInfo. A stream that has another form gives no name. */
#include "adbc/known.h"

#include <stdio.h>
#include <string.h>

#include "adbc/failure.h"
#include "adbc/sql.h"
#include "uvarrow/arrow.h"

/* PostgreSQL lets no transaction write any more that was made read-only and has
 * taken its snapshot, which the second statement does. */
static const char *const postgresql_read_only[] = {
    "BEGIN READ ONLY",
    "SELECT pg_catalog.set_config('default_transaction_read_only', 'on', true)",
    NULL};

/* The last row is for all other drivers. */
static const struct uva__known table[] = {
    {.driver = "ADBC PostgreSQL Driver",
     .file = "postgresql",
     .reset = UVA__RESET_DISCARD_ALL,
     .read_only = postgresql_read_only,
     .batch_option = "adbc.postgresql.batch_size_hint_bytes",
     .sql = &uva__sql_any,
     .traits = UVA__KNOWN_LIBPQ | UVA__KNOWN_CONNECTS_AT_ONCE |
               UVA__KNOWN_ANSWERS | UVA__KNOWN_DROPS_RESULTS},
    {.driver = "ADBC SQLite Driver",
     .file = "sqlite",
     .reset = UVA__RESET_CLOSE_IF_WRITES,
     .batch_option = "adbc.sqlite.query.batch_rows",
     .lock_statement = "PRAGMA busy_timeout=",
     .sql = &uva__sql_sqlite,
     .traits = UVA__KNOWN_REFUSES_ROLLBACK | UVA__KNOWN_LOADS_EXTENSIONS |
               UVA__KNOWN_EXECUTES_FIRST | UVA__KNOWN_SPLITS_MEMORY |
               UVA__KNOWN_COUNTS_ROWS | UVA__KNOWN_DROPS_RESULTS},
    {.driver = "ADBC DuckDB Driver",
     .file = "duckdb",
     .reset = UVA__RESET_CLOSE,
     .sql = &uva__sql_any,
     .traits = UVA__KNOWN_REFUSES_ROLLBACK},
    {.driver = "ADBC Flight SQL Driver - Go",
     .file = "flightsql",
     .reset = UVA__RESET_CLOSE,
     .traits = UVA__KNOWN_CONNECTS_AT_ONCE | UVA__KNOWN_DROPS_RESULTS},
    {.reset = UVA__RESET_CLOSE},
};

const struct uva__known *uva__known_named(const char *driver)
{
    const char *slash = strrchr(driver, '/');
    const struct uva__known *k = table;

    while (k->driver != NULL &&
           strstr(slash != NULL ? slash : driver, k->file) == NULL)
        k++;
    return k;
}

/* ---- types ----------------------------------------------------------------
 */

enum { DEPTH = 8 };

/* PostgreSQL's driver reads the types of a server when it opens a database. */
static bool field_is_strange(const struct ArrowSchema *field, char *out,
                             size_t size)
{
    static const char mark[] = "unnamed<oid:";
    struct uva_pair type;

    if (uva_metadata_get(field->metadata, "POSTGRESQL:type", &type) != 0 ||
        type.value_size < strlen(mark) ||
        memcmp(type.value, mark, strlen(mark)) != 0)
        return false;
    (void)snprintf(out, size, "%.*s", (int)type.value_size, type.value);
    return true;
}

static bool fields_are_strange(const struct ArrowSchema *schema, int depth,
                               char *out, size_t size)
{
    for (int64_t i = 0; depth > 0 && i < schema->n_children; i++)
        if (field_is_strange(schema->children[i], out, size) ||
            fields_are_strange(schema->children[i], depth - 1, out, size))
            return true;
    return false;
}

bool uva__known_is_strange(const struct ArrowSchema *schema, char *out,
                           size_t size)
{
    return fields_are_strange(schema, DEPTH, out, size);
}

/* ---- the name ----------------------------------------------------------- */

/* Rows of a number and a value, which is one of several types: the first of
 * these is a text. */
static bool schema_fits(const struct ArrowSchema *schema)
{
    const struct ArrowSchema *value;

    if (strcmp(schema->format, "+s") != 0 || schema->n_children != 2 ||
        strcmp(schema->children[0]->format, "I") != 0)
        return false;
    value = schema->children[1];
    return strncmp(value->format, "+ud:0", 5) == 0 && value->n_children > 0 &&
           strcmp(value->children[0]->format, "u") == 0;
}

/* Whether the text at `offset` of the first child is `name`. */
static bool text_is(const struct ArrowArray *texts, int32_t offset,
                    const char *name)
{
    const int32_t *ends;

    if (texts->offset != 0 || offset < 0 || offset >= texts->length)
        return false;
    ends = (const int32_t *)texts->buffers[1] + offset;
    return ends[0] >= 0 &&
           ends[1] - (int64_t)ends[0] == (int64_t)strlen(name) &&
           memcmp((const char *)texts->buffers[2] + ends[0], name,
                  strlen(name)) == 0;
}

/* Whether a row of a batch that fits states the name. */
static bool row_names(const struct ArrowArray *batch, int64_t row,
                      const char *name)
{
    const struct ArrowArray *numbers = batch->children[0];
    const struct ArrowArray *values = batch->children[1];

    return ((const uint32_t *)numbers->buffers[1])[row] ==
               ADBC_INFO_DRIVER_NAME &&
           ((const int8_t *)values->buffers[0])[row] == 0 &&
           text_is(values->children[0],
                   ((const int32_t *)values->buffers[1])[row], name);
}

static const struct uva__known *batch_find(const struct ArrowArray *batch)
{
    if (batch->offset != 0 || batch->children[0]->offset != 0 ||
        batch->children[1]->offset != 0)
        return NULL;
    for (const struct uva__known *k = table; k->driver != NULL; k++)
        for (int64_t row = 0; row < batch->length; row++)
            if (row_names(batch, row, k->driver))
                return k;
    return NULL;
}

/* ---- reading it --------------------------------------------------------- */

static const struct uva__known *batch_read(struct ArrowArrayStream *stream,
                                           const struct ArrowSchema *schema)
{
    struct ArrowDeviceArray batch = {.device_id = -1,
                                     .device_type = ARROW_DEVICE_CPU};
    const struct uva__known *known = NULL;
    int64_t size;

    if (stream->get_next(stream, &batch.array) != 0 ||
        batch.array.release == NULL)
        return NULL;
    if (uva_array_size(schema, &batch, &size) == 0)
        known = batch_find(&batch.array);
    batch.array.release(&batch.array);
    return known;
}

/* The copy is well-formed. */
static const struct uva__known *stream_read(struct ArrowArrayStream *stream)
{
    struct ArrowSchema given = {0}, schema = {0};
    const struct uva__known *known = NULL;

    if (stream->get_schema == NULL || stream->get_next == NULL ||
        stream->get_schema(stream, &given) != 0)
        return NULL;
    if (uva_schema_copy(&given, &schema) == 0) {
        if (schema_fits(&schema))
            known = batch_read(stream, &schema);
        uva_schema_release(&schema);
    }
    uva_schema_release(&given);
    return known;
}

const struct uva__known *uva__known_find(struct AdbcConnection *connection)
{
    static const uint32_t codes[] = {ADBC_INFO_DRIVER_NAME};
    struct AdbcDriver *driver = connection->private_driver;
    struct AdbcError error = uva__adbc_error(driver);
    struct ArrowArrayStream stream = {0};
    const struct uva__known *known = NULL;

    if (driver->ConnectionGetInfo != NULL &&
        driver->ConnectionGetInfo(connection, codes, 1, &stream, &error) ==
            ADBC_STATUS_OK &&
        stream.release != NULL) {
        known = stream_read(&stream);
        stream.release(&stream);
    }
    uva__adbc_error_drop(&error);
    return known != NULL ? known : &table[sizeof(table) / sizeof(*table) - 1];
}
