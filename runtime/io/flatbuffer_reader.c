/* SPDX-License-Identifier: Apache-2.0 */
/* Every offset is compared with the size of the buffer before it is followed.
 * The size that a list of offsets has for its table is not looked at: writers
 * share lists of equal offsets (Go's does), and then it is another table's.
 * Cycles, and offsets that lead to one place, are not detected: the callers
 * limit depth and number. */
#include "io/flatbuffer_reader.h"

/* Larger buffers have no offsets to their end. */
#define MOST ((size_t)INT32_MAX)

/* Whether `size` bytes lie in the buffer from `at` on. */
static bool table_holds(size_t room, size_t at, size_t size)
{
    return at <= room && size <= room - at;
}

static bool table_open(const uint8_t *bytes, size_t size, size_t at,
                       struct uva__table *out)
{
    int64_t list;
    size_t list_size;

    if (at == 0 || !table_holds(size, at, 4))
        return false;
    list = (int64_t)at - (int32_t)uva__table_load(bytes + at, 4);
    if (list < 0 || !table_holds(size, (size_t)list, 4))
        return false;
    list_size = (size_t)uva__table_load(bytes + list, 2);
    *out =
        (struct uva__table){.bytes = bytes,
                            .size = size,
                            .at = at,
                            .slots_at = (size_t)list + 4,
                            .n_slots = list_size < 4 ? 0 : (list_size - 4) / 2};
    return list_size >= 4 && table_holds(size, (size_t)list, list_size);
}

bool uva__table_root(const uint8_t *bytes, size_t size, struct uva__table *out)
{
    *out = (struct uva__table){0};
    return size >= 4 && size <= MOST &&
           table_open(bytes, size, (size_t)uva__table_load(bytes, 4), out);
}

/* Finds the member in a slot, of `size` bytes; `*at` is 0 if that is not there.
 */
static bool table_member(const struct uva__table *table, size_t slot,
                         size_t size, size_t *at)
{
    size_t offset;

    *at = 0;
    if (slot >= table->n_slots)
        return true;
    offset =
        (size_t)uva__table_load(table->bytes + table->slots_at + 2 * slot, 2);
    if (offset == 0)
        return true;
    *at = table->at + offset;
    return table_holds(table->size, *at, size);
}

bool uva__table_number(const struct uva__table *table, size_t slot, int size,
                       uint64_t *out)
{
    size_t at;

    if (!table_member(table, slot, (size_t)size, &at))
        return false;
    if (at != 0)
        *out = uva__table_load(table->bytes + at, size);
    return true;
}

bool uva__table_child(const struct uva__table *table, size_t slot,
                      struct uva__table *out)
{
    size_t at;

    *out = (struct uva__table){0};
    if (!table_member(table, slot, 4, &at))
        return false;
    return at == 0 ||
           table_open(table->bytes, table->size,
                      at + (size_t)uva__table_load(table->bytes + at, 4), out);
}

bool uva__table_vector(const struct uva__table *table, size_t slot, size_t size,
                       struct uva__vector *out)
{
    size_t at;

    *out = (struct uva__vector){0};
    if (!table_member(table, slot, 4, &at))
        return false;
    if (at == 0)
        return true;
    at += (size_t)uva__table_load(table->bytes + at, 4);
    if (!table_holds(table->size, at, 4))
        return false;
    out->count = (size_t)uva__table_load(table->bytes + at, 4);
    out->at = at + 4;
    out->items = table->bytes + out->at;
    return table_holds(table->size, out->at, out->count * size);
}

bool uva__table_item(const struct uva__table *table,
                     const struct uva__vector *vector, size_t i,
                     struct uva__table *out)
{
    const uint64_t distance = uva__table_load(vector->items + 4 * i, 4);

    return table_open(table->bytes, table->size,
                      vector->at + 4 * i + (size_t)distance, out);
}
