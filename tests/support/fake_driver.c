/* SPDX-License-Identifier: Apache-2.0 */
/* A driver without a database: the text of the query decides its acts. */
#define _GNU_SOURCE
#include "support/fake_driver.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "uvarrow/arrow.h"

struct fake_driver fake_driver;

/* The content of private_data. */
struct fake_statement {
    char sql[128];
    bool has_sql, is_ingest;
    struct ArrowArrayStream bound; /* owns */
    atomic_int refs;               /* the statement's, and its result's */
    atomic_int cancels;            /* since it was executed */
    atomic_bool in_call;
};

struct fake_result {
    struct fake_statement *statement; /* counts */
    long row;
    int cancels;            /* of the statement, before it */
    bool is_over;           /* it was read to its end, or has failed */
    struct AdbcError error; /* owns */
    AdbcStatusCode status;
    char text[64];
};

void fake_driver_reset(void)
{
    memset(&fake_driver, 0, sizeof(fake_driver));
}

void fake_driver_go(void)
{
    atomic_store(&fake_driver.goes, true);
}

/* ---- errors ------------------------------------------------------------- */

static void error_release(struct AdbcError *error)
{
    free(error->message);
    error->message = NULL;
    error->release = NULL;
}

/* `private_data` of an error with details. */
static const char has_details[] = "details";

static AdbcStatusCode fault(struct AdbcError *error, AdbcStatusCode status,
                            const char *text)
{
    const bool is_rich = !fake_driver.is_old && error->vendor_code == INT32_MIN;

    error->message = strdup(text);
    error->release = error_release;
    memcpy(error->sqlstate, "22012", 5);
    if (is_rich)
        error->private_data = (void *)(uintptr_t)has_details;
    else
        error->vendor_code = 7;
    return status;
}

static int detail_count(const struct AdbcError *error)
{
    if (error->private_data == NULL) /* it was never filled in */
        atomic_fetch_add(&fake_driver.wrong, 1);
    return error->private_data == has_details ? 3 : 0;
}

static struct AdbcErrorDetail detail_get(const struct AdbcError *error,
                                         int index)
{
    static const struct AdbcErrorDetail details[] = {
        {"hint", (const uint8_t *)"divide by less", 14},
        {"odd", NULL, 3},
        {"bin", (const uint8_t *)"\1\2", 2}};

    (void)error;
    return details[index];
}

/* ---- acts --------------------------------------------------------------- */

