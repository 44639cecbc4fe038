/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime core: its reference count, its workers, its log, and the mailbox
 * by which any thread wakes the loop.
 *
 * Happy path:  a thread publishes its data, exchanges the wake-up's `posted`,
 *              pushes the wake-up, then exchanges `armed`; the thread that
 *              turns that from 0 to 1 makes the one system call. While the loop
 *              works `armed` stays 1, and no thread makes a system call.
 *
 * On close:    `closed` is set and the mailbox drained; a thread that posts
 *              after that sees it, and releases the posted wake-ups itself. */
#define _GNU_SOURCE
#include "loop/rt.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/time_limits.h"
#include "observe/trace_file.h"

enum { LINE_SIZE = 1024 };

static const char *const levels[] = {"", "error", "warn", "info", "debug"};

static _Thread_local int turn_depth; /* turns that the thread is in */

/* ---- making one --------------------------------------------------------- */

/* Writes a whole record at once, so that lines of several threads do not mix.
 */
static void log_to_stderr(void *ctx, const struct uva_log_record *record)
{
    (void)ctx;
    (void)fprintf(stderr, "uvarrow: %s: %s%s%s%s%s\n", levels[record->level],
                  record->stream != NULL ? record->stream : "",
                  record->stream != NULL ? ": " : "", record->message,
                  record->clause != NULL ? " " : "",
                  record->clause != NULL ? record->clause : "");
}

/* A record is one line: the messages of drivers may have several. */
static void line_flatten(char *line)
{
    for (; *line != '\0'; line++)
        if ((unsigned char)*line < ' ')
            *line = ' ';
}

/* The environment counts only where the program has set no value. Without a
 * destination the level is 0, so that one comparison finds out. */
static void log_init(struct uva_log *log)
{
    const char *wish = getenv("UVA_LOG");
    int i;

    if (log->write != NULL) {
        if (log->level == 0)
            log->level = UVA_LOG_WARN;
        return;
    }
    log->level = (enum uva_log_level)0;
    if (wish == NULL)
        return;
    for (i = UVA_LOG_ERROR; i <= UVA_LOG_DEBUG; i++)
        if (strcmp(wish, levels[i]) == 0) {
            log->level = (enum uva_log_level)i;
            log->write = log_to_stderr;
        }
}

static bool check_init(bool check)
{
    const char *wish = getenv("UVA_CHECK");

    return check || (wish != NULL && strcmp(wish, "1") == 0);
}

/* A program that cannot have its trace runs as well without it. The line goes
 * to standard error if there is no log, as the variable was set for a reason.
 */
static void trace_report(struct uva__rt *rt, const char *path, int code)
{
    char line[LINE_SIZE];
    const struct uva_log_record record = {.level = UVA_LOG_WARN,
                                          .message = line};

    (void)snprintf(line, sizeof(line), "UVA_TRACE: cannot write to %s: %s%s",
                   path, strerror(code),
                   code == EBUSY    ? "; another process writes to it"
                   : code == EINVAL ? "; it is no regular file"
                                    : "");
    line_flatten(line);
    if (rt->log.write == NULL)
        log_to_stderr(NULL, &record);
    else if (uva__rt_logs(rt, UVA_LOG_WARN))
        rt->log.write(rt->log.ctx, &record);
}

/* As for the log, the environment counts only without the option. */
static void trace_init(struct uva__rt *rt, const struct uva_trace *trace)
{
    const char *path = getenv("UVA_TRACE");
    int code;

    rt->trace = (struct uva_trace){.event = trace->event, .ctx = trace->ctx};
    if (trace->event != NULL || path == NULL || *path == '\0')
        return;
    code = uva__trace_file_open(path, &rt->trace);
    if (code != 0) {
        trace_report(rt, path, code);
        return;
    }
    rt->traces_to_file = true;
    rt->observed |= UVA__OBSERVED_TRACE;
}

/* Private workers have ended: they used the host's allocator and devices. */
static void workers_freed(void *ctx)
{
    uva__rt_release(ctx);
}

