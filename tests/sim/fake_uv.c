/* SPDX-License-Identifier: Apache-2.0 */
/* A fake libuv: the functions that the library calls, on the real structs, in
 * libuv's order within a loop iteration, that before 1.45 or that since then,
 * on the engine's clock. Sleeping means that the fiber that runs the loop
 * waits. Misuse of a handle ends the schedule: closing it twice, starting it
 * after its close, using it on another fiber, or leaving it in its loop. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <uv.h>

#include "sim/arena.h"
#include "sim/engine.h"
#include "sim/fake_files.h"
#include "sim/fake_uv.h"

enum { ACTIVE = 1, REFERENCED = 2, CLOSING = 4 };

/* The state of a loop, stored in its `internal_fields`. */
struct fake_loop {
    uv_handle_t *handles; /* the newest first, linked by handle_queue[0] */
    uint64_t now_ms;
    uint64_t starts; /* starts of timers: orders those due at once */
    int fd;          /* readable when a watched descriptor is */
    int runner;      /* the fiber inside uv_run(), or -1 */
};

static uint64_t clock_ns, clock_tick_ns;
static bool timers_last; /* timers run after the handles that close */

/* Mutexes that fibers hold. */
enum { FIBERS = 512 };
static int mutexes_held[FIBERS];

/* How far the fine clock may be ahead of the engine's. A busy thread would else
 * keep threads that wait for a time waiting for ever. */
static const uint64_t AHEAD_NS = 1000000000;

void fake_uv_begin(uint64_t tick_ns)
{
    clock_ns = 0;
    clock_tick_ns = tick_ns;
    timers_last = sim_choose(2) != 0;
    memset(mutexes_held, 0, sizeof(mutexes_held));
}

bool fake_uv_ticks(void)
{
    return clock_tick_ns > 0;
}

bool fake_uv_moves_time(void)
{
    return fake_uv_ticks() && clock_ns > AHEAD_NS;
}

/* Never later than the engine's clock, but possibly ahead of it. */
uint64_t fake_uv_hrtime(void)
{
    if (clock_ns < sim_now_ns())
        clock_ns = sim_now_ns();
    if (clock_tick_ns > 0)
        clock_ns += sim_choose(clock_tick_ns);
    if (clock_ns > AHEAD_NS)
        sim_pass_time(clock_ns - AHEAD_NS);
    return clock_ns;
}

uint64_t uv_hrtime(void)
{
    return fake_uv_hrtime();
}

static struct fake_loop *fake_of(const uv_loop_t *loop)
{
    if (loop->internal_fields == NULL)
        sim_fail("a loop is used that is not open");
    return loop->internal_fields;
}

static uv_handle_t *handle_after(const uv_handle_t *handle)
{
    return handle->handle_queue[0];
}

/* ---- loops -------------------------------------------------------------- */

static bool loop_is_readable(void *ctx)
{
    const struct fake_loop *fake = ctx;
    const uv_handle_t *handle = fake->handles;

    for (; handle != NULL; handle = handle_after(handle))
        if (handle->type == UV_POLL && (handle->flags & ACTIVE) &&
            fake_files_is_readable(((const uv_poll_t *)handle)->io_watcher.fd))
            return true;
    return false;
}

/* Returns when a descriptor will become readable by itself. */
static uint64_t loop_due_ns(void *ctx)
{
    const struct fake_loop *fake = ctx;
    const uv_handle_t *handle = fake->handles;
    uint64_t due = UINT64_MAX, other;

    for (; handle != NULL; handle = handle_after(handle)) {
        if (handle->type != UV_POLL || !(handle->flags & ACTIVE))
            continue;
        other = fake_files_due_ns(((const uv_poll_t *)handle)->io_watcher.fd);
        due = other < due ? other : due;
    }
    return due;
}

int uv_loop_init(uv_loop_t *loop)
{
    struct fake_loop *fake = arena_new(sizeof(*fake), "a loop");

    memset(loop, 0, sizeof(*loop));
    loop->internal_fields = fake;
    fake->runner = -1;
    fake->now_ms = sim_now_ns() / 1000000;
    fake->fd = fake_files_new_set(loop_is_readable, loop_due_ns, fake);
    return 0;
}

int uv_loop_close(uv_loop_t *loop)
{
    struct fake_loop *fake = fake_of(loop);

    if (fake->handles != NULL)
        sim_fail("a loop is closed with handles on it");
    fake_files_close(fake->fd);
    arena_free(fake);
    loop->internal_fields = NULL;
    return 0;
}

uint64_t uv_now(const uv_loop_t *loop)
{
    return fake_of(loop)->now_ms;
}

