/* SPDX-License-Identifier: Apache-2.0 */
/* A stream around the caller's. Drivers differ in what they make of a batch
 * without rows, so that none of them gets one. */
#include "adbc/bound.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "uvarrow/arrow.h"

struct bound {
    struct ArrowArrayStream rows; /* owns: the caller's */
    struct ArrowSchema names;     /* owns: the driver's, or released */
    struct ArrowSchema schema;    /* owns, and borrows `names`; released: that
                                     of `rows` */
    struct ArrowArray first;      /* owns: read ahead, or released */
};

/* ---- the stream --------------------------------------------------------- */

static int bound_get_schema(struct ArrowArrayStream *self,
                            struct ArrowSchema *out)
{
    struct bound *b = self->private_data;

    if (uva_schema_is_live(&b->schema))
        return uva_schema_copy(&b->schema, out);
    return b->rows.get_schema(&b->rows, out);
}

/* Gives the next batch that has rows. */
static int bound_next(struct bound *b, struct ArrowArray *out)
{
    for (;;) {
        int code;

        out->release = NULL;
        code = b->rows.get_next(&b->rows, out);
        if (code != 0 || out->release == NULL || out->length != 0)
            return code;
        out->release(out);
    }
}

static int bound_get_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    struct bound *b = self->private_data;

    if (b->first.release == NULL)
        return bound_next(b, out);
    *out = b->first;
    b->first.release = NULL;
    return 0;
}

static const char *bound_get_last_error(struct ArrowArrayStream *self)
{
    struct bound *b = self->private_data;

    return b->rows.get_last_error(&b->rows);
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

int uva__bound_wrap(struct ArrowArrayStream *rows,
                    struct uva__adbc_failure *failure)
{
    struct bound *b = calloc(1, sizeof(*b));

    if (b == NULL)
        return uva__adbc_failure_set(failure, ENOMEM,
                                     "no memory for the parameters");
    b->rows = *rows;
    *rows = (struct ArrowArrayStream){.get_schema = bound_get_schema,
                                      .get_next = bound_get_next,
                                      .get_last_error = bound_get_last_error,
                                      .release = bound_release,
                                      .private_data = b};
    return 0;
}

static int bound_fail(struct bound *b, int code,
                      struct uva__adbc_failure *failure)
{
    const char *text = b->rows.get_last_error(&b->rows);
    const int known = code > 0 ? code : EIO;

    return uva__adbc_failure_set(failure, known, "the parameters fail: %s",
                                 text != NULL ? text : strerror(known));
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
    struct ArrowSchema schema = {.release = NULL};
    int code = b->rows.get_schema(&b->rows, &schema);

    if (code != 0)
        return bound_fail(b, code, failure);
    code = uva_schema_copy(&schema, &b->schema);
    if (code == 0 && uva_schema_is_live(names))
        code = uva_schema_copy(names, &b->names);
    uva_schema_release(&schema);
    return code == 0 ? names_set(b, failure)
                     : uva__adbc_failure_set(failure, code,
                                             "by_name: the parameters have no "
                                             "schema: %s",
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
        return bound_fail(b, code, failure);
    }
    *has_rows = b->first.release != NULL;
    return 0;
}
