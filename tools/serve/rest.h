/* SPDX-License-Identifier: Apache-2.0 */
/* The work while no query runs: freed memory is given back to the system, as
 * the allocator keeps what its threads have needed at most. */
#ifndef UVA_SERVE_REST_H
#define UVA_SERVE_REST_H

#include <stdbool.h>
#include <uv.h>

/* Zeroes, then uva__rest_init(). */
struct uva__rest {
    uv_timer_t timer; /* since no query runs */
    uv_work_t work;   /* gives memory back, on another thread */
    bool is_working;  /* that is under way */
    bool is_closed;   /* so is the timer, or it never was there */
};

/* Begins to count the rest. Thread: loop, as all here. */
void uva__rest_init(struct uva__rest *rest, uv_loop_t *loop);

/* A query begins. */
void uva__rest_end(struct uva__rest *rest);

/* The last query has ended: its memory is freed about now. */
void uva__rest_begin(struct uva__rest *rest);

/* Ends it; the loop may go on until the work is done. */
void uva__rest_close(struct uva__rest *rest);

#endif
