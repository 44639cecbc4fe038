/* SPDX-License-Identifier: Apache-2.0 */
/* A stream around the caller's. Drivers differ in how they treat a batch
 * without rows, so that they never get one for a query. They take the columns
 * as they are, without the offset and the null rows of the batch: the offset
 * goes into the columns, and null rows are refused. Batches come from anywhere:
 * each is checked first, so that only memory of it is read.
 *
 * Happy path:  wrapped -> (counted) -> (detached) -> get_schema, (get_next)* ->
 *              the driver releases them.
 *
 * Failures:    the rows: the first failure is kept for the query, as drivers
 *              take it for the end.
 *
 * On cancel:   the next call fails and releases the caller's rows. A waiting
 *              call of theirs is left by cancelling a stream: their own, if it
 *              is the library's, or the stream that detaches them. A worker of
 *              that releases them when their call has returned. */
#include "adbc/bound.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "adbc/nulls.h"
#include "uvarrow/arrow.h"
#include "uvarrow/sources.h"

struct uva__bound {
    struct ArrowArrayStream rows;     /* owns: the caller's, until a cancel */
    struct ArrowSchema names;         /* owns: the driver's, or released */
    struct ArrowSchema schema;        /* owns, and borrows `names` */
    struct ArrowArray ahead[2];       /* owns: read ahead, or released */
    struct ArrowArrayStream detached; /* owns: a reader of the rows, if another
                                         worker reads them ... */
    struct ArrowSchema detached_schema; /* owns: ... and their schema */
    struct uva_error error;             /* of the last call, if it is of here */
    bool keeps_empty;                   /* batches without rows, too */
    bool has_ended;                     /* the rows are not read any more */
    struct uva_error fault; /* the first failure, once its code is set */
    atomic_int fault_code;
    atomic_bool is_cancelled;
    _Atomic(struct uva_stream *) stream; /* counts: wakes a call that waits */
    atomic_int refs;
};

/* ---- the stream --------------------------------------------------------- */

static const char *bound_get_last_error(struct ArrowArrayStream *self)
{
    struct uva__bound *b = self->private_data;

    if (b->error.code != 0)
        return b->error.message;
    return b->rows.release != NULL ? b->rows.get_last_error(&b->rows) : NULL;
}

static const char *text_of(struct ArrowArrayStream *rows, int code)
{
    const char *text = rows->get_last_error(rows);

    return text != NULL ? text : strerror(code);
}

/* Keeps the first failure for the query. Returns the code. */
static int fault_note(struct ArrowArrayStream *rows, int code)
{
    struct uva__bound *b = rows->private_data;
    const int known = code > 0 ? code : EIO;

    if (code == 0 || atomic_load(&b->fault_code) != 0)
        return code;
    (void)uva_error_set(&b->fault, known, "%s", text_of(rows, known));
    atomic_store(&b->fault_code, known);
    return code;
}

static int bound_get_schema(struct ArrowArrayStream *self,
                            struct ArrowSchema *out)
{
    struct uva__bound *b = self->private_data;
    const int code = uva_schema_copy(&b->schema, out);

    b->error.code = 0;
    if (code != 0)
        (void)uva_error_set(&b->error, code, "their schema: %s",
                            strerror(code));
    return fault_note(self, code);
}

/* Moves the offset into the columns of an array with its own structs. */
static void columns_move(struct ArrowArray *rows)
{
    static const void *const no_bitmap[1] = {NULL};

    for (int64_t i = 0; i < rows->n_children; i++) {
        struct ArrowArray *column = rows->children[i];

        column->offset += rows->offset;
        column->length = rows->length;
        if (column->null_count != 0)
            column->null_count = -1;
    }
    rows->offset = 0;
    rows->null_count = 0;
    rows->buffers = (const void **)no_bitmap; /* its bits lie elsewhere */
}

