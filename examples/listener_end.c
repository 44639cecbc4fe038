/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a server: the last client ends it, and a timer the last clients.
 */
#include "listener.h"

static void (*on_end)(void);
static uv_timer_t patience; /* of listener_cut() */

static void on_timer(uv_timer_t *timer)
{
    clients_cut(timer->loop);
}

void listener_check_end(void)
{
    if (on_end == NULL || clients_count() > 0)
        return;
    uv_close((uv_handle_t *)&patience, NULL);
    on_end();
    on_end = NULL;
}

void listener_end(uv_loop_t *loop, void (*fn)(void))
{
    on_end = fn;
    uv_timer_init(loop, &patience);
    listener_stop();
    listener_check_end();
}

void listener_cut(uint64_t wait_ms)
{
    if (on_end != NULL)
        uv_timer_start(&patience, on_timer, wait_ms, 0);
}
