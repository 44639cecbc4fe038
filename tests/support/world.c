/* SPDX-License-Identifier: Apache-2.0 */
/* One struct column backs a batch and its child, and one struct heading a
 * schema and its child. Both are counted, because a consumer may move the child
 * out and keep it. */
#include "support/world.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

static atomic_int live;

void world_await_release(void)
{
    while (atomic_load(&live) != 0)
        (void)sched_yield();
}

/* ---- schemas ------------------------------------------------------------ */

struct heading {
    struct ArrowSchema child;        /* owns one count */
    struct ArrowSchema *children[1]; /* `child` */
    atomic_int holders;
};

static void heading_release_child(struct ArrowSchema *schema)
{
    struct heading *heading = schema->private_data;

    schema->release = NULL;
    if (atomic_fetch_sub(&heading->holders, 1) == 1) {
        free(heading);
        atomic_fetch_sub(&live, 1);
    }
}

static void heading_release(struct ArrowSchema *schema)
{
    struct heading *heading = schema->private_data;

    if (heading->child.release != NULL)
        heading->child.release(&heading->child);
    heading_release_child(schema);
}

int column_schema(struct ArrowSchema *out)
{
    struct heading *heading = calloc(1, sizeof(*heading));

    if (heading == NULL)
        return ENOMEM;
    atomic_init(&heading->holders, 2);
    heading->children[0] = &heading->child;
    heading->child = (struct ArrowSchema){.format = "l",
                                          .name = "n",
                                          .release = heading_release_child,
                                          .private_data = heading};
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = 1,
                                .children = heading->children,
                                .release = heading_release,
                                .private_data = heading};
    atomic_fetch_add(&live, 1);
    return 0;
}

/* ---- batches ------------------------------------------------------------ */

struct column {
    struct ArrowArray child;        /* owns one count */
    struct ArrowArray *children[1]; /* `child` */
    const void *struct_buffers[1];  /* no validity */
    const void *child_buffers[2];   /* no validity, `values` */
    atomic_int holders;
    int64_t values[];
};

static void column_release_child(struct ArrowArray *array)
{
    struct column *column = array->private_data;

    array->release = NULL;
    if (atomic_fetch_sub(&column->holders, 1) == 1) {
        free(column);
        atomic_fetch_sub(&live, 1);
    }
}

static void column_release(struct ArrowArray *array)
{
    struct column *column = array->private_data;

    if (column->child.release != NULL)
        column->child.release(&column->child);
    column_release_child(array);
}

/* Gives a batch with the numbers left for the caller to write. */
static int64_t *column_new(int64_t length, struct ArrowArray *out)
{
    struct column *column =
        calloc(1, sizeof(*column) + (size_t)length * sizeof(int64_t));

    if (column == NULL)
        return NULL;
    atomic_init(&column->holders, 2);
    column->children[0] = &column->child;
    column->child_buffers[1] = column->values;
    column->child = (struct ArrowArray){.length = length,
                                        .n_buffers = 2,
                                        .buffers = column->child_buffers,
                                        .release = column_release_child,
                                        .private_data = column};
    *out = (struct ArrowArray){.length = length,
                               .n_buffers = 1,
                               .n_children = 1,
                               .buffers = column->struct_buffers,
                               .children = column->children,
                               .release = column_release,
                               .private_data = column};
    atomic_fetch_add(&live, 1);
    return column->values;
}

int column_count_up(int64_t first, int64_t length, struct ArrowArray *out)
{
    int64_t *values = column_new(length, out);

    if (values == NULL)
        return ENOMEM;
    for (int64_t i = 0; i < length; i++)
        values[i] = first + i;
    return 0;
}

const int64_t *column_values(const struct ArrowArray *batch)
{
    const struct ArrowArray *child = batch->children[0];

    return (const int64_t *)child->buffers[1] + batch->offset + child->offset;
}

