/* SPDX-License-Identifier: Apache-2.0 */
/* A stream around the caller's. Drivers differ in what they make of a batch
 * without rows, so that none of them gets one for a query. They take the
 * columns as they are, without the offset and the null rows of the batch: the
 * offset goes into the columns, and null rows are refused. Batches come
 * from anywhere: each is checked first, so that only memory of it is read. */
#include "adbc/bound.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adbc/nulls.h"
#include "uvarrow/arrow.h"

struct bound {
    struct ArrowArrayStream rows;   /* owns: the caller's */
    struct ArrowSchema names;       /* owns: the driver's, or released */
    struct ArrowSchema schema;      /* owns, and borrows `names` */
    struct ArrowArray first;        /* owns: read ahead, or released */
    struct uva_error error;         /* of the last call, if it is of here */
    struct uva__bound_fault *fault; /* borrows */
    bool keeps_empty;               /* batches without rows, too */
};

/* ---- the stream --------------------------------------------------------- */

static const char *bound_get_last_error(struct ArrowArrayStream *self)
{
    struct bound *b = self->private_data;

    return b->error.code != 0 ? b->error.message
                              : b->rows.get_last_error(&b->rows);
}

static const char *text_of(struct ArrowArrayStream *rows, int code)
{
    const char *text = rows->get_last_error(rows);

    return text != NULL ? text : strerror(code);
}

/* Keeps the first failure for the query. Returns the code. */
static int fault_note(struct ArrowArrayStream *rows, int code)
{
    struct uva__bound_fault *fault =
        ((struct bound *)rows->private_data)->fault;
    const int known = code > 0 ? code : EIO;

    if (code == 0 || atomic_load(&fault->code) != 0)
        return code;
    (void)snprintf(fault->text, sizeof(fault->text), "%s",
                   text_of(rows, known));
    atomic_store(&fault->code, known);
    return code;
}

static int bound_get_schema(struct ArrowArrayStream *self,
                            struct ArrowSchema *out)
{
    struct bound *b = self->private_data;
    const int code = uva_schema_copy(&b->schema, out);

    b->error.code = 0;
    if (code != 0)
        (void)uva_error_set(&b->error, code, "their schema: %s",
                            strerror(code));
    return fault_note(self, code);
}

/* Moves the offset into the columns of an array with structs of its own. */
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

/* Refuses what is not as the schema states, and null rows. Buffers of unknown
 * formats are left to the driver. */
static int rows_check(struct bound *b, const struct ArrowDeviceArray *rows)
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

/* Makes a batch one that drivers read right; otherwise releases it. */
static int bound_settle(struct bound *b, struct ArrowArray *rows)
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

/* Gives the next batch that has rows. */
static int bound_next(struct bound *b, struct ArrowArray *out)
{
    b->error.code = 0;
    for (;;) {
        int code;

        out->release = NULL;
        code = b->rows.get_next(&b->rows, out);
        if (code != 0 || out->release == NULL)
            return code;
        if (out->length != 0 || b->keeps_empty)
            return bound_settle(b, out);
        out->release(out);
    }
}

static int bound_get_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    struct bound *b = self->private_data;

    if (b->first.release == NULL)
        return fault_note(self, bound_next(b, out));
    *out = b->first;
    b->first.release = NULL;
    return 0;
}

static void bound_release(struct ArrowArrayStream *self)
{
    struct bound *b = self->private_data;

    if (b->first.release != NULL)
        b->first.release(&b->first);
    uva_schema_release(&b->schema);
    uva_schema_release(&b->names);
    b->rows.release(&b->rows);
    free(b);
    self->release = NULL;
}

static int bound_fail(struct ArrowArrayStream *rows, int code,
                      struct uva__adbc_failure *failure)
{
    const int known = code > 0 ? code : EIO;

    return uva__adbc_failure_set(failure, known, "the parameters fail: %s",
                                 text_of(rows, known));
}

/* Copies the schema of the caller's rows, to check batches by. */
static int bound_take_schema(struct bound *b, struct uva__adbc_failure *failure)
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

int uva__bound_wrap(struct ArrowArrayStream *rows, bool keeps_empty,
                    struct uva__bound_fault *fault,
                    struct uva__adbc_failure *failure)
{
    struct bound *b = calloc(1, sizeof(*b));

    if (b == NULL)
        return uva__adbc_failure_set(failure, ENOMEM,
                                     "no memory for the parameters");
    b->rows = *rows;
    b->keeps_empty = keeps_empty;
    b->fault = fault;
    *rows = (struct ArrowArrayStream){.get_schema = bound_get_schema,
                                      .get_next = bound_get_next,
                                      .get_last_error = bound_get_last_error,
                                      .release = bound_release,
                                      .private_data = b};
    return bound_take_schema(b, failure);
}

/* ---- names -------------------------------------------------------------- */

static const char *name_of(const struct ArrowSchema *field)
{
    return field->name != NULL ? field->name : "";
}

/* Finds what the driver calls a parameter: there may be a sign in front, as in
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

/* Renames the columns. A copy of ours does not free their names. */
static int names_set(struct bound *b, struct uva__adbc_failure *failure)
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

int uva__bound_name(struct ArrowArrayStream *rows,
                    const struct ArrowSchema *names,
                    struct uva__adbc_failure *failure)
{
    struct bound *b = rows->private_data;
    const int code =
        uva_schema_is_live(names) ? uva_schema_copy(names, &b->names) : 0;

    return code == 0 ? names_set(b, failure)
                     : uva__adbc_failure_set(failure, code,
                                             "by_name: the driver's names of "
                                             "the parameters: %s",
                                             strerror(code));
}

/* ---- rows --------------------------------------------------------------- */

int uva__bound_read(struct ArrowArrayStream *rows, bool *has_rows,
                    struct uva__adbc_failure *failure)
{
    struct bound *b = rows->private_data;
    const int code = bound_next(b, &b->first);

    if (code != 0) {
        b->first.release = NULL;
        return bound_fail(rows, code, failure);
    }
    *has_rows = b->first.release != NULL;
    return 0;
}