static void pause_a_bit(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

static void stop(void)
{
    atomic_fetch_add(&fake_driver.blocked, 1);
    while (!atomic_load(&fake_driver.goes))
        pause_a_bit();
    atomic_fetch_sub(&fake_driver.blocked, 1);
}

static void cancels_await(const struct fake_statement *s, int count)
{
    atomic_fetch_add(&fake_driver.blocked, 1);
    while (atomic_load(&s->cancels) < count)
        pause_a_bit();
    atomic_fetch_sub(&fake_driver.blocked, 1);
}

/* Whether this is one of so many calls. */
static bool is_one_of(atomic_long *count)
{
    long left = atomic_load(count);

    while (left > 0)
        if (atomic_compare_exchange_weak(count, &left, left - 1))
            return true;
    return false;
}

/* A failure without an SQLSTATE. */
static AdbcStatusCode loss(struct AdbcError *error, const char *text)
{
    (void)fault(error, ADBC_STATUS_IO, text);
    memset(error->sqlstate, 0, sizeof(error->sqlstate));
    return ADBC_STATUS_IO;
}

/* Acts as the text states. */
static AdbcStatusCode happen(struct fake_statement *s, const char *what,
                             struct AdbcError *error)
{
    if (strncmp(what, "fails", 5) == 0)
        return fault(error, ADBC_STATUS_INVALID_DATA, "division by zero");
    if (strncmp(what, "plainly", 7) == 0)
        return ADBC_STATUS_IO;
    if (strncmp(what, "fatal", 5) == 0)
        return loss(error, "FATAL Error: database has been invalidated");
    if (strncmp(what, "dies", 4) == 0)
        return is_one_of(&fake_driver.deaths)
                   ? loss(error, "Failed to prepare query: server closed the "
                                 "connection unexpectedly")
                   : ADBC_STATUS_OK;
    if (strncmp(what, "breaks", 6) == 0)
        return is_one_of(&fake_driver.deaths)
                   ? loss(error, "Failed to execute query: could not receive "
                                 "data from server")
                   : ADBC_STATUS_OK;
    if (strncmp(what, "waits", 5) == 0) {
        stop();
        return ADBC_STATUS_OK;
    }
    if (strncmp(what, "stops", 5) == 0) {
        stop();
    } else {
        cancels_await(s, strncmp(what, "ignores", 7) == 0 ? 2 : 1);
    }
    return fault(error, ADBC_STATUS_CANCELLED, "cancelled by its user");
}

/* ---- results ------------------------------------------------------------ */

static void statement_drop(struct fake_statement *s)
{
    if (atomic_fetch_sub(&s->refs, 1) > 1)
        return;
    if (s->bound.release != NULL)
        s->bound.release(&s->bound);
    free(s);
}

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static int result_fail(struct fake_result *r, const char *what)
{
    r->error = ADBC_ERROR_INIT;
    r->status = happen(r->statement, what, &r->error);
    if (r->status == ADBC_STATUS_OK)
        return 0;
    if (r->status == ADBC_STATUS_CANCELLED)
        return ECANCELED;
    return fake_driver.row_code != 0 ? fake_driver.row_code : EIO;
}

/* A schema with one column, in one block. */
struct fake_schema {
    struct ArrowSchema child, *children[1];
    char metadata[80]; /* of the child */
};

static void schema_free(struct ArrowSchema *schema)
{
    free(schema->private_data);
    schema->release = NULL;
}

/* The type of a column, as PostgreSQL's driver states it. */
static void strange_name(struct fake_schema *schema, const char *type)
{
    const struct uva_pair pair[] = {{.key = "POSTGRESQL:type", .value = type},
                                    {0}};
    size_t size = sizeof(schema->metadata);

    if (uva_metadata_encode(pair, schema->metadata, &size) == 0)
        schema->child.metadata = schema->metadata;
}

static int result_get_schema(struct ArrowArrayStream *self,
                             struct ArrowSchema *out)
{
    struct fake_result *r = self->private_data;
    const bool is_small = strncmp(r->statement->sql, "small ", 6) == 0;
    struct fake_schema *schema;

    if (strncmp(r->statement->sql, "schema ", 7) == 0)
        return result_fail(r, r->statement->sql + 7);
    schema = calloc(1, sizeof(*schema));
    if (schema == NULL)
        return ENOMEM;
    schema->child = (struct ArrowSchema){.format = is_small ? "i" : "l",
                                         .name = "n",
                                         .flags = ARROW_FLAG_NULLABLE,
                                         .release = schema_release};
    if (strncmp(r->statement->sql, "strange ", 8) == 0)
        strange_name(schema, r->statement->sql + 8);
    schema->children[0] = &schema->child;
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = 1,
                                .children = schema->children,
                                .release = schema_free,
                                .private_data = schema};
    return 0;
}

/* One row, in one block. */
struct fake_row {
    struct ArrowArray child, *children[1];
    const void *buffers[1], *child_buffers[2];
    int64_t value;
};

static void child_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static void row_release(struct ArrowArray *array)
{
    free(array->private_data);
    array->release = NULL;
}

static int row_make(int64_t value, struct ArrowArray *out)
{
    struct fake_row *row = calloc(1, sizeof(*row));

    if (row == NULL)
        return ENOMEM;
    row->value = value * 10; /* as batches of fake_source */
    row->child_buffers[1] = &row->value;
    row->child = (struct ArrowArray){.length = 1,
                                     .n_buffers = 2,
                                     .buffers = row->child_buffers,
                                     .release = child_release};
    row->children[0] = &row->child;
    *out = (struct ArrowArray){.length = 1,
                               .n_buffers = 1,
                               .n_children = 1,
                               .buffers = row->buffers,
                               .children = row->children,
                               .release = row_release,
                               .private_data = row};
    return 0;
}

static int row_get(struct fake_result *r, struct ArrowArray *out)
{
    const char *sql = r->statement->sql;
    const char *what = strrchr(sql, ' ');
    long count = 0;

    out->release = NULL;
    if (strncmp(sql, "strange ", 8) == 0 && r->row >= 1)
        return 0;
    if (sscanf(sql, "rows %ld", &count) == 1 && r->row >= count)
        return 0;
    if (sscanf(sql, "value %ld", &count) == 1)
        return r->row++ > 0 ? 0 : row_make(count, out);
    if (sscanf(sql, "batch %ld", &count) == 1 && r->row >= count)
        return result_fail(r, what + 1);
    return row_make(r->row++, out);
}

static int result_get_next(struct ArrowArrayStream *self,
                           struct ArrowArray *out)
{
    struct fake_result *r = self->private_data;
    const int code = row_get(r, out);

    r->is_over = code != 0 || out->release == NULL;
    return code;
}

static const char *result_get_last_error(struct ArrowArrayStream *self)
{
    struct fake_result *r = self->private_data;

    return r->error.message;
}

