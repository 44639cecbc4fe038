/* SPDX-License-Identifier: Apache-2.0 */
/* Opens, hosts and closes a runtime: embedded on the user's loop, on a thread
 * of its own, or turned by the user. The turns themselves are in loop/loop.c.
 *
 * Happy path:  open -> (turns) -> close -> the loop aborts open objects and
 *              detaches -> the user's callback is called, the struct is freed.
 *
 * What can fail: open, which then leaves nothing behind; nothing after that.
 *
 * On close:    the struct is freed with the last handle; with a thread of its
 *              own, in join; turned by the user, in the last turn. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/memory.h"
#include "loop/runtime_impl.h"

enum { TURN_BATCHES = 256, TURN_US = 500 };

/* ---- options ------------------------------------------------------------- */

static int options_check(const struct uva_runtime_options *o, bool guest,
                         struct uva_error *error)
{
    if (o->reserved[0] != NULL || o->reserved[1] != NULL)
        return uva_error_set(error, EINVAL,
                             "uva_runtime_options: reserved members must be "
                             "NULL; clear the struct before filling it in");
    if (o->turn_batches < 0 || o->turn_us < 0)
        return uva_error_set(error, EINVAL,
                             "uva_runtime_options: turn_batches and turn_us "
                             "must not be negative");
    if ((o->allocator.alloc == NULL) != (o->allocator.dealloc == NULL))
        return uva_error_set(error, EINVAL,
                             "uva_runtime_options: give both functions of the "
                             "allocator, or none");
    if (guest && o->no_thread)
        return uva_error_set(error, EINVAL,
                             "uva_runtime_options: no_thread is for a runtime "
                             "without a loop; pass NULL as loop");
    if (o->post != NULL && !o->no_thread)
        return uva_error_set(error, EINVAL,
                             "uva_runtime_options: post needs no_thread");
    return 0;
}

/* Two copies of libuv in one process do not mix: their structs may differ. */
static int options_check_uv(const struct uva_runtime_options *o,
                            uv_loop_t *loop, struct uva_error *error)
{
    Dl_info ours, theirs;
    void *own = NULL, *init = NULL;
    int (*run)(uv_loop_t *, uv_run_mode) = uv_run;
    void (*async)(uv_async_t *) = loop != NULL ? loop->wq_async.async_cb : NULL;

    if (o->uv_version != 0 && o->uv_version != uv_version())
        return uva_error_set(
            error, EINVAL,
            "the program uses libuv %u.%u, uvarrow uses %u.%u; link both "
            "with one libuv, or open the runtime without a loop",
            o->uv_version >> 16, o->uv_version >> 8 & 255, uv_version() >> 16,
            uv_version() >> 8 & 255);
    if (async == NULL)
        return 0;
    memcpy(&own, &run, sizeof(own));
    memcpy(&init, &async, sizeof(init));
    if (dladdr(own, &ours) != 0 && dladdr(init, &theirs) != 0 &&
        ours.dli_fbase != theirs.dli_fbase)
        return uva_error_set(error, EINVAL,
                             "the loop was made by another copy of libuv (%s, "
                             "ours is %s); link both with one libuv, or open "
                             "the runtime without a loop",
                             theirs.dli_fname, ours.dli_fname);
    return 0;
}

/* ---- turned by the user ------------------------------------------------- */

static void clock_read(uv_poll_t *clock, int status, int events)
{
    struct uva_runtime *rt =
        uva__container_of(clock, struct uva_runtime, clock);
    uint64_t count;

    (void)status;
    (void)events;
    if (read(rt->clock_fd, &count, sizeof(count)) < 0)
        return; /* it was set again meanwhile; no wake-up is lost */
}

/* Makes the descriptor readable when libuv would have woken by itself. */
static void clock_set(struct uva_runtime *rt)
{
    int timeout_ms = uv_backend_timeout(rt->loop);
    struct itimerspec when = {0};

    if (timeout_ms > 0) {
        when.it_value.tv_sec = timeout_ms / 1000;
        when.it_value.tv_nsec = (long)(timeout_ms % 1000) * 1000000;
    } else if (timeout_ms == 0) {
        when.it_value.tv_nsec = 1;
    }
    (void)timerfd_settime(rt->clock_fd, 0, &when, NULL);
}

/* The watcher requests a turn and waits until the host has taken it. The host
 * may also take one without a request, so it polls both descriptors at once. */
static void *watcher_run(void *ctx)
{
    struct uva_runtime *rt = ctx;
    struct pollfd watched[] = {
        {.fd = uv_backend_fd(&rt->own), .events = POLLIN},
        {.fd = rt->leave_fd, .events = POLLIN}};
    uint32_t turned;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    for (;;) {
        turned = uva__signal_now(&rt->turned);
        if (poll(watched, 2, -1) < 0)
            continue;
        if (watched[1].revents != 0)
            return NULL;
        if (watched[0].revents == 0)
            continue;
        rt->post(rt->post_ctx);
        while (uva__signal_now(&rt->turned) == turned)
            (void)uva__signal_wait(&rt->turned, turned, -1);
    }
}

/* ---- a thread of its own ------------------------------------------------ */

