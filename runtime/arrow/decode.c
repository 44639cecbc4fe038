/* SPDX-License-Identifier: Apache-2.0 */
/* Values that lie in any order, or stand for several rows, copied into an array
 * of one value for each row: those of a dictionary, of runs, of list views. The
 * copies are made by arrow/concat.h, which has all types, and knows rows that
 * lie side by side. A null is the one row of an array of nulls. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "arrow/buffer.h"
#include "arrow/cast_kinds.h"
#include "arrow/concat.h"

/* Rows that are copied at once. */
struct pick {
    const struct ArrowArray *array; /* borrows */
    int64_t from, count;            /* in that, without its offset */
    int64_t rows;                   /* that the result then has; or lists */
};

struct decode {
    const struct uva__cast_at *at;
    const struct ArrowSchema *schema; /* of the values; borrows */
    struct ArrowArray null;           /* owns: one row, if there are nulls */
    int64_t run;                      /* the next row is in this run */
    /* what follows row or list `i`; 0, or an error with its text */
    int (*next)(struct decode *d, int64_t i, struct pick *pick);
};

/* ---- dictionaries ------------------------------------------------------- */

/* The index of row `i`; -1 for one that no integer of 64 bits holds. */
static int64_t index_at(const struct uva__cast_at *at, int64_t i)
{
    const char format = at->plan->from->format[0];
    const void *const indices = at->array->buffers[1];
    const int64_t row = at->from + i;

    switch (format) {
    case 'c':
        return ((const int8_t *)indices)[row];
    case 'C':
        return ((const uint8_t *)indices)[row];
    case 's':
        return uva__buffer_integer(indices, 2, row);
    case 'S':
        return (uint16_t)uva__buffer_integer(indices, 2, row);
    case 'i':
        return uva__buffer_integer(indices, 4, row);
    case 'I':
        return (uint32_t)uva__buffer_integer(indices, 4, row);
    default: /* an unsigned one beyond is below 0 */
        return uva__buffer_integer(indices, 8, row);
    }
}

/* The index of a value; -1 of a null, or of a row that does not matter; -2
 * after an error. */
static int64_t value_index(const struct uva__cast_at *at, int64_t i)
{
    const int64_t values = at->array->dictionary->length;
    int64_t index, row;

    if (uva__cast_at_is_null(at, i))
        return -1;
    index = index_at(at, i);
    if (index >= 0 && index < values)
        return index;
    row = uva__cast_at_row(at, i);
    if (row < 0)
        return -1;
    (void)uva__cast_at_fail(at, row, EINVAL,
                            "index %" PRId64 " into a dictionary of %" PRId64
                            " values",
                            index, values);
    return -2;
}

static int pick_null(const struct decode *d, struct pick *pick)
{
    *pick = (struct pick){&d->null, 0, 1, 1};
    return 0;
}

static int next_of_dictionary(struct decode *d, int64_t i, struct pick *pick)
{
    const struct uva__cast_at *const at = d->at;
    const int64_t index = value_index(at, i);

    if (index == -1)
        return pick_null(d, pick);
    if (index < 0)
        return EINVAL;
    *pick = (struct pick){at->array->dictionary, index, 1, 1};
    while (i + pick->rows < at->count &&
           !uva__cast_at_is_null(at, i + pick->rows) &&
           index + pick->count < at->array->dictionary->length &&
           index_at(at, i + pick->rows) == index + pick->count) {
        pick->rows++;
        pick->count++;
    }
    return 0;
}

/* ---- runs --------------------------------------------------------------- */

static int64_t end_of_run(const struct uva__cast_at *at, int64_t run)
{
    const struct ArrowArray *const ends = at->array->children[0];
    const char format = at->plan->from->children[0]->format[0];
    const int32_t width = format == 's' ? 2 : format == 'i' ? 4 : 8;

    return uva__buffer_integer(ends->buffers[1], width, ends->offset + run);
}

