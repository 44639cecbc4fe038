/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of time of a check. Programs have the usual ones: this library's
 * suite for other implementations, and its tests, need others. */
#ifndef UVA_CHECK_CHECK_TIMES_H
#define UVA_CHECK_CHECK_TIMES_H

#include <stdint.h>

/* 0: the usual limit. */
struct uva__check_times {
    int64_t slow_call_ms;    /* a longer callback is a WARNING; usual: 1000 */
    int64_t slow_extract_ms; /* a longer extraction is a WARNING; usual: 100 */
};

#endif
