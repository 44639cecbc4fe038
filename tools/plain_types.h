/* SPDX-License-Identifier: Apache-2.0 */
/* Types that every reader of Arrow knows, also an old one. */
#ifndef UVA_TOOLS_PLAIN_TYPES_H
#define UVA_TOOLS_PLAIN_TYPES_H

#include "uvarrow/stream.h"

/* Adds a stage that turns views into texts and binaries, list views into lists,
 * and run ends into their values, also inside of others. All other columns are
 * passed on as they are; a dictionary with such values becomes its values. The
 * stream fails with EOVERFLOW where texts or lists of one batch are too long
 * for 32 bits. Returns the first error of the stream so far, or 0. Thread:
 * builder.
 */
int uva__plain_types(struct uva_stream *stream);

#endif