static void result_release(struct ArrowArrayStream *self)
{
    struct fake_result *r = self->private_data;

    if (fake_driver.reads_ahead && !r->is_over)
        cancels_await(r->statement, r->cancels + 1);
    if (r->error.release != NULL)
        r->error.release(&r->error);
    statement_drop(r->statement);
    free(r);
    atomic_fetch_sub(&fake_driver.results, 1);
    self->release = NULL;
}

static AdbcStatusCode result_new(struct fake_statement *s,
                                 struct ArrowArrayStream *out,
                                 struct AdbcError *error)
{
    struct fake_result *r = calloc(1, sizeof(*r));

    if (r == NULL)
        return fault(error, ADBC_STATUS_INTERNAL, "no memory");
    atomic_fetch_add(&s->refs, 1);
    r->statement = s;
    r->cancels = atomic_load(&s->cancels);
    atomic_fetch_add(&fake_driver.results, 1);
    *out = (struct ArrowArrayStream){.get_schema = result_get_schema,
                                     .get_next = result_get_next,
                                     .get_last_error = result_get_last_error,
                                     .release = result_release,
                                     .private_data = r};
    return ADBC_STATUS_OK;
}

static AdbcStatusCode result_new_hollow(struct fake_statement *s,
                                        struct ArrowArrayStream *out,
                                        struct AdbcError *error)
{
    const AdbcStatusCode status = result_new(s, out, error);

    if (status != ADBC_STATUS_OK)
        return status;
    if (s->sql[6] == '0')
        out->get_schema = NULL;
    else if (s->sql[6] == '1')
        out->get_next = NULL;
    else
        out->get_last_error = NULL;
    return status;
}

static const struct AdbcError *
error_from_stream(struct ArrowArrayStream *stream, AdbcStatusCode *status)
{
    struct fake_result *r = stream->private_data;

    if (stream->release != result_release || r->error.message == NULL)
        return NULL;
    *status = r->status;
    return &r->error;
}

/* ---- statements --------------------------------------------------------- */

static AdbcStatusCode statement_new(struct AdbcConnection *connection,
                                    struct AdbcStatement *statement,
                                    struct AdbcError *error)
{
    struct fake_statement *s = calloc(1, sizeof(*s));

    (void)connection;
    if (s == NULL)
        return fault(error, ADBC_STATUS_INTERNAL, "no memory");
    atomic_init(&s->refs, 1);
    statement->private_data = s;
    atomic_fetch_add(&fake_driver.statements, 1);
    return ADBC_STATUS_OK;
}

/* The query that is executed instead: `answers` in turn. */
static const char *answer_of(const char *answers, atomic_long *asked)
{
    static _Thread_local char value[] = "value 0";
    const size_t i = (size_t)atomic_fetch_add(asked, 1) % strlen(answers);

    switch (answers[i]) {
    case 'x':
        return "execute plainly";
    case 's':
        return "schema plainly";
    case 'b':
        return "batch 0 plainly";
    case 'e':
        return "rows 0";
    case 'n':
        return "update 1";
    case 't':
        return "small 1";
    case 'r':
        return "refused";
    default:
        value[6] = answers[i];
        return value;
    }
}

static AdbcStatusCode statement_set_sql(struct AdbcStatement *statement,
                                        const char *sql,
                                        struct AdbcError *error)
{
    struct fake_statement *s = statement->private_data;

    if (fake_driver.pids != NULL && strstr(sql, "pg_backend_pid") != NULL)
        sql = answer_of(fake_driver.pids, &fake_driver.asked_pids);
    if (fake_driver.settings != NULL && strstr(sql, "pg_settings") != NULL)
        sql = answer_of(fake_driver.settings, &fake_driver.asked_settings);
    if (strcmp(sql, "refused") == 0)
        return fault(error, ADBC_STATUS_INVALID_ARGUMENT, "no such table");
    (void)snprintf(s->sql, sizeof(s->sql), "%s", sql);
    s->has_sql = true;
    return ADBC_STATUS_OK;
}

static AdbcStatusCode statement_set_option(struct AdbcStatement *statement,
                                           const char *key, const char *value,
                                           struct AdbcError *error)
{
    struct fake_statement *s = statement->private_data;

    if (strcmp(key, "adbc.postgresql.batch_size_hint_bytes") == 0)
        (void)snprintf(fake_driver.batch_bytes, sizeof(fake_driver.batch_bytes),
                       "%s", value);
    if (strcmp(key, "refused") == 0 ||
        (strcmp(key, "adbc.statement.bind_by_name") == 0 &&
         fake_driver.binds_in_order))
        return fault(error, ADBC_STATUS_NOT_IMPLEMENTED, "unknown option");
    if (strcmp(key, ADBC_INGEST_OPTION_TARGET_TABLE) == 0) {
        (void)snprintf(s->sql, sizeof(s->sql), "ingest %s", value);
        s->is_ingest = s->has_sql = true;
    }
    return ADBC_STATUS_OK;
}

