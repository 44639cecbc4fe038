/* SPDX-License-Identifier: Apache-2.0 */
/* The host of an embedded runtime keeps its loop alive by its own handle until
 * the runtime is closed. The host of a runtime without a thread watches its
 * descriptor, or waits for the post hook. */
#include "sim/hosts.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uv.h>

#include "base/slab.h"
#include "exec/pool.h"
#include "loop/runtime_impl.h"
#include "sim/arena.h"
#include "sim/engine.h"
#include "sim/fake_files.h"
#include "sim/fake_uv.h"
#include "sim/monitor.h"
#include "sim/peers.h"

enum hosting { BY_LOOP, BY_THREAD, BY_TURNS, BY_POSTS };

static struct host {
    enum hosting how;
    struct uva_runtime_options options;
    int32_t turn_batches;        /* of one turn; 0: as programs have it */
    struct uva_runtime *runtime; /* NULL: it could not be opened, or is gone */
    const struct uva_runtime *joined; /* it, once it was joined */
    struct uva_permits *permits;      /* owns; NULL: not made, or no limit */
    int32_t sources;             /* that may be open at one time; 0: no limit */
    uv_loop_t loop;              /* for BY_LOOP */
    uv_poll_t deferred_releases; /* keeps that loop alive; on `fd` */
    int fd;                      /* an eventfd */
    bool opened; /* opening has finished, perhaps with an error */
    void (*begin)(struct uva_runtime *runtime); /* if alone: runs first */
    int fiber;          /* fiber that runs the loop; -1: not ours */
    bool may_close;     /* if alone: everything else is over */
    bool lets_go;       /* if alone: its streams may not keep the loop alive */
    bool posted;        /* a turn was requested */
    bool closing;       /* a close was requested */
    bool joins;         /* joins it: if turned, once the close has begun */
    bool joins_first;   /* the join closes it */
    bool closes_inside; /* in a callback of its loop, which it then leaves */
    bool may_join;     /* the call that closes it has returned, or none comes */
    bool may_revoke;   /* with a grace that ends */
    bool begun;        /* the call that closes it was made */
    bool joining;      /* the call that joins it was made */
    bool left;         /* a host's handle does not keep its loop any more */
    bool closed;       /* the close callback was called, or the join is over */
    bool draining;     /* a drain was accepted */
    bool has_deadline; /* the drain does not wait for ever */
    bool drained;      /* its callback was called */
    bool quiet;        /* the last call of all has come */
    int freed;         /* calls of the free_ctx of its trace */
    int inside;        /* calls that a close waits for: hosts_enter() */
    int64_t grace_ms;  /* of the close */
    uint64_t begun_ns; /* when that was called */
    int calls;         /* calls of its sources that are in progress */
    bool gone;         /* the fiber has finished with it */
} hosts[HOSTS];
static int hosts_used;
static bool are_varied, are_patient;
static bool is_checked;         /* some runtime checks every hop */
static bool is_check_requested; /* requested by the environment variable */
static void (*report_closed)(void *ctx);
static void *report_closed_ctx;

void hosts_begin(bool varied)
{
    are_varied = varied;
    are_patient = false;
    memset(hosts, 0, sizeof(hosts));
    hosts_used = 0;
    report_closed = NULL;
    is_checked = is_check_requested = false;
}

void hosts_be_patient(void)
{
    are_patient = true;
}

void hosts_on_closed(void (*fn)(void *ctx), void *ctx)
{
    report_closed = fn;
    report_closed_ctx = ctx;
}

static int64_t close_limit_ms(const struct host *host)
{
    return host->options.close_limit_ms != 0 ? host->options.close_limit_ms
                                             : 1000;
}

/* A close gives up the calls that do not return after its limit, and no
 * sooner. A clock that ticks may be ahead of the engine's. */
