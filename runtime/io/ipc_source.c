/* SPDX-License-Identifier: Apache-2.0 */
/* Options, and the end of the input. */
#include "io/ipc_source.h"

#include <stdio.h>

#include "io/reserved.h"
#include "uvarrow/runtime.h"

int uva__ipc_source_check(const struct uva_ipc_source *options,
                          struct uva_error *error)
{
    if (options == NULL)
        return 0;
    if (options->max_bytes < 0)
        return uva_error_set(error, EINVAL,
                             "uva_ipc_source: max_bytes is negative");
    return uva__reserved_check("uva_ipc_source", options->reserved, 4, error);
}

int uva__ipc_source_end(struct uva_runtime *runtime,
                        const struct uva__ipc_framer *framer,
                        bool need_end_mark, struct uva_error *error)
{
    struct uva_error unmarked = {0};
    char line[sizeof(unmarked.message) + 32];

    if (need_end_mark || framer->is_file || !uva__ipc_framer_is_between(framer))
        return uva__ipc_framer_end(framer, error);
    (void)!uva__ipc_framer_end(framer, &unmarked);
    (void)snprintf(line, sizeof(line), "%s: rows may be missing",
                   unmarked.message);
    uva_runtime_log(runtime, UVA_LOG_WARN, NULL, line);
    return 0;
}