static AdbcStatusCode statement_bind(struct AdbcStatement *statement,
                                     struct ArrowArrayStream *stream,
                                     struct AdbcError *error)
{
    struct fake_statement *s = statement->private_data;

    (void)error;
    s->bound = *stream;
    stream->release = NULL;
    return ADBC_STATUS_OK;
}

/* Reads the bound rows, and takes a failure for their end. */
static int64_t bound_rows(struct fake_statement *s)
{
    struct ArrowArray array;
    int64_t rows = 0;

    while (s->bound.get_next(&s->bound, &array) == 0 && array.release != NULL) {
        rows += array.length;
        array.release(&array);
    }
    return rows;
}

/* Reads the schema of the bound rows, and then the rows. */
static AdbcStatusCode ingest(struct fake_statement *s, int64_t *rows,
                             struct AdbcError *error)
{
    struct ArrowSchema schema = {.release = NULL};

    if (fake_driver.reads_late)
        stop();
    if (s->bound.get_schema(&s->bound, &schema) != 0) {
        atomic_fetch_add(&fake_driver.schemaless, 1);
        return fault(error, ADBC_STATUS_INTERNAL, "the rows have no schema");
    }
    schema.release(&schema);
    *rows = bound_rows(s);
    return ADBC_STATUS_OK;
}

/* A result that reads the bound rows, and takes a failure for their end. */
static int lenient_get_schema(struct ArrowArrayStream *self,
                              struct ArrowSchema *out)
{
    struct fake_statement *s = self->private_data;

    return s->bound.get_schema(&s->bound, out);
}

static int lenient_get_next(struct ArrowArrayStream *self,
                            struct ArrowArray *out)
{
    struct fake_statement *s = self->private_data;

    if (s->bound.get_next(&s->bound, out) != 0)
        out->release = NULL;
    return 0;
}

static const char *lenient_get_last_error(struct ArrowArrayStream *self)
{
    (void)self;
    return NULL;
}

static void lenient_release(struct ArrowArrayStream *self)
{
    statement_drop(self->private_data);
    self->release = NULL;
}

static AdbcStatusCode lenient_new(struct fake_statement *s,
                                  struct ArrowArrayStream *out)
{
    atomic_fetch_add(&s->refs, 1);
    *out = (struct ArrowArrayStream){.get_schema = lenient_get_schema,
                                     .get_next = lenient_get_next,
                                     .get_last_error = lenient_get_last_error,
                                     .release = lenient_release,
                                     .private_data = s};
    return ADBC_STATUS_OK;
}

static bool is_transaction(const char *sql)
{
    static const char *const WORDS[] = {"begin", "commit", "rollback",
                                        "savepoint"};

    for (size_t i = 0; i < sizeof(WORDS) / sizeof(*WORDS); i++)
        if (strncmp(sql, WORDS[i], strlen(WORDS[i])) == 0)
            return true;
    return false;
}

static void state_rows(int64_t *rows)
{
    if (fake_driver.stated != 0 && rows != NULL)
        *rows = fake_driver.stated;
}

static AdbcStatusCode statement_execute(struct AdbcStatement *statement,
                                        struct ArrowArrayStream *out,
                                        int64_t *rows, struct AdbcError *error)
{
    struct fake_statement *s = statement->private_data;
    long count;

    atomic_fetch_add(&fake_driver.executed, 1);
    atomic_store(&s->cancels, 0); /* as real drivers do */
    if (fake_driver.executes_late)
        stop();
    if (!s->has_sql)
        return fault(error, ADBC_STATUS_INVALID_STATE, "no query is set");
    state_rows(rows);
    if (strncmp(s->sql, "execute ", 8) == 0)
        return happen(s, s->sql + 8, error);
    if (is_transaction(s->sql))
        return ADBC_STATUS_OK;
    if (strcmp(s->sql, "SELECT 1") == 0)
        return fake_driver.has_given_up
                   ? fault(error, ADBC_STATUS_INVALID_STATE, "no transaction")
                   : ADBC_STATUS_OK;
    if (strncmp(s->sql, "hollow", 6) == 0)
        return result_new_hollow(s, out, error);
    if (s->is_ingest)
        return ingest(s, rows, error);
    if (sscanf(s->sql, "update %ld", &count) == 1) {
        *rows = count;
        return ADBC_STATUS_OK;
    }
    if (sscanf(s->sql, "changes %ld", &count) == 1) {
        *rows = out == NULL ? count : -1;
        return ADBC_STATUS_OK;
    }
    if (strcmp(s->sql, "parameters") == 0 ||
        strncmp(s->sql, "prepare ", 8) == 0) {
        *out = s->bound;
        s->bound.release = NULL;
        return ADBC_STATUS_OK;
    }
    if (strcmp(s->sql, "lenient parameters") == 0)
        return lenient_new(s, out);
    return result_new(s, out, error);
}

