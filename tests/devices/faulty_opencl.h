/* SPDX-License-Identifier: Apache-2.0 */
/* How tests control the library between us and this machine's OpenCL. The
 * functions are looked up in it by name. */
#ifndef UVA_TESTS_FAULTY_OPENCL_H
#define UVA_TESTS_FAULTY_OPENCL_H

#include <stdbool.h>

struct faulty_opencl {
    /* Makes the `n`-th call from now on fail; 0: no failure. */
    void (*faultycl_fail)(long n, int code);
    /* Returns the calls left until one fails; 0: no failure; negative: one has
     * failed. */
    long (*faultycl_left)(void);
    /* Calls `fn`, once, after the next copy is queued. */
    void (*faultycl_behind_copy)(void (*fn)(void *ctx), void *ctx);
    /* Withholds callbacks from OpenCL; the test makes them instead. */
    void (*faultycl_keep_callback)(bool keep);
    /* Makes the callback that was withheld; returns false if there is none. */
    bool (*faultycl_call_back)(int status);
};

/* Loads the library of this path, finds its functions, and has it used for
 * OpenCL from now on. In opencl_device.c. */
void faulty_opencl_open(struct faulty_opencl *faulty, const char *path);

#endif
