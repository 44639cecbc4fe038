/* SPDX-License-Identifier: Apache-2.0 */
/* Writes numbers as text, fast and without loss. Each function writes at `at`,
 * where UVA__TEXT_NUMBER_ROOM bytes must be free, and returns the end of its
 * text; it adds no NUL. Dates are in text_time.h. */
#ifndef UVA_IO_TEXT_NUMBER_H
#define UVA_IO_TEXT_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/* The longest text: a 256-bit decimal and the zeroes that its scale may add. */
#define UVA__TEXT_NUMBER_ROOM 256

/* The largest absolute scale of a decimal. */
#define UVA__TEXT_NUMBER_SCALE_MAX 128

/* Writes an integer. Thread: any. */
char *uva__text_number_put_uint(char *at, uint64_t value);
char *uva__text_number_put_int(char *at, int64_t value);

/* Writes the last `digits` digits of `value`, with leading zeroes.
 * Thread: any. */
char *uva__text_number_put_digits(char *at, uint64_t value, int digits);

/* Writes the shortest text that reads back as the same value: "0.1", "227.0",
 * "1e-05", "nan", "-inf". A half float is given by its bits. Thread: any. */
char *uva__text_number_put_double(char *at, double value);
char *uva__text_number_put_float(char *at, float value);
char *uva__text_number_put_half(char *at, uint16_t bits);

/* Writes the two's complement integer of 4, 8, 16 or 32 bytes at `value`,
 * divided by 10 to the power of `scale`. Thread: any. */
char *uva__text_number_put_decimal(char *at, const void *value, size_t width,
                                   int scale);

#endif
