/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `uvarrow timeline`, without its events. The build makes it of the
 * files in tools/timeline/ (cmake/embed_page.cmake). */
#ifndef UVA_TOOLS_TIMELINE_PAGE_H
#define UVA_TOOLS_TIMELINE_PAGE_H

#include <stddef.h>

/* The page before the array of events, and after it. */
extern const unsigned char uva__timeline_head[], uva__timeline_tail[];
extern const size_t uva__timeline_head_size, uva__timeline_tail_size;

#endif
