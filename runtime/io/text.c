/* SPDX-License-Identifier: Apache-2.0 */
/* Growing text, and text in quotes. */
#include "io/text.h"

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

    assert(size <= SIZE_MAX / 4 - text->size);
    if (text->failed)
        return NULL;
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
    char *at = uva__text_room(text, 2 * size);
    size_t i;

    if (at == NULL)
        return;
    for (i = 0; i < size; i++) {
        *at++ = HEX[bytes[i] >> 4];
        *at++ = HEX[bytes[i] & 15];
    }
    uva__text_advance(text, at);
}

/* ---- words of eight bytes ------------------------------------------------ */

#define EACH  UINT64_C(0x0101010101010101)
#define HIGHS (EACH << 7)

/* Not 0 if a byte is below `limit`, at most 128. */
static uint64_t word_below(uint64_t word, unsigned char limit)
{
    return (word - EACH * limit) & ~word & HIGHS;
}

/* Not 0 if a byte is `c`. */
static uint64_t word_has(uint64_t word, char c)
{
    return word_below(word ^ EACH * (unsigned char)c, 1);
}

/* ---- CSV ---------------------------------------------------------------- */

/* Whether a field without quotes would be read as a null. */
static bool csv_is_reserved(const char *field, size_t size,
                            const struct uva__csv_style *style)
{
    return size == 0 || (size == style->null_size &&
                         memcmp(field, style->null_text, size) == 0);
}

/* Whether a word has no byte that stands only in quotes. */
static bool csv_word_is_plain(uint64_t word, char delimiter)
{
    return (word_has(word, '"') | word_has(word, '\n') | word_has(word, '\r') |
            word_has(word, delimiter)) == 0;
}

/* Most words have only letters and digits, which are above these bytes. */
bool uva__text_is_plain_csv(const char *data, size_t size,
                            const struct uva__csv_style *style)
{
    const char delimiter = style->delimiter;
    const unsigned char above =
        (unsigned char)(delimiter > '"' ? delimiter : '"') + 1;
    size_t i;

    for (i = 0; i + 8 <= size; i += 8) {
        const uint64_t word = uva__text_word(data + i);

        if (word_below(word, above) != 0 && !csv_word_is_plain(word, delimiter))
            return false;
    }
    while (i < size && !style->stops[(unsigned char)data[i]])
        i++;
    return i == size;
}

/* Whether a field needs quotes. */
static bool csv_is_special(const char *field, size_t size,
                           const struct uva__csv_style *style)
{
    return !uva__text_is_plain_csv(field, size, style) ||
           csv_is_reserved(field, size, style);
}

static size_t count_quotes(const char *data, size_t size)
{
    size_t count = 0;

    for (size_t i = 0; i < size; i++)
        count += data[i] == '"';
    return count;
}

/* Copies bytes, and each quote twice; returns the end. */
static char *put_doubled(char *at, const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        at[0] = data[i];
        at[1] = '"'; /* the next byte overwrites most */
        at += 1 + (data[i] == '"');
    }
    return at;
}

/* Appends a field in quotes. */
static void csv_put_quoted(struct uva__text *text, const char *field,
                           size_t size)
{
    const size_t most = size < 4096 ? size : count_quotes(field, size);
    char *at = uva__text_room(text, size + 2 + most);
    size_t i;

    if (at == NULL)
        return;
    *at++ = '"';
    for (i = 0; i + 8 <= size; i += 8) {
        const uint64_t word = uva__text_word(field + i);

        if (word_has(word, '"') != 0) {
            at = put_doubled(at, field + i, 8);
        } else {
            memcpy(at, &word, sizeof(word));
            at += 8;
        }
    }
    if (i < size) /* without bytes the field may be NULL */
        at = put_doubled(at, field + i, size - i);
    *at++ = '"';
    uva__text_advance(text, at);
}

void uva__text_put_csv(struct uva__text *text, const char *data, size_t size,
                       const struct uva__csv_style *style)
{
    if (csv_is_special(data, size, style))
        csv_put_quoted(text, data, size);
    else
        uva__text_put(text, data, size);
}

