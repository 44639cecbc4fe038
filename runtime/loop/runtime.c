/* SPDX-License-Identifier: Apache-2.0 */
/* Opens, hosts and closes a runtime: embedded on the user's loop, on its own
 * thread, or turned by the user. The turns themselves are in loop/loop.c.
 *
 * Happy path:  open -> (turns) -> close -> the loop aborts open objects and
 *              detaches -> the user's callback is called, the struct is freed.
 *
 * Failures: open, which then leaves no trace.
 *
 * On close:    the struct is given up with the last handle; with its own
 *              thread, in join; turned by the user, in the last turn. It is
 *              freed when the user has released it, too. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "loop/own_loop.h"
#include "loop/runtime_impl.h"

enum { TURN_BATCHES = 256, TURN_US = 500 };

/* ---- options ------------------------------------------------------------- */

static int options_check(const struct uva_runtime_options *o,
                         struct uva_error *error)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"turn_us", o->turn_us},
                   {"memory_bytes", o->memory_bytes},
                   {"close_limit_ms", o->close_limit_ms}};
    static void *const zero[8];

    if (memcmp(o->reserved, zero, sizeof(zero)) != 0)
        return uva_error_set(error, EINVAL,
                             "uva_runtime_options: reserved members must be "
                             "NULL; clear the struct before filling it in");
    if (o->trace.reserved[0] != NULL || o->trace.reserved[1] != NULL)
        return uva_error_set(error, EINVAL,
                             "uva_runtime_options: reserved members of trace "
                             "must be NULL");
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (numbers[i].value < 0)
            return uva_error_set(error, EINVAL,
                                 "uva_runtime_options: %s must not be negative",
                                 numbers[i].name);
    if ((o->allocator.alloc == NULL) != (o->allocator.dealloc == NULL))
        return uva_error_set(error, EINVAL,
                             "uva_runtime_options: give both functions of the "
                             "allocator, or leave both NULL");
    return 0;
}

/* Two copies of libuv in one process do not mix: their structs may differ. */
static int options_check_uv(const struct uva_runtime_options *o,
                            struct uva_error *error)
{
    if (o->uv_version == 0 || o->uv_version == uv_version())
        return 0;
    return uva_error_set(
        error, EINVAL,
        "the program uses libuv %u.%u, uvarrow uses %u.%u; link both with one "
        "libuv, or open the runtime without a loop",
        o->uv_version >> 16, o->uv_version >> 8 & 255, uv_version() >> 16,
        uv_version() >> 8 & 255);
}

/* ---- turned by the user ------------------------------------------------- */

/* No time of uva__timer_fd_set(): the descriptor has become readable. */
enum { CLOCK_FIRED = -2 };

/* The descriptor is not read here: clock_set() makes it unreadable again. It
 * does so even for the same time, so that a host that notices only when the
 * descriptor becomes readable notices it again. */
static void clock_due(uv_poll_t *clock, int status, int events)
{
    (void)status;
    (void)events;
    uva__container_of(clock, struct uva_runtime, clock)->clock_due_ms =
        CLOCK_FIRED;
}

/* Makes the descriptor readable from `due_ms` on, a time of the loop's clock:
 * UVA__TIMER_FD_NOW: at once; UVA__TIMER_FD_NEVER: not at all. The loop's clock
 * may be a millisecond late, and a turn that comes before its timer is due
 * would be repeated until then. */
static void clock_set(struct uva_runtime *runtime, int64_t due_ms)
{
    if (runtime->clock_due_ms == due_ms)
        return;
    runtime->clock_due_ms = due_ms;
    uva__timer_fd_set(&runtime->clock_fd, due_ms > 0 ? due_ms + 1 : due_ms);
}

/* Makes the descriptor readable when libuv would have woken by itself. */
static void clock_follow(struct uva_runtime *runtime)
{
    const int timeout_ms = uv_backend_timeout(runtime->loop);

    if (timeout_ms < 0)
        clock_set(runtime, UVA__TIMER_FD_NEVER);
    else if (timeout_ms == 0)
        clock_set(runtime, UVA__TIMER_FD_NOW);
    else
        clock_set(runtime, (int64_t)uv_now(runtime->loop) + timeout_ms);
}

