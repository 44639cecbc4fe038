/* SPDX-License-Identifier: Apache-2.0 */
/* The check of the reserved members of options. */
#ifndef UVA_IO_RESERVED_H
#define UVA_IO_RESERVED_H

#include <errno.h>
#include <stddef.h>

#include "uvarrow/base.h"

/* Returns 0 if all `count` are NULL; EINVAL, and a text that begins with the
 * struct `name`. Thread: any. */
static inline int uva__reserved_check(const char *name, void *const *reserved,
                                      size_t count, struct uva_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (reserved[i] != NULL)
            return uva_error_set(error, EINVAL, "%s: reserved[%zu] is not NULL",
                                 name, i);
    return 0;
}

#endif