static AdbcStatusCode statement_prepare(struct AdbcStatement *statement,
                                        struct AdbcError *error)
{
    struct fake_statement *s = statement->private_data;

    if (strncmp(s->sql, "prepare ", 8) == 0)
        return happen(s, s->sql + 8, error);
    return strcmp(s->sql, "unprepared") == 0
               ? fault(error, ADBC_STATUS_INVALID_ARGUMENT, "cannot prepare")
               : ADBC_STATUS_NOT_IMPLEMENTED;
}

static AdbcStatusCode
statement_get_parameter_schema(struct AdbcStatement *statement,
                               struct ArrowSchema *out, struct AdbcError *error)
{
    struct fake_result result = {.statement = statement->private_data};
    struct ArrowArrayStream stream = {.private_data = &result};

    if (fake_driver.parameter[0] == '\0')
        return fault(error, ADBC_STATUS_NOT_IMPLEMENTED, "no parameters");
    if (result_get_schema(&stream, out) != 0)
        return fault(error, ADBC_STATUS_INTERNAL, "no memory");
    out->children[0]->name = fake_driver.parameter;
    return ADBC_STATUS_OK;
}

static AdbcStatusCode connection_cancel(struct AdbcConnection *connection,
                                        struct AdbcError *error)
{
    (void)connection;
    (void)error;
    fake_driver_go();
    return ADBC_STATUS_OK;
}

static AdbcStatusCode statement_cancel(struct AdbcStatement *statement,
                                       struct AdbcError *error)
{
    struct fake_statement *s = statement->private_data;

    (void)error;
    atomic_fetch_add(&fake_driver.cancels, 1);
    if (fake_driver.cancels_connections)
        return ADBC_STATUS_NOT_IMPLEMENTED;
    atomic_fetch_add(&s->cancels, 1);
    return ADBC_STATUS_OK;
}

static AdbcStatusCode statement_release(struct AdbcStatement *statement,
                                        struct AdbcError *error)
{
    (void)error;
    statement_drop(statement->private_data);
    statement->private_data = NULL;
    atomic_fetch_sub(&fake_driver.statements, 1);
    return ADBC_STATUS_OK;
}

/* ---- partitions and the catalog ----------------------------------------- */

/* Partitions, in one block: each is the text of a query. */
struct fake_partitions {
    const uint8_t *texts[8];
    size_t sizes[8];
    char text[8][16];
};

static void partitions_release(struct AdbcPartitions *partitions)
{
    free(partitions->private_data);
    partitions->release = NULL;
    atomic_fetch_sub(&fake_driver.results, 1);
}

static AdbcStatusCode statement_execute_partitions(
    struct AdbcStatement *statement, struct ArrowSchema *schema,
    struct AdbcPartitions *out, int64_t *rows, struct AdbcError *error)
{
    struct fake_statement *s = statement->private_data;
    struct fake_result result = {.statement = s};
    struct ArrowArrayStream stream = {.private_data = &result};
    struct fake_partitions *p;
    unsigned count;

    (void)rows;
    if (strncmp(s->sql, "hollow", 6) == 0) {
        static const uint8_t *const nothing[1];
        static const size_t sizes[1] = {1}, empty[1];

        out->num_partitions = 1;
        out->partitions = s->sql[6] > '0'
                              ? (const uint8_t **)(void *)(uintptr_t)nothing
                              : NULL;
        out->partition_lengths = s->sql[6] == '2'   ? sizes
                                 : s->sql[6] == '3' ? empty
                                                    : NULL;
        return ADBC_STATUS_OK;
    }
    if (sscanf(s->sql, "partitions %u", &count) != 1 || count > 8)
        return happen(s, s->sql, error);
    if (s->bound.release != NULL)
        (void)bound_rows(s);
    p = calloc(1, sizeof(*p));
    if (p == NULL || result_get_schema(&stream, schema) != 0) {
        free(p);
        return fault(error, ADBC_STATUS_INTERNAL, "no memory");
    }
    for (unsigned i = 0; i < count; i++) {
        p->sizes[i] =
            (size_t)snprintf(p->text[i], sizeof(p->text[i]), "rows %u", i + 1);
        p->texts[i] = (const uint8_t *)p->text[i];
    }
    *out = (struct AdbcPartitions){.num_partitions = count,
                                   .partitions = p->texts,
                                   .partition_lengths = p->sizes,
                                   .private_data = p,
                                   .release = partitions_release};
    atomic_fetch_add(&fake_driver.results, 1);
    if (fake_driver.is_static) { /* no object may be released twice */
        schema->release(schema);
        out->num_partitions = 0;
        partitions_release(out);
    }
    return ADBC_STATUS_OK;
}

