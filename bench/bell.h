/* SPDX-License-Identifier: Apache-2.0 */
/* A wake-up of a libuv loop by hand, made as the library makes its own: an
 * eventfd that the loop polls, which takes less time than an uv_async_t. */
#ifndef BENCH_BELL_H
#define BENCH_BELL_H

#include <uv.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bell {
    int fd; /* owns */
    void (*on_ring)(void *ctx);
    void *ctx; /* borrows */
    uv_poll_t poll;
};

/* Has `loop` call on_ring(ctx) after each bell_ring(), or once after several.
 */
void bell_init(struct bell *bell, uv_loop_t *loop, void (*on_ring)(void *ctx),
               void *ctx);

/* Thread: any. */
void bell_ring(struct bell *bell);

/* Has the loop stop polling; and frees the bell after that. */
void bell_close(struct bell *bell);
void bell_fini(struct bell *bell);

#ifdef __cplusplus
}
#endif

#endif
