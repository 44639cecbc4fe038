/* SPDX-License-Identifier: Apache-2.0 */
/* Masks are read by words of 64 rows: most words of a mask are all ones, all
 * zeros, or so mixed that each of their bits counts alone. */
#include "arrow/mask.h"

#include "arrow/bits.h"

uint64_t uva__mask_last_word(const struct uva__mask *mask, int64_t at)
{
    const int64_t left = mask->rows - at;
    uint64_t word = 0;

    for (int64_t i = 0; i < left; i++)
        word |= (uint64_t)uva__bits_get(mask->bits, at + i) << i;
    return word;
}

void uva__mask_read(struct uva__mask *mask, const uint8_t *bits, int64_t rows)
{
    *mask = (struct uva__mask){.bits = bits, .rows = rows};
    for (int64_t row = 0; row < rows; row += UVA__MASK_WORD) {
        const uint64_t word = uva__mask_word(mask, row);

        if (word == 0)
            continue;
        if (mask->selected == 0)
            mask->first = row + __builtin_ctzll(word);
        mask->selected += __builtin_popcountll(word);
        mask->end = row + UVA__MASK_WORD - __builtin_clzll(word);
    }
}

int64_t uva__mask_extend(struct uva__mask_walk *walk)
{
    int64_t count = 0;
    uint64_t word = 0;

    while (walk->next < walk->mask->end) {
        word = uva__mask_word(walk->mask, walk->next);
        walk->next += UVA__MASK_WORD;
        if (word != UINT64_MAX)
            break;
        count += UVA__MASK_WORD;
        word = 0;
    }
    if ((word & 1) != 0) { /* its first rows belong to the run */
        const int ones = __builtin_ctzll(~word);

        count += ones;
        word &= UINT64_MAX << ones;
    }
    walk->word = word;
    return count;
}

/* ---- copies ------------------------------------------------------------- */

/* Inlined for each width, as a copy of a known size is one instruction. */
static inline void copy_items(const struct uva__mask *mask, char *to,
                              const char *from, const size_t width)
{
    for (int64_t row = 0; row < mask->end; row += UVA__MASK_WORD) {
        uint64_t word = uva__mask_word(mask, row);
        const char *const items = from + (size_t)row * width;

        if (word == UINT64_MAX) {
            memcpy(to, items, UVA__MASK_WORD * width);
            to += UVA__MASK_WORD * width;
            continue;
        }
        for (; word != 0; word &= word - 1) {
            memcpy(to, items + (size_t)__builtin_ctzll(word) * width, width);
            to += width;
        }
    }
}

void uva__mask_copy_items(const struct uva__mask *mask, char *to,
                          const char *from, int64_t width)
{
    switch (width) {
    case 1:
        copy_items(mask, to, from, 1);
        break;
    case 2:
        copy_items(mask, to, from, 2);
        break;
    case 4:
        copy_items(mask, to, from, 4);
        break;
    case 8:
        copy_items(mask, to, from, 8);
        break;
    case 16:
        copy_items(mask, to, from, 16);
        break;
    default:
        copy_items(mask, to, from, (size_t)width);
        break;
    }
}

void uva__mask_copy_bits(const struct uva__mask *mask, uint8_t *to,
                         const uint8_t *from, int64_t at)
{
    struct uva__mask_walk walk = {.mask = mask};
    uint8_t byte = 0;
    int64_t row, done = 0;

    while (uva__mask_next_row(&walk, &row)) {
        byte |= (uint8_t)(uva__bits_get(from, at + row) << done % 8);
        if (++done % 8 == 0) {
            to[done / 8 - 1] = byte;
            byte = 0;
        }
    }
    if (done % 8 != 0)
        to[done / 8] = byte;
}