/* Waits until a turn has ended since `turned` was read. */
static void watcher_await_turn(struct uva_runtime *runtime, uint64_t turned)
{
    uint32_t seen;

    for (;;) {
        seen = uva__parker_prepare(&runtime->turn_awaited);
        if (uva__atomic64_load(&runtime->turned) != turned)
            break;
        uva__parker_park(&runtime->turn_awaited, seen);
    }
    uva__parker_finish(&runtime->turn_awaited);
}

/* The watcher requests a turn and waits until the host has taken it. The host
 * may also take one without a request. */
static void *watcher_run(void *ctx)
{
    struct uva_runtime *runtime = ctx;
    uint64_t turned;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    for (;;) {
        turned = uva__atomic64_load(&runtime->turned);
        if (!uva__readiness_await(&runtime->readiness))
            return NULL;
        runtime->post(runtime->post_ctx);
        watcher_await_turn(runtime, turned);
    }
}

/* A turn has ended: makes a system call only if the watcher sleeps. */
static void watcher_notify(struct uva_runtime *runtime)
{
    uva__atomic64_store(&runtime->turned,
                        uva__atomic64_peek(&runtime->turned) + 1);
    uva__parker_unpark(&runtime->turn_awaited);
}

/* ---- its own thread ----------------------------------------------------- */

static void *loop_run(void *ctx)
{
    struct uva_runtime *runtime = ctx;
    struct uva__rt *rt = runtime->rt;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    uva__atomic64_store(&runtime->rt->loop_thread, uva__thread_self());
    (void)uv_run(&runtime->own, UV_RUN_DEFAULT);
    (void)uv_loop_close(&runtime->own);
    uva__atomic64_store(&rt->loop_thread,
                        0); /* a later thread may get this number */
    uva__rt_release(rt);    /* the open runtime's; join frees the struct */
    return NULL;
}

/* ---- open --------------------------------------------------------------- */

/* What drives a runtime that is being opened. */
struct host {
    enum uva__hosting hosting;
    uv_loop_t *loop;   /* borrows: the user's, or NULL */
    uva_call_fn *post; /* hosted by posts */
    void *post_ctx;    /* borrows */
};

static int clock_attach(struct uva_runtime *runtime)
{
    int code = uva__timer_fd_open(&runtime->clock_fd);

    if (code != 0)
        return code;
    code = uv_poll_init_socket(runtime->loop, &runtime->clock,
                               (uv_os_sock_t)runtime->clock_fd.fd);
    if (code != 0) {
        uva__timer_fd_close(&runtime->clock_fd);
        runtime->clock_fd.fd = -1;
        return -code;
    }
    runtime->handles++;
    (void)uv_poll_start(&runtime->clock, UV_READABLE, clock_due);
    return 0;
}

/* Makes the loop's descriptor watch ours before the user gets it. */
static int host_by_turns(struct uva_runtime *runtime)
{
    int code = ENOTSUP;

    if (runtime->hosting == UVA__HOSTED_BY_POSTS || uva__readiness_has_fd())
        code = clock_attach(runtime);
    if (code != 0)
        return code;
    (void)uv_run(runtime->loop, UV_RUN_NOWAIT);
    clock_follow(runtime);
    if (runtime->hosting != UVA__HOSTED_BY_POSTS)
        return 0;
    code = uva__readiness_open(&runtime->readiness, runtime->loop);
    return code != 0 ? code
                     : uva__platform_start_thread(&runtime->watcher,
                                                  watcher_run, runtime);
}

static int host_start(struct uva_runtime *runtime)
{
    int code = uva__loop_attach(runtime);

    if (code != 0)
        return code;
    if (runtime->hosting == UVA__HOSTED_BY_THREAD)
        return uva__platform_start_thread(&runtime->thread, loop_run, runtime);
    uva__atomic64_store(&runtime->rt->loop_thread, uva__thread_self());
    return runtime->hosting == UVA__HOSTED_BY_LOOP ? 0 : host_by_turns(runtime);
}

/* Attached handles must be closed on the loop, which no other thread runs so
 * far. */
