/* SPDX-License-Identifier: Apache-2.0 */
/* Whether text is UTF-8. */
#ifndef UVA_BASE_UTF8_H
#define UVA_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the size of the character that `text` begins with; 0 if it is not
 * valid. `text` ends with a NUL, which is a character. Thread: any. */
size_t uva__utf8_size(const char *text);

/* Whether `text` is valid UTF-8. Thread: any. */
bool uva__utf8_is_sound(const char *text);

#endif
