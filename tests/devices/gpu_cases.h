/* SPDX-License-Identifier: Apache-2.0 */
/* The cases common to CUDA and HIP, with a real driver or a fake one. */
#ifndef UVA_TESTS_GPU_CASES_H
#define UVA_TESTS_GPU_CASES_H

#include <check.h>

#include "devices/vendor_driver.h"

/* Adds the cases. Cases that need a fake driver are added only with one. */
void gpu_cases_add(Suite *suite, const struct vendor_driver *driver,
                   const struct fake_control *control);

/* Runs the suite; returns the exit code of the program. */
int gpu_cases_run(Suite *suite);

#endif
