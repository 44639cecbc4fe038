/* SPDX-License-Identifier: Apache-2.0 */
/* A file in memory, of which arrays borrow. */
#ifndef UVA_IO_FILE_MAP_H
#define UVA_IO_FILE_MAP_H

#include "io/shared_bytes.h"
#include "uvarrow/base.h"

struct uva__file_map;

/* Maps `size` bytes of the file, from `base` on, which may be any place in it.
 * NULL without memory, or if the file cannot be mapped. Thread: any. */
struct uva__file_map *uva__file_map_new(int fd, int64_t base, int64_t size);

/* Drops the maker's reference; each part has one of its own. NULL is allowed.
 * Thread: any. */
void uva__file_map_release(struct uva__file_map *map);

/* Copies bytes at `offset`, as many of `size` as there are. Returns how many.
 * Thread: any. */
size_t uva__file_map_copy(const struct uva__file_map *map, int64_t offset,
                          uint8_t *to, size_t size);

/* Has the system bring the pages into memory, so that no later look at them
 * waits for a disk. False if they are not in the file any more, or cannot be
 * read; true also where the system cannot be asked for that. Thread: any. */
UVA_MUST_CHECK bool uva__file_map_load(const struct uva__file_map *map,
                                       int64_t offset, size_t size);

/* Gives `size` bytes at `offset`, which are there. NULL without memory.
 * Thread: any. */
struct uva__shared_bytes *uva__file_map_part(struct uva__file_map *map,
                                             int64_t offset, size_t size);

/* How many bytes there are from `offset` on. Thread: any. */
int64_t uva__file_map_left(const struct uva__file_map *map, int64_t offset);

#endif