/* Refuses rows that do not fit the schema, and null rows. Buffers of unknown
 * formats are left to the driver. */
static int rows_check(struct uva__bound *b, const struct ArrowDeviceArray *rows)
{
    int64_t size, null;

    if (uva_array_size(&b->schema, rows, &size) == EINVAL)
        return uva_error_set(&b->error, EINVAL,
                             "a batch does not fit its schema");
    null = uva__null_find(&rows->array, rows->array.offset, rows->array.length);
    return null < 0 ? 0
                    : uva_error_set(&b->error, ENOTSUP,
                                    "row %lld of a batch is null, which no "
                                    "driver takes",
                                    (long long)null);
}

/* Makes a batch readable for drivers; otherwise releases it. */
static int bound_settle(struct uva__bound *b, struct ArrowArray *rows)
{
    struct ArrowDeviceArray whole, share;
    int code;

    uva_array_from_cpu(rows, &whole);
    code = rows_check(b, &whole);
    if (code == 0 && whole.array.offset == 0) {
        *rows = whole.array;
        return 0;
    }
    if (code == 0 && uva_array_share(&whole, &share) != 0)
        code = uva_error_set(&b->error, ENOMEM, "no memory for a batch");
    uva_array_release(&whole);
    if (code != 0)
        return code;
    columns_move(&share.array);
    *rows = share.array;
    return 0;
}

/* Releases the caller's rows: no more of them are wanted. */
static int bound_stop(struct uva__bound *b)
{
    if (b->rows.release != NULL)
        b->rows.release(&b->rows);
    b->rows.release = NULL;
    return uva_error_set(&b->error, ECANCELED, "cancelled");
}

/* Gives the next batch that has rows. */
static int bound_next(struct uva__bound *b, struct ArrowArray *out)
{
    b->error.code = 0;
    for (;;) {
        int code;

        out->release = NULL;
        if (b->has_ended)
            return 0;
        if (atomic_load(&b->is_cancelled))
            return bound_stop(b);
        code = b->rows.get_next(&b->rows, out);
        b->has_ended = code == 0 && out->release == NULL;
        if (code != 0 || b->has_ended)
            return code;
        if (out->length != 0 || b->keeps_empty)
            return bound_settle(b, out);
        out->release(out);
    }
}

static int bound_get_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    struct uva__bound *b = self->private_data;

    if (b->ahead[0].release == NULL)
        return fault_note(self, bound_next(b, out));
    *out = b->ahead[0];
    b->ahead[0] = b->ahead[1];
    b->ahead[1].release = NULL;
    return 0;
}

static void bound_drop(struct uva__bound *b)
{
    if (atomic_fetch_sub(&b->refs, 1) > 1)
        return;
    uva_schema_release(&b->detached_schema);
    free(b);
}

static void bound_on_release(struct ArrowArrayStream *self)
{
    struct uva__bound *b = self->private_data;

    for (int i = 0; i < 2; i++)
        if (b->ahead[i].release != NULL)
            b->ahead[i].release(&b->ahead[i]);
    uva_schema_release(&b->schema);
    uva_schema_release(&b->names);
    if (b->rows.release != NULL)
        b->rows.release(&b->rows);
    bound_drop(b);
    self->release = NULL;
}

static int bound_fail(struct ArrowArrayStream *rows, int code,
                      struct uva__adbc_failure *failure)
{
    const int known = code > 0 ? code : EIO;

    return uva__adbc_failure_set(failure, known, "the parameters fail: %s",
                                 text_of(rows, known));
}

struct uva__bound *uva__bound_new(struct ArrowArrayStream *rows,
                                  bool keeps_empty)
{
    struct uva__bound *b = calloc(1, sizeof(*b));

    if (b == NULL)
        return NULL;
    b->rows = *rows;
    b->keeps_empty = keeps_empty;
    atomic_init(&b->fault_code, 0);
    atomic_init(&b->is_cancelled, false);
    atomic_init(&b->stream, uva_stream_of_reader(rows));
    atomic_init(&b->refs, 2);
    *rows = (struct ArrowArrayStream){.get_schema = bound_get_schema,
                                      .get_next = bound_get_next,
                                      .get_last_error = bound_get_last_error,
                                      .release = bound_on_release,
                                      .private_data = b};
    return b;
}

