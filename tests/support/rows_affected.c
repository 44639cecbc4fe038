/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the properties of the stream, which outlive its end. */
#include "support/rows_affected.h"

#include <stdio.h>
#include <stdlib.h>

#include "uvarrow/arrow.h"

long rows_affected(const struct uva_stream *stream)
{
    const struct uva_stream_info *info = uva_stream_get_info(stream);
    struct uva_pair pair;
    char text[24];

    if (info == NULL ||
        uva_metadata_get(info->metadata, "adbc.rows_affected", &pair) != 0)
        return -1;
    (void)snprintf(text, sizeof(text), "%.*s", (int)pair.value_size,
                   pair.value);
    return atol(text);
}
