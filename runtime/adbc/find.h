/* SPDX-License-Identifier: Apache-2.0 */
/* Where a driver's library is, and the possible names of its entry point. */
#ifndef UVA_ADBC_FIND_H
#define UVA_ADBC_FIND_H

#include "adbc/manifest.h"

/* A library that was loaded. */
struct uva__adbc_found {
    void *library;                   /* never unloaded */
    char name[UVA__ADBC_PATH];       /* for texts, and to guess from */
    char entrypoint[UVA__ADBC_NAME]; /* of a manifest; "": not named */
};

/* Finds and loads a driver's library. 0 or an errno, with a failure. Thread:
 * any. */
int uva__adbc_find(const char *driver, struct uva__adbc_found *out,
                   struct uva__adbc_failure *failure);

#endif