/* A job of the runtime waits, so the runtime core exists. */
static void rt_on_news(struct uva__jobs *jobs)
{
    struct uva__rt *rt = uva__container_of(jobs, struct uva__rt, jobs);

    uva__rt_wake(rt, &rt->lanes);
}

int uva__rt_new(const struct uva_runtime_options *options, struct uva__rt **out)
{
    struct uva_allocator allocator;
    struct uva__rt *rt;
    int code = uva__memory_adopt(&options->allocator, &allocator);

    if (code != 0)
        return code;
    rt = uva__memory_new_aligned(&allocator, sizeof(*rt), 64);
    if (rt == NULL)
        return ENOMEM;
    rt->allocator = allocator;
    rt->log = options->log;
    log_init(&rt->log);
    rt->checked = check_init(options->check);
    rt->observed =
        (uint8_t)((rt->log.level >= UVA_LOG_DEBUG ? UVA__OBSERVED_LOG : 0) |
                  (options->measure ? UVA__OBSERVED_MEASURE : 0) |
                  (options->trace.event != NULL ? UVA__OBSERVED_TRACE : 0));
    rt->memory_bytes = options->memory_bytes;
    rt->close_limit_ms = options->close_limit_ms != 0 ? options->close_limit_ms
                                                      : UVA__LIMIT_CLOSE_MS;
    rt->loop.quantum = 1;
    uva__atomic64_store(&rt->refs, 1);
    uva__atomic64_store(&rt->holds, 1);
    code = uva__wake_fd_open(&rt->wake_fd);
    if (code != 0)
        goto fail_rt;
    code = uva__fork_page_init(&rt->alive);
    if (code != 0)
        goto fail_fd;
    code =
        uva__jobs_init(&rt->jobs, options->workers, &allocator, options->name);
    if (code != 0)
        goto fail_alive;
    if (options->workers == NULL) {
        uva__rt_acquire(rt);
        uva__jobs_on_freed(&rt->jobs, workers_freed, rt);
    }
    rt->jobs.notify = rt_on_news;
    trace_init(rt, &options->trace);
    *out = rt;
    return 0;

fail_alive:
    uva__fork_page_fini(&rt->alive);
fail_fd:
    uva__wake_fd_close(&rt->wake_fd);
fail_rt:
    uva__memory_free(&allocator, rt, sizeof(*rt));
    return code;
}

void uva__rt_hold(struct uva__rt *rt)
{
    uva__atomic64_add(&rt->holds, 1);
}

void uva__rt_unhold(struct uva__rt *rt)
{
    struct uva_allocator allocator = rt->allocator;
    struct uva__rt_data *data;
    int kind;

    if (uva__atomic64_sub(&rt->holds, 1) != 1)
        return;
    for (kind = 0; kind < UVA__RT_DATA_KINDS; kind++) {
        data = uva__atomic_ptr_load(&rt->data[kind]);
        if (data != NULL)
            data->free(rt, data);
    }
    uva__wake_fd_close(&rt->wake_fd);
    uva__fork_page_fini(&rt->alive);
    uva__memory_free(&allocator, rt, sizeof(*rt));
}

struct uva__rt *uva__rt_acquire(struct uva__rt *rt)
{
    uva__atomic64_add(&rt->refs, 1);
    return rt;
}

bool uva__rt_try_acquire(struct uva__rt *rt)
{
    uint64_t refs = uva__atomic64_load(&rt->refs);

    while (refs != 0)
        if (uva__atomic64_cas(&rt->refs, &refs, refs + 1))
            return true;
    return false;
}

/* The callback is the very last use of the host's objects, so the memory is
 * freed before it. */
static void rt_on_quiet(struct uva__rt *rt)
{
    void (*const fn)(void *ctx) = rt->on_quiet;
    void *const ctx = rt->quiet_ctx;

    if (rt->traces_to_file && uva__rt_is_alive(rt))
        uva__trace_file_release(&rt->trace);
    if (rt->trace.free_ctx != NULL)
        rt->trace.free_ctx(rt->trace.ctx);
    uva__rt_unhold(rt);
    if (fn != NULL)
        fn(ctx);
}

void uva__rt_release(struct uva__rt *rt)
{
    if (uva__atomic64_sub(&rt->refs, 1) == 1)
        rt_on_quiet(rt);
}

