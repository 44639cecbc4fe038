/* SPDX-License-Identifier: Apache-2.0 */
/* The C library has the widths of Unicode, which change with each version; they
 * are in its locales of UTF-8. */
#define _GNU_SOURCE
#include "glyph.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "base/utf8.h"

/* The locale of this thread. */
static _Thread_local struct {
    locale_t before; /* (locale_t)0: it is as it was */
    locale_t own;
} widths;

static unsigned code_of(const char *text, size_t size)
{
    unsigned code = (unsigned char)text[0];

    if (size > 1)
        code &= 0xffU >> (size + 1);
    for (size_t i = 1; i < size; i++)
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    return code;
}

/* Characters that are not drawn, but change how others are. */
static int is_hidden(unsigned code)
{
    static const unsigned RANGES[][2] = {
        {0x80, 0x9f},     {0x061c, 0x061c}, {0x200b, 0x200c},
        {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
        {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};

    for (size_t i = 0; i < sizeof(RANGES) / sizeof(*RANGES); i++)
        if (code >= RANGES[i][0] && code <= RANGES[i][1])
            return 1;
    return 0;
}

static void glyph_escape(struct uva__glyph *out, const char *format,
                         unsigned code)
{
    out->columns = snprintf(out->text, sizeof(out->text), format, code);
}

/* Shows a control character. */
static void glyph_control(struct uva__glyph *out, unsigned code)
{
    static const char NAMES[][2] = {{'\n', 'n'}, {'\t', 't'}, {'\r', 'r'}};

    for (size_t i = 0; i < sizeof(NAMES) / sizeof(*NAMES); i++) {
        if (code == (unsigned char)NAMES[i][0]) {
            glyph_escape(out, "\\%c", (unsigned char)NAMES[i][1]);
            return;
        }
    }
    glyph_escape(out, "\\x%02x", code);
}

size_t uva__glyph_next(const char *text, struct uva__glyph *out)
{
    const size_t size = uva__utf8_size(text);
    const unsigned code = size > 0 ? code_of(text, size) : 0;

    if (text[0] == '\0')
        return 0;
    if (size == 0) {
        glyph_escape(out, "\\x%02x", (unsigned char)text[0]);
        return 1;
    }
    if (code < ' ' || code == 0x7f) {
        glyph_control(out, code);
        return size;
    }
    if (is_hidden(code)) {
        glyph_escape(out, "\\u%04x", code);
        return size;
    }
    memcpy(out->text, text, size);
    out->text[size] = '\0';
    out->columns = code < 0x7f ? 1 : wcwidth((wchar_t)code);
    if (out->columns < 0)
        out->columns = 1;
    return size;
}

int uva__glyph_columns(const char *text)
{
    struct uva__glyph glyph;
    int columns = 0;
    size_t size;

    for (; (size = uva__glyph_next(text, &glyph)) > 0; text += size)
        columns += glyph.columns;
    return columns;
}

void uva__glyph_begin(void)
{
    static const char *const NAMES[] = {"C.UTF-8", "en_US.UTF-8", "UTF-8"};

    widths.own = (locale_t)0;
    for (size_t i = 0; i < 3 && widths.own == (locale_t)0; i++)
        widths.own = newlocale(LC_CTYPE_MASK, NAMES[i], (locale_t)0);
    if (widths.own != (locale_t)0)
        widths.before = uselocale(widths.own);
}

void uva__glyph_end(void)
{
    if (widths.own == (locale_t)0)
        return;
    (void)uselocale(widths.before);
    freelocale(widths.own);
    widths.own = (locale_t)0;
}