/* Gives the result of a query without a statement. */
static AdbcStatusCode connection_query(const char *sql, size_t size,
                                       struct ArrowArrayStream *out,
                                       struct AdbcError *error)
{
    struct fake_statement *s = calloc(1, sizeof(*s));
    AdbcStatusCode status;

    if (s == NULL)
        return fault(error, ADBC_STATUS_INTERNAL, "no memory");
    atomic_init(&s->refs, 1);
    (void)snprintf(s->sql, sizeof(s->sql), "%.*s", (int)size, sql);
    status = strncmp(s->sql, "execute ", 8) == 0 ? happen(s, s->sql + 8, error)
                                                 : result_new(s, out, error);
    statement_drop(s);
    return status;
}

static AdbcStatusCode
connection_read_partition(struct AdbcConnection *connection,
                          const uint8_t *partition, size_t size,
                          struct ArrowArrayStream *out, struct AdbcError *error)
{
    (void)connection;
    return connection_query((const char *)partition, size, out, error);
}

static const char *or_dash(const char *text)
{
    return text != NULL ? text : "-";
}

static AdbcStatusCode connection_get_objects(
    struct AdbcConnection *connection, int depth, const char *catalog,
    const char *db_schema, const char *table, const char **types,
    const char *column, struct ArrowArrayStream *out, struct AdbcError *error)
{
    const char *sql = table != NULL ? table : "rows 2";

    (void)connection;
    (void)snprintf(fake_driver.asked, sizeof(fake_driver.asked),
                   "%d %s %s %s %s %s", depth, or_dash(catalog),
                   or_dash(db_schema), or_dash(table),
                   types != NULL ? or_dash(types[0]) : "*", or_dash(column));
    return connection_query(sql, strlen(sql), out, error);
}

static AdbcStatusCode
connection_get_table_schema(struct AdbcConnection *connection,
                            const char *catalog, const char *db_schema,
                            const char *table, struct ArrowSchema *out,
                            struct AdbcError *error)
{
    struct fake_statement s = {.has_sql = true};
    struct fake_result result = {.statement = &s};
    struct ArrowArrayStream stream = {.private_data = &result};

    (void)connection;
    (void)snprintf(fake_driver.asked, sizeof(fake_driver.asked), "%s %s %s",
                   or_dash(catalog), or_dash(db_schema), table);
    if (strcmp(table, "hollow") == 0)
        return ADBC_STATUS_OK;
    if (strcmp(table, "nowhere") == 0)
        return fault(error, ADBC_STATUS_NOT_FOUND, "no such table");
    return result_get_schema(&stream, out) == 0
               ? ADBC_STATUS_OK
               : fault(error, ADBC_STATUS_INTERNAL, "no memory");
}

/* ---- connections and databases ------------------------------------------ */

static AdbcStatusCode connection_new(struct AdbcConnection *connection,
                                     struct AdbcError *error)
{
    struct AdbcDriver *driver = connection->private_driver;
    const bool fails = fake_driver.no_connection;
    const long now = atomic_fetch_add(&fake_driver.connections, 1) + 1;
    long most = atomic_load(&fake_driver.most);

    if (fails) {
        atomic_fetch_sub(&fake_driver.connections, 1);
        return fault(error, ADBC_STATUS_INTERNAL, "no connection");
    }
    while (now > most &&
           !atomic_compare_exchange_weak(&fake_driver.most, &most, now))
        continue;
    atomic_fetch_add(&fake_driver.connected, 1);
    *connection = (struct AdbcConnection){
        .private_data = &fake_driver,
        .private_driver = fake_driver.clears ? NULL : driver};
    return ADBC_STATUS_OK;
}

/* The private_data of a connection, once it is open. */
static const char connection_is_open;

/* The content of private_data of a database. */
struct fake_database {
    atomic_long inside; /* calls: ADBC allows one at one time */
};

static AdbcStatusCode connection_init(struct AdbcConnection *connection,
                                      struct AdbcDatabase *database,
                                      struct AdbcError *error)
{
    struct fake_database *d = database->private_data;

    if (d == NULL || atomic_fetch_add(&d->inside, 1) > 0)
        atomic_fetch_add(&fake_driver.wrong, 1);
    if (fake_driver.connects_late || is_one_of(&fake_driver.late))
        stop();
    if (d != NULL)
        atomic_fetch_sub(&d->inside, 1);
    if (fake_driver.no_connect)
        return fault(error, ADBC_STATUS_UNAUTHENTICATED, "wrong password");
    connection->private_data = (void *)(uintptr_t)&connection_is_open;
    return ADBC_STATUS_OK;
}

