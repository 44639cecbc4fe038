/* SPDX-License-Identifier: Apache-2.0 */
/* Databases that the server knows more of than ADBC states. */
#ifndef UVA_SERVE_KIND_H
#define UVA_SERVE_KIND_H

enum uva__kind {
    UVA__KIND_OTHER,
    UVA__KIND_SQLITE,
    UVA__KIND_DUCKDB,
    UVA__KIND_POSTGRESQL,
};

#endif