static void host_undo(struct uva_runtime *runtime)
{
    if (runtime->handles > 0) {
        runtime->hosting =
            UVA__HOSTED_BY_TURNS; /* so that runtime_on_detached() frees
                                     no memory */
        uva__loop_detach(runtime);
        (void)uv_run(runtime->loop, UV_RUN_NOWAIT);
    }
    (void)uv_loop_close(&runtime->own);
}

static void runtime_unuse(struct uva_runtime *runtime)
{
    struct uva__rt *rt = runtime->rt;

    if (uva__atomic64_sub(&runtime->users, 1) != 1)
        return;
    uva__memory_free(&rt->allocator, runtime, sizeof(*runtime));
    uva__rt_unhold(rt);
}

/* The runtime has closed. */
static void runtime_give_up(struct uva_runtime *runtime)
{
    struct uva__rt *rt = runtime->rt;

    if (runtime->clock_fd.fd >= 0)
        uva__timer_fd_close(&runtime->clock_fd);
    uva__readiness_close(&runtime->readiness);
    runtime_unuse(runtime);
    uva__rt_release(rt);
}

static void runtime_on_detached(struct uva_runtime *runtime);

static int runtime_new(const struct host *host,
                       const struct uva_runtime_options *o, struct uva__rt *rt,
                       struct uva_runtime **out)
{
    struct uva_runtime *runtime =
        uva__memory_new(&rt->allocator, sizeof(*runtime));

    if (runtime == NULL)
        return ENOMEM;
    runtime->rt = rt;
    uva__rt_hold(rt);
    uva__atomic64_store(&runtime->users, 1);
    runtime->on_detached = runtime_on_detached;
    uva__lane_news_init(runtime);
    runtime->clock_fd.fd = -1;
    runtime->clock_due_ms = UVA__TIMER_FD_NEVER;
    runtime->hosting = host->hosting;
    if (o->name != NULL)
        (void)snprintf(runtime->name, sizeof(runtime->name), "%s", o->name);
    runtime->post = host->post;
    runtime->post_ctx = host->post_ctx;
    runtime->turn_batches = TURN_BATCHES;
    runtime->turn_ns =
        1000 * (uint64_t)(o->turn_us != 0 ? o->turn_us : TURN_US);
    runtime->loop = host->loop != NULL ? host->loop : &runtime->own;
    uva__drain_init(runtime);
    *out = runtime;
    return 0;
}

static void runtime_log_opened(const struct uva_runtime *runtime)
{
    static const char *const hosts[] = {
        [UVA__HOSTED_BY_LOOP] = "on the program's loop",
        [UVA__HOSTED_BY_THREAD] = "on a thread of its own",
        [UVA__HOSTED_BY_TURNS] = "turned by the program",
        [UVA__HOSTED_BY_POSTS] = "turned by the program after posts",
    };

    uva__rt_log(runtime->rt, UVA_LOG_INFO, NULL, NULL, "runtime%s%s opened, %s",
                runtime->name[0] != '\0' ? " " : "", runtime->name,
                hosts[runtime->hosting]);
}

/* Without a request to close it, it has failed to open. */
static void runtime_log_closed(const struct uva_runtime *runtime)
{
    char text[64];

    if (!runtime->close_request.requested)
        return;
    (void)snprintf(text, sizeof(text), "runtime%s%s closed",
                   runtime->name[0] != '\0' ? " " : "", runtime->name);
    uva__rt_log_last(runtime->rt, text);
}

static int runtime_open(struct uva_runtime *runtime)
{
    int code;

    if (runtime->loop != &runtime->own)
        return host_start(runtime);
    code = uva__own_loop_init(&runtime->own);
    if (code != 0)
        return code;
    code = host_start(runtime);
    if (code != 0)
        host_undo(runtime);
    return code;
}

static int runtime_open_on(const struct host *host,
                           const struct uva_runtime_options *options,
                           struct uva_runtime **out, struct uva_error *error)
{
    const struct uva_runtime_options none = {0};
    const struct uva_runtime_options *o = options != NULL ? options : &none;
    struct uva__rt *rt;
    struct uva_runtime *runtime;
    int code = options_check(o, error);

