/* SPDX-License-Identifier: Apache-2.0 */
/* The shortest decimal of a floating-point number. text_number.h writes it. */
#ifndef UVA_IO_TEXT_REAL_H
#define UVA_IO_TEXT_REAL_H

#include <stdint.h>

/* A decimal: `digits` times 10^`exponent`. It may end in zeroes. */
struct uva__text_real {
    uint64_t digits; /* below 10^17 */
    int exponent;
};

/* Finds the decimal with the fewest digits that reads back as a number, of
 * these the nearest. The number is given by its bits; it must be positive and
 * finite. Thread: any. */
struct uva__text_real uva__text_real_of_double(uint64_t bits);
struct uva__text_real uva__text_real_of_float(uint32_t bits);
struct uva__text_real uva__text_real_of_half(uint16_t bits);

#endif
