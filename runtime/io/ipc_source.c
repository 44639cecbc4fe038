/* SPDX-License-Identifier: Apache-2.0 */
/* Options. */
#include "io/ipc_source.h"

int uva__ipc_source_check(const struct uva_ipc_source *options,
                          struct uva_error *error)
{
    if (options == NULL)
        return 0;
    if (options->max_bytes < 0)
        return uva_error_set(error, EINVAL,
                             "uva_ipc_source: max_bytes is negative");
    for (size_t i = 0;
         i < sizeof(options->reserved) / sizeof(*options->reserved); i++)
        if (options->reserved[i] != NULL)
            return uva_error_set(
                error, EINVAL, "uva_ipc_source: reserved[%zu] is not NULL", i);
    return 0;
}
