/* SPDX-License-Identifier: Apache-2.0 */
/* The parallel stage, which other stages also put in front of themselves: see
 * uva__stage_make_cheap(). */
#ifndef UVA_STAGE_PARALLEL_H
#define UVA_STAGE_PARALLEL_H

#include "stage/stage.h"

extern const struct uva__stage_kind uva__parallel_kind;

#endif