static void host_has_closed(struct host *host)
{
    const uint64_t took_ms = (sim_now_ns() - host->begun_ns) / 1000000;

    if (host->calls > 0 && !fake_uv_ticks() &&
        took_ms + 1 < (uint64_t)close_limit_ms(host))
        sim_fail("a close has waited %d ms for a call of a limit of %d ms",
                 (int)took_ms, (int)close_limit_ms(host));
    if (host->draining && !host->drained)
        sim_fail("closed before it was drained");
    host->closed = true;
}

/* ---- embedded ----------------------------------------------------------- */

/* Leaves its loop to the runtime. */
static void host_leave_loop(struct host *host)
{
    if (!host->left)
        uv_close((uv_handle_t *)&host->deferred_releases, NULL);
    host->left = true;
}

static void deferred_releases_called(uv_poll_t *deferred_releases, int status,
                                     int events)
{
    struct host *host = deferred_releases->data;
    uint64_t count;

    (void)status;
    (void)events;
    (void)!read(host->fd, &count, sizeof(count));
    host_leave_loop(host);
}

static void host_run_kept(struct host *host)
{
    host->fiber = sim_self();
    host->fd = eventfd(0, EFD_NONBLOCK);
    (void)uv_poll_init(&host->loop, &host->deferred_releases, host->fd);
    host->deferred_releases.data = host;
    (void)uv_poll_start(&host->deferred_releases, UV_READABLE,
                        deferred_releases_called);
    (void)uv_run(&host->loop, UV_RUN_DEFAULT);
    (void)close(host->fd);
}

static bool host_may_close(void *arg)
{
    const struct host *host = arg;

    return host->may_close || host->closing;
}

static void host_close(struct host *host, int64_t grace_ms);

static void host_keep(struct host *host, bool keeps)
{
    if (!host->closed)
        uva_runtime_keep_alive(host->runtime, keeps);
}

static void host_choose_to_keep(void *ctx)
{
    host_keep(ctx, sim_choose(2) != 0);
}

/* The streams may be let go before the loop runs, and while it does. */
static void host_run_let_go(struct host *host)
{
    expectation_note("the streams are let go");
    host_keep(host, false);
    (void)uv_run(&host->loop, UV_RUN_DEFAULT);
    if (!host->closed &&
        uva_runtime_post(host->runtime, host_choose_to_keep, host) == 0)
        (void)uv_run(&host->loop, UV_RUN_DEFAULT);
    host_keep(host, true);
}

/* A chain that is left when the loop ends would wait for ever. */
static void host_run_alone(struct host *host)
{
    host->begin(host->runtime);
    host->fiber = sim_self();
    if (host->lets_go)
        host_run_let_go(host);
    (void)uv_run(&host->loop, UV_RUN_DEFAULT);
    expectation_note("the loop has nothing more to do");
    sim_wait(host_may_close, host);
    host_keep(host, !host->lets_go);
    host_close(host, 0);
    (void)uv_run(&host->loop, UV_RUN_DEFAULT);
}

/* Has a turn end after few batches. */
static void host_limit_turn(struct host *host)
{
    if (host->runtime != NULL && host->turn_batches != 0)
        host->runtime->turn_batches = host->turn_batches;
}

static void loop_host(void *arg)
{
    struct host *host = arg;

    (void)uv_loop_init(&host->loop);
    if (uva_runtime_open(&host->loop, &host->options, &host->runtime, NULL) !=
        0)
        host->runtime = NULL;
    host_limit_turn(host);
    sim_flush();
    host->opened = true;
    if (host->runtime != NULL && host->begin != NULL)
        host_run_alone(host);
    else if (host->runtime != NULL)
        host_run_kept(host);
    if (host->runtime != NULL && !host->closed)
        sim_fail("the loop ended before the runtime was closed");
    (void)uv_loop_close(&host->loop);
    host->gone = true;
}

/* ---- without a thread --------------------------------------------------- */

static void host_posted(void *ctx)
{
    struct host *host = ctx;

    if (host->posted)
        sim_fail("a turn is posted twice");
    if (host->joins && host->closed)
        sim_fail("a turn is posted by a join");
    host->posted = true;
}

