/* SPDX-License-Identifier: Apache-2.0 */
/* The drivers and devices of this machine, asked of the drivers themselves. A
 * driver may crash or hang, so that this runs in a separate process. */
#ifndef UVA_TESTS_GPU_FACTS_H
#define UVA_TESTS_GPU_FACTS_H

/* Prints lines VENDOR, WHAT, VALUE with tabs in between. WHAT is `missing` (and
 * why), `library`, `double` (it is one of the tests' doubles), `version`,
 * `kernel`, `device` or `processor` (a CPU, no hardware of the vendor). Returns
 * 0. */
int facts_print(void);

#endif
