/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal that a descriptor leads to. */
#ifndef UVA_TOOLS_TERMINAL_H
#define UVA_TOOLS_TERMINAL_H

#include <stdbool.h>

/* Returns whether it is one. Thread: any. */
bool uva__terminal_is(int fd);

/* Returns how many columns it has; of another descriptor, or if it does not
 * say, those of the variable COLUMNS, or 0. Thread: any. */
int uva__terminal_columns(int fd);

/* Returns whether colours may be used: in a terminal that has them, unless
 * NO_COLOR is set. Thread: any. */
bool uva__terminal_has_colors(int fd);

/* Returns whether the user's locale has Unicode. Thread: any. */
bool uva__terminal_has_unicode(void);

#endif