int uva__bound_open(struct uva__bound *b, struct uva__adbc_failure *failure)
{
    struct ArrowSchema schema = {.release = NULL};
    int code = b->rows.get_schema(&b->rows, &schema);

    if (code != 0)
        return bound_fail(&b->rows, code, failure);
    code = uva_schema_copy(&schema, &b->schema);
    uva_schema_release(&schema);
    if (code != 0)
        return uva__adbc_failure_set(
            failure, code, "the parameters have no schema: %s", strerror(code));
    if (strcmp(b->schema.format, "+s") == 0)
        return 0;
    return uva__adbc_failure_set(failure, EINVAL,
                                 "the parameters fail: they are no rows of "
                                 "columns, but an array of the format '%.64s'",
                                 b->schema.format);
}

/* ---- names -------------------------------------------------------------- */

static const char *name_of(const struct ArrowSchema *field)
{
    return field->name != NULL ? field->name : "";
}

/* Finds the driver's name of a parameter: there may be a sign in front, as in
 * :a, @a, $a and ?1. */
static const char *name_find(const struct ArrowSchema *names, const char *name)
{
    const int64_t count = uva_schema_is_live(names) ? names->n_children : 0;

    for (int64_t i = 0; i < count; i++) {
        const char *theirs = name_of(names->children[i]);
        const bool has_sign =
            theirs[0] != '\0' && strchr(":@$?", theirs[0]) != NULL;

        if (strcmp(theirs, name) == 0 ||
            (has_sign && strcmp(theirs + 1, name) == 0))
            return theirs;
    }
    return name;
}

/* Renames the columns. Our copy does not free their names. */
static int names_set(struct uva__bound *b, struct uva__adbc_failure *failure)
{
    struct ArrowSchema **fields = b->schema.children;

    for (int64_t i = 0; i < b->schema.n_children; i++) {
        fields[i]->name = name_find(&b->names, name_of(fields[i]));
        for (int64_t k = 0; k < i; k++)
            if (strcmp(fields[i]->name, fields[k]->name) == 0)
                return uva__adbc_failure_set(
                    failure, EINVAL, "by_name: two of the parameters are %s",
                    fields[i]->name);
    }
    return 0;
}

int uva__bound_name(struct uva__bound *b, const struct ArrowSchema *names,
                    struct uva__adbc_failure *failure)
{
    const int code =
        uva_schema_is_live(names) ? uva_schema_copy(names, &b->names) : 0;

    return code == 0 ? names_set(b, failure)
                     : uva__adbc_failure_set(failure, code,
                                             "by_name: the driver's names of "
                                             "the parameters: %s",
                                             strerror(code));
}

/* ---- rows --------------------------------------------------------------- */

/* A second batch is read only if the first has one row. */
int uva__bound_count(struct ArrowArrayStream *rows, enum uva__bound_rows *out,
                     struct uva__adbc_failure *failure)
{
    struct uva__bound *b = rows->private_data;
    int64_t count = 0;

    for (int i = 0; i < 2 && count < 2 && !b->has_ended; i++) {
        const int code = bound_next(b, &b->ahead[i]);

        if (code != 0) {
            b->ahead[i].release = NULL;
            return bound_fail(rows, code, failure);
        }
        if (b->ahead[i].release != NULL)
            count += b->ahead[i].length;
    }
    *out = count == 0   ? UVA__BOUND_NONE
           : count == 1 ? UVA__BOUND_ONE
                        : UVA__BOUND_MANY;
    return 0;
}