static void *loop_run(void *ctx)
{
    struct uva_runtime *rt = ctx;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    uva__word_store(&rt->hub->home, uva__thread_self());
    (void)uv_run(&rt->own, UV_RUN_DEFAULT);
    (void)uv_loop_close(&rt->own);
    uva__word_store(&rt->hub->home, 0); /* a later thread may get this number */
    return NULL;
}

/* ---- open --------------------------------------------------------------- */

static int clock_attach(struct uva_runtime *rt)
{
    int code;

    rt->clock_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (rt->clock_fd < 0)
        return errno;
    code = uv_poll_init(rt->loop, &rt->clock, rt->clock_fd);
    if (code != 0) {
        (void)close(rt->clock_fd);
        rt->clock_fd = -1;
        return -code;
    }
    rt->handles++;
    (void)uv_poll_start(&rt->clock, UV_READABLE, clock_read);
    return 0;
}

/* Makes the loop's descriptor watch ours before the user gets it. */
static int host_by_turns(struct uva_runtime *rt)
{
    int code = clock_attach(rt);

    if (code != 0)
        return code;
    (void)uv_run(rt->loop, UV_RUN_NOWAIT);
    clock_set(rt);
    if (rt->hosting != UVA__HOSTED_BY_POSTS)
        return 0;
    rt->leave_fd = eventfd(0, EFD_CLOEXEC);
    return rt->leave_fd < 0 ? errno
                            : uva__thread_start(&rt->watcher, watcher_run, rt);
}

static int host_start(struct uva_runtime *rt)
{
    int code = uva__loop_attach(rt);

    if (code != 0)
        return code;
    if (rt->hosting == UVA__HOSTED_BY_LOOP)
        uva__word_store(&rt->hub->home, uva__thread_self());
    else if (rt->hosting == UVA__HOSTED_BY_THREAD)
        code = uva__thread_start(&rt->thread, loop_run, rt);
    else
        code = host_by_turns(rt);
    return code;
}

/* Attached handles must be closed on the loop, which has no other user so far.
 */
static void host_undo(struct uva_runtime *rt)
{
    if (rt->handles > 0) {
        rt->hosting =
            UVA__HOSTED_BY_TURNS; /* so that shell_gone() frees nothing */
        uva__loop_detach(rt);
        (void)uv_run(rt->loop, UV_RUN_NOWAIT);
    }
    (void)uv_loop_close(&rt->own);
}

static void shell_free(struct uva_runtime *rt)
{
    struct uva__hub *hub = rt->hub;

    if (rt->clock_fd >= 0)
        (void)close(rt->clock_fd);
    if (rt->leave_fd >= 0)
        (void)close(rt->leave_fd);
    uva__memory_free(&hub->allocator, rt, sizeof(*rt));
    uva__hub_release(hub);
}

static enum uva__hosting hosting_of(uv_loop_t *loop,
                                    const struct uva_runtime_options *o)
{
    if (loop != NULL)
        return UVA__HOSTED_BY_LOOP;
    if (!o->no_thread)
        return UVA__HOSTED_BY_THREAD;
    return o->post != NULL ? UVA__HOSTED_BY_POSTS : UVA__HOSTED_BY_TURNS;
}

static void shell_gone(struct uva_runtime *rt);

static int shell_new(uv_loop_t *loop, const struct uva_runtime_options *o,
                     struct uva__hub *hub, struct uva_runtime **out)
{
    struct uva_runtime *rt = uva__memory_new(&hub->allocator, sizeof(*rt));

    if (rt == NULL)
        return ENOMEM;
    rt->hub = hub;
    rt->gone = shell_gone;
    rt->clock_fd = rt->leave_fd = -1;
    rt->hosting = hosting_of(loop, o);
    rt->post = o->post;
    rt->post_ctx = o->post_ctx;
    rt->turn_batches = o->turn_batches != 0 ? o->turn_batches : TURN_BATCHES;
    rt->turn_ns = 1000 * (uint64_t)(o->turn_us != 0 ? o->turn_us : TURN_US);
    rt->loop = loop != NULL ? loop : &rt->own;
    *out = rt;
    return 0;
}

static int shell_open(struct uva_runtime *rt)
{
    int code;

    if (rt->loop != &rt->own)
        return host_start(rt);
    code = -uv_loop_init(&rt->own);
    if (code != 0)
        return code;
    code = host_start(rt);
    if (code != 0)
        host_undo(rt);
    return code;
}

int uva_runtime_open(struct uv_loop_s *loop,
                     const struct uva_runtime_options *options,
                     struct uva_runtime **out, struct uva_error *error)
{
    const struct uva_runtime_options none = {0};
    const struct uva_runtime_options *o = options != NULL ? options : &none;
    struct uva__hub *hub;
    struct uva_runtime *rt;
    int code = options_check(o, loop != NULL, error);

