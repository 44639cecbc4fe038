/* SPDX-License-Identifier: Apache-2.0 */
/* The codings of an answer's text, and which one a client wants. */
#ifndef UVA_SERVE_CODING_H
#define UVA_SERVE_CODING_H

enum uva__coding {
    UVA__CODING_NONE = 0, /* "identity" */
    UVA__CODING_GZIP,
    UVA__CODING_ZSTD,
    UVA__CODINGS /* number of them */
};

/* Returns the name, as Content-Encoding has it. Thread: any, as all here. */
const char *uva__coding_name(enum uva__coding coding);

/* Picks the coding that an Accept-Encoding header likes best, of those that
 * this build has; of equal ones zstd, then gzip. NULL: none. A header that
 * refuses each of them, and the text as it is, gets that in any case. */
enum uva__coding uva__coding_accepted(const char *accept);

#endif
