/* SPDX-License-Identifier: Apache-2.0 */
/* Growing text. Quoting works in place, from the end to the beginning, once the
 * number of added bytes is known. */
#include "text.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#define TEXT_FIRST_BYTES ((size_t)256)

static const char HEX[] = "0123456789abcdef";

void uva__text_fini(struct uva__text *text)
{
    free(text->data);
    *text = (struct uva__text){0};
}

char *uva__text_grow(struct uva__text *text, size_t size)
{
    size_t capacity = text->capacity + text->capacity / 2;
    char *data;

    if (text->failed || size > SIZE_MAX / 4 - text->size) {
        text->failed = true;
        return NULL;
    }
    if (capacity < TEXT_FIRST_BYTES)
        capacity = TEXT_FIRST_BYTES;
    if (capacity < text->size + size)
        capacity = text->size + size;
    data = realloc(text->data, capacity);
    if (data == NULL) {
        text->failed = true;
        return NULL;
    }
    text->data = data;
    text->capacity = capacity;
    return data + text->size;
}

void uva__text_put_hex(struct uva__text *text, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    char *at = size > SIZE_MAX / 8 ? uva__text_grow(text, SIZE_MAX)
                                   : uva__text_room(text, 2 * size);
    size_t i;

    if (at == NULL)
        return;
    for (i = 0; i < size; i++) {
        *at++ = HEX[bytes[i] >> 4];
        *at++ = HEX[bytes[i] & 15];
    }
    uva__text_advance(text, at);
}

/* Returns how many bytes quoting adds; 0 for a field that needs none. */
static size_t csv_growth(const char *field, size_t size)
{
    size_t quotes = 0, i;
    bool special = size == 0;

    for (i = 0; i < size; i++) {
        quotes += field[i] == '"';
        special |= field[i] == ',' || field[i] == '\n' || field[i] == '\r';
    }
    return special || quotes > 0 ? quotes + 2 : 0;
}

void uva__text_quote_csv(struct uva__text *text, size_t start)
{
    size_t size = text->size - start, growth, from;
    char *to;

    assert(start <= text->size || text->failed);
    if (text->failed)
        return;
    growth = csv_growth(text->data == NULL ? "" : text->data + start, size);
    if (growth == 0 || uva__text_room(text, growth) == NULL)
        return;
    to = text->data + text->size + growth;
    *--to = '"';
    for (from = text->size; from > start;) {
        *--to = text->data[--from];
        if (*to == '"')
            *--to = '"';
    }
    *--to = '"';
    assert(to == text->data + start);
    text->size += growth;
}

/* Returns how JSON escapes a byte: 0: not at all, 1: as \uXXXX, otherwise the
 * character that follows the backslash. */
static char json_escape(unsigned char c)
{
    switch (c) {
    case '"':
    case '\\':
        return (char)c;
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return c < 0x20;
    }
}

static size_t json_growth(const char *value, size_t size)
{
    size_t growth = 2, i;

    for (i = 0; i < size; i++) {
        char escape = json_escape((unsigned char)value[i]);
        growth += escape == 0 ? 0 : escape == 1 ? 5 : 1;
    }
    return growth;
}

/* Writes one character so that it ends before `to`; returns its start. */
static char *json_put_before(char *to, unsigned char c)
{
    char escape = json_escape(c);

    if (escape == 0) {
        *--to = (char)c;
    } else if (escape != 1) {
        *--to = escape;
        *--to = '\\';
    } else {
        to -= 6;
        memcpy(to, "\\u00", 4);
        to[4] = HEX[c >> 4];
        to[5] = HEX[c & 15];
    }
    return to;
}

void uva__text_quote_json(struct uva__text *text, size_t start)
{
    size_t growth, from;
    char *to;

    assert(start <= text->size || text->failed);
    if (text->failed || uva__text_room(text, 0) == NULL)
        return;
    growth = json_growth(text->data + start, text->size - start);
    if (uva__text_room(text, growth) == NULL)
        return;
    to = text->data + text->size + growth;
    *--to = '"';
    for (from = text->size; from > start;)
        to = json_put_before(to, (unsigned char)text->data[--from]);
    *--to = '"';
    assert(to == text->data + start);
    text->size += growth;
}
