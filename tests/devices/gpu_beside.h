/* SPDX-License-Identifier: Apache-2.0 */
/* The library beside another thread of the program that waits in a driver of
 * CUDA or HIP, with a real driver or a fake one. */
#ifndef UVA_TESTS_GPU_BESIDE_H
#define UVA_TESTS_GPU_BESIDE_H

#include <check.h>

#include "devices/vendor_driver.h"

/* Adds the cases. */
void gpu_beside_add(Suite *suite, const struct vendor_driver *driver,
                    const struct fake_control *control);

#endif
