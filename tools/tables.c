/* SPDX-License-Identifier: Apache-2.0 */
/* ADBC gives the catalog as nested lists, and a table as the schema of a stream
 * without rows. A transform makes rows of either. */
#include "tables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text_rows.h"
#include "type_name.h"
#include "uvarrow/stages.h"

/* ---- nested lists -------------------------------------------------------- */

/* A text. */
struct text {
    const char *at; /* borrows; NULL: a null */
    size_t size;
};

/* Items of a list, from `from` on. */
struct items {
    const struct ArrowArray *array;
    int64_t from, to;
};

static bool is_valid(const struct ArrowArray *array, int64_t i)
{
    const uint8_t *bits = array->buffers[0];

    return bits == NULL || (bits[i / 8] >> i % 8 & 1) != 0;
}

static struct text text_at(const struct ArrowArray *array, int64_t i)
{
    const int32_t *offsets = array->buffers[1];
    const char *data = array->buffers[2];

    i += array->offset;
    if (!is_valid(array, i))
        return (struct text){0};
    return (struct text){.at = data != NULL ? data + offsets[i] : "",
                         .size = (size_t)(offsets[i + 1] - offsets[i])};
}

/* Their numbers are those of the children of the items. */
static struct items list_at(const struct ArrowArray *list, int64_t i)
{
    const int32_t *offsets = list->buffers[1];
    const struct ArrowArray *array = list->children[0];

    i += list->offset;
    if (!is_valid(list, i))
        return (struct items){.array = array};
    return (struct items){.array = array,
                          .from = offsets[i] + array->offset,
                          .to = offsets[i + 1] + array->offset};
}

/* Whether a schema has texts and lists of structs where they are expected. */
static bool is_catalog(const struct ArrowSchema *schema, int levels)
{
    if (schema->n_children < 2 || strcmp(schema->format, "+s") != 0 ||
        strcmp(schema->children[0]->format, "u") != 0)
        return false;
    if (levels == 0)
        return strcmp(schema->children[1]->format, "u") == 0;
    return strcmp(schema->children[1]->format, "+l") == 0 &&
           is_catalog(schema->children[1]->children[0], levels - 1);
}

/* ---- tables -------------------------------------------------------------- */

static bool is_one_of(struct text text, const char *const *names)
{
    for (; *names != NULL && text.at != NULL; names++)
        if (strlen(*names) == text.size &&
            memcmp(*names, text.at, text.size) == 0)
            return true;
    return false;
}

static bool is_of_the_system(struct text catalog, struct text schema)
{
    static const char *const CATALOGS[] = {"system", "temp", NULL},
                             *const SCHEMAS[] = {"information_schema",
                                                 "pg_catalog", "pg_toast",
                                                 NULL};

    return is_one_of(catalog, CATALOGS) || is_one_of(schema, SCHEMAS);
}

static void rows_add(struct uva__text_rows *rows, struct text text)
{
    uva__text_rows_add(rows, text.at, text.size);
}

static void schema_read(struct uva__text_rows *rows, struct text catalog,
                        const struct items *schemas, int64_t at)
{
    const struct text schema = text_at(schemas->array->children[0], at);
    const struct items tables = list_at(schemas->array->children[1], at);

    if (is_of_the_system(catalog, schema))
        return;
    for (int64_t i = tables.from; i < tables.to; i++) {
        rows_add(rows, catalog);
        rows_add(rows, schema);
        rows_add(rows, text_at(tables.array->children[0], i));
        rows_add(rows, text_at(tables.array->children[1], i));
    }
}

static void catalogs_read(struct uva__text_rows *rows,
                          const struct ArrowArray *array)
{
    for (int64_t i = array->offset; i < array->offset + array->length; i++) {
        const struct text catalog = text_at(array->children[0], i);
        const struct items schemas = list_at(array->children[1], i);

        for (int64_t k = schemas.from; k < schemas.to; k++)
            schema_read(rows, catalog, &schemas, k);
    }
}

