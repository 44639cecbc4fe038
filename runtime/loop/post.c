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
    struct uva__wakeup wakeup;
    struct uva__rt *rt; /* holds a reference */
    uva_call_fn *fn;    /* to be called */
    void *ctx;          /* borrows, until the call */
    bool keeps_loop;    /* keeps the loop alive */
};

static bool post_on_wakeup(struct uva__wakeup *wakeup)
{
    struct post *post = uva__container_of(wakeup, struct post, wakeup);
    struct uva__rt *rt = post->rt;

    post->fn(post->ctx);
    if (post->keeps_loop)
        uva__loop_unref(rt);
    uva__rt_leave(rt);
    return false;
}

static void post_free(struct uva__wakeup *wakeup)
{
    struct post *post = uva__container_of(wakeup, struct post, wakeup);
    struct uva__rt *rt = post->rt;

    uva__memory_free(&rt->allocator, post, sizeof(*post));
    uva__rt_release(rt);
}

static const struct uva__wakeup_ops post_ops = {post_on_wakeup, post_free};

int uva_runtime_post(struct uva_runtime *runtime, uva_call_fn *fn, void *ctx)
{
    struct uva__rt *rt;
    struct post *post;

    if (runtime == NULL || fn == NULL)
        return EINVAL;
    rt = runtime->rt;
    if (!uva__rt_is_alive(rt))
        return EPERM;
    post = uva__memory_new(&rt->allocator, sizeof(*post));
    if (post == NULL)
        return ENOMEM;
    if (!uva__rt_enter(rt)) {
        uva__memory_free(&rt->allocator, post, sizeof(*post));
        return ESHUTDOWN;
    }
    uva__wakeup_init(&post->wakeup, &post_ops, 0); /* the mailbox counts it */
    post->rt = uva__rt_acquire(rt);
    post->fn = fn;
    post->ctx = ctx;
    post->keeps_loop = uva__rt_on_loop(rt);
    if (post->keeps_loop)
        uva__loop_ref(rt);
    uva__rt_acquire(rt);
    uva__rt_wake(rt, &post->wakeup);
    uva__rt_release(rt);
    return 0;
}

void uva_runtime_get_stats(const struct uva_runtime *runtime,
                           struct uva_runtime_stats *out)
{
    struct uva__stats *stats;
    struct uva__rt *rt;

    memset(out, 0, sizeof(*out));
    if (runtime == NULL)
        return;
    rt = runtime->rt;
    stats = &rt->stats;
    out->streams_open = uva__inflight_count(&rt->streams);
    out->streams_held = (int64_t)uva__atomic64_load(&stats->streams_held);
    out->tasks_held = uva__stats_tasks_held(stats);
    out->tasks_revoked = (int64_t)uva__atomic64_load(&stats->tasks_revoked);
    out->calls_stuck = (int64_t)uva__atomic64_load(&stats->calls_stuck);
    out->peer_breaches = (int64_t)uva__atomic64_load(&stats->peer_breaches);
    out->late_calls = (int64_t)uva__atomic64_load(&stats->late_calls);
    out->hold_max_ns = (int64_t)uva__atomic64_load(&stats->hold_max_ns);
    out->hold_max_cpu_ns = (int64_t)uva__atomic64_load(&stats->hold_max_cpu_ns);
    out->turns = (int64_t)uva__atomic64_load(&stats->turns);
    out->memory_held = (int64_t)uva__atomic64_load(&stats->memory_held);
    out->memory_excess = (int64_t)uva__atomic64_load(&stats->memory_excess);
    if (!uva__rt_try_acquire(rt))
        return;
    uva__rt_count_threads(rt, &out->threads_compute, &out->threads_blocking);
    out->threads_stuck = uva__rt_count_written_off(rt);
    uva__rt_release(rt);
}

struct uva__rt *uva__loop_rt(struct uva_runtime *runtime)
{
    return runtime != NULL ? runtime->rt : NULL;
}
