/* SPDX-License-Identifier: Apache-2.0 */
/* A text that grows by doubling its room. */
#include "bytes.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int bytes_reserve(struct uva__bytes *bytes, size_t more)
{
    size_t room = bytes->room == 0 ? 64 : bytes->room;
    char *data;

    if (more >= SIZE_MAX / 4 - bytes->size)
        return ENOMEM;
    while (room < bytes->size + more + 1)
        room *= 2;
    if (room == bytes->room)
        return 0;
    data = realloc(bytes->data, room);
    if (data == NULL)
        return ENOMEM;
    bytes->data = data;
    bytes->room = room;
    return 0;
}

int uva__bytes_add(struct uva__bytes *bytes, const void *data, size_t size)
{
    const int code = bytes_reserve(bytes, size);

    if (code != 0)
        return code;
    if (size > 0)
        memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
    bytes->data[bytes->size] = '\0';
    return 0;
}

void uva__bytes_skip(struct uva__bytes *bytes, size_t size)
{
    if (size == 0)
        return;
    bytes->size -= size;
    memmove(bytes->data, bytes->data + size, bytes->size + 1);
}

const char *uva__bytes_text(const struct uva__bytes *bytes)
{
    return bytes->size > 0 ? bytes->data : "";
}

void uva__bytes_fit(struct uva__bytes *bytes)
{
    char *data =
        bytes->size == 0 ? NULL : realloc(bytes->data, bytes->size + 1);

    if (data == NULL)
        return;
    bytes->data = data;
    bytes->room = bytes->size + 1;
}

void uva__bytes_clear(struct uva__bytes *bytes, size_t keep)
{
    if (bytes->room > keep) {
        free(bytes->data);
        *bytes = (struct uva__bytes){0};
    }
    bytes->size = 0;
    if (bytes->data != NULL)
        bytes->data[0] = '\0';
}
