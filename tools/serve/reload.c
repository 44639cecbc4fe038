/* SPDX-License-Identifier: Apache-2.0 */
/* Files are read on a thread, as a disk or a pipe may stand still. */
#include "reload.h"

#include <string.h>

#include "loop.h"

static void loaded_clear(struct uva__loaded *loaded)
{
    uva__access_fini(&loaded->access);
    uva__tls_free(loaded->tls);
    memset(loaded, 0, sizeof(*loaded));
}

/* The results are in `loaded`; an error has its code in any case. */
static void reload_on_worker(uv_work_t *work)
{
    struct uva__reload *r = work->data;
    const struct uva__settings *set = r->settings;
    struct uva__loaded *loaded = &r->loaded;

    if (set->token_file != NULL)
        loaded->of_token.code = uva__access_load(
            &loaded->access, set->token_file, &loaded->of_token);
    if (set->certificate != NULL)
        loaded->of_tls.code = uva__tls_new(set->certificate, set->key,
                                           &loaded->tls, &loaded->of_tls);
    if (set->config != NULL)
        loaded->of_options.code =
            uva__settings_compare(set, r->args, loaded->changed,
                                  sizeof(loaded->changed), &loaded->of_options);
}

static void reload_begin(struct uva__reload *r);

/* Gives the results, and begins again if there was another signal. */
static void reload_conclude(struct uva__reload *r)
{
    const bool is_again = r->phase == UVA__RELOAD_AGAIN;

    if (r->phase != UVA__RELOAD_OVER) {
        r->phase = UVA__RELOAD_IDLE;
        r->on_loaded(r->ctx, &r->loaded, !is_again);
    }
    loaded_clear(&r->loaded);
    if (is_again)
        reload_begin(r);
}

static void reload_on_done(uv_work_t *work, int code)
{
    (void)code;
    reload_conclude(work->data);
}

static void reload_begin(struct uva__reload *r)
{
    struct uva_error error = {0};

    r->phase = UVA__RELOAD_LOADING;
    r->on_begin(r->ctx);
    if (uva__loop_threads(r->loop, &error) == 0 &&
        uv_queue_work(r->loop, &r->work, reload_on_worker, reload_on_done) == 0)
        return;
    if (r->settings->token_file != NULL)
        r->loaded.of_token = error;
    if (r->settings->certificate != NULL)
        r->loaded.of_tls = error;
    if (r->settings->config != NULL)
        r->loaded.of_options = error;
    reload_conclude(r);
}

void uva__reload_init(struct uva__reload *reload, uv_loop_t *loop,
                      const struct uva__settings *settings, char **args)
{
    reload->loop = loop;
    reload->settings = settings;
    reload->args = args;
    reload->work.data = reload;
}

void uva__reload_want(struct uva__reload *reload)
{
    if (reload->phase == UVA__RELOAD_EARLY)
        reload->phase = UVA__RELOAD_DUE;
    else if (reload->phase == UVA__RELOAD_IDLE)
        reload_begin(reload);
    else if (reload->phase == UVA__RELOAD_LOADING)
        reload->phase = UVA__RELOAD_AGAIN;
}

void uva__reload_ready(struct uva__reload *reload)
{
    const bool is_due = reload->phase == UVA__RELOAD_DUE;

    reload->phase = UVA__RELOAD_IDLE;
    if (is_due)
        reload_begin(reload);
}

void uva__reload_end(struct uva__reload *reload)
{
    reload->phase = UVA__RELOAD_OVER;
}