    if (code == 0)
        code = options_check_uv(o, error);
    if (code != 0)
        return code;
    code = uva__rt_new(o, &rt);
    if (code != 0)
        return uva_error_set(error, code, "runtime: %s", strerror(code));
    code = runtime_new(host, o, rt, &runtime);
    if (code != 0) {
        uva__rt_retire(rt);
        uva__rt_release(rt);
        return uva_error_set(error, code, "runtime: %s", strerror(code));
    }
    code = runtime_open(runtime);
    if (code != 0) {
        uva__rt_retire(rt);
        runtime_give_up(runtime);
        return uva_error_set(error, code, "runtime: cannot use the loop: %s",
                             code == ENOMEM ? "no memory or no thread"
                                            : strerror(code));
    }
    uva__rt_opened(rt, o);
    runtime_log_opened(runtime);
    *out = runtime;
    return 0;
}

int uva_runtime_open(struct uv_loop_s *loop,
                     const struct uva_runtime_options *options,
                     struct uva_runtime **out, struct uva_error *error)
{
    const struct host host = {.hosting = loop != NULL ? UVA__HOSTED_BY_LOOP
                                                      : UVA__HOSTED_BY_THREAD,
                              .loop = loop};

    return runtime_open_on(&host, options, out, error);
}

int uva_runtime_open_turned(uva_call_fn *post, void *ctx,
                            const struct uva_runtime_options *options,
                            struct uva_runtime **out, struct uva_error *error)
{
    const struct host host = {.hosting = post != NULL ? UVA__HOSTED_BY_POSTS
                                                      : UVA__HOSTED_BY_TURNS,
                              .post = post,
                              .post_ctx = ctx};

    return runtime_open_on(&host, options, out, error);
}

/* ---- close -------------------------------------------------------------- */

int uva_runtime_close(struct uva_runtime *runtime, int64_t grace_ms,
                      uva_call_fn *fn, void *ctx)
{
    struct uva__rt *rt;
    int code;

    if (runtime == NULL || grace_ms < 0)
        return EINVAL;
    rt = runtime->rt;
    if (!uva__rt_is_alive(rt))
        return EPERM;
    uva__rt_hold(rt); /* the runtime may be freed while this posts */
    code = uva__close_request_set(&runtime->close_request, grace_ms, fn, ctx);
    if (code == 0)
        (void)uva__inflight_close(&rt->user_refs);
    if (code == 0 && runtime->hosting == UVA__HOSTED_BY_LOOP &&
        uva__rt_on_loop(rt))
        uva__loop_begin_close(runtime);
    uva__rt_wake(rt, &rt->closer);
    uva__rt_unhold(rt);
    return code;
}

/* The watcher may still be requesting the turn that this is. From now on no
 * turn is requested. */
static void watcher_end(struct uva_runtime *runtime)
{
    if (runtime->hosting != UVA__HOSTED_BY_POSTS)
        return;
    uva__readiness_leave(&runtime->readiness);
    watcher_notify(runtime);
    (void)pthread_join(runtime->watcher, NULL);
    runtime->hosting = UVA__HOSTED_BY_TURNS;
}

static void runtime_on_detached(struct uva_runtime *runtime)
{
    uva_call_fn *fn = runtime->close_request.fn;
    void *ctx = runtime->close_request.ctx;

    runtime->state = UVA__RUNTIME_CLOSED;
    uva__rt_retire(runtime->rt);
    runtime_log_closed(runtime);
    if (fn != NULL)
        fn(ctx);
    if (runtime->hosting == UVA__HOSTED_BY_LOOP)
        runtime_give_up(runtime);
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
    watcher_end(runtime);
    (void)uv_loop_close(&runtime->own);
    runtime_give_up(runtime);
}

/* From 1.45 on, libuv runs timers after the handles that close. If a timer was
 * the last step of a close, the descriptor's own handle is among those, so that
 * no other turn could be announced. */
static void turned_run(struct uva_runtime *runtime, uv_run_mode mode)
{
    runtime->is_running = true;
    do
        (void)uv_run(runtime->loop, mode);
    while (runtime->state == UVA__RUNTIME_DETACHED);
    runtime->is_running = false;
}

/* The library's own handles are due only by the clock. Handles of the host,
 * such as a socket that was not read to its end, may leave the descriptor
 * readable. */
