/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of ADBC as errno, text and metadata. */
#ifndef UVA_ADBC_FAILURE_H
#define UVA_ADBC_FAILURE_H

#include "adbc/loss.h"
#include "uvarrow/adbc_abi.h"
#include "uvarrow/base.h"

/* The report of a driver. Zeroes: none. */
struct uva__adbc_failure {
    struct uva_error error;
    char *metadata;      /* owns; NULL: not given, or there was no memory for
                            it */
    enum uva__loss loss; /* besides the query */
};

/* An error for a driver to fill in, which may have details. */
struct AdbcError uva__adbc_error(struct AdbcDriver *driver);

/* Copies what `error` states, after "what: ". Returns the errno of `status`,
 * which is not OK. Thread: any. */
int uva__adbc_failure_copy(struct uva__adbc_failure *failure, const char *what,
                           AdbcStatusCode status, const struct AdbcError *error,
                           const struct AdbcDriver *driver);

/* Ends a call of a driver: releases `error`. Returns 0 for the status OK;
 * otherwise as uva__adbc_failure_copy(). */
int uva__adbc_failure_take(struct uva__adbc_failure *failure, const char *what,
                           AdbcStatusCode status, struct AdbcError *error,
                           const struct AdbcDriver *driver);

/* Sets an error of our own. Returns `code`. */
int uva__adbc_failure_set(struct uva__adbc_failure *failure, int code,
                          const char *format, ...) UVA_PRINTF(3, 4);

/* Adds a pair to the metadata, unless there is no memory for it. */
void uva__adbc_failure_note(struct uva__adbc_failure *failure, const char *key,
                            const char *value);

/* Releases an error that is not of interest. */
void uva__adbc_error_drop(struct AdbcError *error);

void uva__adbc_failure_fini(struct uva__adbc_failure *failure);

#endif
