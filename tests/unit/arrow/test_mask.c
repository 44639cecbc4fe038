/* SPDX-License-Identifier: Apache-2.0 */
/* Masks of up to 300 rows, against a loop over their bits. */
#include "arrow/mask.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/bits.h"
#include "support/check_suite.h"

enum { ROWS_MAX = 300, WIDTH_MAX = 24 };

static uint32_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * 1664525U + 1013904223U;
    return (seed >> 8) % below;
}

/* A mask in memory of just its size, with bits set after its last row. */
struct sample {
    uint8_t *bits; /* owns */
    bool picked[ROWS_MAX];
    int64_t rows, count;
    struct uva__mask mask;
};

/* Of every `one_in`-th row about; in whole words of 64 rows, if `coarse`. */
static void sample_make(struct sample *s, int64_t rows, uint32_t one_in,
                        bool coarse)
{
    const size_t size = (size_t)uva__bits_bytes(rows);

    memset(s, 0, sizeof(*s));
    s->rows = rows;
    s->bits = malloc(size > 0 ? size : 1);
    ck_assert_ptr_nonnull(s->bits);
    memset(s->bits, 0, size);
    for (int64_t row = 0; row < (int64_t)size * 8; row++) {
        const bool pick = coarse && row % 64 != 0 && row < rows
                              ? s->picked[row - 1]
                              : draw(one_in) == 0;

        s->bits[row / 8] |= (uint8_t)(pick << row % 8);
        if (row < rows)
            s->count += s->picked[row] = pick;
    }
    uva__mask_read(&s->mask, s->bits, rows);
}

static void check_facts(const struct sample *s)
{
    int64_t first = 0, end = 0;

    for (int64_t row = 0; row < s->rows; row++)
        if (s->picked[row]) {
            first = end == 0 ? row : first;
            end = row + 1;
        }
    ck_assert_int_eq(s->mask.selected, s->count);
    ck_assert_int_eq(s->mask.first, first);
    ck_assert_int_eq(s->mask.end, end);
    ck_assert(uva__mask_is_run(&s->mask) == (end - first == s->count));
}

static void check_runs(const struct sample *s)
{
    bool seen[ROWS_MAX + 1] = {false};
    struct uva__mask_walk walk = {.mask = &s->mask};
    int64_t at, count, behind = -1;

    while (uva__mask_next_run(&walk, &at, &count)) {
        ck_assert_int_gt(at, behind); /* the runs before it are whole */
        behind = at + count;
        for (int64_t i = 0; i < count; i++)
            seen[at + i] = true;
    }
    ck_assert_int_eq(memcmp(seen, s->picked, ROWS_MAX), 0);
}

static void check_items(const struct sample *s, int64_t width)
{
    char from[ROWS_MAX * WIDTH_MAX], to[ROWS_MAX * WIDTH_MAX + 1];
    int64_t done = 0;

    for (size_t i = 0; i < sizeof(from); i++)
        from[i] = (char)draw(256);
    to[s->count * width] = 42;
    uva__mask_copy_items(&s->mask, to, from, width);
    for (int64_t row = 0; row < s->rows; row++)
        if (s->picked[row])
            ck_assert_int_eq(
                memcmp(to + done++ * width, from + row * width, (size_t)width),
                0);
    ck_assert_int_eq(to[s->count * width], 42);
}

static void check_bits(const struct sample *s, int64_t at)
{
    uint8_t from[ROWS_MAX / 8 + 3], to[ROWS_MAX / 8 + 3];
    int64_t done = 0;

    for (size_t i = 0; i < sizeof(from); i++)
        from[i] = (uint8_t)draw(256);
    memset(to, 0xff, sizeof(to));
    uva__mask_copy_bits(&s->mask, to, from, at);
    for (int64_t row = 0; row < s->rows; row++)
        if (s->picked[row])
            ck_assert(uva__bits_get(to, done++) ==
                      uva__bits_get(from, at + row));
    for (; done % 8 != 0; done++)
        ck_assert(!uva__bits_get(to, done));
    ck_assert_int_eq(to[done / 8], 0xff);
}

START_TEST(masks_are_read_and_applied)
{
    static const int64_t widths[] = {1, 2, 3, 4, 8, 16, WIDTH_MAX};
    struct sample s;

    for (int i = 0; i < 4000; i++) {
        sample_make(&s, draw(ROWS_MAX + 1), draw(9) + 1, draw(2) == 1);
        check_facts(&s);
        check_runs(&s);
        check_items(&s, widths[i % 7]);
        check_bits(&s, draw(10));
        free(s.bits);
    }
}
END_TEST

int main(void)
{
    return suite_main("mask", NULL, NULL,
                      suite_tests("masks", masks_are_read_and_applied, NULL),
                      NULL);
}