static AdbcStatusCode connection_release(struct AdbcConnection *connection,
                                         struct AdbcError *error)
{
    (void)error;
    if (fake_driver.closes_late)
        stop();
    connection->private_data = NULL;
    atomic_fetch_sub(&fake_driver.connections, 1);
    return ADBC_STATUS_OK;
}

static AdbcStatusCode set_nothing(const char *key, struct AdbcError *error)
{
    return strcmp(key, "refused") == 0
               ? fault(error, ADBC_STATUS_NOT_IMPLEMENTED, "unknown option")
               : ADBC_STATUS_OK;
}

static AdbcStatusCode transaction_step(const char *step,
                                       struct AdbcError *error)
{
    const size_t size = strlen(fake_driver.transactions);

    (void)snprintf(fake_driver.transactions + size,
                   sizeof(fake_driver.transactions) - size, "%s ", step);
    return fake_driver.no_step == NULL || strcmp(step, fake_driver.no_step) != 0
               ? ADBC_STATUS_OK
               : fault(error, ADBC_STATUS_INTEGRITY, "no such step");
}

static AdbcStatusCode connection_set_option(struct AdbcConnection *connection,
                                            const char *key, const char *value,
                                            struct AdbcError *error)
{
    const bool is_open = connection->private_data == &connection_is_open;

    if ((strcmp(key, "early") == 0 && is_open) ||
        (strcmp(key, "late") == 0 && !is_open))
        return fault(error, ADBC_STATUS_INVALID_STATE, "not now");
    if (strcmp(key, ADBC_CONNECTION_OPTION_READ_ONLY) == 0)
        atomic_fetch_add(&fake_driver.restricted, 1);
    if (strcmp(key, ADBC_CONNECTION_OPTION_AUTOCOMMIT) != 0)
        return set_nothing(key, error);
    if (fake_driver.no_transactions)
        return fault(error, ADBC_STATUS_NOT_IMPLEMENTED, "no transactions");
    return transaction_step(
        strcmp(value, ADBC_OPTION_VALUE_ENABLED) == 0 ? "end" : "begin", error);
}

static AdbcStatusCode connection_commit(struct AdbcConnection *connection,
                                        struct AdbcError *error)
{
    (void)connection;
    return transaction_step("commit", error);
}

static AdbcStatusCode connection_rollback(struct AdbcConnection *connection,
                                          struct AdbcError *error)
{
    (void)connection;
    if (fake_driver.rolls_back_late)
        stop();
    return transaction_step("rollback", error);
}

static AdbcStatusCode database_new(struct AdbcDatabase *database,
                                   struct AdbcError *error)
{
    struct fake_database *d =
        fake_driver.no_database ? NULL : calloc(1, sizeof(*d));

    if (d == NULL)
        return fault(error, ADBC_STATUS_INTERNAL, "no database");
    atomic_fetch_add(&fake_driver.databases, 1);
    atomic_fetch_add(&fake_driver.opened, 1);
    database->private_data = d;
    return ADBC_STATUS_OK;
}

static AdbcStatusCode database_set_option(struct AdbcDatabase *database,
                                          const char *key, const char *value,
                                          struct AdbcError *error)
{
    (void)database;
    if (strcmp(key, "uri") == 0)
        (void)snprintf(fake_driver.uri, sizeof(fake_driver.uri), "%s", value);
    return set_nothing(key, error);
}

static AdbcStatusCode database_init(struct AdbcDatabase *database,
                                    struct AdbcError *error)
{
    (void)database;
    (void)error;
    return ADBC_STATUS_OK;
}

static AdbcStatusCode database_release(struct AdbcDatabase *database,
                                       struct AdbcError *error)
{
    (void)error;
    free(database->private_data);
    database->private_data = NULL;
    atomic_fetch_sub(&fake_driver.databases, 1);
    return ADBC_STATUS_OK;
}

static AdbcStatusCode driver_release(struct AdbcDriver *driver,
                                     struct AdbcError *error)
{
    (void)error;
    driver->release = NULL;
    atomic_fetch_sub(&fake_driver.drivers, 1);
    return ADBC_STATUS_OK;
}

/* Without one function that every driver must have. */
static void lose_function(struct AdbcDriver *driver, int number)
{
    switch (number) {
    case 1:
        driver->DatabaseNew = NULL;
        break;
    case 2:
        driver->DatabaseInit = NULL;
        break;
    case 3:
        driver->DatabaseRelease = NULL;
        break;
    case 4:
        driver->ConnectionNew = NULL;
        break;
    case 5:
        driver->ConnectionInit = NULL;
        break;
    case 6:
        driver->ConnectionRelease = NULL;
        break;
    case 7:
        driver->StatementNew = NULL;
        break;
    case 8:
        driver->StatementExecuteQuery = NULL;
        break;
    case 9:
        driver->StatementRelease = NULL;
        break;
    }
}

