/* SPDX-License-Identifier: Apache-2.0 */
/* A program with a Vulkan device: it attaches the device's handles to a
 * runtime, has arrays waited for, and detaches the handles at any moment. The
 * functions of the device are simulated: they check that no function is called,
 * and no call goes on, once the handles are detached, and that an event is
 * queried only while its array lives. */
#ifndef SIM_VULKAN_PEER_H
#define SIM_VULKAN_PEER_H

#include "uvarrow/runtime.h"

/* Starts a new schedule. */
void vulkan_begin(void);

/* Draws whether vulkan_use() will be called. */
bool vulkan_draw(void);

/* Whether it was drawn: its events are polled, which takes clock time. */
bool vulkan_is_used(void);

/* Attaches, waits, detaches. Returns without the answers. Thread: any but a
 * loop's. */
void vulkan_use(struct uva_runtime *runtime);

/* Ends the schedule as failed if a wait was not completed. */
void vulkan_check(void);

#endif
