/* SPDX-License-Identifier: Apache-2.0 */
/* The inline functions of arrow.h once more, as functions of the library, for
 * languages that cannot compile C: an inline function that is extern is also
 * defined. */
#define UVA_INLINE extern inline UVA_API

#include "uvarrow/arrow.h"
