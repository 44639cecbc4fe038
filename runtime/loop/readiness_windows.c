/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the completion port of the loop. The report of the port is given
 * back to it, so that the next turn of the loop finds it there: the port has no
 * call that only looks. The member `iocp` is hardly documented by libuv, and is
 * used by programs that embed a loop on Windows. */
#include "loop/readiness.h"

bool uva__readiness_has_fd(void)
{
    return false;
}

bool uva__readiness_is_due(const uv_loop_t *loop)
{
    (void)loop;
    return false;
}

int uva__readiness_open(struct uva__readiness *readiness, uv_loop_t *loop)
{
    readiness->loop = loop;
    return 0;
}

/* A report without an OVERLAPPED comes from uva__readiness_leave(). */
bool uva__readiness_await(struct uva__readiness *readiness)
{
    const HANDLE port = readiness->loop->iocp;
    OVERLAPPED *overlapped;
    ULONG_PTR key;
    DWORD bytes;

    for (;;) {
        overlapped = NULL;
        (void)GetQueuedCompletionStatus(port, &bytes, &key, &overlapped,
                                        INFINITE);
        if (overlapped != NULL)
            (void)PostQueuedCompletionStatus(port, bytes, key, overlapped);
        if (uva__atomic64_load(&readiness->leaves) != 0)
            return false;
        if (overlapped != NULL)
            return true;
    }
}

void uva__readiness_leave(struct uva__readiness *readiness)
{
    uva__atomic64_store(&readiness->leaves, 1);
    (void)PostQueuedCompletionStatus(readiness->loop->iocp, 0, 0, NULL);
}

void uva__readiness_close(struct uva__readiness *readiness)
{
    readiness->loop = NULL;
}