/* Works in place, from the end to the beginning. */
void uva__text_quote_csv(struct uva__text *text, size_t start,
                         const struct uva__csv_style *style)
{
    size_t growth, from;
    char *to;

    assert(text->failed || (text->data != NULL && start <= text->size));
    if (text->failed ||
        !csv_is_special(text->data + start, text->size - start, style))
        return;
    growth = 2 + count_quotes(text->data + start, text->size - start);
    if (uva__text_room(text, growth) == NULL)
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

/* ---- JSON --------------------------------------------------------------- */

/* Returns the length of the UTF-8 sequence that a byte begins; 0: it begins no
 * sequence. */
static size_t utf8_length(unsigned char first)
{
    if (first < 0xc2 || first > 0xf4)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* Whether the second byte of a sequence may follow the first: otherwise it is
 * longer than necessary, a surrogate, or beyond U+10FFFF. */
static bool utf8_may_follow(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xe0:
        return second >= 0xa0;
    case 0xed:
        return second < 0xa0;
    case 0xf0:
        return second >= 0x90;
    case 0xf4:
        return second < 0x90;
    default:
        return true;
    }
}

/* Returns the length of the UTF-8 sequence at `at`, where `left` bytes are; 0
 * if there is no valid one. */
static size_t utf8_size(const unsigned char *at, size_t left)
{
    const size_t size = utf8_length(at[0]);
    size_t i;

    if (size == 0 || left < size || !utf8_may_follow(at[0], at[1]))
        return 0;
    for (i = 1; i < size; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return size;
}

/* Returns the number of bytes in whole words that stand as they are. */
static size_t json_plain_words(const char *data, size_t size)
{
    size_t i;

    for (i = 0; i + 8 <= size; i += 8) {
        const uint64_t word = uva__text_word(data + i);

        if (((word & HIGHS) | word_below(word, ' ') | word_has(word, '"') |
             word_has(word, '\\')) != 0)
            break;
    }
    return i;
}

bool uva__text_is_plain_json(const char *data, size_t size)
{
    size_t i = json_plain_words(data, size);

    while (i < size && data[i] >= ' ' && data[i] <= '~' && data[i] != '"' &&
           data[i] != '\\')
        i++;
    return i == size;
}

size_t uva__text_json_plain(const char *data, size_t size)
{
    const unsigned char *at = (const unsigned char *)data;
    size_t i = json_plain_words(data, size), step;

    while (i < size) {
        if (at[i] < 0x80)
            step = at[i] >= ' ' && at[i] != '"' && at[i] != '\\';
        else
            step = utf8_size(at + i, size - i);
        if (step == 0)
            break;
        i += step;
    }
    return i;
}

/* Appends the escape of a byte that cannot stand as it is. */
static void json_escape(struct uva__text *text, unsigned char c)
{
    char escape[6] = {'\\', (char)c};
    size_t size = 2;

    switch (c) {
    case '"':
    case '\\':
        break;
    case '\n':
        escape[1] = 'n';
        break;
    case '\r':
        escape[1] = 'r';
        break;
    case '\t':
        escape[1] = 't';
        break;
    default:
        if (c >= 0x80) {
            uva__text_put(text, "\xef\xbf\xbd", 3); /* U+FFFD */
            return;
        }
        memcpy(escape, "\\u00", 4);
        escape[4] = HEX[c >> 4];
        escape[5] = HEX[c & 15];
        size = 6;
    }
    uva__text_put(text, escape, size);
}

void uva__text_put_json(struct uva__text *text, const char *data, size_t size)
{
    size_t from = 0;

    uva__text_put_char(text, '"');
    while (from < size && !text->failed) {
        const size_t plain = uva__text_json_plain(data + from, size - from);

        uva__text_put(text, data + from, plain);
        from += plain;
        if (from < size)
            json_escape(text, (unsigned char)data[from++]);
    }
    uva__text_put_char(text, '"');
}
