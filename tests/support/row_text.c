/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one value at a time, in the plainest way: as a reference for code that
 * copies ranges. */
#include "support/row_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/bits.h"
#include "arrow/format.h"

struct text {
    char *at, *end;
};

static void text_add(struct text *text, const char *format, ...)
{
    const size_t room = (size_t)(text->end - text->at);
    va_list args;
    int size;

    va_start(args, format);
    size = vsnprintf(text->at, room, format, args);
    va_end(args);
    if (size < 0 || (size_t)size >= room)
        abort();
    text->at += size;
}

static void text_add_bytes(struct text *text, const void *bytes, int64_t size)
{
    for (int64_t i = 0; i < size; i++)
        text_add(text, "%02x", ((const unsigned char *)bytes)[i]);
    text_add(text, ".");
}

static int64_t number(const void *buffer, int32_t width, int64_t i)
{
    const char *const at = (const char *)buffer + i * width;
    int64_t value = 0;

    memcpy(&value, at, (size_t)width); /* as this machine is little endian */
    return width == 8 ? value : value << (64 - 8 * width) >> (64 - 8 * width);
}

static struct uva__layout layout_of(const struct ArrowSchema *schema)
{
    struct uva__layout layout;

    if (uva__format_read(schema->format, &layout) != 0)
        abort();
    return layout;
}

/* ---- texts -------------------------------------------------------------- */

static void row_add(struct text *text, const struct ArrowSchema *schema,
                    const struct ArrowArray *array, int64_t row);

static void child_add(struct text *text, const struct ArrowSchema *schema,
                      const struct ArrowArray *array, int64_t i, int64_t row)
{
    row_add(text, schema->children[i], array->children[i], row);
}

static void items_add(struct text *text, const struct ArrowSchema *schema,
                      const struct ArrowArray *array, int64_t from, int64_t to)
{
    text_add(text, "[");
    for (; from < to; from++)
        child_add(text, schema, array, 0, from);
    text_add(text, "]");
}

static int64_t member_of(const char *format, int id)
{
    const char *at = strchr(format, ':');
    int64_t member = 0;
    char *end;

    for (; at != NULL && strtol(at + 1, &end, 10) != id; member++)
        at = *end == ',' ? end : NULL;
    return at == NULL ? (abort(), 0) : member;
}

static void union_add(struct text *text, const struct ArrowSchema *schema,
                      const struct ArrowArray *array, int64_t p)
{
    const int id = ((const int8_t *)array->buffers[0])[p];
    const bool dense = schema->format[2] == 'd';

    text_add(text, "%d:", id);
    child_add(text, schema, array, member_of(schema->format, id),
              dense ? number(array->buffers[1], 4, p) : p);
}

static void run_add(struct text *text, const struct ArrowSchema *schema,
                    const struct ArrowArray *array, int64_t p)
{
    const struct ArrowArray *const ends = array->children[0];
    const int32_t width = uva__format_width(schema->children[0]->format);
    int64_t run = 0;

    while (number(ends->buffers[1], width, ends->offset + run) <= p)
        run++;
    child_add(text, schema, array, 1, run);
}

static void view_add(struct text *text, const struct ArrowArray *array,
                     int64_t p)
{
    const char *const view = (const char *)array->buffers[1] + p * 16;
    const int64_t size = number(view, 4, 0);
    const char *from = view + 4;

    if (size > 12)
        from = (const char *)array->buffers[2 + number(view, 4, 2)] +
               number(view, 4, 3);
    if (size > 12 && memcmp(from, view + 4, 4) != 0)
        abort();
    text_add_bytes(text, from, size);
}

static void nested_add(struct text *text, const struct ArrowSchema *schema,
                       const struct ArrowArray *array, int64_t p, int32_t width)
{
    const char kind = schema->format[1];
    int64_t from, size;

    if (kind == 's') {
        for (int64_t i = 0; i < array->n_children; i++)
            child_add(text, schema, array, i, p);
        text_add(text, "|");
    } else if (kind == 'u') {
        union_add(text, schema, array, p);
    } else if (kind == 'r') {
        run_add(text, schema, array, p);
    } else if (kind == 'w') {
        size = strtol(schema->format + 3, NULL, 10);
        items_add(text, schema, array, p * size, (p + 1) * size);
    } else {
        from = number(array->buffers[1], width, p);
        size = kind == 'v' ? number(array->buffers[2], width, p)
                           : number(array->buffers[1], width, p + 1) - from;
        items_add(text, schema, array, from, from + size);
    }
}

