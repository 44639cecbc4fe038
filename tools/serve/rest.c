/* SPDX-License-Identifier: Apache-2.0 */
/* The work takes milliseconds for a large heap, and the next query asks the
 * system for its memory again: so it waits for a while without a query. */
#include "rest.h"

#include "loop.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Shorter than people wait between two looks at the memory, and longer than
 * the gap between two requests of a client. */
enum { REST_MS = 500 };

static void rest_on_worker(uv_work_t *work)
{
    (void)work;
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

static void rest_on_done(uv_work_t *work, int code)
{
    struct uva__rest *rest = work->data;

    (void)code;
    rest->is_working = false;
}

static void rest_on_timer(uv_timer_t *timer)
{
    struct uva__rest *rest = timer->data;

    if (!rest->is_working && uva__loop_threads(timer->loop, NULL) == 0)
        rest->is_working = uv_queue_work(timer->loop, &rest->work,
                                         rest_on_worker, rest_on_done) == 0;
}

void uva__rest_init(struct uva__rest *rest, uv_loop_t *loop)
{
    (void)uv_timer_init(loop, &rest->timer);
    rest->timer.data = rest->work.data = rest;
}

void uva__rest_end(struct uva__rest *rest)
{
    (void)uv_timer_stop(&rest->timer);
}

void uva__rest_begin(struct uva__rest *rest)
{
    if (!rest->is_closed)
        (void)uv_timer_start(&rest->timer, rest_on_timer, REST_MS, 0);
}

void uva__rest_close(struct uva__rest *rest)
{
    rest->is_closed = true;
    uv_close((uv_handle_t *)&rest->timer, NULL);
}
