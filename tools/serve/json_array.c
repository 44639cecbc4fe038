/* SPDX-License-Identifier: Apache-2.0 */
/* A line has no line break but the one at its end: JSON writes others as \n. */
#include "json_array.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A part: one allocation. */
struct text {
    uv_buf_t buffer; /* of all the data */
    char data[];
};

/* Puts a comma in front of each line break. Returns the place behind. */
static char *add_lines(char *out, const uv_buf_t *lines)
{
    const char *at = lines->base;
    size_t left = lines->len;

    while (left > 0) {
        const char *const found = memchr(at, '\n', left);
        const size_t size = found != NULL ? (size_t)(found - at) : left;

        memcpy(out, at, size);
        out += size;
        if (found == NULL)
            break;
        memcpy(out, ",\n", 2);
        out += 2;
        at += size + 1;
        left -= size + 1;
    }
    return out;
}

/* The comma and the break behind the last line of a part are in front of the
 * next one instead. */
int64_t uva__json_array_next(struct uva_part *lines, bool is_first,
                             struct uva__transport_part *out)
{
    const size_t most = (size_t)lines->bytes + (size_t)lines->rows + 2;
    struct text *text = malloc(offsetof(struct text, data) + most);
    char *at;
    size_t i;

    if (text == NULL) {
        uva_part_release(lines);
        return -ENOMEM;
    }
    at = text->data;
    if (is_first) {
        *at++ = '[';
    } else {
        memcpy(at, ",\n", 2);
        at += 2;
    }
    for (i = 0; i < lines->count; i++)
        at = add_lines(at, &lines->buffers[i]);
    at -= 2;
    uva_part_release(lines);
    text->buffer =
        (uv_buf_t){.base = text->data, .len = (size_t)(at - text->data)};
    *out = (struct uva__transport_part){
        .buffers = &text->buffer, .count = 1, .release = free, .owner = text};
    return at - text->data;
}

int64_t uva__json_array_last(bool is_empty, struct uva__transport_part *out)
{
    static char end[] = "[]\n";
    static const uv_buf_t all = {.base = end, .len = 3},
                          rest = {.base = end + 1, .len = 2};
    const uv_buf_t *const buffer = is_empty ? &all : &rest;

    *out = (struct uva__transport_part){.buffers = buffer, .count = 1};
    return (int64_t)buffer->len;
}