void uv_update_time(uv_loop_t *loop)
{
    fake_of(loop)->now_ms = sim_now_ns() / 1000000;
}

unsigned uv_version(void)
{
    return UV_VERSION_HEX;
}

int uv_backend_fd(const uv_loop_t *loop)
{
    return fake_of(loop)->fd;
}

/* ---- handles ------------------------------------------------------------ */

static int handle_init(uv_loop_t *loop, uv_handle_t *handle,
                       uv_handle_type type)
{
    struct fake_loop *fake = fake_of(loop);

    handle->loop = loop;
    handle->type = type;
    handle->flags = REFERENCED;
    handle->close_cb = NULL;
    handle->handle_queue[0] = fake->handles;
    fake->handles = handle;
    return 0;
}

static struct fake_loop *handle_use(uv_handle_t *handle)
{
    struct fake_loop *fake = fake_of(handle->loop);

    if (handle->flags & CLOSING)
        sim_fail("a handle is used after its close");
    if (fake->runner >= 0 && fake->runner != sim_self())
        sim_fail("a handle is used by a thread that is not its loop's");
    return fake;
}

void uv_ref(uv_handle_t *handle)
{
    (void)handle_use(handle);
    handle->flags |= REFERENCED;
}

void uv_unref(uv_handle_t *handle)
{
    (void)handle_use(handle);
    handle->flags &= ~(unsigned)REFERENCED;
}

int uv_is_active(const uv_handle_t *handle)
{
    return (handle->flags & ACTIVE) != 0;
}

void uv_close(uv_handle_t *handle, uv_close_cb done)
{
    (void)handle_use(handle);
    handle->flags = CLOSING;
    handle->close_cb = done;
}

int uv_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd)
{
    (void)fake_files_is_readable(fd); /* fails if it is not ours */
    poll->io_watcher.fd = fd;
    return handle_init(loop, (uv_handle_t *)poll, UV_POLL);
}

int uv_poll_init_socket(uv_loop_t *loop, uv_poll_t *poll, uv_os_sock_t fd)
{
    return uv_poll_init(loop, poll, fd);
}

int uv_poll_start(uv_poll_t *poll, int events, uv_poll_cb done)
{
    (void)handle_use((uv_handle_t *)poll);
    (void)events;
    poll->poll_cb = done;
    poll->flags |= ACTIVE;
    return 0;
}

int uv_timer_init(uv_loop_t *loop, uv_timer_t *timer)
{
    return handle_init(loop, (uv_handle_t *)timer, UV_TIMER);
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb done, uint64_t timeout_ms,
                   uint64_t repeat_ms)
{
    struct fake_loop *fake = handle_use((uv_handle_t *)timer);

    if (repeat_ms != 0)
        sim_fail("a timer that repeats");
    timer->timer_cb = done;
    timer->timeout = fake->now_ms + timeout_ms;
    timer->start_id = ++fake->starts;
    timer->flags |= ACTIVE;
    return 0;
}

int uv_timer_stop(uv_timer_t *timer)
{
    (void)handle_use((uv_handle_t *)timer);
    timer->flags &= ~(unsigned)ACTIVE;
    return 0;
}

int uv_idle_init(uv_loop_t *loop, uv_idle_t *idle)
{
    return handle_init(loop, (uv_handle_t *)idle, UV_IDLE);
}

int uv_idle_start(uv_idle_t *idle, uv_idle_cb done)
{
    (void)handle_use((uv_handle_t *)idle);
    idle->idle_cb = done;
    idle->flags |= ACTIVE;
    return 0;
}

int uv_idle_stop(uv_idle_t *idle)
{
    (void)handle_use((uv_handle_t *)idle);
    idle->flags &= ~(unsigned)ACTIVE;
    return 0;
}

int uv_check_init(uv_loop_t *loop, uv_check_t *check)
{
    return handle_init(loop, (uv_handle_t *)check, UV_CHECK);
}

int uv_check_start(uv_check_t *check, uv_check_cb done)
{
    (void)handle_use((uv_handle_t *)check);
    check->check_cb = done;
    check->flags |= ACTIVE;
    return 0;
}

int uv_check_stop(uv_check_t *check)
{
    (void)handle_use((uv_handle_t *)check);
    check->flags &= ~(unsigned)ACTIVE;
    return 0;
}

/* ---- mutexes and conditions ---------------------------------------------- */

/* In the memory of a mutex. */
struct fake_mutex {
    int fiber; /* that holds it, plus one; 0: free */
};

