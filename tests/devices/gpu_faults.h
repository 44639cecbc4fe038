/* SPDX-License-Identifier: Apache-2.0 */
/* The errors reported when CUDA or HIP fails, with a fake driver or, as far as
 * it can be made to fail, a real one. */
#ifndef UVA_TESTS_GPU_FAULTS_H
#define UVA_TESTS_GPU_FAULTS_H

#include <check.h>

#include "devices/vendor_driver.h"

/* Adds the cases. Cases that need a fake driver are added only with one. */
void gpu_faults_add(Suite *suite, const struct vendor_driver *driver,
                    const struct fake_control *control);

#endif
