/* SPDX-License-Identifier: Apache-2.0 */
/* Each loop that watches a signal is called, so the loop of the command ends
 * in good order by its own handles, and this one counts the time. */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "loop.h"
#include "report.h"

/* ---- the thread --------------------------------------------------------- */

/* A pipe that other programs share gets its flags back: libuv has made it
 * non-blocking. */
static void guard_exit(struct uva__guard *guard)
{
    if (guard->flags >= 0)
        (void)fcntl(STDOUT_FILENO, F_SETFL, guard->flags);
    uv_mutex_lock(&guard->lock);
    if (guard->path != NULL)
        (void)unlink(guard->path);
    _exit(UVA__EXIT_SIGNAL + guard->signal);
}

static void guard_on_timer(uv_timer_t *timer)
{
    guard_exit(timer->data);
}

static void guard_on_signal(uv_signal_t *handle, int number)
{
    struct uva__guard *guard = handle->data;
    const bool is_first = guard->signal == 0;

    if (is_first)
        guard->signal = number;
    else if (guard->second_ms == 0)
        guard_exit(guard);
    (void)uv_timer_start(&guard->timer, guard_on_timer,
                         is_first ? guard->first_ms : guard->second_ms, 0);
}

static void guard_close_handle(uv_handle_t *handle, void *ctx)
{
    (void)ctx;
    uv_close(handle, NULL);
}

static void guard_on_stop(uv_async_t *stop)
{
    uv_walk(stop->loop, guard_close_handle, NULL);
}

static void guard_main(void *ctx)
{
    struct uva__guard *guard = ctx;

    (void)uv_run(&guard->loop, UV_RUN_DEFAULT);
}

/* ---- start and stop ----------------------------------------------------- */

bool uva__guard_takes_hangup(void)
{
    struct sigaction now;

    return sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler != SIG_IGN;
}

static int guard_watch(struct uva__guard *guard, bool hangup)
{
    static const int SIGNALS[UVA__GUARD_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};
    int code = 0, i;

    for (i = 0; i < UVA__GUARD_SIGNALS && code == 0; i++) {
        if (SIGNALS[i] == SIGHUP && (!hangup || !uva__guard_takes_hangup()))
            continue;
        (void)uv_signal_init(&guard->loop, &guard->signals[i]);
        guard->signals[i].data = guard;
        code = uv_signal_start(&guard->signals[i], guard_on_signal, SIGNALS[i]);
    }
    (void)uv_timer_init(&guard->loop, &guard->timer);
    guard->timer.data = guard;
    return code;
}

/* Undoes a start that has failed, in the thread that made it. */
static void guard_undo(struct uva__guard *guard)
{
    uv_walk(&guard->loop, guard_close_handle, NULL);
    (void)uv_run(&guard->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&guard->loop);
}

/* Returns 0 or a code of libuv. */
static int guard_start(struct uva__guard *guard, bool hangup)
{
    int code = uv_async_init(&guard->loop, &guard->stop, guard_on_stop);

    if (code == 0)
        code = guard_watch(guard, hangup);
    if (code == 0)
        code = uv_mutex_init(&guard->lock);
    if (code != 0)
        return code;
    code = uv_thread_create(&guard->thread, guard_main, guard);
    if (code != 0)
        uv_mutex_destroy(&guard->lock);
    return code;
}

int uva__guard_open(struct uva__guard *guard, uint64_t first_ms,
                    uint64_t second_ms, bool hangup, struct uva_error *error)
{
    int code;

    memset(guard, 0, sizeof(*guard));
    guard->first_ms = first_ms;
    guard->second_ms = second_ms;
    guard->flags = fcntl(STDOUT_FILENO, F_GETFL);
    code = uva__loop_open(&guard->loop, error);
    if (code != 0)
        return code;
    code = guard_start(guard, hangup);
    guard->is_open = code == 0;
    if (code == 0)
        return 0;
    guard_undo(guard);
    return uva_error_set(error, -code, "no thread for signals: %s",
                         uv_strerror(code));
}

void uva__guard_remove(struct uva__guard *guard, const char *path)
{
    uv_mutex_lock(&guard->lock);
    guard->path = path;
    uv_mutex_unlock(&guard->lock);
}

void uva__guard_close(struct uva__guard *guard)
{
    if (!guard->is_open)
        return;
    (void)uv_async_send(&guard->stop);
    (void)uv_thread_join(&guard->thread);
    (void)uv_loop_close(&guard->loop);
    uv_mutex_destroy(&guard->lock);
    guard->is_open = false;
}