AdbcStatusCode fake_driver_init(int version, void *out, struct AdbcError *error)
{
    struct AdbcDriver *driver = out;

    if (fake_driver.is_old && version != ADBC_VERSION_1_0_0)
        return fault(error, ADBC_STATUS_NOT_IMPLEMENTED, "only 1.0");
    driver->release = driver_release;
    atomic_fetch_add(&fake_driver.drivers, 1);
    driver->DatabaseNew = database_new;
    driver->DatabaseSetOption = database_set_option;
    driver->DatabaseInit = database_init;
    driver->DatabaseRelease = database_release;
    driver->ConnectionNew = connection_new;
    driver->ConnectionSetOption = connection_set_option;
    driver->ConnectionCommit = connection_commit;
    driver->ConnectionRollback = connection_rollback;
    driver->ConnectionInit = connection_init;
    driver->ConnectionRelease = connection_release;
    driver->StatementNew = statement_new;
    driver->StatementSetSqlQuery = statement_set_sql;
    driver->StatementSetOption = statement_set_option;
    driver->StatementPrepare = statement_prepare;
    driver->StatementBindStream = statement_bind;
    if (fake_driver.parameter != NULL)
        driver->StatementGetParameterSchema = statement_get_parameter_schema;
    driver->StatementExecuteQuery = statement_execute;
    driver->StatementRelease = statement_release;
    if (!fake_driver.is_simple) {
        driver->StatementExecutePartitions = statement_execute_partitions;
        driver->ConnectionReadPartition = connection_read_partition;
        driver->ConnectionGetObjects = connection_get_objects;
        driver->ConnectionGetTableSchema = connection_get_table_schema;
    }
    if (fake_driver.is_bare) {
        driver->DatabaseSetOption = NULL;
        driver->ConnectionSetOption = NULL;
        driver->StatementSetOption = NULL;
        driver->StatementSetSqlQuery = NULL;
    }
    if (fake_driver.lacks_step == LACKS_SET)
        driver->ConnectionSetOption = NULL;
    if (fake_driver.lacks_step == LACKS_COMMIT)
        driver->ConnectionCommit = NULL;
    if (fake_driver.lacks_step == LACKS_ROLLBACK)
        driver->ConnectionRollback = NULL;
    if (fake_driver.binds_nothing) {
        driver->StatementPrepare = NULL;
        driver->StatementBindStream = NULL;
    }
    lose_function(driver, fake_driver.lacks);
    if (version < ADBC_VERSION_1_1_0)
        return ADBC_STATUS_OK;
    driver->StatementCancel = statement_cancel;
    driver->ConnectionCancel =
        fake_driver.cancels_connections ? connection_cancel : NULL;
    driver->ErrorGetDetailCount = detail_count;
    driver->ErrorGetDetail = detail_get;
    driver->ErrorFromArrayStream = error_from_stream;
    return ADBC_STATUS_OK;
}

/* ---- a statement for tests ---------------------------------------------- */

static void must(AdbcStatusCode status)
{
    if (status != ADBC_STATUS_OK)
        abort();
}

void fake_driver_open(struct fake_query *q, const char *sql)
{
    struct AdbcError error = ADBC_ERROR_INIT;

    memset(q, 0, sizeof(*q));
    must(fake_driver_init(fake_driver.is_old ? ADBC_VERSION_1_0_0
                                             : ADBC_VERSION_1_1_0,
                          &q->driver, &error));
    q->database.private_driver = q->connection.private_driver =
        q->statement.private_driver = &q->driver;
    must(q->driver.DatabaseNew(&q->database, &error));
    must(q->driver.DatabaseInit(&q->database, &error));
    must(q->driver.ConnectionNew(&q->connection, &error));
    must(q->driver.ConnectionInit(&q->connection, &q->database, &error));
    must(q->driver.StatementNew(&q->connection, &q->statement, &error));
    must(q->driver.StatementSetSqlQuery(&q->statement, sql, &error));
}

void fake_driver_close(void *query)
{
    struct fake_query *q = query;
    struct AdbcError error = ADBC_ERROR_INIT;

    if (q->statement.private_driver != NULL)
        must(q->driver.StatementRelease(&q->statement, &error));
    must(q->driver.ConnectionRelease(&q->connection, &error));
    must(q->driver.DatabaseRelease(&q->database, &error));
    must(q->driver.release(&q->driver, &error));
    atomic_fetch_add(&q->closed, 1);
}
