/* SPDX-License-Identifier: Apache-2.0 */
/* What the library itself asks of the parts of an encoded stream. */
#ifndef UVA_IO_ENCODE_STAGE_H
#define UVA_IO_ENCODE_STAGE_H

#include <stdbool.h>

#include "uvarrow/arrow_abi.h"

/* Returns whether the part that `array` carries is one of a batch, and not the
 * end of the output or a line of names alone. Thread: any. */
bool uva__part_is_batch(const struct ArrowDeviceArray *array);

#endif
