/* SPDX-License-Identifier: Apache-2.0 */
/* What drivers and devices this machine has, asked of the drivers themselves. A
 * driver may crash or hang, so that this runs in a process of its own. */
#ifndef UVA_TESTS_GPU_FACTS_H
#define UVA_TESTS_GPU_FACTS_H

/* Prints lines VENDOR, WHAT, VALUE with tabs in between. WHAT is `missing` (why
 * there is none), `library`, `double` (it is one of the tests' doubles),
 * `version`, `kernel`, `device` or `processor` (a CPU, no hardware of the
 * vendor's). Returns 0. */
int facts_print(void);

#endif
