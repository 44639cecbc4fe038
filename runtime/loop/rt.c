/* SPDX-License-Identifier: Apache-2.0 */
/* Waking the loop, from any thread: publish, exchange the node's own `posted`,
 * push the node, then exchange `armed`; the thread that turns that from 0 to 1
 * makes the one system call. While the loop works `armed` stays 1, and no
 * thread makes a system call.
 *
 * On close: `closed` is set and the mailbox drained; a thread that posts after
 *           that sees it and releases the posted nodes by itself. */
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
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"

enum { LINE_SIZE = 1024 };

static const char *const levels[] = {"", "error", "warn", "info", "debug"};

static _Thread_local int turn_depth; /* turns that the thread is in */

/* ---- making one --------------------------------------------------------- */

static int alive_new(struct uva__word **out)
{
    void *page = mmap(NULL, sizeof(struct uva__word), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return ENOMEM;
    (void)madvise(page, sizeof(struct uva__word), MADV_WIPEONFORK);
    *out = page;
    uva__word_store(*out, 1);
    return 0;
}

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

/* The environment counts only where the program has set nothing. */
static void log_init(struct uva_log *log)
{
    const char *wish = getenv("UVA_LOG");
    int i;

    if (log->level == 0)
        log->level = UVA_LOG_WARN;
    if (log->write != NULL || wish == NULL)
        return;
    for (i = UVA_LOG_ERROR; i <= UVA_LOG_DEBUG; i++)
        if (strcmp(wish, levels[i]) == 0) {
            log->level = (enum uva_log_level)i;
            log->write = log_to_stderr;
        }
}

/* As for the log, the environment counts only where the option is 0. */
static bool check_init(int8_t check)
{
    const char *wish = getenv("UVA_CHECK");

    return check > 0 || (check == 0 && wish != NULL && strcmp(wish, "1") == 0);
}

int uva__hub_new(const struct uva_runtime_options *options,
                 struct uva__hub **out)
{
    struct uva_allocator allocator;
    struct uva__hub *hub;
    int code = uva__memory_adopt(&options->allocator, &allocator);

    if (code != 0)
        return code;
    hub = uva__memory_new_aligned(&allocator, sizeof(*hub), 64);
    if (hub == NULL)
        return ENOMEM;
    hub->allocator = allocator;
    hub->log = options->log;
    log_init(&hub->log);
    hub->checked = check_init(options->check);
    hub->loop.quantum = 1;
    uva__word_store(&hub->refs, 1);
    hub->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    code = hub->wake_fd < 0 ? errno : alive_new(&hub->alive);
    if (code != 0)
        goto fail_fd;
    code =
        uva__jobs_init(&hub->jobs, options->workers, &allocator, options->name);
    if (code != 0)
        goto fail_alive;
    *out = hub;
    return 0;

fail_alive:
    (void)munmap(hub->alive, sizeof(*hub->alive));
fail_fd:
    if (hub->wake_fd >= 0)
        (void)close(hub->wake_fd);
    uva__memory_free(&allocator, hub, sizeof(*hub));
    return code;
}

struct uva__hub *uva__hub_acquire(struct uva__hub *hub)
{
    uva__word_add(&hub->refs, 1);
    return hub;
}

void uva__hub_release(struct uva__hub *hub)
{
    struct uva_allocator allocator = hub->allocator;
    struct uva__annex *annex;
    int kind;

    if (uva__word_sub(&hub->refs, 1) != 1)
        return;
    for (kind = 0; kind < UVA__ANNEX_KINDS; kind++) {
        annex = uva__shared_load(&hub->annex[kind]);
        if (annex != NULL)
            annex->free(hub, annex);
    }
    (void)close(hub->wake_fd);
    (void)munmap(hub->alive, sizeof(*hub->alive));
    uva__memory_free(&allocator, hub, sizeof(*hub));
}

struct uva__annex *
uva__hub_annex(struct uva__hub *hub, enum uva__annex_kind kind,
               struct uva__annex *(*make)(struct uva__hub *hub))
{
    void *annex = uva__shared_load(&hub->annex[kind]);
    struct uva__annex *made;

    if (annex != NULL)
        return annex;
    made = make(hub);
    if (made == NULL || uva__shared_cas(&hub->annex[kind], &annex, made))
        return made;
    made->free(hub, made); /* another thread was first */
    return annex;
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

bool uva__hub_on_loop(const struct uva__hub *hub)
{
    return uva__word_load(&hub->home) == uva__thread_self();
}

bool uva__hub_must_not_wait(const struct uva__hub *hub)
{
    return uva__hub_on_loop(hub) || uva__turn_depth() > 0 ||
           uva__lane_is_compute();
}

/* ---- the mailbox -------------------------------------------------------- */

/* A thread that is cancelled must not end here, before it has woken the loop.
 */
static void hub_wake(struct uva__hub *hub)
{
    const uint64_t one = 1;
    int before, saved = errno;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    while (write(hub->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
    (void)pthread_setcancelstate(before, NULL);
    errno = saved;
}

static void inbox_dispose(struct uva__hub *hub)
{
    struct uva__node *node = uva__inbox_take(&hub->inbox), *next;

    for (; node != NULL; node = next) {
        next = uva__inbox_next(node);
        uva__inbox_unclaim(node);
        uva__node_release(node);
    }
}

/* Passes the caller's reference to a node on to the run queue; releases it if
 * the node is queued already. */
static void queue_push(struct uva__hub *hub, struct uva__node *node)
{
    if (node->queued) {
        uva__node_release(node);
        return;
    }
    node->queued = true;
    uva__list_push(&hub->loop.queue, &node->link);
}

void uva__hub_post(struct uva__hub *hub, struct uva__node *node)
{
    if (!uva__hub_is_alive(hub))
        return; /* a forked child shares the descriptor with its parent */
    if (uva__hub_in_turn(hub)) {
        if (node->queued)
            return;
        uva__node_acquire(node);
        queue_push(hub, node);
        return;
    }
    if (!uva__inbox_claim(node))
        return;
    uva__node_acquire(node);
    switch (uva__inbox_put(&hub->inbox, node)) {
    case UVA__INBOX_NOTHING:
        break;
    case UVA__INBOX_WAKE:
        hub_wake(hub);
        break;
    case UVA__INBOX_DISPOSE:
        inbox_dispose(hub);
    }
}

void uva__hub_collect(struct uva__hub *hub)
{
    struct uva__node *node, *next;

    for (node = uva__inbox_take(&hub->inbox); node != NULL; node = next) {
        next = uva__inbox_next(node);
        uva__inbox_unclaim(node);
        queue_push(hub, node);
    }
}

void uva__hub_add_detach_hook(struct uva__hub *hub,
                              struct uva__detach_hook *hook)
{
    struct uva__detach_hook *head = hub->loop.detach_hooks;

    hook->before = NULL;
    hook->next = head;
    if (head != NULL)
        head->before = hook;
    hub->loop.detach_hooks = hook;
}

void uva__hub_remove_detach_hook(struct uva__hub *hub,
                                 struct uva__detach_hook *hook)
{
    if (hook->before != NULL)
        hook->before->next = hook->next;
    else
        hub->loop.detach_hooks = hook->next;
    if (hook->next != NULL)
        hook->next->before = hook->before;
}

static void hub_detach(struct uva__hub *hub)
{
    struct uva__detach_hook *hook, *next;
    struct uva__annex *annex;
    int kind;

    for (kind = 0; kind < UVA__ANNEX_KINDS; kind++) {
        annex = uva__shared_load(&hub->annex[kind]);
        if (annex != NULL && annex->detach != NULL)
            annex->detach(hub, annex);
    }
    hook = hub->loop.detach_hooks;
    hub->loop.detach_hooks = NULL;
    for (; hook != NULL; hook = next) {
        next = hook->next; /* the hook may be gone after the call */
        hook->run(hook);
    }
}

void uva__hub_shut(struct uva__hub *hub)
{
    struct uva__link *link;

    hub_detach(hub);
    uva__inbox_close(&hub->inbox);
    inbox_dispose(hub);
    while ((link = uva__list_pop(&hub->loop.queue)) != NULL)
        uva__node_release(uva__container_of(link, struct uva__node, link));
}

/* ---- what a close waits for --------------------------------------------- */

bool uva__hub_enter(struct uva__hub *hub)
{
    return uva__gate_enter(&hub->owed);
}

void uva__hub_leave(struct uva__hub *hub)
{
    (void)uva__gate_leave(&hub->owed);
}

bool uva__hub_is_closing(struct uva__hub *hub)
{
    return uva__gate_is_shut(&hub->owed);
}

bool uva__hub_job_begin(struct uva__hub *hub)
{
    if (!uva__gate_join(&hub->abroad)) /* or other jobs keep the workers */
        return false;
    uva__hub_acquire(hub);
    return true;
}

int uva__hub_ensure_lane(struct uva__hub *hub, enum uva_lane lane)
{
    int code;

    if (!uva__hub_job_begin(hub)) /* keeps the workers */
        return ESHUTDOWN;
    code = uva__lane_ensure(&hub->jobs, lane);
    uva__hub_job_end(hub);
    return code;
}

int uva__hub_ensure_guest(struct uva__hub *hub)
{
    int code;

    if (!uva__hub_job_begin(hub))
        return ESHUTDOWN;
    code = uva__guest_ensure(&hub->jobs);
    uva__hub_job_end(hub);
    return code;
}

void uva__hub_count_threads(struct uva__hub *hub, int64_t *compute,
                            int64_t *blocking)
{
    if (!uva__hub_job_begin(hub))
        return;
    uva__lane_count(&hub->jobs, compute, blocking);
    uva__hub_job_end(hub);
}

/* Waits for jobs that have left the counter but are still returning. */
void uva__hub_retire(struct uva__hub *hub)
{
    if (uva__gate_shut(&hub->abroad) == UVA__GATE_OVER)
        uva__jobs_fini(&hub->jobs);
    while (uva__word_load(&hub->leaving) != 0)
        (void)sched_yield();
}

/* Makes uva__hub_retire() wait until the caller has returned. False: it has run
 * before, and `hub` is valid only while the caller holds a reference. */
static bool leaving_begin(struct uva__hub *hub)
{
    uva__word_add(&hub->leaving, 1);
    if (!uva__gate_is_shut(&hub->abroad))
        return true;
    uva__word_sub(&hub->leaving, 1);
    return false;
}

/* A close waits for the last job, up to a time limit; a job that ends later
 * releases the workers itself. */
void uva__hub_job_end(struct uva__hub *hub)
{
    bool awaited = leaving_begin(hub);
    const enum uva__gate_left left = uva__gate_leave(&hub->abroad);

    if (left == UVA__GATE_EMPTY && uva__hub_is_closing(hub))
        uva__hub_post(hub, &hub->closer);
    if (left == UVA__GATE_OVER) {
        if (awaited)
            uva__word_sub(&hub->leaving, 1);
        awaited = false;
        uva__jobs_fini(&hub->jobs);
    }
    uva__hub_release(hub);
    if (awaited)
        uva__word_sub(&hub->leaving, 1);
}

/* ---- log ---------------------------------------------------------------- */

void uva__hub_log(struct uva__hub *hub, enum uva_log_level level,
                  const char *stream, const char *clause, const char *format,
                  ...)
{
    char line[LINE_SIZE];
    struct uva_log_record record = {level, line, stream, clause};
    va_list args;

    if (hub->log.write == NULL || level > hub->log.level ||
        uva__hub_is_shut(hub))
        return;
    va_start(args, format);
    (void)vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    hub->log.write(hub->log.ctx, &record);
}

void uva__hub_breach(struct uva__hub *hub, const char *stream,
                     const char *clause, const char *what)
{
    uva__word_add(&hub->counts.peer_breaches, 1);
    uva__hub_log(hub, UVA_LOG_WARN, stream, clause, "%s", what);
}
