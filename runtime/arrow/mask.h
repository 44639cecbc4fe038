/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that a bitmap selects: their runs, and copies of their items. */
#ifndef UVA_ARROW_MASK_H
#define UVA_ARROW_MASK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { UVA__MASK_WORD = 64 }; /* rows that are read at once */

/* Some of the rows of an array: row r is selected if bit r is set. */
struct uva__mask {
    const uint8_t *bits; /* borrows */
    int64_t rows;        /* of the array */
    int64_t selected;    /* number of the selected rows */
    int64_t first;       /* the first selected row; 0 without any */
    int64_t end;         /* after the last selected row; 0 without any */
};

/* Reads the mask of an array with `rows` rows. Bits after the last row do not
 * matter. Thread: any. */
void uva__mask_read(struct uva__mask *mask, const uint8_t *bits, int64_t rows);

/* Whether the selected rows follow one another. Thread: any. */
static inline bool uva__mask_is_run(const struct uva__mask *mask)
{
    return mask->selected == mask->end - mask->first;
}

/* The bits of the last rows, from `at` on, if these are fewer than a word. */
uint64_t uva__mask_last_word(const struct uva__mask *mask, int64_t at);

/* The bits of the rows from `at` on, a multiple of 64; 0 for rows that the
 * array does not have. Thread: any. */
static inline uint64_t uva__mask_word(const struct uva__mask *mask, int64_t at)
{
    uint64_t word;

    if (mask->rows - at < UVA__MASK_WORD)
        return uva__mask_last_word(mask, at);
    memcpy(&word, mask->bits + at / 8, sizeof(word));
    return word;
}

/* A walk through the selected rows; all zeroes but the mask is its beginning.
 */
struct uva__mask_walk {
    const struct uva__mask *mask; /* borrows */
    int64_t next;                 /* the first row of the next word */
    uint64_t word;                /* the rows of this word that are left */
};

/* Goes on to a word with selected rows. False at the end. */
static inline bool uva__mask_refill(struct uva__mask_walk *walk)
{
    while (walk->word == 0) {
        if (walk->next >= walk->mask->end)
            return false;
        walk->word = uva__mask_word(walk->mask, walk->next);
        walk->next += UVA__MASK_WORD;
    }
    return true;
}

/* Gives the next selected row. False at the end. Thread: any one at a time. */
static inline bool uva__mask_next_row(struct uva__mask_walk *walk, int64_t *row)
{
    if (!uva__mask_refill(walk))
        return false;
    *row = walk->next - UVA__MASK_WORD + __builtin_ctzll(walk->word);
    walk->word &= walk->word - 1;
    return true;
}

/* Goes on to the end of a run that reaches the end of its word. Returns how
 * many rows more it has. */
int64_t uva__mask_extend(struct uva__mask_walk *walk);

/* Gives the next run: selected rows that follow one another. False at the end.
 * Thread: any one at a time. */
static inline bool uva__mask_next_run(struct uva__mask_walk *walk, int64_t *at,
                                      int64_t *count)
{
    uint64_t others;
    int first;

    if (!uva__mask_refill(walk))
        return false;
    first = __builtin_ctzll(walk->word);
    *at = walk->next - UVA__MASK_WORD + first;
    others = ~walk->word & (UINT64_MAX << first);
    if (others == 0) {
        *count = UVA__MASK_WORD - first + uva__mask_extend(walk);
    } else {
        *count = __builtin_ctzll(others) - first;
        walk->word &= UINT64_MAX << __builtin_ctzll(others);
    }
    return true;
}

/* Copies the selected items, of `width` bytes each, from an array that begins
 * at `from`. Thread: any one at a time. */
void uva__mask_copy_items(const struct uva__mask *mask, char *to,
                          const char *from, int64_t width);

/* Copies the selected bits to the first bits of `to`; bit 0 of the array is bit
 * `at` of `from`. Thread: any one at a time. */
void uva__mask_copy_bits(const struct uva__mask *mask, uint8_t *to,
                         const uint8_t *from, int64_t at);

#endif
