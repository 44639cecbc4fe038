/* SPDX-License-Identifier: Apache-2.0 */
/* Posts calls to the loop thread from any thread, and reads the statistics.
 *
 * On close:    calls that were accepted are made; no more are accepted. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "loop/runtime_impl.h"

/* A call that was posted. */
struct post {
    struct uva__node node;
    struct uva__hub *hub; /* holds a reference */
    uva_post_fn *fn;      /* to be called */
    void *ctx;            /* borrows, until the call */
    bool held;            /* keeps the loop alive */
};

static bool post_visit(struct uva__node *node)
{
    struct post *post = uva__container_of(node, struct post, node);
    struct uva__hub *hub = post->hub;

    post->fn(post->ctx);
    if (post->held)
        uva__loop_unhold(hub);
    uva__hub_leave(hub);
    return false;
}

static void post_free(struct uva__node *node)
{
    struct post *post = uva__container_of(node, struct post, node);
    struct uva__hub *hub = post->hub;

    uva__memory_free(&hub->allocator, post, sizeof(*post));
    uva__hub_release(hub);
}

static const struct uva__node_ops post_ops = {post_visit, post_free};

int uva_runtime_post(struct uva_runtime *runtime, uva_post_fn *fn, void *ctx)
{
    struct uva__hub *hub;
    struct post *post;

    if (runtime == NULL || fn == NULL)
        return EINVAL;
    hub = runtime->hub;
    if (!uva__hub_is_alive(hub))
        return EPERM;
    post = uva__memory_new(&hub->allocator, sizeof(*post));
    if (post == NULL)
        return ENOMEM;
    if (!uva__hub_enter(hub)) {
        uva__memory_free(&hub->allocator, post, sizeof(*post));
        return ESHUTDOWN;
    }
    uva__node_init(&post->node, &post_ops, 0); /* the mailbox counts it */
    post->hub = uva__hub_acquire(hub);
    post->fn = fn;
    post->ctx = ctx;
    post->held = uva__hub_on_loop(hub);
    if (post->held)
        uva__loop_hold(hub);
    uva__hub_acquire(hub);
    uva__hub_post(hub, &post->node);
    uva__hub_release(hub);
    return 0;
}

void uva_runtime_get_stats(const struct uva_runtime *runtime,
                           struct uva_runtime_stats *out)
{
    struct uva__counts *counts;

    memset(out, 0, sizeof(*out));
    if (runtime == NULL)
        return;
    counts = &runtime->hub->counts;
    out->streams_open = (int64_t)uva__word_load(&counts->streams_open);
    out->streams_held = (int64_t)uva__word_load(&counts->streams_held);
    out->tasks_held = (int64_t)uva__word_load(&counts->tasks_held);
    out->calls_stuck = (int64_t)uva__word_load(&counts->calls_stuck);
    out->peer_breaches = (int64_t)uva__word_load(&counts->peer_breaches);
    out->late_calls = (int64_t)uva__word_load(&counts->late_calls);
    out->hold_max_ns = (int64_t)uva__word_load(&counts->hold_max_ns);
    out->turns = (int64_t)uva__word_load(&counts->turns);
    uva__hub_count_threads(runtime->hub, &out->threads_compute,
                           &out->threads_blocking);
}

struct uva__hub *uva__loop_hub(struct uva_runtime *runtime)
{
    return runtime != NULL ? runtime->hub : NULL;
}
