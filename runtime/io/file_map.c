/* SPDX-License-Identifier: Apache-2.0 */
/* One mapping, which is kept as long as any part of it. The maker has to know
 * that no one shortens the file: a look at a page that has gone is SIGBUS. */
#include "io/file_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct uva__file_map {
    atomic_int users;     /* the maker, and parts */
    void *pages;          /* owns */
    size_t mapped;        /* bytes in these */
    const uint8_t *bytes; /* the first one that was asked for */
    int64_t size;         /* bytes from there on */
};

/* A part. */
struct map_part {
    struct uva__shared_bytes shared; /* first */
    struct uva__file_map *map;       /* counts */
};

static int64_t map_page(void)
{
    return sysconf(_SC_PAGESIZE);
}

struct uva__file_map *uva__file_map_new(int fd, int64_t base, int64_t size)
{
    const int64_t front = base % map_page();
    struct uva__file_map *map;
    void *pages;

    if (size <= 0 || (uint64_t)size > SIZE_MAX - (uint64_t)front)
        return NULL;
    map = malloc(sizeof(*map));
    if (map == NULL)
        return NULL;
    pages = mmap(NULL, (size_t)(front + size), PROT_READ, MAP_SHARED, fd,
                 base - front);
    if (pages == MAP_FAILED) {
        free(map);
        return NULL;
    }
    atomic_init(&map->users, 1);
    map->pages = pages;
    map->mapped = (size_t)(front + size);
    map->bytes = (uint8_t *)pages + front;
    map->size = size;
    return map;
}

void uva__file_map_release(struct uva__file_map *map)
{
    if (map == NULL ||
        atomic_fetch_sub_explicit(&map->users, 1, memory_order_acq_rel) != 1)
        return;
    (void)munmap(map->pages, map->mapped);
    free(map);
}

int64_t uva__file_map_left(const struct uva__file_map *map, int64_t offset)
{
    return offset < map->size ? map->size - offset : 0;
}

size_t uva__file_map_copy(const struct uva__file_map *map, int64_t offset,
                          uint8_t *to, size_t size)
{
    const int64_t left = uva__file_map_left(map, offset);

    if ((uint64_t)left < size)
        size = (size_t)left;
    if (size > 0)
        memcpy(to, map->bytes + offset, size);
    return size;
}

bool uva__file_map_load(const struct uva__file_map *map, int64_t offset,
                        size_t size)
{
#ifdef MADV_POPULATE_READ
    const size_t at = (size_t)(map->bytes + offset - (uint8_t *)map->pages);
    const size_t front = at % (size_t)map_page();

    return madvise((uint8_t *)map->pages + (at - front), front + size,
                   MADV_POPULATE_READ) == 0 ||
           errno != EFAULT;
#else
    (void)map;
    (void)offset;
    (void)size;
    return true;
#endif
}

static void map_part_end(struct uva__shared_bytes *shared)
{
    struct map_part *part = (struct map_part *)shared;

    uva__file_map_release(part->map);
    free(part);
}

struct uva__shared_bytes *uva__file_map_part(struct uva__file_map *map,
                                             int64_t offset, size_t size)
{
    struct map_part *part = malloc(sizeof(*part));

    if (part == NULL)
        return NULL;
    atomic_init(&part->shared.users, 1);
    part->shared.size = size;
    part->shared.bytes = (uint8_t *)(uintptr_t)(map->bytes + offset);
    part->shared.end = map_part_end;
    part->map = map;
    (void)atomic_fetch_add_explicit(&map->users, 1, memory_order_relaxed);
    return &part->shared;
}