void uva__rt_opened(struct uva__rt *rt,
                    const struct uva_runtime_options *options)
{
    rt->on_quiet = options->on_quiet;
    rt->quiet_ctx = options->quiet_ctx;
    if (!rt->traces_to_file)
        rt->trace.free_ctx = options->trace.free_ctx;
}

struct uva__rt_data *
uva__rt_get_data(struct uva__rt *rt, enum uva__rt_data_kind kind,
                 struct uva__rt_data *(*make)(struct uva__rt *rt))
{
    void *data = uva__atomic_ptr_load(&rt->data[kind]);
    struct uva__rt_data *made;

    if (data != NULL)
        return data;
    made = make(rt);
    if (made == NULL || uva__atomic_ptr_cas(&rt->data[kind], &data, made))
        return made;
    made->free(rt, made); /* another thread was first */
    return data;
}

/* ---- threads ------------------------------------------------------------ */

void uva__turn_begin(void)
{
    turn_depth++;
}

void uva__turn_end(void)
{
    assert(turn_depth > 0);
    turn_depth--;
}

int uva__turn_depth(void)
{
    return turn_depth;
}

bool uva__rt_on_loop(const struct uva__rt *rt)
{
    return uva__atomic64_load(&rt->loop_thread) == uva__thread_self();
}

bool uva__rt_must_not_wait(const struct uva__rt *rt)
{
    return uva__rt_on_loop(rt) || uva__turn_depth() > 0 ||
           uva__lane_is_compute();
}

/* ---- the mailbox -------------------------------------------------------- */

static void mailbox_dispose(struct uva__rt *rt)
{
    struct uva__wakeup *wakeup = uva__mailbox_take(&rt->mailbox), *next;

    for (; wakeup != NULL; wakeup = next) {
        next = uva__mailbox_next(wakeup);
        uva__mailbox_unclaim(wakeup);
        uva__wakeup_release(wakeup);
    }
}

/* Passes the caller's reference to a wake-up on to the run queue; releases it
 * if the wake-up is queued already. */
static void queue_push(struct uva__rt *rt, struct uva__wakeup *wakeup)
{
    if (wakeup->queued) {
        uva__wakeup_release(wakeup);
        return;
    }
    wakeup->queued = true;
    uva__list_push(&rt->loop.queue, &wakeup->link);
}

__attribute__((noinline)) bool uva__rt_post(struct uva__rt *rt,
                                            struct uva__wakeup *wakeup)
{
    uva__wakeup_acquire(wakeup);
    switch (uva__mailbox_put(&rt->mailbox, wakeup)) {
    case UVA__MAILBOX_NOTHING:
        break;
    case UVA__MAILBOX_WAKE:
        uva__wake_fd_raise(&rt->wake_fd);
        return true;
    case UVA__MAILBOX_DISPOSE:
        mailbox_dispose(rt);
    }
    return false;
}

__attribute__((noinline)) static bool rt_queue(struct uva__rt *rt,
                                               struct uva__wakeup *wakeup)
{
    uva__wakeup_acquire(wakeup);
    queue_push(rt, wakeup);
    return false;
}

/* For most batches the wake-up is posted or queued already: the other ways are
 * functions of their own, so that this one saves no registers. */
bool uva__rt_wake(struct uva__rt *rt, struct uva__wakeup *wakeup)
{
    if (!uva__rt_is_alive(rt))
        return false; /* a forked child shares the descriptor with its parent */
    if (uva__rt_in_turn(rt))
        return wakeup->queued ? false : rt_queue(rt, wakeup);
    return uva__mailbox_claim(wakeup) ? uva__rt_post(rt, wakeup) : false;
}

void uva__rt_collect(struct uva__rt *rt)
{
    struct uva__wakeup *wakeup, *next;

    for (wakeup = uva__mailbox_take(&rt->mailbox); wakeup != NULL;
         wakeup = next) {
        next = uva__mailbox_next(wakeup);
        uva__mailbox_unclaim(wakeup);
        queue_push(rt, wakeup);
    }
}

