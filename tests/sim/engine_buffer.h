/* SPDX-License-Identifier: Apache-2.0 */
/* What a fiber has stored and nobody else sees yet: a queue of stores, first in
 * first out, as between a core of x86 and its cache. */
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

/* All zeroes is empty. */
struct sim_buffer {
    int count;
    struct sim_stored stores[SIM_BUFFER_ROOM]; /* oldest first */
};

/* What memory holds: a value of 1, 2, 4 or 8 bytes. */
uint64_t sim_memory_read(const void *word, size_t size);
void sim_memory_write(void *word, size_t size, uint64_t value);

/* What the owner of the buffer sees there: its own last store, if it waits
 * here. */
uint64_t sim_buffer_read(const struct sim_buffer *buffer, const void *word,
                         size_t size);

/* Puts a store behind the others; there must be room. */
void sim_buffer_add(struct sim_buffer *buffer, void *word, size_t size,
                    uint64_t value);

/* Lets all see the oldest store; gives which it was. */
struct sim_stored sim_buffer_drain(struct sim_buffer *buffer);

#endif
