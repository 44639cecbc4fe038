/* SPDX-License-Identifier: Apache-2.0 */
/* Powers of ten in 128 bits, for text_real.c. */
#ifndef UVA_IO_TEXT_POWERS_H
#define UVA_IO_TEXT_POWERS_H

#include "io/wide.h"

/* The least exponent, and the number of powers. */
#define UVA__TEXT_POWERS_LEAST (-292)
#define UVA__TEXT_POWERS       617

/* 10^(i + UVA__TEXT_POWERS_LEAST), times the power of two that makes it a
 * number of 128 bits, without its fraction, plus 1. */
extern const struct uva__wide uva__text_powers[UVA__TEXT_POWERS];

#endif
