/* SPDX-License-Identifier: Apache-2.0 */
/*   [{"i":1},
 *   {"i":2}]
 *
 * Texts of JSON have no line breaks, so each one ends a row. An array that ends
 * early has no bracket at its end, and no parser takes it for a whole one. */
#include "json_array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

/* Copies lines, each with `,` and a line break, or the first bracket, in front
 * of it in place of the line break behind it. Returns the end. */
static char *lines_copy(const char *line, size_t size, bool *has_rows,
                        char *out)
{
    const char *end = line + size, *next;

    for (; line < end; line = next + 1) {
        next = memchr(line, '\n', (size_t)(end - line));
        next = next != NULL ? next : end;
        *out++ = *has_rows ? ',' : '[';
        if (*has_rows)
            *out++ = '\n';
        memcpy(out, line, (size_t)(next - line));
        out += next - line;
        *has_rows = true;
    }
    return out;
}

int uva__json_array_write(struct uva__json_array *array,
                          struct uva__output *output, struct uva_part *part)
{
    char *text = malloc((size_t)(part->bytes + part->rows) + 1), *end = text;
    int code = text != NULL ? 0 : ENOMEM;

    for (size_t i = 0; i < part->count && code == 0; i++)
        end = lines_copy(part->buffers[i].base, part->buffers[i].len,
                         &array->has_rows, end);
    if (code == 0)
        code = uva__output_write_rows(output, text, (size_t)(end - text),
                                      part->rows);
    free(text);
    uva_part_release(part);
    return code;
}

int uva__json_array_end(const struct uva__json_array *array,
                        struct uva__output *output)
{
    return array->has_rows ? uva__output_write(output, "]\n", 2)
                           : uva__output_write(output, "[]\n", 3);
}
