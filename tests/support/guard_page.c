/* SPDX-License-Identifier: Apache-2.0 */
/* One mapping of two parts: pages for the bytes, then a page without access. */
#define _DEFAULT_SOURCE
#include "support/guard_page.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t guard_page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Returns the size of the pages that hold `size` bytes. */
static size_t guard_page_room(size_t size)
{
    const size_t page = guard_page_size();

    return (size + page - 1) / page * page;
}

char *guard_page_copy(const void *bytes, size_t size)
{
    const size_t room = guard_page_room(size), page = guard_page_size();
    char *base = mmap(NULL, room + page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (base == MAP_FAILED || mprotect(base + room, page, PROT_NONE) != 0)
        abort();
    return memcpy(base + room - size, bytes, size);
}

void guard_page_free(char *copy, size_t size)
{
    const size_t room = guard_page_room(size);

    if (munmap(copy + size - room, room + guard_page_size()) != 0)
        abort();
}
