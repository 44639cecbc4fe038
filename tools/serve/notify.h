/* SPDX-License-Identifier: Apache-2.0 */
/* What a service manager is told about the state of the server: datagrams to
 * the socket that it names in NOTIFY_SOCKET, as sd_notify(3) describes. */
#ifndef UVA_SERVE_NOTIFY_H
#define UVA_SERVE_NOTIFY_H

#include <stdbool.h>

/* The messages. */
enum uva__notify_state {
    UVA__NOTIFY_READY = 0, /* it answers, or has loaded its files again */
    UVA__NOTIFY_RELOADING, /* it loads them, from now on */
    UVA__NOTIFY_STOPPING   /* it ends */
};

/* Returns whether there is a manager. Thread: loop, as all here. */
bool uva__notify_is_wanted(void);

/* Sends a state, and a line for people. Waits up to a second if the manager
 * reads nothing; a failure is a line on standard error. Without effect if there
 * is no manager. */
void uva__notify_send(enum uva__notify_state state, const char *status);

#endif
