/* SPDX-License-Identifier: Apache-2.0 */
/* Each block lies between a head that holds its size and a tail that must not
 * change. */
#include "support/faulty_allocator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"

#define FAULTY_ALIVE UINT64_C(0x6c69766562756c6c)
#define FAULTY_DEAD  UINT64_C(0x6465616462756c6c)
#define FAULTY_TAIL  16

/* Lies directly before the block. */
struct faulty_head {
    uint64_t mark; /* allocated or freed */
    size_t size;   /* as requested */
    void *base;    /* owns: the C library's block */
};

static void faulty_fail(const char *what)
{
    (void)fprintf(stderr, "faulty_allocator: %s\n", what);
    abort();
}

static struct faulty_head *faulty_head_of(void *block)
{
    return (struct faulty_head *)block - 1;
}

static void *faulty_alloc(void *ctx, size_t size, size_t align)
{
    struct faulty_allocator *faulty = ctx;
    const size_t gap = align > 64 ? align : 64;
    char *base, *block;

    if (size == 0 || align == 0 || align > 4096 || (align & (align - 1)) != 0)
        faulty_fail("asked for an impossible block");
    if (atomic_fetch_add(&faulty->asked, 1) + 1 == faulty->fail_at ||
        size > SIZE_MAX / 2)
        return NULL;
    base = uva__platform_alloc(gap, gap + size + FAULTY_TAIL);
    if (base == NULL)
        return NULL;
    block = base + gap;
    *faulty_head_of(block) = (struct faulty_head){FAULTY_ALIVE, size, base};
    memset(block, 0xA5, size + FAULTY_TAIL);
    atomic_fetch_add(&faulty->live, 1);
    atomic_fetch_add(&faulty->live_bytes, (long)size);
    return block;
}

static void faulty_check(void *block, size_t size)
{
    const struct faulty_head *head = faulty_head_of(block);
    const unsigned char *tail = (unsigned char *)block + size;

    if (head->mark == FAULTY_DEAD)
        faulty_fail("a block came back twice");
    if (head->mark != FAULTY_ALIVE)
        faulty_fail("a block came back that is none");
    if (head->size != size)
        faulty_fail("a block came back with another size");
    for (int i = 0; i < FAULTY_TAIL; i++)
        if (tail[i] != 0xA5)
            faulty_fail("a block was written beyond its end");
}

static void faulty_dealloc(void *ctx, void *block, size_t size)
{
    struct faulty_allocator *faulty = ctx;
    void *base = faulty_head_of(block)->base;

    faulty_check(block, size);
    faulty_head_of(block)->mark = FAULTY_DEAD;
    memset(block, 0xDD, size);
    uva__platform_free(base);
    atomic_fetch_sub(&faulty->live_bytes, (long)size);
    atomic_fetch_sub(&faulty->live, 1); /* last: a test may wait for it */
}

void faulty_allocator_init(struct faulty_allocator *faulty, long fail_at)
{
    atomic_init(&faulty->fail_at, fail_at);
    atomic_init(&faulty->asked, 0);
    atomic_init(&faulty->live, 0);
    atomic_init(&faulty->live_bytes, 0);
}

struct uva_allocator faulty_allocator_table(struct faulty_allocator *faulty)
{
    return (struct uva_allocator){
        .alloc = faulty_alloc, .dealloc = faulty_dealloc, .ctx = faulty};
}

long faulty_allocator_live(const struct faulty_allocator *faulty)
{
    return atomic_load(&faulty->live);
}

long faulty_allocator_live_bytes(const struct faulty_allocator *faulty)
{
    return atomic_load(&faulty->live_bytes);
}

long faulty_allocator_asked(const struct faulty_allocator *faulty)
{
    return atomic_load(&faulty->asked);
}

bool faulty_allocator_has_failed(const struct faulty_allocator *faulty)
{
    const long fail_at = atomic_load(&faulty->fail_at);

    return fail_at != 0 && atomic_load(&faulty->asked) >= fail_at;
}