/* ---- a worker of their own ---------------------------------------------- */

/* After a cancel, too, as PostgreSQL's driver crashes without a schema. */
static int detached_get_schema(struct ArrowArrayStream *self,
                               struct ArrowSchema *out)
{
    const struct uva__bound *b = self->private_data;

    return uva_schema_copy(&b->detached_schema, out);
}

static int detached_get_next(struct ArrowArrayStream *self,
                             struct ArrowArray *out)
{
    struct uva__bound *b = self->private_data;

    return b->detached.get_next(&b->detached, out);
}

static const char *detached_get_last_error(struct ArrowArrayStream *self)
{
    struct uva__bound *b = self->private_data;

    return b->detached.get_last_error(&b->detached);
}

static void detached_release(struct ArrowArrayStream *self)
{
    struct uva__bound *b = self->private_data;

    b->detached.release(&b->detached);
    bound_drop(b);
    self->release = NULL;
}

/* Wraps a reader, which it takes, for the driver. */
static void detached_wrap(struct uva__bound *b, struct ArrowArrayStream *reader)
{
    b->detached = *reader;
    (void)atomic_fetch_add(&b->refs, 1);
    *reader =
        (struct ArrowArrayStream){.get_schema = detached_get_schema,
                                  .get_next = detached_get_next,
                                  .get_last_error = detached_get_last_error,
                                  .release = detached_release,
                                  .private_data = b};
}

/* Starts a stream of `rows`, which it takes, and gives a reader of it in their
 * place. It never waits for a permit, which other sources might hold. */
static int bound_start(struct uva__bound *b, struct uva_runtime *runtime,
                       struct ArrowArrayStream *rows, struct uva_error *error)
{
    static const struct uva_window window = {.batches = 2};
    struct uva_arrow_source source = {.name = "parameters", .window = window};
    struct uva_stream *stream;
    int code = uva_permits_new(runtime, 1, 0, &source.permits, error);

    if (code != 0)
        return code;
    stream = uva_stream_from_arrow_stream(runtime, rows, &source);
    uva_permits_release(source.permits);
    code = uva_stream_to_arrow_stream(stream, &window, rows, error);
    if (code != 0) {
        uva_stream_release(stream);
        return code;
    }
    detached_wrap(b, rows);
    atomic_store(&b->stream, stream);
    if (atomic_load(&b->is_cancelled)) /* a cancel has not seen it */
        uva__bound_cancel(b);
    return 0;
}

int uva__bound_detach(struct uva__bound *b, struct uva_runtime *runtime,
                      struct ArrowArrayStream *rows,
                      struct uva__adbc_failure *failure)
{
    struct uva_error error = {0};
    int code;

    if (atomic_load(&b->stream) != NULL)
        return 0;
    code = uva_schema_copy(&b->schema, &b->detached_schema);
    if (code != 0)
        (void)uva_error_set(&error, code, "%s", strerror(code));
    else
        code = bound_start(b, runtime, rows, &error);
    return code == 0 ? 0
                     : uva__adbc_failure_set(failure, code,
                                             "the parameters cannot be read: "
                                             "%s",
                                             error.message);
}

/* ---- the query's side --------------------------------------------------- */

void uva__bound_cancel(struct uva__bound *b)
{
    atomic_store(&b->is_cancelled, true);
    uva_stream_cancel(atomic_load(&b->stream), ECANCELED,
                      "the query that reads it was cancelled");
}

int uva__bound_check(const struct uva__bound *b,
                     struct uva__adbc_failure *failure)
{
    const int code = atomic_load(&b->fault_code);

    return code == 0
               ? 0
               : uva__adbc_failure_set(failure, code, "the parameters fail: %s",
                                       b->fault.message);
}

void uva__bound_release(struct uva__bound *b)
{
    if (b == NULL)
        return;
    uva_stream_release(atomic_load(&b->stream));
    bound_drop(b);
}
