/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests of ADBC drivers: files in TOML that name a driver's library. */
#ifndef UVA_ADBC_MANIFEST_H
#define UVA_ADBC_MANIFEST_H

#include "adbc/failure.h"

enum { UVA__ADBC_PATH = 4096, UVA__ADBC_NAME = 256 };

/* The used part of a manifest. */
struct uva__adbc_manifest {
    char library[UVA__ADBC_PATH];    /* for this platform */
    char entrypoint[UVA__ADBC_NAME]; /* "": not named */
};

/* Reads the manifest in the file `path`. 0; ENOENT if it names no library for
 * this platform; EINVAL if it is malformed; or why it cannot be read. Thread:
 * any. */
int uva__adbc_manifest_read(const char *path, struct uva__adbc_manifest *out,
                            struct uva__adbc_failure *failure);

#endif
