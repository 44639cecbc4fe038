/* SPDX-License-Identifier: Apache-2.0 */
/* The page at "/". The build makes it of the files in tools/serve/page/
 * (cmake/embed_page.cmake). */
#ifndef UVA_SERVE_PAGE_H
#define UVA_SERVE_PAGE_H

#include <stddef.h>

extern const unsigned char uva__page[]; /* HTML, in one piece */
extern const size_t uva__page_size;     /* its bytes */
extern const char uva__page_policy[];   /* its content security policy */

#endif
