/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object under test and its entry points. It stays loaded until the
 * process ends, because its threads may still be running in it. */
#ifndef UVA_TCK_SUBJECT_H
#define UVA_TCK_SUBJECT_H

#include "uvarrow/tck.h"

/* Its functions; see tck.h. NULL: missing. */
struct uva__subject {
    int32_t (*version)(void);
    int32_t (*produce)(int32_t plan, int64_t batches, int64_t at,
                       struct ArrowAsyncDeviceStreamHandler *handler);
    int32_t (*consume)(int32_t manner, int64_t k, int64_t *id,
                       struct ArrowAsyncDeviceStreamHandler **handler);
    int32_t (*outcome)(int64_t id, struct uva_subject_outcome *out);
    int32_t (*open)(int32_t plan, int64_t batches, int64_t at,
                    struct ArrowDeviceArrayStream *out);
    int64_t (*count)(int32_t what);
    int32_t (*knows)(int32_t what);
};

/* Loads `file` and finds its functions. Returns 0, or EINVAL with an error that
 * describes the fault. The subject may crash or hang in here. Thread: any. */
UVA_MUST_CHECK int uva__subject_load(struct uva__subject *subject,
                                     const char *file, struct uva_error *error);

/* Returns the roles, as bits, that it has the functions of. Thread: any. */
unsigned uva__subject_roles(const struct uva__subject *subject);

/* Call its functions: UVA_SUBJECT_CANNOT, without a call, for a plan or manner
 * that the subject does not know. Thread: any. */
int32_t uva__subject_produce(const struct uva__subject *subject,
                             enum uva_subject_plan plan, int64_t batches,
                             int64_t at,
                             struct ArrowAsyncDeviceStreamHandler *handler);
int32_t uva__subject_consume(const struct uva__subject *subject,
                             enum uva_subject_manner manner, int64_t k,
                             int64_t *id,
                             struct ArrowAsyncDeviceStreamHandler **handler);
int32_t uva__subject_open(const struct uva__subject *subject,
                          enum uva_subject_plan plan, int64_t batches,
                          struct ArrowDeviceArrayStream *out);

#endif