/* In the memory of a condition. */
struct fake_cond {
    uint64_t rung; /* broadcasts */
};

/* The wait of a fiber. */
struct fake_wait {
    const struct fake_cond *cond;
    uint64_t seen; /* broadcasts before the wait */
};

static int *mutex_held(void)
{
    if (sim_self() < 0 || sim_self() >= FIBERS)
        sim_fail("a mutex is used by fiber %d", sim_self());
    return &mutexes_held[sim_self()];
}

bool fake_uv_holds_mutex(void)
{
    return *mutex_held() != 0;
}

int uv_mutex_init(uv_mutex_t *mutex)
{
    ((struct fake_mutex *)(void *)mutex)->fiber = 0;
    return 0;
}

void uv_mutex_destroy(uv_mutex_t *mutex)
{
    if (((struct fake_mutex *)(void *)mutex)->fiber != 0)
        sim_fail("a mutex is destroyed that is held");
}

static bool mutex_is_free(void *ctx)
{
    return ((const struct fake_mutex *)ctx)->fiber == 0;
}

void uv_mutex_lock(uv_mutex_t *mutex)
{
    struct fake_mutex *fake = (void *)mutex;

    if (fake->fiber == sim_self() + 1)
        sim_fail("a mutex is locked twice");
    sim_point();
    sim_flush();
    sim_wait(mutex_is_free, fake);
    fake->fiber = sim_self() + 1;
    ++*mutex_held();
}

void uv_mutex_unlock(uv_mutex_t *mutex)
{
    struct fake_mutex *fake = (void *)mutex;

    if (fake->fiber != sim_self() + 1)
        sim_fail("a mutex is unlocked that the thread does not hold");
    sim_flush();
    fake->fiber = 0;
    --*mutex_held();
    sim_point();
}

int uv_cond_init(uv_cond_t *cond)
{
    ((struct fake_cond *)(void *)cond)->rung = 0;
    return 0;
}

void uv_cond_destroy(uv_cond_t *cond)
{
    (void)cond;
}

void uv_cond_broadcast(uv_cond_t *cond)
{
    ((struct fake_cond *)(void *)cond)->rung++;
}

static bool cond_has_rung(void *ctx)
{
    const struct fake_wait *wait = ctx;

    return wait->cond->rung != wait->seen;
}

int uv_cond_timedwait(uv_cond_t *cond, uv_mutex_t *mutex, uint64_t timeout_ns)
{
    struct fake_wait wait = {.cond = (const void *)cond};
    bool rung;

    wait.seen = wait.cond->rung;
    uv_mutex_unlock(mutex);
    rung = sim_wait_until(cond_has_rung, &wait, sim_now_ns() + timeout_ns);
    uv_mutex_lock(mutex);
    return rung ? 0 : UV_ETIMEDOUT;
}

/* ---- threads --------------------------------------------------------------
 */

struct fake_start {
    uv_thread_cb run;
    void *ctx;
};

static void *thread_run(void *arg)
{
    const struct fake_start start = *(const struct fake_start *)arg;

    arena_free(arg);
    start.run(start.ctx);
    return NULL;
}

/* By the fake pthreads: sim/fake_threads.h. */
int uv_thread_create(uv_thread_t *thread, uv_thread_cb run, void *ctx)
{
    struct fake_start *start = arena_new(sizeof(*start), "a thread's start");

    int code;

    *start = (struct fake_start){run, ctx};
    code = pthread_create(thread, NULL, thread_run, start);
    if (code != 0)
        arena_free(start);
    return -code;
}

int uv_thread_join(uv_thread_t *thread)
{
    return -pthread_join(*thread, NULL);
}

uv_pid_t uv_os_getpid(void)
{
    return 1;
}

/* ---- an iteration ------------------------------------------------------- */

static uv_timer_t *timer_earliest(const struct fake_loop *fake)
{
    uv_handle_t *handle = fake->handles;
    uv_timer_t *earliest = NULL, *timer;

    for (; handle != NULL; handle = handle_after(handle)) {
        timer = (uv_timer_t *)handle;
        if (handle->type == UV_TIMER && (handle->flags & ACTIVE) &&
            (earliest == NULL || timer->timeout < earliest->timeout ||
             (timer->timeout == earliest->timeout &&
              timer->start_id < earliest->start_id)))
            earliest = timer;
    }
    return earliest;
}

static void turn_timers(uv_loop_t *loop)
{
    const struct fake_loop *fake = fake_of(loop);
    uv_timer_t *timer;

    while ((timer = timer_earliest(fake)) != NULL &&
           timer->timeout <= fake->now_ms) {
        timer->flags &= ~(unsigned)ACTIVE;
        timer->timer_cb(timer);
    }
}

