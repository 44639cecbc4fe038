/* SPDX-License-Identifier: Apache-2.0 */
/* How tests drive a library that stands between us and OpenCL as it is here:
 * looked up in it by name. */
#ifndef UVA_TESTS_FAULTY_OPENCL_H
#define UVA_TESTS_FAULTY_OPENCL_H

#include <stdbool.h>

struct faulty_opencl {
    /* the `n`-th call from now on fails; 0: none */
    void (*faultycl_fail)(long n, int code);
    /* calls until one fails; 0: none is to; below that: one has */
    long (*faultycl_left)(void);
    /* calls `fn`, once, behind the next copy that is queued */
    void (*faultycl_behind_copy)(void (*fn)(void *ctx), void *ctx);
    /* OpenCL is told of no callback any more: the test makes it */
    void (*faultycl_keep_callback)(bool keep);
    /* makes the one that was kept; false: none was */
    bool (*faultycl_call_back)(int status);
};

#endif
