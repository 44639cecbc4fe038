/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the process some time after a signal, whatever the loop waits for: a
 * write to a terminal or pipe that stands still, a disk, a driver. It has its
 * own thread; a command that ends in good order ends before. */
#ifndef UVA_TOOLS_GUARD_H
#define UVA_TOOLS_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "uvarrow/base.h"

/* Number of signals that a guard watches. */
#define UVA__GUARD_SIGNALS 3

/* Zeroes, then uva__guard_open(). */
struct uva__guard {
    uv_thread_t thread;                      /* turns `loop` */
    uv_loop_t loop;                          /* of the thread */
    uv_signal_t signals[UVA__GUARD_SIGNALS]; /* the signals that end the
                                                process */
    uv_timer_t timer;                        /* from the first one */
    uv_async_t stop;                         /* ends the thread */
    uint64_t first_ms;                       /* from the first signal */
    uint64_t second_ms;                      /* from the second one */
    int flags;                               /* of standard output at the start;
                                                -1: unknown */
    int signal;                              /* the first one; 0: no signal */
    bool is_open;                            /* the thread runs */
    uv_mutex_t lock;                         /* of `path` */
    const char *path;                        /* borrows: a file to remove; may
                                                be NULL */
};

/* Starts it: at the latest `first_ms` after the first of SIGINT, SIGTERM and
 * (with `hangup`, unless it is ignored) SIGHUP, and `second_ms` after the
 * second one, the process exits with 128 and the number of the first. Returns
 * 0, or an errno with an error. Thread: loop. */
UVA_MUST_CHECK int uva__guard_open(struct uva__guard *guard, uint64_t first_ms,
                                   uint64_t second_ms, bool hangup,
                                   struct uva_error *error);

/* Sets the file that is removed if the guard ends the process; may be NULL.
 * Thread: any. */
void uva__guard_remove(struct uva__guard *guard, const char *path);

/* Returns whether SIGHUP is to be watched: nohup has it ignored. Thread: any.
 */
bool uva__guard_takes_hangup(void);

/* Stops it. Without effect unless it is open. Thread: loop. */
void uva__guard_close(struct uva__guard *guard);

#endif
