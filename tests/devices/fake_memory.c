/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the fake device: its addresses are inaccessible, and its bytes are
 * elsewhere. Host memory is ordinary memory. */
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "devices/fake_control.h"
#include "devices/fake_gpu.h"

struct block {
    struct block *next;
    char *address, *bytes; /* equal for host memory */
    size_t size;
    bool unordered; /* its stream has not come to its allocation */
};

enum { PAUSE_NS = 200000, AFTER_EXIT_NS = 5000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks;

static char *pages_new(size_t size, int protection)
{
    void *pages =
        mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert(pages != MAP_FAILED);
    return pages;
}

static void pause_for(long ns)
{
    (void)nanosleep(&(struct timespec){0, ns}, NULL);
}

/* Unmaps all pinned memory, and leaves threads the time to use it. The blocks
 * are lost, as a thread may be looking at them. */
static void memory_exit(void)
{
    static bool done;

    if (done || !fake_is(FAKE_EXITS))
        return;
    done = true;
    fake_exit();
    fake_stop();
    pthread_mutex_lock(&lock);
    for (struct block *block = blocks; block != NULL; block = block->next)
        if (block->address == block->bytes)
            (void)munmap(block->bytes, block->size);
    pthread_mutex_unlock(&lock);
    pause_for(AFTER_EXIT_NS);
}

__attribute__((destructor)) static void library_exit(void)
{
    memory_exit();
}

static void exit_watch(void)
{
    static atomic_flag watched = ATOMIC_FLAG_INIT;

    if (fake_is(FAKE_EXITS) && !atomic_flag_test_and_set(&watched))
        (void)atexit(memory_exit);
}

int fake_memory_make(void **out, size_t size, bool of_host)
{
    struct block *block = calloc(1, sizeof(*block));

    if (size == 0 || size > (size_t)1 << 40) {
        free(block);
        return size == 0 ? FAKE_INVALID_VALUE : FAKE_OUT_OF_MEMORY;
    }
    assert(block != NULL);
    block->size = size;
    block->bytes = pages_new(size, PROT_READ | PROT_WRITE);
    block->address = of_host ? block->bytes : pages_new(size, PROT_NONE);
    pthread_mutex_lock(&lock);
    block->next = blocks;
    blocks = block;
    pthread_mutex_unlock(&lock);
    fake_count(FAKE_BLOCKS, 1);
    if (of_host)
        exit_watch();
    *out = block->address;
    return 0;
}

static struct block *block_of_locked(const void *address)
{
    const char *at = address;
    struct block *block = blocks;

    while (block != NULL &&
           (at < block->address || at >= block->address + block->size))
        block = block->next;
    return block;
}

void fake_memory_order(void *memory, bool usable)
{
    struct block *block;

    pthread_mutex_lock(&lock);
    block = block_of_locked(memory);
    if (block != NULL)
        block->unordered = !usable;
    pthread_mutex_unlock(&lock);
}

bool fake_memory_is_usable(const void *address)
{
    const struct block *block;
    bool usable;

    pthread_mutex_lock(&lock);
    block = block_of_locked(address);
    usable = block == NULL || !block->unordered;
    pthread_mutex_unlock(&lock);
    return usable;
}

int fake_memory_drop(void *memory)
{
    struct block *block, **link = &blocks;

    pthread_mutex_lock(&lock);
    while (*link != NULL && (*link)->address != memory)
        link = &(*link)->next;
    block = *link;
    if (block != NULL)
        *link = block->next;
    pthread_mutex_unlock(&lock);
    if (block == NULL)
        return FAKE_INVALID_VALUE;
    (void)munmap(block->bytes, block->size);
    if (block->address != block->bytes)
        (void)munmap(block->address, block->size);
    free(block);
    fake_count(FAKE_BLOCKS, -1);
    return 0;
}

int fake_memory_new(void **out, size_t size, bool of_host)
{
    fake_hold(FAKE_HOLD_ALLOC);
    return fake_memory_make(out, size, of_host);
}

int fake_memory_free(void *memory)
{
    fake_hold(FAKE_HOLD_FREE);
    if (fake_is(FAKE_EXITS) && fake_memory_bytes(memory) == memory)
        pause_for(PAUSE_NS);
    return fake_memory_drop(memory);
}

bool fake_memory_is_known(const void *address)
{
    const char *at = address;
    bool known = false;

    pthread_mutex_lock(&lock);
    for (const struct block *block = blocks; block != NULL; block = block->next)
        known = known ||
                (at >= block->address && at < block->address + block->size);
    pthread_mutex_unlock(&lock);
    return known;
}

void *fake_memory_bytes(const void *address)
{
    char *bytes = (char *)(uintptr_t)address;

    pthread_mutex_lock(&lock);
    for (const struct block *block = blocks; block != NULL; block = block->next)
        if (bytes >= block->address && bytes < block->address + block->size) {
            bytes = block->bytes + (bytes - block->address);
            break;
        }
    pthread_mutex_unlock(&lock);
    return bytes;
}