/* Only close callbacks remove handles, so the list stays valid during the
 * callbacks. */
static void turn_handles(uv_loop_t *loop, uv_handle_type type)
{
    uv_handle_t *handle = fake_of(loop)->handles;

    for (; handle != NULL; handle = handle_after(handle)) {
        if (handle->type != type || !(handle->flags & ACTIVE))
            continue;
        if (type == UV_IDLE)
            ((uv_idle_t *)handle)->idle_cb((uv_idle_t *)handle);
        else if (type == UV_CHECK)
            ((uv_check_t *)handle)->check_cb((uv_check_t *)handle);
        else if (fake_files_is_readable(((uv_poll_t *)handle)->io_watcher.fd))
            ((uv_poll_t *)handle)->poll_cb((uv_poll_t *)handle, 0, UV_READABLE);
    }
}

static uv_handle_t *closing_take(struct fake_loop *fake)
{
    void **at = (void **)&fake->handles;
    uv_handle_t *handle;

    for (; (handle = *at) != NULL; at = &handle->handle_queue[0])
        if (handle->flags & CLOSING) {
            *at = handle->handle_queue[0];
            return handle;
        }
    return NULL;
}

static bool loop_has(const uv_loop_t *loop, unsigned flags)
{
    const uv_handle_t *handle = fake_of(loop)->handles;

    for (; handle != NULL; handle = handle_after(handle))
        if ((handle->flags & flags) == flags)
            return true;
    return false;
}

static bool loop_is_alive(const uv_loop_t *loop)
{
    return loop_has(loop, ACTIVE | REFERENCED) || loop_has(loop, CLOSING);
}

static bool loop_has_idle(const uv_loop_t *loop)
{
    const uv_handle_t *handle = fake_of(loop)->handles;

    for (; handle != NULL; handle = handle_after(handle))
        if (handle->type == UV_IDLE && (handle->flags & ACTIVE))
            return true;
    return false;
}

int uv_backend_timeout(const uv_loop_t *loop)
{
    const struct fake_loop *fake = fake_of(loop);
    const uv_timer_t *timer = timer_earliest(fake);

    if (!loop_is_alive(loop) || loop_has_idle(loop) || loop_has(loop, CLOSING))
        return 0;
    if (timer == NULL)
        return -1;
    if (timer->timeout <= fake->now_ms)
        return 0;
    return timer->timeout - fake->now_ms > INT_MAX
               ? INT_MAX
               : (int)(timer->timeout - fake->now_ms);
}

static void turn_sleep(uv_loop_t *loop, int timeout_ms)
{
    struct fake_loop *fake = fake_of(loop);
    uint64_t until = loop_due_ns(fake), other;

    if (timeout_ms == 0) {
        sim_point();
        return;
    }
    other = (fake->now_ms + (uint64_t)timeout_ms) * 1000000;
    if (timeout_ms > 0 && other < until)
        until = other;
    if (until == UINT64_MAX)
        sim_wait(loop_is_readable, fake);
    else
        (void)sim_wait_until(loop_is_readable, fake, until);
}

static void loop_turn_timers(uv_loop_t *loop)
{
    uv_update_time(loop);
    turn_timers(loop);
}

static void loop_turn(uv_loop_t *loop, uv_run_mode mode)
{
    struct fake_loop *fake = fake_of(loop);
    uv_handle_t *handle;

    if (!timers_last)
        loop_turn_timers(loop);
    turn_handles(loop, UV_IDLE);
    turn_sleep(loop, mode == UV_RUN_NOWAIT ? 0 : uv_backend_timeout(loop));
    uv_update_time(loop);
    turn_handles(loop, UV_POLL);
    turn_handles(loop, UV_CHECK);
    while ((handle = closing_take(fake)) != NULL)
        if (handle->close_cb != NULL)
            handle->close_cb(handle);
    if (timers_last || mode == UV_RUN_ONCE)
        loop_turn_timers(loop);
}

int uv_run(uv_loop_t *loop, uv_run_mode mode)
{
    struct fake_loop *fake = fake_of(loop);

    if (fake->runner >= 0)
        sim_fail("a loop is run while it runs");
    fake->runner = sim_self();
    if (timers_last && mode == UV_RUN_DEFAULT && loop_is_alive(loop))
        loop_turn_timers(loop);
    while (loop_is_alive(loop)) {
        loop_turn(loop, mode);
        if (mode != UV_RUN_DEFAULT)
            break;
    }
    fake->runner = -1;
    return loop_is_alive(loop);
}
