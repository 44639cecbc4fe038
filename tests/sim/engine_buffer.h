/* SPDX-License-Identifier: Apache-2.0 */
/* Stores of a fiber that other fibers cannot see so far: a first-in, first-out
 * queue, like that between an x86 core and its cache. */
#ifndef SIM_ENGINE_BUFFER_H
#define SIM_ENGINE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIM_BUFFER_ROOM = 8 };

struct sim_stored {
    void *word; /* borrows */
    size_t size;
    uint64_t value;
};

/* All zeroes is an empty buffer. */
struct sim_buffer {
    int count;
    struct sim_stored stores[SIM_BUFFER_ROOM]; /* oldest first */
};

/* Access memory: a value of 1, 2, 4 or 8 bytes. */
uint64_t sim_memory_read(const void *word, size_t size);
void sim_memory_write(void *word, size_t size, uint64_t value);

/* Returns the value that the buffer's owner sees: its latest buffered store, or
 * memory. */
uint64_t sim_buffer_read(const struct sim_buffer *buffer, const void *word,
                         size_t size);

/* Appends a store; there must be room. */
void sim_buffer_add(struct sim_buffer *buffer, void *word, size_t size,
                    uint64_t value);

/* Makes the oldest store visible to all; returns it. */
struct sim_stored sim_buffer_drain(struct sim_buffer *buffer);

#endif
