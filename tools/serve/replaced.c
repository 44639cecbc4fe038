/* SPDX-License-Identifier: Apache-2.0 */
/* A file is another one if it has another device or inode, or was made at
 * another time, as the number of an inode is used again. */
#include "replaced.h"

#include <stdlib.h>

#include "database_file.h"
#include "loop.h"

enum { LOOK_MS = 1000 };

static bool is_same(const uv_stat_t *a, const uv_stat_t *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
           a->st_birthtim.tv_sec == b->st_birthtim.tv_sec &&
           a->st_birthtim.tv_nsec == b->st_birthtim.tv_nsec;
}

static void replaced_on_look(uv_fs_t *look)
{
    struct uva__replaced *r = look->data;
    const bool is_other =
        look->result == 0 && !is_same(&look->statbuf, &r->seen);

    r->is_looking = false;
    if (is_other)
        r->seen = look->statbuf;
    uv_fs_req_cleanup(look);
    if (is_other && !r->is_closed)
        r->on_replaced(r->ctx);
}

static void replaced_on_timer(uv_timer_t *timer)
{
    struct uva__replaced *r = timer->data;

    if (!r->is_looking && uva__loop_threads(timer->loop, NULL) == 0)
        r->is_looking =
            uv_fs_stat(timer->loop, &r->look, r->path, replaced_on_look) == 0;
}

void uva__replaced_init(struct uva__replaced *r, uv_loop_t *loop)
{
    (void)uv_timer_init(loop, &r->timer);
    r->timer.data = r;
}

void uva__replaced_begin(struct uva__replaced *r,
                         const struct uva__database *database,
                         void (*on_replaced)(void *ctx), void *ctx)
{
    const enum uva__kind kind = uva__database_kind(database);

    r->on_replaced = on_replaced;
    r->ctx = ctx;
    if ((kind != UVA__KIND_SQLITE && kind != UVA__KIND_DUCKDB) ||
        uva__database_file(database->name, &r->path) != 0 || r->path == NULL)
        return;
    if (uv_fs_stat(r->timer.loop, &r->look, r->path, NULL) == 0) {
        r->seen = r->look.statbuf;
        (void)uv_timer_start(&r->timer, replaced_on_timer, LOOK_MS, LOOK_MS);
    }
    uv_fs_req_cleanup(&r->look);
    r->look.data = r;
}

void uva__replaced_close(struct uva__replaced *r)
{
    r->is_closed = true;
    uv_close((uv_handle_t *)&r->timer, NULL);
}

void uva__replaced_fini(struct uva__replaced *r)
{
    free(r->path);
    r->path = NULL;
}