/* One row at a time: a run has one value for many. */
static int next_of_runs(struct decode *d, int64_t i, struct pick *pick)
{
    const struct uva__cast_at *const at = d->at;
    const int64_t runs = at->array->children[0]->length;

    if (i == 0)
        d->run = 0;
    while (d->run < runs && end_of_run(at, d->run) <= at->from + i)
        d->run++;
    if (d->run == runs || d->run >= at->array->children[1]->length)
        return uva__cast_at_fail(at, -1, EINVAL, "its runs are wrong");
    *pick = (struct pick){at->array->children[1], d->run, 1, 1};
    return 0;
}

/* ---- list views --------------------------------------------------------- */

static int64_t view_size(const struct uva__cast_at *at, int64_t i)
{
    return uva__cast_at_is_null(at, i)
               ? 0
               : uva__buffer_integer(at->array->buffers[2],
                                     at->plan->from_width, at->from + i);
}

static int next_of_lists(struct decode *d, int64_t i, struct pick *pick)
{
    const struct uva__cast_at *const at = d->at;
    const struct ArrowArray *const items = at->array->children[0];
    const int64_t size = view_size(at, i);
    const int64_t from =
        size == 0 ? 0
                  : uva__buffer_integer(at->array->buffers[1],
                                        at->plan->from_width, at->from + i);

    if (from < 0 || from > items->length || size > items->length - from)
        return uva__cast_at_fail(at, -1, EINVAL, "its offsets are wrong");
    *pick = (struct pick){items, from, size, 1};
    return 0;
}

/* ---- copying ------------------------------------------------------------ */

static int decode_fail(const struct uva__cast_at *at, int code)
{
    return uva__cast_at_fail(at, -1, code, "the values cannot be copied: %s",
                             uva_error_name(code));
}

static int decode_measure(struct decode *d, struct uva__concat *concat)
{
    struct pick pick = {.rows = 0};
    int code = 0;

    for (int64_t i = 0; i < d->at->count; i += pick.rows) {
        code = d->next(d, i, &pick);
        if (code != 0)
            return code;
        if (pick.array == &d->null && d->null.release == NULL)
            code = uva__nulls_new(d->at->allocator, d->schema, 1, &d->null);
        if (code == 0)
            code =
                uva__concat_measure(concat, pick.array, pick.from, pick.count);
        if (code != 0)
            return decode_fail(d->at, code);
    }
    code = uva__concat_begin(concat);
    return code == 0 ? 0 : decode_fail(d->at, code);
}

static void decode_fill(struct decode *d, struct uva__concat *concat)
{
    for (int64_t pass = 0; pass < uva__concat_passes(concat); pass++) {
        struct pick pick = {.rows = 0};

        for (int64_t i = 0; i < d->at->count; i += pick.rows) {
            const int code = d->next(d, i, &pick);

            assert(code == 0); /* as before */
            (void)code;
            uva__concat_fill(concat, pass, pick.array, pick.from, pick.count);
        }
    }
}

static int decode(struct decode *d, struct ArrowArray *out)
{
    struct uva__concat *concat = NULL;
    int code = uva__concat_new(d->at->allocator, d->schema, &concat);

    if (code != 0)
        return decode_fail(d->at, code);
    uva__concat_reset(concat);
    code = decode_measure(d, concat);
    if (code == 0) {
        decode_fill(d, concat);
        uva__concat_finish(concat, out);
    }
    uva__concat_free(concat);
    if (d->null.release != NULL)
        d->null.release(&d->null);
    return code;
}

int uva__decode(const struct uva__cast_at *at, struct ArrowArray *out)
{
    const bool is_dictionary = at->plan->from->dictionary != NULL;
    struct decode d = {.at = at,
                       .schema = at->plan->children[0].from,
                       .next =
                           is_dictionary ? next_of_dictionary : next_of_runs};

    return decode(&d, out);
}

int uva__decode_lists(const struct uva__cast_at *at, struct ArrowArray *out)
{
    struct decode d = {
        .at = at, .schema = at->plan->from->children[0], .next = next_of_lists};

    return decode(&d, out);
}
