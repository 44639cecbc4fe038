/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows at its end, and how CSV and JSON quote. text_value.h decides
 * on the content. */
#ifndef UVA_IO_TEXT_H
#define UVA_IO_TEXT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Text under construction. All zeroes is an empty text. A failure is sticky:
 * keep writing, and check `failed` once at the end. */
struct uva__text {
    char *data;      /* owns; not ended by a NUL */
    size_t size;     /* bytes written */
    size_t capacity; /* bytes there is room for */
    bool failed;     /* out of memory: the text is incomplete */
};

/* Frees the memory of `text` and leaves it empty. Thread: any. */
void uva__text_fini(struct uva__text *text);

/* Makes room for `size` more bytes. Returns NULL if there is no memory. Thread:
 * any. */
char *uva__text_grow(struct uva__text *text, size_t size);

/* Returns a place to write up to `size` bytes, which uva__text_advance() then
 * counts. Borrowed until the next call; NULL if there is no memory. Thread:
 * any. */
static inline char *uva__text_room(struct uva__text *text, size_t size)
{
    if (text->capacity - text->size >= size && text->data != NULL)
        return text->data + text->size;
    return uva__text_grow(text, size);
}

/* Counts the bytes written up to `end`. Thread: any. */
static inline void uva__text_advance(struct uva__text *text, const char *end)
{
    assert(end >= text->data + text->size &&
           end <= text->data + text->capacity);
    text->size = (size_t)(end - text->data);
}

/* Appends one character. Thread: any. */
static inline void uva__text_put_char(struct uva__text *text, char c)
{
    char *at = uva__text_room(text, 1);

    if (at != NULL) {
        *at = c;
        text->size++;
    }
}

/* Appends `size` bytes; `data` may be NULL if that is 0. Thread: any. */
static inline void uva__text_put(struct uva__text *text, const void *data,
                                 size_t size)
{
    char *at = size == 0 ? NULL : uva__text_room(text, size);

    if (at != NULL) {
        memcpy(at, data, size);
        text->size += size;
    }
}

/* Loads eight bytes. Thread: any. */
static inline uint64_t uva__text_word(const char *data)
{
    uint64_t word;

    memcpy(&word, data, sizeof(word));
    return word;
}

/* Appends bytes as pairs of lower-case hexadecimal digits. Thread: any. */
void uva__text_put_hex(struct uva__text *text, const void *data, size_t size);

/* How CSV is written. */
struct uva__csv_style {
    char delimiter;        /* between the fields of a line */
    const char *null_text; /* borrows; of `null_size` bytes */
    size_t null_size;
    bool has_crlf;   /* lines end with CR LF, not with LF */
    bool stops[256]; /* bytes that a field has only in quotes */
};

/* Whether some bytes hold no byte that stands only in quotes. Thread: any. */
bool uva__text_is_plain_csv(const char *data, size_t size,
                            const struct uva__csv_style *style);

/* Appends `size` bytes as a field of RFC 4180: in quotes if it holds a
 * delimiter, a quote or a line break, if it is empty, or if it equals the text
 * of nulls, from which it must be distinguished. Thread: any. */
void uva__text_put_csv(struct uva__text *text, const char *data, size_t size,
                       const struct uva__csv_style *style);

/* Does that with the text from `start` on. Thread: any. */
void uva__text_quote_csv(struct uva__text *text, size_t start,
                         const struct uva__csv_style *style);

/* Whether some bytes are ASCII that stands in a JSON string as it is. Thread:
 * any. */
bool uva__text_is_plain_json(const char *data, size_t size);

/* Returns how many bytes from `data` on stand in a JSON string as they are.
 * Thread: any. */
size_t uva__text_json_plain(const char *data, size_t size);

/* Appends `size` bytes as a JSON string. Bytes that are not UTF-8 become
 * U+FFFD, as no parser would read them. Thread: any. */
void uva__text_put_json(struct uva__text *text, const char *data, size_t size);

#endif