void uva__rt_hold_up(struct uva__rt *rt, struct uva__hold_up *hold_up,
                     const struct uva__hold_up_ops *ops)
{
    struct uva__hold_up *head = rt->loop.hold_ups;

    if (hold_up->state != UVA__HOLD_UP_FREE)
        return;
    hold_up->ops = ops;
    hold_up->state = UVA__HOLD_UP_HELD;
    hold_up->before = NULL;
    hold_up->next = head;
    if (head != NULL)
        head->before = hold_up;
    rt->loop.hold_ups = hold_up;
}

void uva__rt_drop_hold_up(struct uva__rt *rt, struct uva__hold_up *hold_up)
{
    if (hold_up->state == UVA__HOLD_UP_FREE)
        return;
    hold_up->state = UVA__HOLD_UP_FREE;
    if (hold_up->before != NULL)
        hold_up->before->next = hold_up->next;
    else
        rt->loop.hold_ups = hold_up->next;
    if (hold_up->next != NULL)
        hold_up->next->before = hold_up->before;
}

bool uva__rt_is_held_up(struct uva__rt *rt)
{
    struct uva__hold_up *hold_up;

    for (hold_up = rt->loop.hold_ups; hold_up != NULL;
         hold_up = hold_up->next) {
        if (hold_up->state == UVA__HOLD_UP_HELD && hold_up->ops != NULL &&
            hold_up->ops->close != NULL)
            hold_up->ops->close(hold_up);
        hold_up->state = UVA__HOLD_UP_CLOSING;
    }
    return rt->loop.hold_ups != NULL;
}

static void rt_detach(struct uva__rt *rt)
{
    struct uva__hold_up *hold_up;
    struct uva__rt_data *data;
    int kind;

    for (kind = 0; kind < UVA__RT_DATA_KINDS; kind++) {
        data = uva__atomic_ptr_load(&rt->data[kind]);
        if (data != NULL && data->detach != NULL)
            data->detach(rt, data);
    }
    while ((hold_up = rt->loop.hold_ups) != NULL) {
        uva__rt_drop_hold_up(rt, hold_up); /* it may be gone after the call */
        if (hold_up->ops != NULL && hold_up->ops->detach != NULL)
            hold_up->ops->detach(hold_up);
    }
}

void uva__rt_close(struct uva__rt *rt)
{
    struct uva__link *link;

    rt_detach(rt);
    uva__mailbox_close(&rt->mailbox);
    mailbox_dispose(rt);
    while ((link = uva__list_pop(&rt->loop.queue)) != NULL)
        uva__wakeup_release(uva__container_of(link, struct uva__wakeup, link));
}

/* ---- the waits of a close ----------------------------------------------- */

bool uva__rt_enter(struct uva__rt *rt)
{
    return uva__inflight_enter(&rt->user_refs);
}

void uva__rt_leave(struct uva__rt *rt)
{
    (void)uva__inflight_leave(&rt->user_refs);
}

static void stream_uncount(struct uva__rt *rt)
{
    if (uva__inflight_leave(&rt->streams) == UVA__INFLIGHT_DRAINED)
        uva__rt_wake(rt, &rt->drainer);
}

bool uva__rt_stream_begin(struct uva__rt *rt)
{
    if (!uva__inflight_enter(&rt->streams))
        return false;
    if (uva__rt_enter(rt))
        return true;
    stream_uncount(rt);
    return false;
}

void uva__rt_drain_on(struct uva__rt *rt)
{
    if (uva__inflight_is_drained(&rt->streams))
        uva__rt_wake(rt, &rt->drainer);
}

bool uva__rt_takes_streams(struct uva__rt *rt)
{
    return !uva__inflight_is_closed(&rt->streams) && !uva__rt_is_closing(rt);
}

void uva__rt_stream_end(struct uva__rt *rt)
{
    stream_uncount(rt);
    uva__rt_leave(rt);
}

bool uva__rt_is_closing(struct uva__rt *rt)
{
    return uva__inflight_is_closed(&rt->user_refs);
}

bool uva__rt_job_begin(struct uva__rt *rt)
{
    if (!uva__inflight_join(
            &rt->jobs_in_flight)) /* or other jobs keep the workers */
        return false;
    uva__rt_acquire(rt);
    return true;
}

