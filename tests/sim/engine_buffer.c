/* SPDX-License-Identifier: Apache-2.0 */
/* A short array: a store is removed from the front, and the rest moves up. */
#include "sim/engine_buffer.h"

#include <assert.h>
#include <string.h>

uint64_t sim_memory_read(const void *word, size_t size)
{
    uint64_t wide;
    uint32_t half;
    uint16_t small;

    switch (size) {
    case 8:
        memcpy(&wide, word, sizeof(wide));
        return wide;
    case 4:
        memcpy(&half, word, sizeof(half));
        return half;
    case 2:
        memcpy(&small, word, sizeof(small));
        return small;
    default:
        assert(size == 1);
        return *(const unsigned char *)word;
    }
}

void sim_memory_write(void *word, size_t size, uint64_t value)
{
    const uint32_t half = (uint32_t)value;
    const uint16_t small = (uint16_t)value;
    const unsigned char byte = (unsigned char)value;

    if (size == 8)
        memcpy(word, &value, sizeof(value));
    else if (size == 4)
        memcpy(word, &half, sizeof(half));
    else if (size == 2)
        memcpy(word, &small, sizeof(small));
    else
        memcpy(word, &byte, sizeof(byte));
}

uint64_t sim_buffer_read(const struct sim_buffer *buffer, const void *word,
                         size_t size)
{
    for (int i = buffer->count - 1; i >= 0; i--) {
        if (buffer->stores[i].word == word) {
            assert(buffer->stores[i].size == size);
            return buffer->stores[i].value;
        }
    }
    return sim_memory_read(word, size);
}

void sim_buffer_add(struct sim_buffer *buffer, void *word, size_t size,
                    uint64_t value)
{
    assert(buffer->count < SIM_BUFFER_ROOM);
    buffer->stores[buffer->count++] =
        (struct sim_stored){.word = word, .size = size, .value = value};
}

struct sim_stored sim_buffer_drain(struct sim_buffer *buffer)
{
    const struct sim_stored oldest = buffer->stores[0];

    assert(buffer->count > 0);
    sim_memory_write(oldest.word, oldest.size, oldest.value);
    buffer->count--;
    memmove(buffer->stores, buffer->stores + 1,
            (size_t)buffer->count * sizeof(oldest));
    return oldest;
}
