/* SPDX-License-Identifier: Apache-2.0 */
/* Work that a map queues on a stream of CUDA or HIP, with a real driver or a
 * fake one. */
#ifndef UVA_TESTS_GPU_KERNELS_H
#define UVA_TESTS_GPU_KERNELS_H

#include <check.h>

#include "devices/vendor_driver.h"

/* Adds the cases. Cases that need a fake driver are added only with one. */
void gpu_kernels_add(Suite *suite, const struct vendor_driver *driver,
                     const struct fake_control *control);

#endif
