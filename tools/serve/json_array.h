/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as one array of JSON, for programs that read no lines: the encoder's
 * lines, with a bracket in front of the first, and commas between them. */
#ifndef UVA_SERVE_JSON_ARRAY_H
#define UVA_SERVE_JSON_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "transport.h"
#include "uvarrow/io.h"

/* Makes the next part of the array of lines of JSON, a copy, which the caller
 * owns through `out->release`. Releases `lines` in any case. Returns its bytes;
 * -ENOMEM. Thread: any, as all here. */
UVA_MUST_CHECK int64_t uva__json_array_next(struct uva_part *lines,
                                            bool is_first,
                                            struct uva__transport_part *out);

/* Gives the last part, which is static. Returns its bytes. */
int64_t uva__json_array_last(bool is_empty, struct uva__transport_part *out);

#endif
