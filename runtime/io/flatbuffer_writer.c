/* SPDX-License-Identifier: Apache-2.0 */
/* FlatBuffers, written from the end. A table lies after its list of offsets
 * (vtable), so the list is written last; offsets count forward, from the member
 * to what it refers to. */
#include "io/flatbuffer_writer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Offsets have 32 bits, and a sign. */
enum { FIRST_BLOCK = 1024, MOST = 1 << 30 };

void uva__flatbuffer_clear(struct uva__flatbuffer *flat)
{
    flat->used = 0;
    flat->failed = false;
}

void uva__flatbuffer_fini(struct uva__flatbuffer *flat)
{
    free(flat->block);
    *flat = (struct uva__flatbuffer){0};
}

static void flatbuffer_grow(struct uva__flatbuffer *flat, size_t size)
{
    size_t capacity = flat->capacity == 0 ? FIRST_BLOCK : flat->capacity * 2;
    uint8_t *block;

    while (capacity < flat->used + size)
        capacity *= 2;
    block = capacity > MOST ? NULL : malloc(capacity);
    if (block == NULL) {
        flat->failed = true;
        return;
    }
    if (flat->used > 0)
        memcpy(block + capacity - flat->used, uva__flatbuffer_bytes(flat),
               flat->used);
    free(flat->block);
    flat->block = block;
    flat->capacity = capacity;
}

uint8_t *uva__flatbuffer_room(struct uva__flatbuffer *flat, size_t size)
{
    if (size > flat->capacity - flat->used)
        flatbuffer_grow(flat, size);
    if (flat->failed)
        return NULL;
    flat->used += size;
    return flat->block + flat->capacity - flat->used;
}

void uva__flatbuffer_align(struct uva__flatbuffer *flat, size_t align,
                           size_t size)
{
    const size_t pad = (align - (flat->used + size) % align) % align;
    uint8_t *at = pad == 0 ? NULL : uva__flatbuffer_room(flat, pad);

    if (at != NULL)
        memset(at, 0, pad);
}

void uva__flatbuffer_put(struct uva__flatbuffer *flat, int size, uint64_t value)
{
    uint8_t *at = uva__flatbuffer_room(flat, (size_t)size);

    if (at == NULL)
        return;
    switch (size) { /* each becomes a single store */
    case 8:
        uva__flatbuffer_store(at, value, 8);
        break;
    case 4:
        uva__flatbuffer_store(at, value, 4);
        break;
    case 2:
        uva__flatbuffer_store(at, value, 2);
        break;
    default:
        uva__flatbuffer_store(at, value, 1);
    }
}

static void flatbuffer_put_aligned(struct uva__flatbuffer *flat, int size,
                                   uint64_t value)
{
    uva__flatbuffer_align(flat, (size_t)size, 0);
    uva__flatbuffer_put(flat, size, value);
}

void uva__flatbuffer_put_place(struct uva__flatbuffer *flat, size_t place)
{
    uva__flatbuffer_align(flat, 4, 0);
    uva__flatbuffer_put(flat, 4, flat->used + 4 - place);
}

size_t uva__flatbuffer_end_vector(struct uva__flatbuffer *flat, size_t count)
{
    uva__flatbuffer_put(flat, 4, count);
    return flat->used;
}

size_t uva__flatbuffer_string(struct uva__flatbuffer *flat, const char *text,
                              int64_t size)
{
    const size_t length = size < 0 ? strlen(text) : (size_t)size;
    uint8_t *at;

    uva__flatbuffer_align(flat, 4, length + 1);
    at = uva__flatbuffer_room(flat, length + 1);
    if (at != NULL) {
        memcpy(at, text, length);
        at[length] = 0;
    }
    return uva__flatbuffer_end_vector(flat, length);
}

void uva__flatbuffer_begin_table(struct uva__flatbuffer *flat, int n_slots)
{
    assert(n_slots <= UVA__FLATBUFFER_SLOTS);
    memset(flat->slots, 0, sizeof(flat->slots));
    flat->n_slots = n_slots;
    flat->table = flat->used;
}

void uva__flatbuffer_set(struct uva__flatbuffer *flat, int slot, int size,
                         uint64_t value)
{
    assert(slot < flat->n_slots && flat->slots[slot] == 0);
    flatbuffer_put_aligned(flat, size, value);
    flat->slots[slot] = flat->used;
}

void uva__flatbuffer_set_place(struct uva__flatbuffer *flat, int slot,
                               size_t place)
{
    if (place == 0)
        return;
    assert(slot < flat->n_slots && flat->slots[slot] == 0);
    uva__flatbuffer_put_place(flat, place);
    flat->slots[slot] = flat->used;
}

size_t uva__flatbuffer_end_table(struct uva__flatbuffer *flat)
{
    size_t table;

    flatbuffer_put_aligned(flat, 4, 0); /* the distance to the vtable */
    table = flat->used;
    for (int i = flat->n_slots - 1; i >= 0; i--)
        uva__flatbuffer_put(flat, 2,
                            flat->slots[i] == 0 ? 0 : table - flat->slots[i]);
    uva__flatbuffer_put(flat, 2, table - flat->table);
    uva__flatbuffer_put(flat, 2, (uint64_t)(flat->n_slots + 2) * 2);
    if (!flat->failed)
        uva__flatbuffer_store(flat->block + flat->capacity - table,
                              flat->used - table, 4);
    return table;
}

void uva__flatbuffer_finish(struct uva__flatbuffer *flat, size_t root)
{
    uva__flatbuffer_align(flat, 8, 4);
    uva__flatbuffer_put_place(flat, root);
}
