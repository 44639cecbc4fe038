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

static int options_check(const struct uva_runtime_options *o, bool embedded,
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
    if (o->memory_bytes < 0)
        return uva_error_set(error, EINVAL,
                             "uva_runtime_options: memory_bytes must not be "
                             "negative");
    if (o->sources_open < 0)
        return uva_error_set(error, EINVAL,
                             "uva_runtime_options: sources_open must not be "
                             "negative");
    if ((o->allocator.alloc == NULL) != (o->allocator.dealloc == NULL))
        return uva_error_set(error, EINVAL,
                             "uva_runtime_options: give both functions of the "
                             "allocator, or none");
    if (embedded && o->no_thread)
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
    struct uva_runtime *runtime =
        uva__container_of(clock, struct uva_runtime, clock);
    uint64_t count;

    (void)status;
    (void)events;
    if (read(runtime->clock_fd, &count, sizeof(count)) < 0)
        return; /* it was set again meanwhile; no wake-up is lost */
}

/* Makes the descriptor readable when libuv would have woken by itself. */
static void clock_set(struct uva_runtime *runtime)
{
    int timeout_ms = uv_backend_timeout(runtime->loop);
    struct itimerspec when = {0};

    if (timeout_ms > 0) {
        when.it_value.tv_sec = timeout_ms / 1000;
        when.it_value.tv_nsec = (long)(timeout_ms % 1000) * 1000000;
    } else if (timeout_ms == 0) {
        when.it_value.tv_nsec = 1;
    }
    (void)timerfd_settime(runtime->clock_fd, 0, &when, NULL);
}

/* The watcher requests a turn and waits until the host has taken it. The host
 * may also take one without a request, so it polls both descriptors at once. */
static void *watcher_run(void *ctx)
{
    struct uva_runtime *runtime = ctx;
    struct pollfd watched[] = {
        {.fd = uv_backend_fd(&runtime->own), .events = POLLIN},
        {.fd = runtime->leave_fd, .events = POLLIN}};
    uint32_t turned;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    for (;;) {
        turned = uva__futex_now(&runtime->turned);
        if (poll(watched, 2, -1) < 0)
            continue;
        if (watched[1].revents != 0)
            return NULL;
        if (watched[0].revents == 0)
            continue;
        runtime->post(runtime->post_ctx);
        while (uva__futex_now(&runtime->turned) == turned)
            (void)uva__futex_wait(&runtime->turned, turned, -1);
    }
}

/* ---- a thread of its own ------------------------------------------------ */

static void *loop_run(void *ctx)
{
    struct uva_runtime *runtime = ctx;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    uva__atomic64_store(&runtime->rt->loop_thread, uva__thread_self());
    (void)uv_run(&runtime->own, UV_RUN_DEFAULT);
    (void)uv_loop_close(&runtime->own);
    uva__atomic64_store(&runtime->rt->loop_thread,
                        0); /* a later thread may get this number */
    return NULL;
}

/* ---- open --------------------------------------------------------------- */

static int clock_attach(struct uva_runtime *runtime)
{
    int code;

    runtime->clock_fd =
        timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (runtime->clock_fd < 0)
        return errno;
    code = uv_poll_init(runtime->loop, &runtime->clock, runtime->clock_fd);
    if (code != 0) {
        (void)close(runtime->clock_fd);
        runtime->clock_fd = -1;
        return -code;
    }
    runtime->handles++;
    (void)uv_poll_start(&runtime->clock, UV_READABLE, clock_read);
    return 0;
}

/* Makes the loop's descriptor watch ours before the user gets it. */
static int host_by_turns(struct uva_runtime *runtime)
{
    int code = clock_attach(runtime);

    if (code != 0)
        return code;
    (void)uv_run(runtime->loop, UV_RUN_NOWAIT);
    clock_set(runtime);
    if (runtime->hosting != UVA__HOSTED_BY_POSTS)
        return 0;
    runtime->leave_fd = eventfd(0, EFD_CLOEXEC);
    return runtime->leave_fd < 0
               ? errno
               : uva__thread_start(&runtime->watcher, watcher_run, runtime);
}