int uva__rt_ensure_lane(struct uva__rt *rt, enum uva_lane lane)
{
    int code;

    if (!uva__rt_job_begin(rt)) /* keeps the workers */
        return ESHUTDOWN;
    code = uva__lane_ensure(&rt->jobs, lane);
    uva__rt_job_end(rt);
    return code;
}

int uva__rt_ensure_uncapped(struct uva__rt *rt)
{
    int code;

    if (!uva__rt_job_begin(rt))
        return ESHUTDOWN;
    code = uva__lane_ensure_uncapped(&rt->jobs);
    uva__rt_job_end(rt);
    return code;
}

void uva__rt_count_threads(struct uva__rt *rt, int64_t *compute,
                           int64_t *blocking)
{
    if (!uva__rt_job_begin(rt))
        return;
    uva__lane_count(&rt->jobs, compute, blocking);
    uva__rt_job_end(rt);
}

int64_t uva__rt_count_written_off(struct uva__rt *rt)
{
    int64_t n;

    if (!uva__rt_job_begin(rt))
        return 0;
    n = uva__lane_count_written_off(&rt->jobs);
    uva__rt_job_end(rt);
    return n;
}

/* Waits for jobs that have left the counter but are still returning, and for
 * calls of the log. */
void uva__rt_retire(struct uva__rt *rt)
{
    if (uva__inflight_close(&rt->jobs_in_flight) == UVA__INFLIGHT_DRAINED)
        uva__jobs_fini(&rt->jobs);
    while (uva__atomic64_load(&rt->jobs_returning) != 0)
        (void)sched_yield();
}

/* Makes uva__rt_retire() wait until the caller has returned. False: it has run
 * before, and `rt` is valid only while the caller holds a reference. */
static bool leaving_begin(struct uva__rt *rt)
{
    uva__atomic64_add(&rt->jobs_returning, 1);
    if (!uva__inflight_is_closed(&rt->jobs_in_flight))
        return true;
    uva__atomic64_sub(&rt->jobs_returning, 1);
    return false;
}

/* A close waits for the last job, up to a time limit; a job that ends later
 * releases the workers itself. */
void uva__rt_job_end(struct uva__rt *rt)
{
    bool awaited = leaving_begin(rt);
    const enum uva__inflight_left left =
        uva__inflight_leave(&rt->jobs_in_flight);

    if (left == UVA__INFLIGHT_IDLE && uva__rt_is_closing(rt))
        uva__rt_wake(rt, &rt->closer);
    if (left == UVA__INFLIGHT_DRAINED) {
        if (awaited)
            uva__atomic64_sub(&rt->jobs_returning, 1);
        awaited = false;
        uva__jobs_fini(&rt->jobs);
    }
    uva__rt_release(rt);
    if (awaited)
        uva__atomic64_sub(&rt->jobs_returning, 1);
}

/* ---- log ---------------------------------------------------------------- */

void uva__rt_log(struct uva__rt *rt, enum uva_log_level level,
                 const char *stream, const char *clause, const char *format,
                 ...)
{
    char line[LINE_SIZE];
    struct uva_log_record record = {level, line, stream, clause};
    va_list args;

    if (!uva__rt_logs(rt, level) || uva__rt_is_closed(rt) || !leaving_begin(rt))
        return;
    va_start(args, format);
    (void)vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    line_flatten(line);
    rt->log.write(rt->log.ctx, &record);
    uva__atomic64_sub(&rt->jobs_returning, 1);
}

void uva__rt_log_last(struct uva__rt *rt, const char *message)
{
    const struct uva_log_record record = {.level = UVA_LOG_INFO,
                                          .message = message};

    if (uva__rt_logs(rt, UVA_LOG_INFO))
        rt->log.write(rt->log.ctx, &record);
}

void uva__rt_breach(struct uva__rt *rt, const char *stream, const char *clause,
                    const char *what)
{
    uva__atomic64_add(&rt->stats.peer_breaches, 1);
    uva__rt_log(rt, UVA_LOG_WARN, stream, clause, "%s", what);
}