    if (code == 0)
        code = options_check_uv(o, loop, error);
    if (code != 0)
        return code;
    code = uva__hub_new(o, &hub);
    if (code != 0)
        return uva_error_set(error, code, "runtime: %s", strerror(code));
    code = shell_new(loop, o, hub, &rt);
    if (code != 0) {
        uva__hub_retire(hub);
        uva__hub_release(hub);
        return uva_error_set(error, code, "runtime: %s", strerror(code));
    }
    code = shell_open(rt);
    if (code != 0) {
        uva__hub_retire(hub);
        shell_free(rt);
        return uva_error_set(error, code, "runtime: cannot use the loop: %s",
                             strerror(code));
    }
    *out = rt;
    return 0;
}

/* ---- close -------------------------------------------------------------- */

static int64_t grace_shorter(int64_t a, int64_t b)
{
    if (a == UVA_FOREVER || b == UVA_FOREVER)
        return a == UVA_FOREVER ? b : a;
    return a < b ? a : b;
}

/* Returns EALREADY if it was not the first request. */
static int wish_set(struct uva_runtime *rt, int64_t grace_ms, uva_closed_fn *fn,
                    void *ctx)
{
    struct uva__wish *wish = &rt->wish;
    int code = 0;

    uva__lock_take(&wish->lock);
    if (wish->wished) {
        wish->grace_ms = grace_shorter(wish->grace_ms, grace_ms);
        code = EALREADY;
    } else {
        wish->wished = true;
        wish->grace_ms = grace_ms;
        wish->fn = fn;
        wish->ctx = ctx;
    }
    uva__lock_drop(&wish->lock);
    return code;
}

int uva_runtime_close(struct uva_runtime *runtime, int64_t grace_ms,
                      uva_closed_fn *fn, void *ctx)
{
    struct uva__hub *hub;
    int code;

    if (runtime == NULL || grace_ms < UVA_FOREVER)
        return EINVAL;
    hub = runtime->hub;
    if (!uva__hub_is_alive(hub))
        return EPERM;
    uva__hub_acquire(hub); /* the runtime may be freed while this posts */
    code = wish_set(runtime, grace_ms, fn, ctx);
    if (code == 0)
        (void)uva__gate_shut(&hub->owed);
    if (code == 0 && uva__hub_on_loop(hub)) {
        runtime->closer_held = true;
        runtime->phase = UVA__CLOSING;
        uva__loop_hold(hub);
    }
    uva__hub_post(hub, &hub->closer);
    uva__hub_release(hub);
    return code;
}

/* The watcher may still be requesting the turn that this is. */
static void watcher_end(struct uva_runtime *rt)
{
    const uint64_t one = 1;

    while (write(rt->leave_fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
    uva__signal_raise(&rt->turned);
    (void)pthread_join(rt->watcher, NULL);
}

static void shell_gone(struct uva_runtime *rt)
{
    uva_closed_fn *fn = rt->wish.fn;
    void *ctx = rt->wish.ctx;

    rt->phase = UVA__GONE;
    uva__hub_retire(rt->hub);
    if (fn != NULL)
        fn(ctx);
    if (rt->hosting == UVA__HOSTED_BY_LOOP)
        shell_free(rt);
}

int uva_runtime_join(struct uva_runtime *runtime)
{
    if (runtime == NULL || runtime->hosting != UVA__HOSTED_BY_THREAD)
        return EINVAL;
    if (!uva__hub_is_alive(runtime->hub))
        return EPERM;
    if (uva__hub_must_not_wait(runtime->hub))
        return EDEADLK;
    (void)uva_runtime_close(runtime, UVA_FOREVER, NULL, NULL);
    (void)pthread_join(runtime->thread, NULL);
    shell_free(runtime);
    return 0;
}

/* ---- hosting without libuv ---------------------------------------------- */

static bool is_turned(const struct uva_runtime *rt)
{
    return rt->hosting == UVA__HOSTED_BY_TURNS ||
           rt->hosting == UVA__HOSTED_BY_POSTS;
}

int uva_runtime_fd(const struct uva_runtime *runtime)
{
    return runtime != NULL && is_turned(runtime) ? uv_backend_fd(&runtime->own)
                                                 : -1;
}

static void turned_gone(struct uva_runtime *rt)
{
    if (rt->hosting == UVA__HOSTED_BY_POSTS)
        watcher_end(rt);
    (void)uv_loop_close(&rt->own);
    shell_free(rt);
}

bool uva_runtime_turn(struct uva_runtime *runtime)
{
    if (runtime == NULL || !is_turned(runtime))
        return false;
    if (!uva__hub_is_alive(runtime->hub) || uva__hub_in_turn(runtime->hub))
        return true; /* in a forked child, or inside a callback */
    uva__word_store(&runtime->hub->home, uva__thread_self());
    (void)uv_run(runtime->loop, UV_RUN_NOWAIT);
    if (runtime->phase == UVA__GONE) {
        turned_gone(runtime);
        return false;
    }
    clock_set(runtime);
    uva__signal_raise(&runtime->turned);
    return true;
}

/* ---- everything else ---------------------------------------------------- */

bool uva_runtime_on_loop(const struct uva_runtime *runtime)
{
    return runtime != NULL && uva__hub_on_loop(runtime->hub);
}

struct uv_loop_s *uva_runtime_loop(const struct uva_runtime *runtime)
{
    return runtime != NULL ? runtime->loop : NULL;
}
