/* SPDX-License-Identifier: Apache-2.0 */
/* What the fake libuv has beyond libuv: a clock that may be made to run. */
#ifndef SIM_FAKE_UV_H
#define SIM_FAKE_UV_H

#include <stdbool.h>
#include <stdint.h>

/* Begins anew. Each look at the fine clock moves it on by up to `tick_ns`, as
 * if work took time. */
void fake_uv_begin(uint64_t tick_ns);

/* Whether it is. */
bool fake_uv_ticks(void);

/* Nanoseconds of the fine clock. */
uint64_t fake_uv_hrtime(void);

#endif
