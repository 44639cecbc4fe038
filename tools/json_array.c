/* SPDX-License-Identifier: Apache-2.0 */
/*   [{"i":1},
 *   {"i":2}]
 *
 * Texts of JSON have no line breaks, so each one ends a row. An array that ends
 * early has no bracket at its end, and no parser takes it for a whole one. */
#include "json_array.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

/* The copy of a part. */
struct copy {
    struct uva__json_array *array; /* borrows */
    char *end;                     /* of the text so far */
    bool in_line;                  /* a line goes on in the next buffer */
};

/* Copies lines, each with `,` and a line break, or the first bracket, in front
 * of it in place of the line break after it. */
static void copy_lines(struct copy *copy, const uv_buf_t *lines)
{
    const char *line = lines->base, *const end = line + lines->len, *next;

    for (; line < end; line = next + 1) {
        next = memchr(line, '\n', (size_t)(end - line));
        if (!copy->in_line) {
            *copy->end++ = copy->array->has_rows ? ',' : '[';
            if (copy->array->has_rows)
                *copy->end++ = '\n';
        }
        copy->array->has_rows = true;
        copy->in_line = next == NULL;
        next = next != NULL ? next : end;
        memcpy(copy->end, line, (size_t)(next - line));
        copy->end += next - line;
    }
}

char *uva__json_array_text(struct uva__json_array *array, struct uva_part *part,
                           size_t *size)
{
    char *text = malloc((size_t)(part->bytes + part->rows) + 1);
    struct copy copy = {.array = array, .end = text};

    for (size_t i = 0; i < part->count && text != NULL; i++)
        copy_lines(&copy, &part->buffers[i]);
    *size = text != NULL ? (size_t)(copy.end - text) : 0;
    uva_part_release(part);
    return text;
}

const char *uva__json_array_end(const struct uva__json_array *array)
{
    return array->has_rows ? "]\n" : "[]\n";
}
