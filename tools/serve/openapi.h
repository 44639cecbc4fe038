/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenAPI description of the server's paths. The build makes it of
 * openapi.json (cmake/embed_text.cmake). */
#ifndef UVA_SERVE_OPENAPI_H
#define UVA_SERVE_OPENAPI_H

#include <stddef.h>

extern const unsigned char uva__openapi[]; /* JSON */
extern const size_t uva__openapi_size;     /* its bytes */

#endif
