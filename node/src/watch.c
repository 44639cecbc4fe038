/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime's descriptor on the loop of Node.js. The addon has a libuv of its
 * own, which is hidden: a handle on the loop of Node.js must be one of the
 * libuv in the executable, whose version decides how large it is. Its seven
 * functions are found by their names. Deno and Bun have none (post.c). */
#include <dlfcn.h>
#include <stdlib.h>
#include <uv.h>

#include "addon.h"

/* Of the libuv of the executable */
struct watch_functions {
    int (*init)(uv_loop_t *, uv_poll_t *, int);
    int (*start)(uv_poll_t *, int, uv_poll_cb);
    int (*stop)(uv_poll_t *);
    void (*close)(uv_handle_t *, uv_close_cb);
    void (*ref)(uv_handle_t *);
    void (*unref)(uv_handle_t *);
    size_t (*handle_size)(uv_handle_type);
};

struct watch {
    struct watch_functions uv;
    uv_poll_t *poll; /* owns; of a size that only `uv` knows */
    uva_call_fn *done;
    void *ctx; /* borrows, until `done` */
};

static bool functions_find(struct watch_functions *uv)
{
    const struct {
        const char *name;
        void *place;
    } all[] = {{"uv_poll_init", &uv->init},
               {"uv_poll_start", &uv->start},
               {"uv_poll_stop", &uv->stop},
               {"uv_close", &uv->close},
               {"uv_ref", &uv->ref},
               {"uv_unref", &uv->unref},
               {"uv_handle_size", &uv->handle_size}};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        void *found = dlsym(RTLD_DEFAULT, all[i].name);

        if (found == NULL)
            return false;
        *(void **)all[i].place = found;
    }
    return true;
}

static void watch_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    host_turn(poll->data);
}

static int watch_begin(struct watch *watch, uv_loop_t *loop, struct host *host)
{
    int code;

    code = watch->uv.init(loop, watch->poll, uva_runtime_fd(host->runtime));
    if (code != 0)
        return code;
    watch->poll->data = host;
    watch->uv.unref((uv_handle_t *)watch->poll);
    code = watch->uv.start(watch->poll, UV_READABLE, watch_readable);
    if (code == 0)
        return 0;
    /* its memory goes with the loop, which knows the handle */
    watch->uv.close((uv_handle_t *)watch->poll, NULL);
    watch->poll = NULL;
    return code;
}

struct watch *watch_new(struct host *host)
{
    struct watch *watch = calloc(1, sizeof(*watch));
    uv_loop_t *loop = NULL;
    int code = UV_ENOSYS;

    if (watch == NULL) {
        (void)value_no_memory(host->env);
        return NULL;
    }
    if (!value_ok(host->env, napi_get_uv_event_loop(host->env, &loop))) {
        free(watch);
        return NULL;
    }
    if (functions_find(&watch->uv)) {
        watch->poll = calloc(1, watch->uv.handle_size(UV_POLL));
        code = watch->poll == NULL ? UV_ENOMEM : watch_begin(watch, loop, host);
    }
    if (code == 0)
        return watch;
    free(watch->poll);
    free(watch);
    (void)value_fail(host->env, -code,
                     "the runtime cannot be watched by the "
                     "loop of this process",
                     NULL);
    return NULL;
}

void watch_keep_alive(struct watch *watch, bool keeps)
{
    (keeps ? watch->uv.ref : watch->uv.unref)((uv_handle_t *)watch->poll);
}

void watch_stop(struct watch *watch)
{
    (void)watch->uv.stop(watch->poll);
}

static void watch_closed(uv_handle_t *handle)
{
    struct watch *watch = handle->data;

    watch->done(watch->ctx);
    free(watch->poll);
    free(watch);
}

void watch_free(struct watch *watch, uva_call_fn *done, void *ctx)
{
    watch->done = done;
    watch->ctx = ctx;
    watch->poll->data = watch;
    watch->uv.close((uv_handle_t *)watch->poll, watch_closed);
}
