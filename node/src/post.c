/* SPDX-License-Identifier: Apache-2.0 */
/* Turns that a thread-safe function makes, for Deno and Bun, whose loops are
 * not libuv's. No thread calls it once the runtime has closed: a call that is
 * late uses memory that the environment has freed (nodejs/node#55706). */
#include <stdlib.h>

#include "addon.h"

struct post {
    struct host *host;                 /* borrows */
    napi_threadsafe_function function; /* owns */
};

/* The environment's thread. NULL `env`: it ends, and makes no turn. */
static void post_arrived(napi_env env, napi_value function, void *ctx,
                         void *data)
{
    struct post *post = ctx;

    (void)function;
    (void)data;
    if (env != NULL)
        host_turn(post->host);
}

/* The library calls it at most once before the next turn. */
void post_call(void *ctx)
{
    struct post *post = ctx;

    (void)napi_call_threadsafe_function(post->function, NULL,
                                        napi_tsfn_nonblocking);
}

struct post *post_new(napi_env env, struct host *host)
{
    struct post *post = calloc(1, sizeof(*post));
    napi_value name = NULL;

    if (post == NULL) {
        (void)value_no_memory(env);
        return NULL;
    }
    post->host = host;
    if (value_ok(env, napi_create_string_utf8(env, "uvarrow", NAPI_AUTO_LENGTH,
                                              &name)) &&
        value_ok(env, napi_create_threadsafe_function(
                          env, NULL, NULL, name, 0, 1, NULL, NULL, post,
                          post_arrived, &post->function))) {
        if (value_ok(env, napi_unref_threadsafe_function(env, post->function)))
            return post;
        (void)napi_release_threadsafe_function(post->function, napi_tsfn_abort);
    }
    free(post);
    return NULL;
}

void post_keep_alive(napi_env env, struct post *post, bool keeps)
{
    (void)(keeps ? napi_ref_threadsafe_function
                 : napi_unref_threadsafe_function)(env, post->function);
}

void post_free(struct post *post)
{
    (void)napi_release_threadsafe_function(post->function, napi_tsfn_abort);
    free(post);
}
