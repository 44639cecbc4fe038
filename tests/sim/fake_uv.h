/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the fake libuv beyond libuv: a clock that can be made to
 * advance. */
#ifndef SIM_FAKE_UV_H
#define SIM_FAKE_UV_H

#include <stdbool.h>
#include <stdint.h>

/* Starts a new schedule. Each reading of the fine clock advances it by up to
 * `tick_ns`, as if work took time. Draws whether timers run first in an
 * iteration or last. */
void fake_uv_begin(uint64_t tick_ns);

/* Returns whether the clock advances; whether it has advanced so far that it
 * moves the engine's clock, which otherwise only stands still or goes on to a
 * timer. */
bool fake_uv_ticks(void);
bool fake_uv_moves_time(void);

/* Returns the nanoseconds of the fine clock. */
uint64_t fake_uv_hrtime(void);

/* Returns whether the fiber holds a mutex of libuv. */
bool fake_uv_holds_mutex(void);

#endif