static bool host_is_posted(void *arg)
{
    return ((const struct host *)arg)->posted;
}

static void host_await_turn(struct host *host)
{
    int fd = uva_runtime_fd(host->runtime);

    if (host->how == BY_POSTS)
        sim_wait(host_is_posted, host);
    else
        fake_files_wait(&fd, 1);
    host->posted = false;
}

/* Its callback, if it has one, has been called when it returns. */
static void host_join(struct host *host, int64_t grace_ms)
{
    int code;

    host->joining = true;
    if (!host->begun)
        host->begun_ns = sim_now_ns();
    host->begun = true;
    code = uva_runtime_join(host->runtime, grace_ms);
    expectation_note("a runtime is joined");
    if (code != 0)
        sim_fail("join: %s", uva_error_name(code));
    if (host->joins_first)
        host_has_closed(host);
    if (!host->closed)
        sim_fail("joined before the callback of the close");
    host->joined = host->runtime;
    host->runtime = NULL;
}

static void turn_host(void *arg)
{
    struct host *host = arg;

    if (uva_runtime_open_turned(host->how == BY_POSTS ? host_posted : NULL,
                                host, &host->options, &host->runtime,
                                NULL) != 0)
        host->runtime = NULL;
    host_limit_turn(host);
    sim_flush();
    host->opened = true;
    while (host->runtime != NULL) {
        host->fiber = -1;
        if (!host->joins || !host->may_join)
            host_await_turn(host);
        host->fiber = sim_self();
        if (host->joins && host->may_join)
            host_join(host, host->joins_first  ? host->grace_ms
                            : host->may_revoke ? 0
                                               : UVA_FOREVER);
        else if (!uva_runtime_turn(host->runtime))
            host->runtime = NULL;
    }
    if (host->closing && !host->closed)
        sim_fail("a runtime is closed and its callback was not called");
    host->gone = true;
}

/* ---- opening ------------------------------------------------------------ */

void hosts_limit_workers(struct uva_workers *workers, int32_t idle_ms,
                         int32_t stuck_threads)
{
    uva__workers_limit(workers, idle_ms, stuck_threads);
}

void hosts_spare_workers(struct uva_workers *workers, int32_t threads)
{
    uva__workers_spare(workers, threads);
}

bool hosts_limit_sources(const struct uva_runtime *runtime)
{
    for (int i = 0; i < hosts_used; i++)
        if ((runtime == NULL || hosts[i].runtime == runtime) &&
            hosts[i].sources > 0)
            return true;
    return false;
}

bool hosts_are_checked(void)
{
    return is_checked;
}

/* Checks every hop, by the option or by the environment variable. */
static void host_check(struct host *host)
{
    expectation_note("with a check on every hop");
    is_checked = true;
    host->options.log = monitor_log();
    host->options.check = sim_choose(2) != 0;
    is_check_requested = is_check_requested || !host->options.check;
}

static void on_trace(void *ctx, const struct uva_trace_event *event)
{
    const struct host *host = ctx;

    if (event->name == NULL || event->stage_name == NULL ||
        event->stream_id == 0 || event->end_ns < event->at_ns)
        sim_fail("a trace event of %s is not complete",
                 event->name != NULL ? event->name : "nothing");
    if (host->quiet || host->freed > 0)
        sim_fail("a trace event after the last call of all");
}

/* A join that closes calls nothing when the runtime has closed. */
static bool host_may_be_closed(const struct host *host)
{
    return host->closed || (host->joins_first && host->joining);
}

static void on_trace_freed(void *ctx)
{
    struct host *host = ctx;

    if (!host_may_be_closed(host) || host->quiet || ++host->freed > 1)
        sim_fail("the trace is freed at a wrong time");
}

static void host_is_quiet(void *ctx)
{
    struct host *host = ctx;

    expectation_note("a runtime is quiet");
    if (!host_may_be_closed(host))
        sim_fail("quiet before the close");
    if (host->quiet || host->freed != 1)
        sim_fail("quiet twice, or before the trace is freed");
    host->quiet = true;
}

