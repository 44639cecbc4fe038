/* SPDX-License-Identifier: Apache-2.0 */
/* A fake kernel: event counters, timers and poll sets as descriptors, with the
 * system functions that the library calls on them. The linker puts them in
 * place of the real ones (--wrap). Misuse of a descriptor ends the schedule. */
#ifndef SIM_FAKE_FILES_H
#define SIM_FAKE_FILES_H

#include <stdbool.h>
#include <stdint.h>

/* Starts a new schedule. */
void fake_files_begin(void);

/* Ends the schedule as failed if a descriptor was never closed. */
void fake_files_check(void);

/* Makes a poll set: readable while `is_ready(ctx)`, which becomes true by
 * itself at `due_ns(ctx)`. They must not have side effects. */
int fake_files_new_set(bool (*is_ready)(void *ctx),
                       uint64_t (*due_ns)(void *ctx), void *ctx);
void fake_files_close(int fd);

/* Returns whether a read would succeed. Has no side effect. */
bool fake_files_is_readable(int fd);

/* Returns when a timer will make it readable; UINT64_MAX: never. */
uint64_t fake_files_due_ns(int fd);

/* Waits until a descriptor is readable. */
void fake_files_wait(const int *fds, int n);

#endif