int column_scale(const struct ArrowArray *batch, double factor,
                 struct ArrowArray *out)
{
    const int64_t *values = column_values(batch);
    int64_t *scaled = column_new(batch->length, out);

    if (scaled == NULL)
        return ENOMEM;
    for (int64_t i = 0; i < batch->length; i++)
        scaled[i] = (int64_t)((double)values[i] * factor);
    return 0;
}

/* ---- the database ------------------------------------------------------- */

struct db {
    atomic_int holders; /* the opener and the streams */
    atomic_bool interrupted;
    int64_t rows; /* rows ingested */
};

/* A running query. */
struct result {
    struct db *db;  /* owns one count */
    int batches;    /* batches given */
    const char *no; /* text of the last error, or NULL */
};

struct db *db_open(const char *uri)
{
    struct db *db = uri == NULL ? NULL : calloc(1, sizeof(*db));

    if (db == NULL)
        return NULL;
    atomic_init(&db->holders, 1);
    atomic_fetch_add(&live, 1);
    return db;
}

void db_close(struct db *db)
{
    if (atomic_fetch_sub(&db->holders, 1) == 1) {
        free(db);
        atomic_fetch_sub(&live, 1);
    }
}

void db_interrupt(struct db *db)
{
    atomic_store(&db->interrupted, true);
}

static int result_schema(struct ArrowArrayStream *stream,
                         struct ArrowSchema *out)
{
    (void)stream;
    return column_schema(out);
}

static int result_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct result *result = stream->private_data;

    out->release = NULL;
    if (atomic_load(&result->db->interrupted)) {
        result->no = "interrupted";
        return ECANCELED;
    }
    if (result->batches == DB_BATCHES)
        return 0;
    return column_count_up((int64_t)DB_ROWS * result->batches++, DB_ROWS, out);
}

static const char *result_error(struct ArrowArrayStream *stream)
{
    return ((struct result *)stream->private_data)->no;
}

static void result_release(struct ArrowArrayStream *stream)
{
    struct result *result = stream->private_data;

    db_close(result->db);
    free(result);
    stream->release = NULL;
    atomic_fetch_sub(&live, 1);
}

int db_query(struct db *db, const char *sql, struct ArrowArrayStream *out)
{
    struct result *result = sql == NULL ? NULL : calloc(1, sizeof(*result));

    if (result == NULL)
        return sql == NULL ? EINVAL : ENOMEM;
    result->db = db;
    atomic_fetch_add(&db->holders, 1);
    atomic_fetch_add(&live, 1);
    *out = (struct ArrowArrayStream){.get_schema = result_schema,
                                     .get_next = result_next,
                                     .get_last_error = result_error,
                                     .release = result_release,
                                     .private_data = result};
    return 0;
}

int db_scan(const char *uri, struct ArrowArrayStream *out)
{
    struct db *db = db_open(uri);
    int code;

    if (db == NULL)
        return ENOMEM;
    code = db_query(db, "SELECT * FROM t", out);
    db_close(db);
    return code;
}

/* Ingests one batch. */
static int db_append(struct db *db, struct ArrowArray *batch)
{
    const int64_t *values = column_values(batch);
    int code = 0;

    for (int64_t i = 0; i < batch->length && code == 0; i++) {
        if (values[i] == db->rows)
            db->rows++;
        else
            code = EINVAL;
    }
    batch->release(batch);
    return code;
}

int db_ingest(struct db *db, const char *table, struct ArrowArrayStream *in)
{
    struct ArrowSchema schema = {0};
    struct ArrowArray batch = {0};
    int code = in->get_schema(in, &schema);

    if (code == 0) {
        code = schema.n_children == 1 && table != NULL ? 0 : EINVAL;
        schema.release(&schema);
    }
    while (code == 0) {
        code = in->get_next(in, &batch);
        if (code == 0 && batch.release == NULL)
            break;
        if (code == 0)
            code = db_append(db, &batch);
    }
    in->release(in);
    return code;
}

int64_t db_rows(const struct db *db)
{
    return db->rows;
}