/* By which call it ends, and how long that may take. A job that was refused its
 * thread is tried again after 10 ms, which a short limit does not wait for. */
static void host_draw_end(struct host *host)
{
    static const int64_t limits[] = {0, 0, 20000, 1, 40};

    host->options.close_limit_ms =
        limits[sim_choose(are_patient || arena_may_fail() ? 3 : 5)];
    host->joins_first =
        (host->joins || host->how == BY_THREAD) && peers_chance(1, 2);
    host->closes_inside = host->how == BY_LOOP && peers_chance(1, 3);
    expectation_note("a close that waits for %lld ms%s%s",
                     (long long)close_limit_ms(host),
                     host->joins_first ? ", by a join" : "",
                     host->closes_inside ? ", inside a callback" : "");
}

static void host_draw(struct host *host, struct uva_workers *workers)
{
    host->fiber = -1;
    host->how = (enum hosting)sim_choose(4);
    host->options = (struct uva_runtime_options){
        .measure = peers_chance(1, 4),
        .trace.event = peers_chance(1, 8) ? on_trace : NULL,
        .trace.free_ctx = on_trace_freed,
        .trace.ctx = host,
        .on_quiet = peers_chance(1, 3) ? host_is_quiet : NULL,
        .quiet_ctx = host,
        .workers = workers,
        .allocator = arena_allocator(),
    };
    host->turn_batches = (int32_t)sim_choose(5);
    if (sim_choose(4) == 0) /* a budget that is full soon, or always */
        host->options.memory_bytes = 1 + (int64_t)sim_choose(3000);
    if (peers_chance(1, 2))
        host->options.log = monitor_log();
    /* by the drawn values: other schedules stay as they were */
    if (are_varied && host->turn_batches > 2)
        host->sources = host->turn_batches - 2;
    if (are_varied && peers_chance(1, 8))
        host_check(host);
    host->joins = host->how >= BY_TURNS && are_varied && peers_chance(1, 3);
    if (are_varied)
        host_draw_end(host);
}

static bool host_is_open(void *arg)
{
    return ((const struct host *)arg)->opened;
}

struct uva_runtime *hosts_open_alone(struct uva_workers *workers,
                                     void (*begin)(struct uva_runtime *rt))
{
    struct host *host = &hosts[hosts_used++];

    host_draw(host, workers);
    host->how = BY_LOOP;
    host->joins_first = false;
    host->begin = begin;
    host->lets_go = peers_chance(1, 4);
    expectation_note("a runtime alone on a loop");
    peers_spawn("host of a loop", loop_host, host);
    sim_wait(host_is_open, host);
    return host->runtime;
}

struct uva_runtime *hosts_open(struct uva_workers *workers)
{
    static const char *const names[] = {"loop", "thread", "turns", "posts"};
    struct host *host = &hosts[hosts_used++];

    host_draw(host, workers);
    expectation_note("a runtime hosted by %s", names[host->how]);
    if (host->how == BY_LOOP) {
        peers_spawn("host of a loop", loop_host, host);
        sim_wait(host_is_open, host);
    } else if (host->how == BY_THREAD) {
        if (uva_runtime_open(NULL, &host->options, &host->runtime, NULL) != 0)
            host->runtime = NULL;
        host_limit_turn(host);
    } else {
        peers_spawn("host of turns", turn_host, host);
        sim_wait(host_is_open, host);
    }
    return host->runtime;
}

/* ---- draining ----------------------------------------------------------- */

static void host_drained(void *ctx)
{
    struct host *host = ctx;
    struct uva_runtime_stats stats;

    expectation_note("a runtime is drained");
    if (host->drained)
        sim_fail("drained twice");
    if (host->closed)
        sim_fail("drained after the close");
    uva_runtime_get_stats(host->runtime, &stats);
    if (stats.streams_open != 0)
        sim_fail("drained with a stream open");
    if (stats.tasks_held != 0 && !host->has_deadline && !host->may_revoke)
        sim_fail("drained with a task that a handler holds");
    host->drained = true;
}