static int rows_emit(struct uva__text_rows *rows, uva_emit_fn *emit,
                     void *emitter)
{
    struct uva_batch batch = {0};
    int code = uva__text_rows_take(rows, &batch.data);

    if (code == 0)
        code = emit(emitter, &batch);
    return code == EAGAIN ? 0 : code;
}

static int tables_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                        void *emitter, struct uva_error *error)
{
    struct uva__text_rows rows = {.columns = 4};

    (void)ctx;
    (void)error;
    catalogs_read(&rows, &in->data.array);
    return rows_emit(&rows, emit, emitter);
}

static int tables_schema(void *ctx, const struct ArrowSchema *in,
                         struct ArrowSchema *out, struct uva_error *error)
{
    static const char *const NAMES[] = {"catalog", "schema", "table", "type"};

    (void)ctx;
    if (!is_catalog(in, 2))
        return uva_error_set(error, EPROTO,
                             "the driver gives another catalog than ADBC has");
    return uva__text_rows_schema(NAMES, 4, out);
}

/* ---- columns ------------------------------------------------------------- */

static int columns_schema(void *ctx, const struct ArrowSchema *in,
                          struct ArrowSchema *out, struct uva_error *error)
{
    static const char *const NAMES[] = {"column", "type", "nullable"};
    struct uva__text_rows *rows = ctx;
    char type[64];

    (void)error;
    for (int64_t i = 0; i < in->n_children; i++) {
        const struct ArrowSchema *column = in->children[i];
        const bool nullable = (column->flags & ARROW_FLAG_NULLABLE) != 0;
        const char *name = column->name != NULL ? column->name : "";

        uva__type_name(column, type, sizeof(type));
        uva__text_rows_add(rows, name, strlen(name));
        uva__text_rows_add(rows, type, strlen(type));
        uva__text_rows_add(rows, nullable ? "yes" : "no", nullable ? 3 : 2);
    }
    return uva__text_rows_schema(NAMES, 3, out);
}

/* Such a stream has no rows. */
static int columns_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                         void *emitter, struct uva_error *error)
{
    (void)ctx;
    (void)in;
    (void)emit;
    (void)emitter;
    (void)error;
    return 0;
}

static int columns_finish(void *ctx, uva_emit_fn *emit, void *emitter,
                          struct uva_error *error)
{
    (void)error;
    return rows_emit(ctx, emit, emitter);
}

static void columns_free(void *ctx)
{
    uva__text_rows_fini(ctx);
    free(ctx);
}

/* ---- the stream ---------------------------------------------------------- */

/* Cuts "catalog.schema.table", which is changed. */
static struct uva_stream *columns_of(struct uva_adbc_pool *pool, char *table)
{
    char *parts[3] = {NULL, NULL, table}, *dot;

    for (int i = 1; i >= 0 && (dot = strrchr(table, '.')) != NULL; i--) {
        *dot = '\0';
        parts[i + 1] = dot + 1;
        parts[i] = table;
    }
    return uva_stream_from_table_schema(pool, parts[0], parts[1], parts[2]);
}

static void columns_add(struct uva_stream *stream)
{
    struct uva__text_rows *rows = calloc(1, sizeof(*rows));

    if (rows == NULL) {
        uva_stream_cancel(stream, ENOMEM, "out of memory");
        return;
    }
    rows->columns = 3;
    (void)uva_stream_transform(stream,
                               &(struct uva_transform){.batch = columns_batch,
                                                       .finish = columns_finish,
                                                       .schema = columns_schema,
                                                       .free_ctx = columns_free,
                                                       .ctx = rows,
                                                       .on_loop = true});
}

struct uva_stream *uva__tables_stream(struct uva_adbc_pool *pool,
                                      const char *table)
{
    const struct uva_adbc_objects which = {.depth = ADBC_OBJECT_DEPTH_TABLES};
    char name[1024];
    struct uva_stream *stream;

    if (table == NULL) {
        stream = uva_stream_from_objects(pool, &which);
        (void)uva_stream_transform(
            stream, &(struct uva_transform){.batch = tables_batch,
                                            .schema = tables_schema});
        return stream;
    }
    (void)snprintf(name, sizeof(name), "%s", table);
    stream = columns_of(pool, name);
    columns_add(stream);
    return stream;
}
