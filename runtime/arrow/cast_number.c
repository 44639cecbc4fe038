/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, booleans and times. Some hundred items at a time are read as numbers
 * of one of three wide types, become those of another, and are written; each
 * step marks the items that it would change. These are looked at afterwards,
 * because a null above may hide them. */
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "arrow/cast_kinds.h"

enum { CHUNK = 256 };

/* Wide types: what fits in none of the others. */
enum wide { WIDE_INT, WIDE_UINT, WIDE_FLOAT };

struct chunk {
    int64_t count;
    union {
        int64_t i[CHUNK];
        uint64_t u[CHUNK];
        double f[CHUNK];
    } v;
    uint8_t bad[CHUNK]; /* 1: the value changes */
};

static enum wide wide_of(int item)
{
    if (item == UVA__CAST_UINT64)
        return WIDE_UINT;
    return item >= UVA__CAST_FLOAT16 && item <= UVA__CAST_FLOAT64 ? WIDE_FLOAT
                                                                  : WIDE_INT;
}

static int32_t width_of(int item)
{
    static const uint8_t widths[] = {
        [UVA__CAST_INT8] = 1,    [UVA__CAST_INT16] = 2,
        [UVA__CAST_INT32] = 4,   [UVA__CAST_INT64] = 8,
        [UVA__CAST_UINT8] = 1,   [UVA__CAST_UINT16] = 2,
        [UVA__CAST_UINT32] = 4,  [UVA__CAST_UINT64] = 8,
        [UVA__CAST_FLOAT16] = 2, [UVA__CAST_FLOAT32] = 4,
        [UVA__CAST_FLOAT64] = 8, [UVA__CAST_BOOL] = 0};

    return widths[item];
}

/* ---- half precision ----------------------------------------------------- */

/* 2 to the power of -24, the smallest number above 0. */
#define HALF_TINY 0x1p-24