static void host_drain(struct host *host, int64_t deadline_ms)
{
    const bool again = host->draining;
    int code;

    if (host->runtime == NULL || host->closing)
        return;
    host->draining = true;
    host->has_deadline |= deadline_ms != UVA_FOREVER;
    code = uva_runtime_drain(host->runtime, deadline_ms, host_drained, host);
    if (code != (again ? EALREADY : 0))
        sim_fail("drain: %s", uva_error_name(code));
}

void hosts_drain(struct uva_runtime *runtime, int64_t deadline_ms)
{
    for (int i = 0; i < hosts_used; i++)
        if (hosts[i].runtime == runtime)
            host_drain(&hosts[i], deadline_ms);
}

/* ---- closing ------------------------------------------------------------ */

void hosts_check(void)
{
    for (int i = 0; i < hosts_used; i++)
        if (hosts[i].closed && hosts[i].options.on_quiet != NULL &&
            !hosts[i].quiet)
            sim_fail("a runtime never became quiet");
}

static void host_closed(void *ctx)
{
    const uint64_t one = 1;
    struct host *host = ctx;

    expectation_note("a runtime is closed");
    if (host->closed)
        sim_fail("closed twice");
    if (report_closed != NULL)
        report_closed(report_closed_ctx);
    host_has_closed(host);
    if (host->how == BY_LOOP && host->begin == NULL && !host->left)
        (void)!write(host->fd, &one, sizeof(one));
}

static struct host *host_of(const struct uva_runtime *runtime)
{
    for (int i = 0; i < hosts_used; i++)
        if (runtime != NULL &&
            (hosts[i].runtime == runtime || hosts[i].joined == runtime))
            return &hosts[i];
    return NULL;
}

bool hosts_enter(const struct uva_runtime *runtime)
{
    struct host *host = host_of(runtime);

    if (host == NULL || host->closing)
        return false;
    host->inside++;
    return true;
}

void hosts_leave(const struct uva_runtime *runtime)
{
    host_of(runtime)->inside--;
}

struct uva_permits *hosts_permits(const struct uva_runtime *runtime)
{
    struct host *host = host_of(runtime);
    struct uva_permits *made;

    if (host == NULL || host->closing || host->sources == 0)
        return NULL;
    if (host->permits != NULL ||
        uva_permits_new(host->runtime, host->sources, 0, &made, NULL) != 0)
        return host->permits;
    if (host->permits != NULL) /* another fiber was faster */
        uva_permits_release(made);
    else
        host->permits = made;
    return host->permits;
}

static bool host_is_left(void *arg)
{
    return ((const struct host *)arg)->inside == 0;
}

static void host_close_now(struct host *host)
{
    int code;

    host->begun = true;
    host->begun_ns = sim_now_ns();
    code = uva_runtime_close(host->runtime, host->grace_ms, host_closed, host);
    host->may_join = true;
    if (code != 0)
        sim_fail("close: %s", uva_error_name(code));
}

/* Without a handle of the host's, the close alone keeps its loop alive. */
static void host_close_inside(void *ctx)
{
    struct host *host = ctx;

    host_close_now(host);
    if (host->begin == NULL)
        host_leave_loop(host);
}

/* The loop joins after the turn of this call. */
static void host_note(void *ctx)
{
    struct host *host = ctx;

    host->may_join = true;
}

/* A fiber of its own, as a join may last until all else is over. */
static void joiner(void *arg)
{
    struct host *host = arg;

    host_join(host, host->grace_ms);
}

static bool host_calls(struct host *host, uva_call_fn *fn)
{
    return uva_runtime_post(host->runtime, fn, host) == 0;
}

