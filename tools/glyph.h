/* SPDX-License-Identifier: Apache-2.0 */
/* Text in a terminal, character by character: how many columns each takes, and
 * what stands for those that would move the cursor. */
#ifndef UVA_TOOLS_GLYPH_H
#define UVA_TOOLS_GLYPH_H

#include <stddef.h>

/* What is shown of one character. */
struct uva__glyph {
    char text[16]; /* ended by a NUL */
    int columns;   /* 0: it is drawn over the one before */
};

/* Gives what is shown of the first character of `text`: a line break is "\n",
 * an escape character "\x1b", a mark that turns the direction of text "\u202e".
 * Returns how many bytes it has; 0 at the end. Within uva__glyph_begin().
 * Thread: any. */
size_t uva__glyph_next(const char *text, struct uva__glyph *out);

/* Returns the columns of a whole text. Within uva__glyph_begin(). Thread: any.
 */
int uva__glyph_columns(const char *text);

/* Lets the C library know the widths of all characters, whatever the locale of
 * the user, until uva__glyph_end(), by the same thread. Without such a locale
 * each is one column wide. Thread: any. */
void uva__glyph_begin(void);
void uva__glyph_end(void);

#endif
