/* SPDX-License-Identifier: Apache-2.0 */
/* Each number is reversed by itself, also the 32 bytes of a decimal; the bytes
 * of texts, and the bytes inside of a view, stay. */
#include "io/ipc_turn.h"

#include <string.h>

enum { VIEW_SIZE = 16, VIEW_INLINE = 12, INTERVAL_SIZE = 16 };

static void turn_number(uint8_t *to, const uint8_t *from, int32_t width)
{
    for (int32_t i = 0; i < width; i++)
        to[i] = from[width - 1 - i];
}

static void turn_numbers(uint8_t *to, const uint8_t *from, int64_t size,
                         int32_t width)
{
    for (int64_t at = 0; at + width <= size; at += width)
        turn_number(to + at, from + at, width);
}

/* The size of a view decides whether the rest is text, or ends with the number
 * of a buffer and a place in it. */
static void turn_view(uint8_t *to, const uint8_t *from)
{
    int32_t size;

    turn_number(to, from, 4);
    memcpy(&size, to, sizeof(size));
    if (size <= VIEW_INLINE)
        return;
    turn_number(to + 8, from + 8, 4);
    turn_number(to + 12, from + 12, 4);
}

static void turn_interval(uint8_t *to, const uint8_t *from)
{
    turn_number(to, from, 4);
    turn_number(to + 4, from + 4, 4);
    turn_number(to + 8, from + 8, 8);
}

int32_t uva__ipc_turn_unit(const struct uva__ipc_field *field)
{
    const char *format = field->schema->format;

    if (format[0] == 'w')
        return 1;
    if (strcmp(format, "tiD") == 0) /* days, and milliseconds */
        return 4;
    return strcmp(format, "tin") == 0 ? UVA__IPC_TURN_INTERVALS : field->width;
}

void uva__ipc_turn(uint8_t *to, const uint8_t *from, int64_t size, int32_t unit)
{
    memcpy(to, from, (size_t)size);
    if (unit == UVA__IPC_TURN_VIEWS)
        for (int64_t at = 0; at + VIEW_SIZE <= size; at += VIEW_SIZE)
            turn_view(to + at, from + at);
    else if (unit == UVA__IPC_TURN_INTERVALS)
        for (int64_t at = 0; at + INTERVAL_SIZE <= size; at += INTERVAL_SIZE)
            turn_interval(to + at, from + at);
    else
        turn_numbers(to, from, size, unit);
}
