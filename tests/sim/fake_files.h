/* SPDX-License-Identifier: Apache-2.0 */
/* A fake kernel: event counters, timers and sets of both, as descriptors, with
 * the functions of the system that the library calls on them; the program is
 * linked so that they stand in their place (--wrap). One misuse of a
 * descriptor ends the schedule. */
#ifndef SIM_FAKE_FILES_H
#define SIM_FAKE_FILES_H

#include <stdbool.h>
#include <stdint.h>

/* Begins anew. */
void fake_files_begin(void);

/* Ends the schedule as failed if one was never closed. */
void fake_files_check(void);

/* Makes a set: readable while `is_ready(ctx)`, which it will be by itself at
 * `due_ns(ctx)`. Neither has an effect. */
int fake_files_new_set(bool (*is_ready)(void *ctx),
                       uint64_t (*due_ns)(void *ctx), void *ctx);
void fake_files_close(int fd);

/* Whether a read would give something. Has no effect. */
bool fake_files_is_readable(int fd);

/* When a timer will make it readable by itself; UINT64_MAX: never. */
uint64_t fake_files_due_ns(int fd);

/* Waits until one of them is readable. */
void fake_files_wait(const int *fds, int n);

#endif
