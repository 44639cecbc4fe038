/* SPDX-License-Identifier: Apache-2.0 */
/* Notices that the file of a database was replaced, by a rename or a copy:
 * connections that have it open go on reading the old one. It looks once a
 * second, on a libuv thread, and not at all without threads. */
#ifndef UVA_SERVE_REPLACED_H
#define UVA_SERVE_REPLACED_H

#include <stdbool.h>
#include <uv.h>

#include "database.h"

/* Zeroes, then uva__replaced_init(), and uva__replaced_begin(). */
struct uva__replaced {
    uv_timer_t timer;               /* until it looks again */
    uv_fs_t look;                   /* at the file, on another thread */
    char *path;                     /* owns; NULL: there is no file */
    uv_stat_t seen;                 /* the file that is open */
    void (*on_replaced)(void *ctx); /* on the loop thread */
    void *ctx;                      /* borrows, for that */
    bool is_looking;                /* `look` is under way */
    bool is_closed;                 /* so is the timer */
};

/* Makes its timer. Thread: loop, as all here. */
void uva__replaced_init(struct uva__replaced *replaced, uv_loop_t *loop);

/* Begins to look for the file of a database of SQLite or DuckDB, which is
 * settled. It does not notice replaced databases of other kinds, or in memory.
 */
void uva__replaced_begin(struct uva__replaced *replaced,
                         const struct uva__database *database,
                         void (*on_replaced)(void *ctx), void *ctx);

/* Ends it; the loop may go on until a look is done. */
void uva__replaced_close(struct uva__replaced *replaced);

/* Frees the path, once the loop has ended. */
void uva__replaced_fini(struct uva__replaced *replaced);

#endif
