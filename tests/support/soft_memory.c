/* SPDX-License-Identifier: Apache-2.0 */
/* Every block is mapped twice: once without access, and once with access. */
#define _GNU_SOURCE
#include "support/soft_memory.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct block {
    struct block *before;
    unsigned char *closed, *open;
    size_t size, mapped;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks;
static int live;

static void *block_map(int fd, size_t size, int rights)
{
    void *at = mmap(NULL, size, rights, MAP_SHARED, fd, 0);

    if (at == MAP_FAILED)
        abort();
    return at;
}

void *soft_memory_new(size_t size)
{
    struct block *block = malloc(sizeof(*block));
    int fd;

    if (block == NULL)
        return NULL;
    fd = memfd_create("soft", 0);
    if (fd < 0)
        abort();
    block->size = size;
    block->mapped = (size + 4095) / 4096 * 4096;
    if (ftruncate(fd, (off_t)block->mapped) != 0)
        abort();
    block->closed = block_map(fd, block->mapped, PROT_NONE);
    block->open = block_map(fd, block->mapped, PROT_READ | PROT_WRITE);
    (void)close(fd);
    pthread_mutex_lock(&lock);
    block->before = blocks;
    blocks = block;
    live++;
    pthread_mutex_unlock(&lock);
    return block->closed;
}

/* Returns the link to the block that `memory` points into; the link is NULL if
 * there is no such block. */
static struct block **block_find(const void *memory)
{
    const uintptr_t at = (uintptr_t)memory;
    struct block **link = &blocks;

    while (*link != NULL &&
           (at < (uintptr_t)(*link)->closed ||
            at >= (uintptr_t)(*link)->closed + (*link)->mapped))
        link = &(*link)->before;
    return link;
}

void soft_memory_free(void *memory)
{
    struct block **link, *block;

    pthread_mutex_lock(&lock);
    link = block_find(memory);
    block = *link;
    if (block == NULL || block->closed != memory)
        abort();
    *link = block->before;
    live--;
    pthread_mutex_unlock(&lock);
    (void)munmap(block->closed, block->mapped);
    (void)munmap(block->open, block->mapped);
    free(block);
}

void *soft_memory_at(const void *memory, size_t size)
{
    struct block *block;
    void *at = (void *)(uintptr_t)memory;

    pthread_mutex_lock(&lock);
    block = *block_find(memory);
    if (block != NULL) {
        const size_t skip = (size_t)((const unsigned char *)at - block->closed);
        if (skip + size > block->size)
            abort();
        at = block->open + skip;
    }
    pthread_mutex_unlock(&lock);
    return at;
}

int soft_memory_live(void)
{
    int now;

    pthread_mutex_lock(&lock);
    now = live;
    pthread_mutex_unlock(&lock);
    return now;
}
