/* SPDX-License-Identifier: Apache-2.0 */
/* How a thread waits until a loop that it does not run has something to do: the
 * watcher of a runtime that its host turns after posts. Unix systems have a
 * descriptor for that (readiness_unix.c), and Windows has a completion port
 * (readiness_windows.c). */
#ifndef UVA_LOOP_READINESS_H
#define UVA_LOOP_READINESS_H

#include <uv.h>

#include "base/platform.h"

struct uva__readiness {
    uv_loop_t *loop;              /* borrows; NULL: not open */
    struct uva__wake_fd leave_fd; /* Unix: raised when the wait must end */
    struct uva__atomic64 leaves;  /* Windows: 1 when it must */
};

/* Whether a loop has a descriptor that a program can watch by itself. Thread:
 * any. */
bool uva__readiness_has_fd(void);

/* Whether that descriptor is readable now. False without one. Thread: any. */
bool uva__readiness_is_due(const uv_loop_t *loop);

/* Opens the wait for a loop. 0 or a code. close() has no effect unless it is
 * open. Thread: loop. */
UVA_MUST_CHECK int uva__readiness_open(struct uva__readiness *readiness,
                                       uv_loop_t *loop);
void uva__readiness_close(struct uva__readiness *readiness);

/* Waits until the loop has something to do. False: it must end. Thread: the
 * watcher. */
UVA_MUST_CHECK bool uva__readiness_await(struct uva__readiness *readiness);

/* Ends the wait, and every later one. Thread: any. */
void uva__readiness_leave(struct uva__readiness *readiness);

#endif
