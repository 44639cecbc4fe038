/* SPDX-License-Identifier: Apache-2.0 */
/* How many rows a query has changed, as the metadata of its stream states. */
#ifndef UVA_SUPPORT_ROWS_AFFECTED_H
#define UVA_SUPPORT_ROWS_AFFECTED_H

#include "uvarrow/stream.h"

/* Returns -1 if it states no number. Thread: loop. */
long rows_affected(const struct uva_stream *stream);

#endif
