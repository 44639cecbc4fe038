/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks lie one after the other, each between a head and a tail. A block that
 * was freed is filled with a pattern, which crashes code that follows a pointer
 * in it, and which must be unchanged at the end. */
#include "sim/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine.h"

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif
#ifdef ARENA_ASAN
void __asan_poison_memory_region(void const volatile *at, size_t size);
void __asan_unpoison_memory_region(void const volatile *at, size_t size);
#define ARENA_HIDE(at, size) __asan_poison_memory_region(at, size)
#define ARENA_SHOW(at, size) __asan_unpoison_memory_region(at, size)
#else
#define ARENA_HIDE(at, size) ((void)0)
#define ARENA_SHOW(at, size) ((void)0)
#endif

#define ARENA_SIZE ((size_t)64 << 20)
#define ARENA_LIVE UINT64_C(0x6c69766562756c6c)
#define ARENA_DEAD UINT64_C(0x6465616462756c6c)

enum { ARENA_TAIL = 16, ARENA_NEW = 0xA5, ARENA_OLD = 0xDD };

/* Lies directly in front of the block. */
struct arena_head {
    struct arena_head *before; /* the block allocated before */
    uint64_t mark;
    size_t size;
    const char *what; /* static; NULL: allocated by the library */
    int64_t number;   /* among the library's blocks */
    void *pad[3];     /* pads the head to 64 bytes */
};

static struct {
    char *base;
    size_t used;
    struct arena_head *last;
    int64_t requested, fail_at;
} arena;

void arena_begin(void)
{
    if (arena.base == NULL)
        arena.base = aligned_alloc(4096, ARENA_SIZE);
    if (arena.base == NULL)
        abort();
    ARENA_SHOW(arena.base, arena.used);
    arena.used = 0;
    arena.last = NULL;
    arena.requested = arena.fail_at = 0;
}

void arena_fail_at(int64_t n)
{
    arena.fail_at = n;
}

bool arena_may_fail(void)
{
    return arena.fail_at != 0;
}

bool arena_has_failed(void)
{
    return arena.fail_at != 0 && arena.requested >= arena.fail_at;
}

int64_t arena_was_requested(void)
{
    return arena.requested;
}

/* ---- blocks ------------------------------------------------------------- */

static struct arena_head *arena_take(size_t size, size_t align)
{
    const size_t head = sizeof(struct arena_head);
    struct arena_head *block;
    size_t at = arena.used + head;

    if (align < 64)
        align = 64;
    at = (at + align - 1) / align * align;
    if (size > ARENA_SIZE || at + size + ARENA_TAIL > ARENA_SIZE)
        sim_fail("the schedule has used up its memory");
    block = (struct arena_head *)(void *)(arena.base + at - head);
    *block = (struct arena_head){
        .before = arena.last, .mark = ARENA_LIVE, .size = size};
    arena.last = block;
    arena.used = at + size + ARENA_TAIL;
    memset(arena.base + at + size, ARENA_NEW, ARENA_TAIL);
    return block;
}

static const char *head_name(const struct arena_head *head)
{
    return head->what != NULL ? head->what : "the library";
}

static void head_check_tail(const struct arena_head *head)
{
    const unsigned char *tail = (const unsigned char *)(head + 1) + head->size;

    for (int i = 0; i < ARENA_TAIL; i++)
        if (tail[i] != ARENA_NEW)
            sim_fail("a block of %zu bytes (%s, %lld) was written beyond its "
                     "end",
                     head->size, head_name(head), (long long)head->number);
}

/* Flushes first: the fiber's own stores happened before the free. */
static void arena_give_back(struct arena_head *head)
{
    sim_flush();
    if (head->mark == ARENA_DEAD)
        sim_fail("a block of %zu bytes (%s, %lld) came back twice", head->size,
                 head_name(head), (long long)head->number);
    if (head->mark != ARENA_LIVE)
        sim_fail("a block came back that is none");
    head_check_tail(head);
    head->mark = ARENA_DEAD;
    memset(head + 1, ARENA_OLD, head->size);
    ARENA_HIDE(head + 1, head->size);
}

static void *library_alloc(void *ctx, size_t size, size_t align)
{
    struct arena_head *head;

    (void)ctx;
    if (size == 0 || align == 0 || align > 4096 || (align & (align - 1)) != 0)
        sim_fail("asked for an impossible block");
    if (++arena.requested == arena.fail_at)
        return NULL;
    head = arena_take(size, align);
    head->number = arena.requested;
    memset(head + 1, ARENA_NEW, size);
    return head + 1;
}

static void library_dealloc(void *ctx, void *block, size_t size)
{
    struct arena_head *head = (struct arena_head *)block - 1;

    (void)ctx;
    if (head->mark == ARENA_LIVE && head->size != size)
        sim_fail("a block of %zu bytes came back as one of %zu", head->size,
                 size);
    arena_give_back(head);
}

struct uva_allocator arena_allocator(void)
{
    return (struct uva_allocator){.alloc = library_alloc,
                                  .dealloc = library_dealloc};
}

void *arena_new(size_t size, const char *what)
{
    struct arena_head *head = arena_take(size, 64);

    head->what = what;
    return memset(head + 1, 0, size);
}

void arena_free(void *block)
{
    if (block != NULL)
        arena_give_back((struct arena_head *)block - 1);
}

void arena_free_ctx(void *ctx)
{
    arena_free(ctx);
}

/* ---- replacements of the C library's functions -------------------------- */

/* Allocations of the library outside its allocator are tracked here, too. */
static void *plain_new(size_t size, size_t align)
{
    if (size == 0)
        sim_fail("asked the C library for nothing");
    return library_alloc(NULL, size, align);
}

void *sim_malloc(size_t size)
{
    return plain_new(size, 64);
}

void *sim_calloc(size_t count, size_t size)
{
    void *block = plain_new(count * size, 64);

    return block != NULL ? memset(block, 0, count * size) : NULL;
}

void *sim_aligned_alloc(size_t align, size_t size)
{
    return plain_new(size, align);
}

char *sim_strdup(const char *text)
{
    char *copy = plain_new(strlen(text) + 1, 64);

    return copy != NULL ? strcpy(copy, text) : NULL;
}

/* Moves each block: whoever keeps the old address is found. */
void *sim_realloc(void *block, size_t size)
{
    void *copy = plain_new(size, 64);
    size_t old;

    if (copy == NULL || block == NULL)
        return copy;
    old = ((const struct arena_head *)block - 1)->size;
    memcpy(copy, block, old < size ? old : size);
    arena_free(block);
    return copy;
}

void sim_free(void *block)
{
    arena_free(block);
}

/* ---- the end ------------------------------------------------------------ */

static bool block_is_spoilt(const struct arena_head *head)
{
    const unsigned char *at = (const unsigned char *)(head + 1);

    ARENA_SHOW(at, head->size);
    return head->size > 0 &&
           (at[0] != ARENA_OLD || memcmp(at, at + 1, head->size - 1) != 0);
}

void arena_check(void)
{
    const struct arena_head *head;

    for (head = arena.last; head != NULL; head = head->before) {
        if (head->mark == ARENA_LIVE)
            sim_fail("a block of %zu bytes never came back: %s, %lld",
                     head->size, head_name(head), (long long)head->number);
        head_check_tail(head);
        if (block_is_spoilt(head))
            sim_fail("a block of %zu bytes (%s, %lld) was written after it "
                     "came back",
                     head->size, head_name(head), (long long)head->number);
    }
}
