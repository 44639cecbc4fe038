/* SPDX-License-Identifier: Apache-2.0 */
/* One loop reads every member of such columns once. If a column is not plain,
 * all of them are looked at one by one: arrow/plan_walk.c. */
#include "arrow/plan_plain.h"

#include <stddef.h>

#include "arrow/buffer.h"
#include "arrow/plan_node.h"

/* What the columns so far are added up to. */
struct plan_plain {
    int64_t rows;    /* of each column: from 1 to 31 bits */
    int64_t bitmaps; /* with a bit for each row */
    int64_t texts;   /* bytes, and those of the first of all offsets */
    uint64_t none;   /* must be 0 in the end */
};

/* Whether a column is as most are, but for its items: its offset has at most 31
 * bits, and is at a whole byte of bits. */
static inline bool plain_is_sound(struct plan_plain *plain,
                                  const struct ArrowArray *column, int buffers)
{
    if (column == NULL || column->release == NULL ||
        column->length != plain->rows || column->n_buffers != buffers ||
        column->buffers == NULL || column->buffers[1] == NULL ||
        (column->offset & ~(int64_t)0x7ffffff8) != 0)
        return false;
    plain->none |= (uint64_t)column->n_children;
    plain->bitmaps += column->buffers[0] != NULL;
    return uva__plan_nulls_are(column, 0) ||
           (column->buffers[0] != NULL &&
            uva__plan_nulls_are(column, plain->rows));
}

static inline bool plain_number(struct plan_plain *plain,
                                const struct ArrowArray *column)
{
    if (!plain_is_sound(plain, column, 2))
        return false;
    plain->none |= (uintptr_t)column->dictionary;
    return true;
}

/* Its offsets have `width` bytes. */
static inline bool plain_text(struct plan_plain *plain,
                              const struct ArrowArray *column, int width)
{
    int64_t from, to;

    if (!plain_is_sound(plain, column, 3))
        return false;
    from = uva__buffer_integer(column->buffers[1], width, column->offset);
    to = uva__buffer_integer(column->buffers[1], width,
                             column->offset + plain->rows);
    plain->none |= (uintptr_t)column->dictionary;
    if (from < 0 || to < from || to >> UVA__PLAN_SIZE_BITS != 0)
        return false;
    plain->texts += to - from + (column->offset == 0 ? width : 0);
    return column->buffers[2] != NULL || to == 0;
}

static inline int64_t plain_size(const struct plan_plain *plain)
{
    return plain->bitmaps * ((plain->rows + 7) / 8) + plain->texts;
}

/* Its names have offsets of four bytes, and count with the first item. */
static inline bool plain_name(struct plan_plain *plain,
                              const struct ArrowArray *column)
{
    struct plan_plain names = {0};

    if (!plain_is_sound(plain, column, 2) || column->dictionary == NULL)
        return false;
    names.rows = column->dictionary->length;
    if ((uint64_t)(names.rows - 1) >> 31 != 0 ||
        !plain_text(&names, column->dictionary, 4))
        return false;
    plain->none |= names.none;
    if (column->offset == 0)
        plain->texts += plain_size(&names) + names.rows * 4;
    return true;
}

/* Gives the size of a run of columns of names; -1: not all are plain. Not
 * inline, as the loop of its caller is slower with this in it. */
__attribute__((noinline)) static int64_t
plain_names(struct ArrowArray *const *column, struct ArrowArray *const *end,
            int64_t rows)
{
    struct plan_plain plain = {.rows = rows};

    for (; column < end; column++)
        if (!plain_name(&plain, *column))
            return -1;
    return plain.none == 0 ? plain_size(&plain) : -1;
}

/* Not inline, as the function that calls it is longer then for all batches. */
__attribute__((noinline)) bool
uva__plan_plain_runs(const uint8_t *run, const uint8_t *end,
                     struct ArrowArray *const *column, int64_t rows,
                     int64_t *size)
{
    struct plan_plain plain = {.rows = rows};
    int64_t names;

    for (; run < end; run += 2) {
        struct ArrowArray *const *const last = column + run[1];

        if (run[0] <= UVA__PLAN_BITS) {
            plain.bitmaps += run[0] == UVA__PLAN_BITS ? run[1] : 0;
            for (; column < last; column++)
                if (!plain_number(&plain, *column))
                    return false;
        } else if (run[0] == UVA__PLAN_TEXT) {
            for (; column < last; column++)
                if (!plain_text(&plain, *column, 4))
                    return false;
        } else if (run[0] == UVA__PLAN_LARGE_TEXT) {
            for (; column < last; column++)
                if (!plain_text(&plain, *column, 8))
                    return false;
        } else {
            names = plain_names(column, last, rows);
            if (names < 0)
                return false;
            plain.texts += names;
            column = last;
        }
    }
    *size = plain_size(&plain);
    return plain.none == 0;
}
