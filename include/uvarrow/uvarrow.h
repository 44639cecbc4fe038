/* SPDX-License-Identifier: Apache-2.0 */
/* All of uvarrow in one include. */
#ifndef UVARROW_UVARROW_H
#define UVARROW_UVARROW_H

#include "uvarrow/adapters.h"
#include "uvarrow/arrow.h"
#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"
#include "uvarrow/check.h"
#include "uvarrow/operators.h"
#include "uvarrow/runtime.h"
#include "uvarrow/stream.h"

#endif
