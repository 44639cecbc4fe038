/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor that becomes readable at a time, on systems without timerfd: a
 * thread sleeps until then, and raises a descriptor that wakes a loop. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/platform.h"

struct uva__timer_thread {
    pthread_t thread;
    _Atomic uint32_t changed;   /* wakes the thread */
    struct uva__wake_fd due_fd; /* owns: raised when it is due */

    pthread_mutex_t mutex;
    int64_t due_ms; /* under `mutex`, like the rest */
    bool ends_now;
};

/* Returns how long the thread may sleep, in ns; negative: without a limit.
 * Under the mutex. */
static int64_t timer_thread_fire(struct uva__timer_thread *timer)
{
    const int64_t ns_in_ms = 1000000, now = (int64_t)uva__clock_ns();

    if (timer->due_ms == UVA__TIMER_FD_NEVER)
        return -1;
    if (now < timer->due_ms * ns_in_ms)
        return timer->due_ms * ns_in_ms - now;
    uva__wake_fd_raise(&timer->due_fd);
    timer->due_ms = UVA__TIMER_FD_NEVER;
    return -1;
}

static void *timer_thread_run(void *arg)
{
    struct uva__timer_thread *timer = arg;
    bool ends_now;
    uint32_t seen;
    int64_t ns;

    for (;;) {
        seen = timer->changed;
        (void)pthread_mutex_lock(&timer->mutex);
        ns = timer_thread_fire(timer);
        ends_now = timer->ends_now;
        (void)pthread_mutex_unlock(&timer->mutex);
        if (ends_now)
            return NULL;
        (void)uva__platform_sleep(&timer->changed, seen, ns);
    }
}

static void timer_thread_wake(struct uva__timer_thread *timer)
{
    timer->changed++;
    uva__platform_wake_all(&timer->changed);
}

static int timer_thread_start(struct uva__timer_thread *timer)
{
    int code = uva__wake_fd_open(&timer->due_fd);

    if (code != 0)
        return code;
    (void)pthread_mutex_init(&timer->mutex, NULL);
    timer->due_ms = UVA__TIMER_FD_NEVER;
    code = uva__platform_start_thread(&timer->thread, timer_thread_run, timer);
    if (code == 0)
        return 0;
    (void)pthread_mutex_destroy(&timer->mutex);
    uva__wake_fd_close(&timer->due_fd);
    return code;
}

int uva__timer_fd_open(struct uva__timer_fd *timer_fd)
{
    struct uva__timer_thread *timer = calloc(1, sizeof(*timer));
    const int code = timer != NULL ? timer_thread_start(timer) : ENOMEM;

    if (code != 0) {
        free(timer);
        timer = NULL;
    }
    timer_fd->thread = timer;
    timer_fd->fd = timer != NULL ? timer->due_fd.reader : -1;
    return code;
}

void uva__timer_fd_close(struct uva__timer_fd *timer_fd)
{
    struct uva__timer_thread *timer = timer_fd->thread;

    (void)pthread_mutex_lock(&timer->mutex);
    timer->ends_now = true;
    (void)pthread_mutex_unlock(&timer->mutex);
    timer_thread_wake(timer);
    (void)pthread_join(timer->thread, NULL);
    (void)pthread_mutex_destroy(&timer->mutex);
    uva__wake_fd_close(&timer->due_fd);
    free(timer);
}

void uva__timer_fd_set(struct uva__timer_fd *timer_fd, int64_t due_ms)
{
    struct uva__timer_thread *timer = timer_fd->thread;

    (void)pthread_mutex_lock(&timer->mutex);
    uva__wake_fd_clear(&timer->due_fd);
    timer->due_ms = due_ms;
    (void)timer_thread_fire(timer);
    (void)pthread_mutex_unlock(&timer->mutex);
    timer_thread_wake(timer);
}
