/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the descriptor of the loop, and for its own descriptor that ends
 * the wait. */
#include "loop/readiness.h"

#include <poll.h>

bool uva__readiness_has_fd(void)
{
    return true;
}

bool uva__readiness_is_due(const uv_loop_t *loop)
{
    struct pollfd watched = {.fd = uv_backend_fd(loop), .events = POLLIN};

    return poll(&watched, 1, 0) > 0;
}

int uva__readiness_open(struct uva__readiness *readiness, uv_loop_t *loop)
{
    const int code = uva__wake_fd_open(&readiness->leave_fd);

    readiness->loop = code == 0 ? loop : NULL;
    return code;
}

/* A loop that polls in vain, or is interrupted, polls again. */
bool uva__readiness_await(struct uva__readiness *readiness)
{
    struct pollfd watched[] = {
        {.fd = uv_backend_fd(readiness->loop), .events = POLLIN},
        {.fd = readiness->leave_fd.reader, .events = POLLIN}};

    for (;;) {
        if (poll(watched, 2, -1) < 0)
            continue;
        if (watched[1].revents != 0)
            return false;
        if (watched[0].revents != 0)
            return true;
    }
}

void uva__readiness_leave(struct uva__readiness *readiness)
{
    uva__wake_fd_raise(&readiness->leave_fd);
}

void uva__readiness_close(struct uva__readiness *readiness)
{
    if (readiness->loop != NULL)
        uva__wake_fd_close(&readiness->leave_fd);
}