static void host_close(struct host *host, int64_t grace_ms)
{
    if (host->runtime == NULL || host->closing)
        return;
    host->closing = true;
    sim_wait(host_is_left, host);
    uva_permits_release(host->permits);
    host->permits = NULL;
    host->may_revoke = grace_ms != UVA_FOREVER;
    host->grace_ms = grace_ms;
    host->joins_first = host->joins_first &&
                        (host->how == BY_THREAD || host_calls(host, host_note));
    if (host->joins_first && host->how == BY_THREAD)
        peers_spawn("joiner", joiner, host);
    else if (!host->joins_first &&
             (!host->closes_inside || !host_calls(host, host_close_inside)))
        host_close_now(host);
}

bool hosts_on_loop(void)
{
    for (int i = 0; i < hosts_used; i++)
        if (hosts[i].fiber == sim_self())
            return !hosts[i].closing;
    return false;
}

void hosts_force_close(void)
{
    for (int i = 0; i < hosts_used; i++) {
        hosts[i].may_revoke = true;
        if (hosts[i].begun && !hosts[i].closed &&
            uva_runtime_close(hosts[i].runtime, 0, NULL, NULL) != EALREADY)
            sim_fail("a second close was a first one");
        else
            host_close(&hosts[i], 0);
    }
}

void hosts_count_call(const struct uva_runtime *runtime, int change)
{
    struct host *host = host_of(runtime);

    if (host != NULL)
        host->calls += change;
}

bool hosts_may_revoke(const struct uva_runtime *runtime)
{
    const struct host *host = host_of(runtime);

    return host != NULL && host->may_revoke;
}

void hosts_close(struct uva_runtime *runtime, int64_t grace_ms)
{
    struct host *host = host_of(runtime);

    if (host != NULL)
        host_close(host, grace_ms);
}

int hosts_closed(void)
{
    int n = 0;

    for (int i = 0; i < hosts_used; i++)
        n += hosts[i].closed;
    return n;
}

static bool host_is_gone(void *arg)
{
    return ((const struct host *)arg)->gone;
}

static bool host_is_joined(void *arg)
{
    return ((const struct host *)arg)->runtime == NULL;
}

static void host_end(struct host *host)
{
    if (host->how != BY_THREAD)
        sim_wait(host_is_gone, host);
    else if (host->joins_first)
        sim_wait(host_is_joined, host);
    else if (host->runtime != NULL)
        host_join(host, UVA_FOREVER);
}

void hosts_end(bool patient)
{
    for (int i = 0; i < hosts_used; i++) {
        hosts[i].may_close = true;
        if (hosts[i].begin == NULL)
            host_close(&hosts[i],
                       patient && sim_choose(2) != 0 ? UVA_FOREVER : 0);
        host_end(&hosts[i]);
    }
}

/* ---- replacements of library functions ---------------------------------- */

void *__wrap_uva__slab_take(struct uva__slab *slab,
                            bool (*rested)(const void *block));
void *__real_uva__slab_take(struct uva__slab *slab,
                            bool (*rested)(const void *block));

/* Reuses slots soon, as long streams would. */
static void slab_hurry(struct uva__slab *slab)
{
    slab->rest = slab->rest < 2 ? slab->rest : 2;
    slab->step = slab->step < 4 ? slab->step : 4;
}

void *__wrap_uva__slab_take(struct uva__slab *slab,
                            bool (*rested)(const void *block))
{
    slab_hurry(slab);
    return __real_uva__slab_take(slab, rested);
}

void __wrap_uva__slab_put(struct uva__slab *slab, void *block);
void __real_uva__slab_put(struct uva__slab *slab, void *block);

void __wrap_uva__slab_put(struct uva__slab *slab, void *block)
{
    slab_hurry(slab);
    __real_uva__slab_put(slab, block);
}

char *__wrap_getenv(const char *name);
char *__real_getenv(const char *name);

/* The environment variables that the library reads are unset, except for
 * UVA_CHECK on request. */
char *__wrap_getenv(const char *name)
{
    static char yes[] = "1";

    if (sim_self() < 0 || strncmp(name, "UVA_FUZZ_", 9) == 0)
        return __real_getenv(name);
    return is_check_requested && strcmp(name, "UVA_CHECK") == 0 ? yes : NULL;
}
