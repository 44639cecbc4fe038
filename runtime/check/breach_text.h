/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a breach as one line of text. */
#ifndef UVA_CHECK_BREACH_TEXT_H
#define UVA_CHECK_BREACH_TEXT_H

#include <stdio.h>

#include "uvarrow/check.h"

/* Writes `breach` to `out` as plain text. Thread: any. */
void uva__breach_text_plain(const struct uva_breach *breach, FILE *out);

/* Writes it as one JSON object: clause, severity, party, name, message, and the
 * transcript as an array of strings. Thread: any. */
void uva__breach_text_json(const struct uva_breach *breach, FILE *out);

#endif