static int host_start(struct uva_runtime *runtime)
{
    int code = uva__loop_attach(runtime);

    if (code != 0)
        return code;
    if (runtime->hosting == UVA__HOSTED_BY_LOOP)
        uva__atomic64_store(&runtime->rt->loop_thread, uva__thread_self());
    else if (runtime->hosting == UVA__HOSTED_BY_THREAD)
        code = uva__thread_start(&runtime->thread, loop_run, runtime);
    else
        code = host_by_turns(runtime);
    return code;
}

/* Attached handles must be closed on the loop, which no other thread runs so
 * far. */
static void host_undo(struct uva_runtime *runtime)
{
    if (runtime->handles > 0) {
        runtime->hosting =
            UVA__HOSTED_BY_TURNS; /* so that runtime_on_detached() frees
                                     nothing */
        uva__loop_detach(runtime);
        (void)uv_run(runtime->loop, UV_RUN_NOWAIT);
    }
    (void)uv_loop_close(&runtime->own);
}

static void runtime_free(struct uva_runtime *runtime)
{
    struct uva__rt *rt = runtime->rt;

    if (runtime->clock_fd >= 0)
        (void)close(runtime->clock_fd);
    if (runtime->leave_fd >= 0)
        (void)close(runtime->leave_fd);
    uva__memory_free(&rt->allocator, runtime, sizeof(*runtime));
    uva__rt_release(rt);
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

static void runtime_on_detached(struct uva_runtime *runtime);

static int runtime_new(uv_loop_t *loop, const struct uva_runtime_options *o,
                       struct uva__rt *rt, struct uva_runtime **out)
{
    struct uva_runtime *runtime =
        uva__memory_new(&rt->allocator, sizeof(*runtime));

    if (runtime == NULL)
        return ENOMEM;
    runtime->rt = rt;
    runtime->on_detached = runtime_on_detached;
    runtime->clock_fd = runtime->leave_fd = -1;
    runtime->hosting = hosting_of(loop, o);
    runtime->post = o->post;
    runtime->post_ctx = o->post_ctx;
    runtime->turn_batches =
        o->turn_batches != 0 ? o->turn_batches : TURN_BATCHES;
    runtime->turn_ns =
        1000 * (uint64_t)(o->turn_us != 0 ? o->turn_us : TURN_US);
    runtime->loop = loop != NULL ? loop : &runtime->own;
    *out = runtime;
    return 0;
}

static int runtime_open(struct uva_runtime *runtime)
{
    int code;

    if (runtime->loop != &runtime->own)
        return host_start(runtime);
    code = -uv_loop_init(&runtime->own);
    if (code != 0)
        return code;
    code = host_start(runtime);
    if (code != 0)
        host_undo(runtime);
    return code;
}

int uva_runtime_open(struct uv_loop_s *loop,
                     const struct uva_runtime_options *options,
                     struct uva_runtime **out, struct uva_error *error)
{
    const struct uva_runtime_options none = {0};
    const struct uva_runtime_options *o = options != NULL ? options : &none;
    struct uva__rt *rt;
    struct uva_runtime *runtime;
    int code = options_check(o, loop != NULL, error);

    if (code == 0)
        code = options_check_uv(o, loop, error);
    if (code != 0)
        return code;
    code = uva__rt_new(o, &rt);
    if (code != 0)
        return uva_error_set(error, code, "runtime: %s", strerror(code));
    code = runtime_new(loop, o, rt, &runtime);
    if (code != 0) {
        uva__rt_retire(rt);
        uva__rt_release(rt);
        return uva_error_set(error, code, "runtime: %s", strerror(code));
    }
    code = runtime_open(runtime);
    if (code != 0) {
        uva__rt_retire(rt);
        runtime_free(runtime);
        return uva_error_set(error, code, "runtime: cannot use the loop: %s",
                             strerror(code));
    }
    *out = runtime;
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
static int close_request_set(struct uva_runtime *runtime, int64_t grace_ms,
                             uva_closed_fn *fn, void *ctx)
{
    struct uva__close_request *close_request = &runtime->close_request;
    int code = 0;

    uva__lock_take(&close_request->lock);
    if (close_request->requested) {
        close_request->grace_ms =
            grace_shorter(close_request->grace_ms, grace_ms);
        code = EALREADY;
    } else {
        close_request->requested = true;
        close_request->grace_ms = grace_ms;
        close_request->fn = fn;
        close_request->ctx = ctx;
    }
    uva__lock_drop(&close_request->lock);
    return code;
}

int uva_runtime_close(struct uva_runtime *runtime, int64_t grace_ms,
                      uva_closed_fn *fn, void *ctx)
{
    struct uva__rt *rt;
    int code;

    if (runtime == NULL || grace_ms < UVA_FOREVER)
        return EINVAL;
    rt = runtime->rt;
    if (!uva__rt_is_alive(rt))
        return EPERM;
    uva__rt_acquire(rt); /* the runtime may be freed while this posts */
    code = close_request_set(runtime, grace_ms, fn, ctx);
    if (code == 0)
        (void)uva__inflight_close(&rt->user_refs);
    if (code == 0 && uva__rt_on_loop(rt)) {
        runtime->closer_keeps_loop = true;
        runtime->state = UVA__RUNTIME_CLOSING;
        uva__loop_ref(rt);
    }
    uva__rt_wake(rt, &rt->closer);
    uva__rt_release(rt);
    return code;
}

/* The watcher may still be requesting the turn that this is. */
static void watcher_end(struct uva_runtime *runtime)
{
    const uint64_t one = 1;

    while (write(runtime->leave_fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
    uva__futex_raise(&runtime->turned);
    (void)pthread_join(runtime->watcher, NULL);
}

static void runtime_on_detached(struct uva_runtime *runtime)
{
    uva_closed_fn *fn = runtime->close_request.fn;
    void *ctx = runtime->close_request.ctx;

    runtime->state = UVA__RUNTIME_CLOSED;
    uva__rt_retire(runtime->rt);
    if (fn != NULL)
        fn(ctx);
    if (runtime->hosting == UVA__HOSTED_BY_LOOP)
        runtime_free(runtime);
}

int uva_runtime_join(struct uva_runtime *runtime)
{
    if (runtime == NULL || runtime->hosting != UVA__HOSTED_BY_THREAD)
        return EINVAL;
    if (!uva__rt_is_alive(runtime->rt))
        return EPERM;
    if (uva__rt_must_not_wait(runtime->rt))
        return EDEADLK;
    (void)uva_runtime_close(runtime, UVA_FOREVER, NULL, NULL);
    (void)pthread_join(runtime->thread, NULL);
    runtime_free(runtime);
    return 0;
}

/* ---- hosting without libuv ---------------------------------------------- */

static bool is_turned(const struct uva_runtime *runtime)
{
    return runtime->hosting == UVA__HOSTED_BY_TURNS ||
           runtime->hosting == UVA__HOSTED_BY_POSTS;
}

int uva_runtime_fd(const struct uva_runtime *runtime)
{
    return runtime != NULL && is_turned(runtime) ? uv_backend_fd(&runtime->own)
                                                 : -1;
}

static void turned_free(struct uva_runtime *runtime)
{
    if (runtime->hosting == UVA__HOSTED_BY_POSTS)
        watcher_end(runtime);
    (void)uv_loop_close(&runtime->own);
    runtime_free(runtime);
}

bool uva_runtime_turn(struct uva_runtime *runtime)
{
    if (runtime == NULL || !is_turned(runtime))
        return false;
    if (!uva__rt_is_alive(runtime->rt) || uva__rt_in_turn(runtime->rt))
        return true; /* in a forked child, or inside a callback */
    uva__atomic64_store(&runtime->rt->loop_thread, uva__thread_self());
    (void)uv_run(runtime->loop, UV_RUN_NOWAIT);
    if (runtime->state == UVA__RUNTIME_CLOSED) {
        turned_free(runtime);
        return false;
    }
    clock_set(runtime);
    uva__futex_raise(&runtime->turned);
    return true;
}

/* ---- everything else ---------------------------------------------------- */

bool uva_runtime_on_loop(const struct uva_runtime *runtime)
{
    return runtime != NULL && uva__rt_on_loop(runtime->rt);
}

struct uv_loop_s *uva_runtime_loop(const struct uva_runtime *runtime)
{
    return runtime != NULL ? runtime->loop : NULL;
}
