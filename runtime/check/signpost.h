/* SPDX-License-Identifier: Apache-2.0 */
/* A place that leads to its object and holds a metadata block, for a
 * `private_data` that must stand for both: the document prints a producer
 * object whose additional_metadata lies there (G-03). A place is odd, which no
 * pointer to a struct is, and its low bits are a sum of the others: what is
 * none of ours is told without touching memory. */
#ifndef UVA_CHECK_SIGNPOST_H
#define UVA_CHECK_SIGNPOST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { UVA__SIGNPOST_SIZE = 64 }; /* and what it is a multiple of */

#define UVA__SIGNPOST_MAGIC UINT64_C(0x7561736967706f73)

/* Zeroes behind its head: an empty block, at whichever place. A longer block
 * runs on behind it. */
struct uva__signpost {
    uint64_t magic;
    void *object; /* borrows */
    char room[UVA__SIGNPOST_SIZE - sizeof(uint64_t) - sizeof(void *)];
};

_Static_assert(sizeof(struct uva__signpost) == UVA__SIGNPOST_SIZE,
               "a post fills its line");

/* Where in its line the place of a post is: odd, behind the head, with room for
 * four bytes up to the end. */
static inline uintptr_t uva__signpost_offset(uintptr_t line)
{
    const uintptr_t head = offsetof(struct uva__signpost, room);
    const uintptr_t places = (UVA__SIGNPOST_SIZE - head - 4) / 2;
    const uint64_t sum =
        (uint64_t)(line / UVA__SIGNPOST_SIZE) * UINT64_C(0x9e3779b97f4a7c15);

    return head + 1 + 2 * (uintptr_t)((sum >> 40) % places);
}

/* Where its place is. Thread: any. */
static inline char *uva__signpost_place(struct uva__signpost *post)
{
    return (char *)post + uva__signpost_offset((uintptr_t)post);
}

/* Has it lead to `object` (borrowed); gives its place. The post is all zeroes
 * before. Thread: any one. */
static inline char *uva__signpost_raise(struct uva__signpost *post,
                                        void *object)
{
    post->magic = UVA__SIGNPOST_MAGIC;
    post->object = object;
    return uva__signpost_place(post);
}

/* The object that a place leads to; NULL if it is no place. Thread: any. */
static inline void *uva__signpost_read(const void *place)
{
    const uintptr_t low = (uintptr_t)place % UVA__SIGNPOST_SIZE;
    const uintptr_t line = (uintptr_t)place - low;
    struct uva__signpost post;

    if (place == NULL || low != uva__signpost_offset(line))
        return NULL;
    memcpy(&post, (const void *)line, offsetof(struct uva__signpost, room));
    return post.magic == UVA__SIGNPOST_MAGIC ? post.object : NULL;
}

#endif
