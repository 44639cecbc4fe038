/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that makes all calls of one source, for objects that may be used on
 * one thread alone, such as connections of Python's sqlite3, or that keep what
 * belongs to a thread. The worker that has the source waits for each call.
 *
 * Happy path:  made -> (a worker gives it a call, and waits -> the call is made
 *              -> the worker goes on)* -> ended by the worker that releases the
 *              source, and joined. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "core/core.h"

struct own_thread {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a call was given or made, or it ends */
    own_fn *call;           /* to be made; NULL: none */
    void *ctx;              /* its argument */
    bool ends;              /* no call follows */
};

static _Thread_local bool is_here;

bool own_thread_is_here(void)
{
    return is_here;
}

/* Makes the calls until the end. */
static void own_run(struct own_thread *own)
{
    pthread_mutex_lock(&own->lock);
    while (!own->ends || own->call != NULL) {
        if (own->call == NULL) {
            pthread_cond_wait(&own->changed, &own->lock);
            continue;
        }
        pthread_mutex_unlock(&own->lock);
        own->call(own->ctx);
        pthread_mutex_lock(&own->lock);
        own->call = NULL;
        pthread_cond_broadcast(&own->changed);
    }
    pthread_mutex_unlock(&own->lock);
}

/* Python's state of the thread, which its `threading.local` belong to, stays
 * from one call to the next. It does not count as being inside Python between
 * them. */
static void *own_main(void *ctx)
{
    struct own_thread *own = ctx;
    PyThreadState *kept = NULL;
    struct gil gil;

    is_here = true;
    if (gil_enter(&gil)) {
        kept = PyEval_SaveThread();
        inside_end();
    }
    own_run(own);
    if (kept != NULL && inside_begin()) {
        PyEval_RestoreThread(kept);
        gil_leave(&gil);
    }
    return NULL;
}

static struct own_thread *own_thread_new(void)
{
    struct own_thread *own = calloc(1, sizeof(*own));

    if (own == NULL)
        return NULL;
    pthread_mutex_init(&own->lock, NULL);
    pthread_cond_init(&own->changed, NULL);
    if (pthread_create(&own->thread, NULL, own_main, own) == 0)
        return own;
    pthread_cond_destroy(&own->changed);
    pthread_mutex_destroy(&own->lock);
    free(own);
    return NULL;
}

static void own_thread_call(struct own_thread *own, own_fn *call, void *ctx)
{
    pthread_mutex_lock(&own->lock);
    own->call = call;
    own->ctx = ctx;
    pthread_cond_broadcast(&own->changed);
    while (own->call != NULL)
        pthread_cond_wait(&own->changed, &own->lock);
    pthread_mutex_unlock(&own->lock);
}

static void own_thread_end(struct own_thread *own)
{
    pthread_mutex_lock(&own->lock);
    own->ends = true;
    pthread_cond_broadcast(&own->changed);
    pthread_mutex_unlock(&own->lock);
    (void)pthread_join(own->thread, NULL);
    pthread_cond_destroy(&own->changed);
    pthread_mutex_destroy(&own->lock);
    free(own);
}

/* ---- a stream whose calls it makes ----------------------------------------
 */

struct owned {
    struct ArrowArrayStream inner; /* owns */
    struct own_thread *thread;     /* owns */
    own_fn *end;                   /* the last call on the thread */
    void *ctx;                     /* borrows: of `open` and `end` */
};

/* One call; which members count depends on it. */
struct owned_call {
    struct owned *owned;
    int (*open)(void *ctx, struct ArrowArrayStream *out,
                struct uva_error *error);
    struct uva_error *error;
    void *out;
    int code;
    const char *text;
};

static void call_open(void *ctx)
{
    struct owned_call *call = ctx;

    call->code = call->open(call->owned->ctx, &call->owned->inner, call->error);
}

static void call_get_schema(void *ctx)
{
    struct owned_call *call = ctx;
    struct ArrowArrayStream *inner = &call->owned->inner;

    call->code = inner->get_schema(inner, call->out);
}

static void call_get_next(void *ctx)
{
    struct owned_call *call = ctx;
    struct ArrowArrayStream *inner = &call->owned->inner;

    call->code = inner->get_next(inner, call->out);
}

static void call_get_last_error(void *ctx)
{
    struct owned_call *call = ctx;
    struct ArrowArrayStream *inner = &call->owned->inner;

    call->text = inner->get_last_error(inner);
}

static void call_release(void *ctx)
{
    struct owned *owned = ctx;

    if (owned->inner.release != NULL)
        owned->inner.release(&owned->inner);
    owned->end(owned->ctx);
}

static int owned_code(struct ArrowArrayStream *stream, own_fn *fn, void *out)
{
    struct owned_call call = {.owned = stream->private_data, .out = out};

    own_thread_call(call.owned->thread, fn, &call);
    return call.code;
}

static int owned_get_schema(struct ArrowArrayStream *stream,
                            struct ArrowSchema *out)
{
    return owned_code(stream, call_get_schema, out);
}

static int owned_get_next(struct ArrowArrayStream *stream,
                          struct ArrowArray *out)
{
    return owned_code(stream, call_get_next, out);
}

static const char *owned_get_last_error(struct ArrowArrayStream *stream)
{
    struct owned_call call = {.owned = stream->private_data};

    own_thread_call(call.owned->thread, call_get_last_error, &call);
    return call.text;
}

static void owned_free(struct owned *owned)
{
    PyThreadState *lent = gil_lend();

    own_thread_call(owned->thread, call_release, owned);
    own_thread_end(owned->thread);
    gil_take_back(lent);
    free(owned);
}

static void owned_release(struct ArrowArrayStream *stream)
{
    stream->release = NULL;
    owned_free(stream->private_data);
}

int owned_open(int (*open)(void *ctx, struct ArrowArrayStream *out,
                           struct uva_error *error),
               own_fn *end, void *ctx, struct ArrowArrayStream *out,
               struct uva_error *error)
{
    struct owned *owned = calloc(1, sizeof(*owned));
    struct owned_call call = {.owned = owned, .open = open, .error = error};

    if (owned != NULL)
        owned->thread = own_thread_new();
    if (owned == NULL || owned->thread == NULL) {
        free(owned);
        return uva_error_set(error, EAGAIN, "no thread for the source");
    }
    owned->end = end;
    owned->ctx = ctx;
    own_thread_call(owned->thread, call_open, &call);
    if (call.code != 0) {
        owned_free(owned);
        return call.code;
    }
    *out = (struct ArrowArrayStream){.get_schema = owned_get_schema,
                                     .get_next = owned_get_next,
                                     .get_last_error = owned_get_last_error,
                                     .release = owned_release,
                                     .private_data = owned};
    return 0;
}
