/* SPDX-License-Identifier: Apache-2.0 */
/* The head of an answer, and the body of an error. */
#ifndef UVA_SERVE_RESPONSE_H
#define UVA_SERVE_RESPONSE_H

#include <stdbool.h>
#include <stdint.h>

#include "bytes.h"

/* The head of an answer. */
struct uva__response {
    int status;         /* "200" */
    const char *type;   /* of the content; may be NULL */
    int64_t length;     /* of the content; -1: chunks, or up to the close */
    bool is_chunked;    /* with -1 */
    bool keeps_alive;   /* another request may follow */
    int64_t idle_s;     /* the time for that, in seconds */
    const char *origin; /* other site that may read it; may be NULL */
    const char *more;   /* further lines, each with its CRLF; may be NULL */
};

/* Appends the head. Returns 0 or ENOMEM. Thread: loop. */
UVA_MUST_CHECK int uva__response_head(const struct uva__response *response,
                                      struct uva__bytes *out);

/* Appends {"error": {"status": ..., "message": ...}} and further members of
 * "error", if `members` is not NULL: key, value, ..., NULL. Returns 0 or
 * ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__response_error(int status, const char *message,
                                       const char *const *members,
                                       struct uva__bytes *out);

/* Appends a text as a string of JSON. Bytes that are not UTF-8 become U+FFFD.
 * Returns 0 or ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__response_quote(const char *text,
                                       struct uva__bytes *out);

#endif