static void leaf_add(struct text *text, const struct ArrowSchema *schema,
                     const struct ArrowArray *array, int64_t p,
                     const struct uva__layout *layout)
{
    const int32_t width = layout->buffers[1].width;
    int64_t from;

    if (layout->buffers[1].kind == UVA__BUFFER_BITS) {
        text_add(text, uva__bits_get(array->buffers[1], p) ? "1" : "0");
    } else if (layout->buffers[1].kind == UVA__BUFFER_OFFSETS) {
        from = number(array->buffers[1], width, p);
        text_add_bytes(text, (const char *)array->buffers[2] + from,
                       number(array->buffers[1], width, p + 1) - from);
    } else if (schema->dictionary != NULL) {
        row_add(text, schema->dictionary, array->dictionary,
                number(array->buffers[1], width, p));
    } else {
        text_add_bytes(text, (const char *)array->buffers[1] + p * width,
                       width);
    }
}

static void row_add(struct text *text, const struct ArrowSchema *schema,
                    const struct ArrowArray *array, int64_t row)
{
    const struct uva__layout layout = layout_of(schema);
    const int64_t p = array->offset + row;
    const bool has_bits =
        layout.n_buffers > 0 && layout.buffers[0].kind == UVA__BUFFER_VALIDITY;

    if (row < 0 || row >= array->length)
        abort();
    if (schema->format[0] == 'n' ||
        (has_bits && array->null_count != 0 && array->buffers[0] != NULL &&
         !uva__bits_get(array->buffers[0], p)))
        text_add(text, "~");
    else if (schema->format[0] == '+')
        nested_add(text, schema, array, p, layout.buffers[1].width);
    else if (schema->format[0] == 'v')
        view_add(text, array, p);
    else
        leaf_add(text, schema, array, p, &layout);
}

void row_text_write(const struct ArrowSchema *schema,
                    const struct ArrowArray *array, int64_t row, char *text,
                    size_t room)
{
    struct text to = {text, text + room};

    row_add(&to, schema, array, row);
}

/* ---- sound values ------------------------------------------------------- */

static void put(const void *buffer, int32_t width, int64_t i, int64_t value)
{
    memcpy((char *)(uintptr_t)buffer + i * width, &value, (size_t)width);
}

/* Of 0 to 24 bytes; the data buffers have 33, 0 and 5. */
static void views_make(const struct ArrowArray *array, int64_t rows)
{
    const char *const data = array->buffers[2];

    for (int64_t i = 0; i < rows; i++) {
        char *const view = (char *)(uintptr_t)array->buffers[1] + i * 16;
        const int32_t size = (int32_t)(i * 5 % 25),
                      place[] = {0, (int32_t)i % 9};

        memset(view, 0, 16);
        put(view, 4, 0, size);
        memcpy(view + 4, data + (size > 12 ? place[1] : 0),
               (size_t)(size > 12 ? 4 : size));
        if (size > 12)
            memcpy(view + 8, place, sizeof(place));
    }
}

static void unions_make(const struct ArrowArray *array, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) {
        put(array->buffers[0], 1, i, i % 3 % 2);
        if (array->n_buffers > 1)
            put(array->buffers[1], 4, i, i);
    }
}

/* Runs of two rows, as the ends have half as many items as rows at least. */
static void ends_make(const struct ArrowSchema *schema,
                      const struct ArrowArray *ends)
{
    const int32_t width = uva__format_width(schema->children[0]->format);

    for (int64_t i = 0; i < ends->length; i++)
        put(ends->buffers[1], width, ends->offset + i, 2 * (i + 1));
}

static void node_make_sound(const struct ArrowSchema *schema,
                            const struct ArrowArray *array)
{
    const int64_t rows = array->offset + array->length;
    const char *const kind = schema->format;
    const struct uva__layout layout = layout_of(schema);
    const int32_t width = layout.buffers[1].width;

    if (array->length == 0)
        return;
    if (kind[0] == 'v')
        views_make(array, rows);
    else if (strncmp(kind, "+u", 2) == 0)
        unions_make(array, rows);
    else if (strncmp(kind, "+r", 2) == 0)
        ends_make(schema, array->children[0]);
    for (int64_t i = 0; i < rows && strncmp(kind, "+v", 2) == 0; i++) {
        put(array->buffers[1], width, i, i * 7 % 30);
        put(array->buffers[2], width, i, i % 4);
    }
    for (int64_t i = 0; i < rows && schema->dictionary != NULL; i++)
        put(array->buffers[1], width, i, i * 3 % array->dictionary->length);
}

void row_text_make_sound(const struct ArrowSchema *schema,
                         const struct ArrowArray *array)
{
    node_make_sound(schema, array);
    for (int64_t i = 0; i < array->n_children; i++)
        row_text_make_sound(schema->children[i], array->children[i]);
    if (array->dictionary != NULL)
        row_text_make_sound(schema->dictionary, array->dictionary);
}