static bool turned_is_due(const struct uva_runtime *runtime)
{
    return runtime->clock_due_ms == UVA__TIMER_FD_NOW ||
           (runtime->is_loop_used && uva__readiness_is_due(runtime->loop));
}

enum uva_turn uva_runtime_turn(struct uva_runtime *runtime)
{
    bool is_due;

    if (runtime == NULL || !is_turned(runtime))
        return UVA_TURN_CLOSED;
    if (!uva__rt_is_alive(runtime->rt) || runtime->is_running)
        return UVA_TURN_IDLE; /* in a forked child, or inside a callback */
    uva__atomic64_store(&runtime->rt->loop_thread, uva__thread_self());
    turned_run(runtime, UV_RUN_NOWAIT);
    if (runtime->state == UVA__RUNTIME_CLOSED) {
        turned_free(runtime);
        return UVA_TURN_CLOSED;
    }
    clock_follow(runtime);
    is_due = turned_is_due(runtime);
    watcher_notify(runtime);
    return is_due ? UVA_TURN_DUE : UVA_TURN_IDLE;
}

/* ---- join ---------------------------------------------------------------- */

static int thread_join(struct uva_runtime *runtime, int64_t grace_ms)
{
    if (uva__rt_must_not_wait(runtime->rt))
        return EDEADLK;
    (void)uva_runtime_close(runtime, grace_ms, NULL, NULL);
    (void)pthread_join(runtime->thread, NULL);
    runtime_unuse(runtime);
    return 0;
}

/* The turns sleep inside libuv, which a loop of a host's own cannot; the clock
 * has to follow it nevertheless, as it would else stay readable. */
static int turned_join(struct uva_runtime *runtime, int64_t grace_ms)
{
    if (!uva__rt_on_loop(runtime->rt))
        return EPERM;
    if (uva__turn_depth() > 0 || runtime->is_running)
        return EDEADLK;
    (void)uva_runtime_close(runtime, grace_ms, NULL, NULL);
    watcher_end(runtime);
    while (runtime->state != UVA__RUNTIME_CLOSED) {
        turned_run(runtime, UV_RUN_ONCE);
        clock_follow(runtime);
    }
    turned_free(runtime);
    return 0;
}

int uva_runtime_join(struct uva_runtime *runtime, int64_t grace_ms)
{
    if (runtime == NULL || runtime->hosting == UVA__HOSTED_BY_LOOP ||
        grace_ms < 0)
        return EINVAL;
    if (!uva__rt_is_alive(runtime->rt))
        return EPERM;
    return runtime->hosting == UVA__HOSTED_BY_THREAD
               ? thread_join(runtime, grace_ms)
               : turned_join(runtime, grace_ms);
}

/* ---- users --------------------------------------------------------------- */

struct uva_runtime *uva_runtime_acquire(struct uva_runtime *runtime)
{
    if (runtime != NULL)
        uva__atomic64_add(&runtime->users, 1);
    return runtime;
}

void uva_runtime_release(struct uva_runtime *runtime)
{
    if (runtime != NULL && uva__rt_is_alive(runtime->rt))
        runtime_unuse(runtime); /* a forked child frees no memory */
}

/* ---- everything else ---------------------------------------------------- */

bool uva_runtime_on_loop(const struct uva_runtime *runtime)
{
    return runtime != NULL && uva__rt_on_loop(runtime->rt);
}

void uva_runtime_log(struct uva_runtime *runtime, enum uva_log_level level,
                     const char *stream, const char *message)
{
    if (runtime != NULL && message != NULL && level >= UVA_LOG_ERROR &&
        level <= UVA_LOG_DEBUG)
        uva__rt_log(runtime->rt, level, stream, NULL, "%s", message);
}

/* Between turns a handle that is started on the loop after this call is not
 * reported, so the next turn finds out. */
struct uv_loop_s *uva_runtime_loop(struct uva_runtime *runtime)
{
    if (runtime == NULL)
        return NULL;
    if (!is_turned(runtime) || !uva__rt_on_loop(runtime->rt))
        return runtime->loop;
    runtime->is_loop_used = true;
    if (!uva__rt_in_turn(runtime->rt)) {
        uv_update_time(runtime->loop);
        clock_set(runtime, UVA__TIMER_FD_NOW);
    }
    return runtime->loop;
}