static double half_read(uint16_t half)
{
    const uint64_t fraction = half & 0x3ff, exponent = (half >> 10) & 0x1f;
    const uint64_t sign = (uint64_t)(half >> 15) << 63;
    uint64_t bits;
    double value;

    if (exponent == 0) {
        value = (double)fraction * HALF_TINY;
        return sign != 0 ? -value : value;
    }
    bits = sign | fraction << 42 |
           (exponent == 0x1f ? UINT64_C(0x7ff) : exponent + 1023 - 15) << 52;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* The number itself if there is one, and otherwise a smaller one. */
static uint16_t half_write(double value)
{
    uint64_t bits;
    int64_t exponent;
    uint16_t sign;

    memcpy(&bits, &value, sizeof(bits));
    sign = (uint16_t)(bits >> 63 << 15);
    exponent = (int64_t)(bits >> 52 & 0x7ff) - 1023 + 15;
    if (isnan(value)) /* the first bits of its payload, of which one is set */
        return (uint16_t)(sign | 0x7e00 | (bits >> 42 & 0x3ff));
    if (exponent > 0x1e)
        return (uint16_t)(sign | 0x7c00);
    if (exponent >= 1)
        return (uint16_t)(sign | exponent << 10 |
                          (int64_t)(bits >> 42 & 0x3ff));
    return (uint16_t)(sign | (uint16_t)((sign ? -value : value) / HALF_TINY));
}

/* ---- reading ------------------------------------------------------------ */

/* An integer of 1, 2 or 4 bytes; with constants, one instruction. */
static inline int64_t int_at(const char *at, int32_t width, bool is_signed)
{
    uint8_t one;
    uint16_t two;
    uint32_t four;

    if (width == 1) {
        memcpy(&one, at, sizeof(one));
        return is_signed ? (int8_t)one : one;
    }
    if (width == 2) {
        memcpy(&two, at, sizeof(two));
        return is_signed ? (int16_t)two : two;
    }
    memcpy(&four, at, sizeof(four));
    return is_signed ? (int32_t)four : (int64_t)four;
}

static inline void read_ints(struct chunk *c, const char *from, int32_t width,
                             bool is_signed)
{
    for (int64_t i = 0; i < c->count; i++)
        c->v.i[i] = int_at(from + i * width, width, is_signed);
}

static void read_bits(struct chunk *c, const uint8_t *bits, int64_t at)
{
    for (int64_t i = 0; i < c->count; i++)
        c->v.i[i] = uva__bits_get(bits, at + i);
}

static void read_halves(struct chunk *c, const char *from)
{
    for (int64_t i = 0; i < c->count; i++)
        c->v.f[i] = half_read((uint16_t)int_at(from + i * 2, 2, false));
}

static void read_floats(struct chunk *c, const char *from)
{
    float item;

    for (int64_t i = 0; i < c->count; i++) {
        memcpy(&item, from + i * (int64_t)sizeof(item), sizeof(item));
        c->v.f[i] = item;
    }
}

static void chunk_read(struct chunk *c, int item, const void *buffer,
                       int64_t at)
{
    const char *const from = (const char *)buffer + at * width_of(item);

    switch (item) {
    case UVA__CAST_INT8:
        read_ints(c, from, 1, true);
        break;
    case UVA__CAST_INT16:
        read_ints(c, from, 2, true);
        break;
    case UVA__CAST_INT32:
        read_ints(c, from, 4, true);
        break;
    case UVA__CAST_UINT8:
        read_ints(c, from, 1, false);
        break;
    case UVA__CAST_UINT16:
        read_ints(c, from, 2, false);
        break;
    case UVA__CAST_UINT32:
        read_ints(c, from, 4, false);
        break;
    case UVA__CAST_FLOAT16:
        read_halves(c, from);
        break;
    case UVA__CAST_FLOAT32:
        read_floats(c, from);
        break;
    case UVA__CAST_BOOL:
        read_bits(c, buffer, at);
        break;
    default: /* of a wide type */
        memcpy(&c->v, from, (size_t)c->count * sizeof(int64_t));
    }
}

/* ---- from one wide type to another -------------------------------------- */

/* 2 to the power of 63 and 64, which double has. */
#define TWO_63 0x1p63
#define TWO_64 0x1p64

static void int_to_float(struct chunk *c)
{
    for (int64_t i = 0; i < c->count; i++) {
        const int64_t n = c->v.i[i];
        const double f = (double)n;

        c->bad[i] |= f >= TWO_63 || (int64_t)f != n;
        c->v.f[i] = f;
    }
}

static void uint_to_float(struct chunk *c)
{
    for (int64_t i = 0; i < c->count; i++) {
        const uint64_t n = c->v.u[i];
        const double f = (double)n;

        c->bad[i] |= f >= TWO_64 || (uint64_t)f != n;
        c->v.f[i] = f;
    }
}

static void float_to_int(struct chunk *c)
{
    for (int64_t i = 0; i < c->count; i++) {
        const double f = c->v.f[i];
        const bool fits = f >= -TWO_63 && f < TWO_63;
        const int64_t n = fits ? (int64_t)f : 0;

        c->bad[i] |= !fits || (double)n != f;
        c->v.i[i] = n;
    }
}

static void float_to_uint(struct chunk *c)
{
    for (int64_t i = 0; i < c->count; i++) {
        const double f = c->v.f[i];
        const bool fits = f >= 0 && f < TWO_64;
        const uint64_t n = fits ? (uint64_t)f : 0;

        c->bad[i] |= !fits || (double)n != f;
        c->v.u[i] = n;
    }
}

/* The same bits, in both directions. */
static void int_to_uint(struct chunk *c)
{
    for (int64_t i = 0; i < c->count; i++)
        c->bad[i] |= c->v.u[i] > INT64_MAX;
}

static void chunk_widen(struct chunk *c, enum wide from, enum wide to)
{
    if (from == to)
        return;
    if (to == WIDE_FLOAT && from == WIDE_INT)
        int_to_float(c);
    else if (to == WIDE_FLOAT)
        uint_to_float(c);
    else if (from != WIDE_FLOAT)
        int_to_uint(c);
    else if (to == WIDE_INT)
        float_to_int(c);
    else
        float_to_uint(c);
}

static void chunk_multiply(struct chunk *c, int64_t by)
{
    for (int64_t i = 0; i < c->count; i++) {
        int64_t product;

        c->bad[i] |= __builtin_mul_overflow(c->v.i[i], by, &product);
        c->v.i[i] = product;
    }
}

static void chunk_divide(struct chunk *c, int64_t by)
{
    for (int64_t i = 0; i < c->count; i++) {
        const int64_t quotient = c->v.i[i] / by;

        c->bad[i] |= quotient * by != c->v.i[i];
        c->v.i[i] = quotient;
    }
}

/* ---- writing ------------------------------------------------------------ */

/* The low bytes of an integer; with constants, one instruction. */
static inline void int_put(char *at, int32_t width, int64_t value)
{
    const uint8_t one = (uint8_t)value;
    const uint16_t two = (uint16_t)value;
    const uint32_t four = (uint32_t)value;

    if (width == 1)
        memcpy(at, &one, sizeof(one));
    else if (width == 2)
        memcpy(at, &two, sizeof(two));
    else
        memcpy(at, &four, sizeof(four));
}

static inline void write_ints(struct chunk *c, char *to, int32_t width,
                              bool is_signed)
{
    for (int64_t i = 0; i < c->count; i++) {
        int_put(to + i * width, width, c->v.i[i]);
        c->bad[i] |= int_at(to + i * width, width, is_signed) != c->v.i[i];
    }
}

static void write_floats(struct chunk *c, char *to)
{
    for (int64_t i = 0; i < c->count; i++) {
        const double value = c->v.f[i];
        const bool fits = !(value > FLT_MAX || value < -FLT_MAX) ||
                          value > DBL_MAX || value < -DBL_MAX;
        const float item = fits ? (float)value : 0;

        c->bad[i] |= (double)item != value && !isnan(value);
        memcpy(to + i * (int64_t)sizeof(item), &item, sizeof(item));
    }
}

static void write_halves(struct chunk *c, char *to)
{
    for (int64_t i = 0; i < c->count; i++) {
        const double value = c->v.f[i];
        const uint16_t item = half_write(value);

        c->bad[i] |= half_read(item) != value && !isnan(value);
        memcpy(to + i * (int64_t)sizeof(item), &item, sizeof(item));
    }
}

/* A chunk begins at a whole byte. */
static void write_bits(struct chunk *c, uint8_t *to)
{
    memset(to, 0, (size_t)uva__bits_bytes(c->count));
    for (int64_t i = 0; i < c->count; i++) {
        c->bad[i] |= (c->v.i[i] & ~INT64_C(1)) != 0;
        to[i / 8] = (uint8_t)(to[i / 8] | (c->v.i[i] & 1) << i % 8);
    }
}

static void chunk_write(struct chunk *c, int item, void *buffer, int64_t at)
{
    char *const to = (char *)buffer + at * width_of(item);

    switch (item) {
    case UVA__CAST_INT8:
        write_ints(c, to, 1, true);
        break;
    case UVA__CAST_INT16:
        write_ints(c, to, 2, true);
        break;
    case UVA__CAST_INT32:
        write_ints(c, to, 4, true);
        break;
    case UVA__CAST_UINT8:
        write_ints(c, to, 1, false);
        break;
    case UVA__CAST_UINT16:
        write_ints(c, to, 2, false);
        break;
    case UVA__CAST_UINT32:
        write_ints(c, to, 4, false);
        break;
    case UVA__CAST_FLOAT16:
        write_halves(c, to);
        break;
    case UVA__CAST_FLOAT32:
        write_floats(c, to);
        break;
    case UVA__CAST_BOOL:
        write_bits(c, (uint8_t *)buffer + at / 8);
        break;
    default: /* of a wide type */
        memcpy(to, &c->v, (size_t)c->count * sizeof(int64_t));
    }
}

/* ---- all items ---------------------------------------------------------- */

static void item_text(const struct uva__cast_at *at, int64_t i, char text[40])
{
    struct chunk one = {.count = 1};

    chunk_read(&one, at->plan->from_item, at->array->buffers[1], at->from + i);
    switch (wide_of(at->plan->from_item)) {
    case WIDE_INT:
        (void)snprintf(text, 40, "%" PRId64, one.v.i[0]);
        break;
    case WIDE_UINT:
        (void)snprintf(text, 40, "%" PRIu64, one.v.u[0]);
        break;
    default:
        (void)snprintf(text, 40, "%.17g", one.v.f[0]);
    }
}

/* 5000000000 is no int32; 1500 of timestamp[ms] is no timestamp[s]. */
static int item_fail(const struct uva__cast_at *at, int64_t i, int64_t row)
{
    const bool is_time = at->plan->multiply != 0 || at->plan->divide != 0;
    char from[UVA__CAST_NAME_SIZE], to[UVA__CAST_NAME_SIZE], text[40];

    item_text(at, i, text);
    uva__cast_plan_name(at->plan->from, from);
    uva__cast_plan_name(at->plan->to, to);
    return uva__cast_at_fail(at, row, EOVERFLOW, "%s%s%s is no %s", text,
                             is_time ? " of " : "", is_time ? from : "", to);
}

/* Fails at the first item that has changed, unless no row shows it. */
static int chunk_check(const struct uva__cast_at *at, const struct chunk *c,
                       int64_t first)
{
    if (memchr(c->bad, 1, (size_t)c->count) == NULL)
        return 0;
    for (int64_t i = 0; i < c->count; i++) {
        const int64_t row =
            c->bad[i] ? uva__cast_at_row(at, first + i) : INT64_C(-1);

        if (row >= 0)
            return item_fail(at, first + i, row);
    }
    return 0;
}

static void chunk_cast(const struct uva__cast_plan *plan, struct chunk *c)
{
    chunk_widen(c, wide_of(plan->from_item), wide_of(plan->to_item));
    if (plan->multiply > 1)
        chunk_multiply(c, plan->multiply);
    else if (plan->divide > 1)
        chunk_divide(c, plan->divide);
}

int uva__cast_numbers(const struct uva__cast_at *at, struct ArrowArray *out)
{
    const struct uva__cast_plan *const plan = at->plan;
    const int32_t width = width_of(plan->to_item);
    const int64_t sizes[] = {uva__cast_at_validity_size(at),
                             width > 0 ? at->count * width
                                       : uva__bits_bytes(at->count)};
    struct chunk c;
    int code = uva__cast_at_new(at, sizes, 2, 0, out);

    for (int64_t i = 0; i < at->count && code == 0; i += CHUNK) {
        c.count = at->count - i < CHUNK ? at->count - i : CHUNK;
        memset(c.bad, 0, sizeof(c.bad));
        chunk_read(&c, plan->from_item, at->array->buffers[1], at->from + i);
        chunk_cast(plan, &c);
        chunk_write(&c, plan->to_item, uva__new_array_buffer(out, 1), i);
        code = chunk_check(at, &c, i);
    }
    if (code == 0)
        uva__cast_at_validity(at, out);
    return code;
}
