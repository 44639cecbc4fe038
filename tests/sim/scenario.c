/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  draw -> open -> build -> start -> all chains end -> close -> all
 *              counts are even.
 *
 * A chain with a source that may be stuck for good gets one hour of the virtual
 * clock; then its peers are unblocked. Anything else that waits for ever is
 * reported as a deadlock. */
#include "sim/scenario.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/adbc_peer.h"
#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/chain.h"
#include "sim/device_peer.h"
#include "sim/device_stages.h"
#include "sim/engine.h"
#include "sim/expectation.h"
#include "sim/fake_files.h"
#include "sim/fake_threads.h"
#include "sim/fake_uv.h"
#include "sim/hostile.h"
#include "sim/hosts.h"
#include "sim/monitor.h"
#include "sim/peers.h"
#include "sim/vulkan_peer.h"

enum { CHAINS = 2 };

#define A_MS_NS    UINT64_C(1000000)
#define AN_HOUR_NS (UINT64_C(3600) * 1000000000)

static struct scenario {
    struct uva_workers *workers; /* shared; or NULL */
    struct uva_runtime *runtimes[HOSTS];
    int runtimes_used;
    struct chain chains[CHAINS];
    int chains_used;
    bool slow;         /* peers take time */
    bool hostile;      /* a peer breaks rules; not with memory faults */
    bool alone;        /* one runtime, alone on its loop */
    bool closes;       /* runtimes are closed early */
    bool drains;       /* runtimes are drained */
    bool devices;      /* there is a device */
    int squatters;     /* sources that fill the blocking lane; 0: no sources */
    int stuck_threads; /* that may be written off; 0: as many as there are */
    bool built;        /* if alone: the chains are built */
    int meddlers;      /* fibers that interfere */
    int posted;        /* posted calls that were not made so far */
    bool ended;        /* the runtimes are closed */
} scenario;

/* ---- drawing ------------------------------------------------------------ */

static void draw_patience(bool threads_fail)
{
    if (scenario.hostile || scenario.slow || threads_fail)
        hosts_be_patient();
}

static void draw_mishaps(void)
{
    int64_t fail_at = 0;
    bool scarce;

    arena_begin();
    fake_files_begin();
    hosts_begin(true);
    batches_begin(peers_chance(1, 2));
    adbc_begin();
    memset(&scenario, 0, sizeof(scenario));
    scenario.slow = peers_chance(1, 3);
    scenario.closes = peers_chance(1, 8);
    scenario.alone = !scenario.closes && peers_chance(1, 8);
    scenario.drains = !scenario.alone && peers_chance(1, 6);
    peers_begin(scenario.slow, scenario.alone);
    fake_uv_begin(peers_chance(1, 3) ? 1000 * (1 + sim_choose(300)) : 0);
    if (peers_chance(1, 6))
        fail_at = 1 + (int64_t)sim_choose(120);
    arena_fail_at(fail_at);
    if (fail_at != 0)
        expectation_note("allocation %lld fails", (long long)fail_at);
    scarce = fail_at != 0;
    fail_at = peers_chance(1, 20) ? 1 + (int64_t)sim_choose(5) : 0;
    fake_threads_begin(fail_at);
    scenario.hostile = fail_at == 0 && peers_chance(1, 10) && !scarce;
    monitor_begin(scenario.hostile);
    draw_patience(fail_at != 0);
    hostile_producers_begin();
    hostile_handlers_begin();
    if (fail_at != 0)
        expectation_note("thread %lld fails", (long long)fail_at);
    if (!scenario.closes && !scarce && fail_at == 0 && !scenario.hostile)
        peers_allow_late_calls();
}

static void draw_devices(void)
{
    device_stages_begin();
    vulkan_begin();
    scenario.devices = peers_chance(1, 2);
    if (scenario.devices)
        device_begin(peers_chance(1, 2));
}

static void draw_workers(void)
{
    struct uva_workers_options options = {
        .compute_threads = 1 + (int32_t)sim_choose(2),
        .blocking_threads = 1 + (int32_t)sim_choose(3),
        .allocator = arena_allocator()};
    const int32_t idle_ms = 1 + (int32_t)sim_choose(1000);

    if (!scenario.alone && !scenario.closes && peers_chance(1, 6))
        scenario.squatters = options.blocking_threads;
    if (scenario.squatters > 0 && peers_chance(1, 2)) {
        scenario.stuck_threads =
            1 + (int32_t)sim_choose((uint64_t)scenario.squatters);
        expectation_note("%d of %d squatters may be written off",
                         scenario.stuck_threads, scenario.squatters);
    }
    if (peers_chance(1, 3) ||
        uva_workers_new(&options, &scenario.workers, NULL) != 0)
        scenario.workers = NULL;
    if (scenario.workers != NULL)
        hosts_limit_workers(scenario.workers, idle_ms,
                            scenario.stuck_threads > 0 ? scenario.stuck_threads
                                                       : 256);
    if (scenario.workers != NULL && scenario.squatters == 0 && idle_ms % 4 == 0)
        hosts_spare_workers(scenario.workers, 2);
}

static void draw_runtimes(void)
{
    const int n = 1 + (int)sim_choose(2);
    struct uva_runtime *runtime;

    for (int i = 0; i < n; i++) {
        runtime = hosts_open(scenario.workers);
        if (runtime != NULL && scenario.devices)
            device_register(runtime);
        if (runtime != NULL)
            scenario.runtimes[scenario.runtimes_used++] = runtime;
    }
}

static void draw_expectation(struct expectation *expectation)
{
    expectation->number = scenario.chains_used;
    expectation->total = (int64_t)sim_choose(9);
    if (peers_chance(1, 12))
        expectation->total = 9 + (int64_t)sim_choose(EXPECTATION_BATCHES - 8);
    expectation->fails_at = expectation->limit = INT64_MAX;
    expectation->device = scenario.devices && peers_chance(2, 3);
    expectation->on_device = expectation->device;
    expectation->excuses = EXCUSE_MEMORY;
    if (scenario.closes || scenario.drains)
        expectation->excuses |= EXCUSE_CLOSE;
    if (!peers_chance(1, 5))
        return;
    expectation->fails_at =
        (int64_t)sim_choose((uint64_t)expectation->total + 1);
    /* not the code of a device's fault */
    expectation->fail_code = expectation->device ? ENETRESET : EIO;
    expectation->excuses |= EXCUSE_SOURCE;
}

/* Chooses which end of a chain breaks rules. A stream that waits for a handler
 * does not keep a loop alive. */
static void draw_hostile(struct expectation *expectation)
{
    expectation->foreign = scenario.alone || peers_chance(2, 3);
    expectation->hostile = !expectation->foreign;
    expectation->device = expectation->on_device = false;
}

/* ---- interference ------------------------------------------------------- */

static void meddle_soon(void)
{
    for (uint64_t steps = sim_choose(2) == 0 ? sim_choose(50)
                                             : sim_choose(2000);
         steps > 0; steps--)
        sim_point();
    peers_dawdle();
}

/* Cancels a stream of a chain, sometimes twice. */
static void canceller(void *arg)
{
    struct chain *chain = arg;
    struct uva_stream *stream =
        chain->streams[sim_choose((uint64_t)chain->used)];

    meddle_soon();
    expectation_note("chain %d is cancelled", chain->expectation.number);
    if (peers_chance(1, 2) || !chain_cancel_group(chain, 0, "meddled with"))
        uva_stream_cancel(stream, (int)sim_choose(2) * ETIMEDOUT,
                          "meddled with");
    if (peers_chance(1, 4))
        uva_stream_cancel(stream, 0, NULL);
    scenario.meddlers--;
}

/* Makes the last consumer drop its stream, on its loop. */
static void drop_posted(void *ctx)
{
    struct expectation *expectation = ctx;

    scenario.posted--;
    if (!expectation->over && expectation->drop != NULL)
        expectation->drop(expectation->drop_ctx);
}

static void dropper(void *arg)
{
    struct chain *chain = arg;
    int code;

    meddle_soon();
    scenario.posted++;
    code = uva_runtime_post(chain->last, drop_posted, &chain->expectation);
    if (code != 0 && code != ENOMEM)
        sim_fail("post: %s", uva_error_name(code));
    scenario.posted -= code != 0;
    scenario.meddlers--;
}

/* Sometimes twice. */
static void drain_early(struct uva_runtime *runtime)
{
    static const int64_t deadlines[] = {0, 1, 100, UVA_FOREVER};

    for (int n = peers_chance(1, 4) ? 2 : 1; n > 0; n--) {
        meddle_soon();
        expectation_note("a runtime drains");
        hosts_drain(runtime, deadlines[sim_choose(4)]);
    }
}

static void close_early(struct uva_runtime *runtime)
{
    static const int64_t graces[] = {0, 0, 1, 100, UVA_FOREVER};

    meddle_soon();
    expectation_note("a runtime is closed early");
    hosts_close(runtime, graces[sim_choose(5)]);
}

static void ender(void *arg)
{
    if (scenario.drains)
        drain_early(arg);
    if (scenario.closes)
        close_early(arg);
    scenario.meddlers--;
}

static void outsider(void *arg)
{
    meddle_soon();
    device_use_outside(arg);
    scenario.meddlers--;
}

static void vulkan_program(void *arg)
{
    meddle_soon();
    vulkan_use(arg);
    scenario.meddlers--;
}

static void outsiders_spawn(void)
{
    for (int i = 0; i < scenario.runtimes_used; i++)
        if (scenario.devices && !scenario.closes && !scenario.alone &&
            peers_chance(1, 4)) {
            scenario.meddlers++;
            peers_spawn("outsider", outsider, scenario.runtimes[i]);
            if (!vulkan_draw())
                continue;
            scenario.meddlers++;
            peers_spawn("vulkan program", vulkan_program, scenario.runtimes[i]);
        }
}

/* Reads the statistics of a chain, whatever happens to it meanwhile. Counters
 * never decrease. */
static void looker(void *arg)
{
    struct chain *chain = arg;
    struct uva_stage_stats now[32];
    int64_t before = 0;
    size_t count;

    for (uint64_t n = 1 + sim_choose(4); n > 0; n--) {
        meddle_soon();
        count = sizeof(now) / sizeof(now[0]);
        if (uva_stream_get_stats(chain->streams[0], now, &count) != 0)
            sim_fail("get_stats failed");
        if (count > 0 && now[0].batches < before)
            sim_fail("a stage has passed on fewer batches than before");
        before = count > 0 ? now[0].batches : 0;
    }
    scenario.meddlers--;
}

/* Pauses streams of a chain whose consumers request by themselves, for good:
 * that has no effect. */
static void pauser(void *arg)
{
    struct chain *chain = arg;

    meddle_soon();
    for (int i = 0; i < chain->used - 1; i++)
        uva_stream_pause(chain->streams[i]);
    scenario.meddlers--;
}

static void meddlers_spawn(void)
{
    struct chain *chain;

    for (int i = 0; i < scenario.chains_used; i++) {
        chain = &scenario.chains[i];
        if (chain->used > 0 && peers_chance(1, 4)) {
            scenario.meddlers++;
            peers_spawn("looker", looker, chain);
        }
        if (chain->used > 1 && peers_chance(1, 4)) {
            scenario.meddlers++;
            peers_spawn("pauser", pauser, chain);
        }
        if (chain->expectation.over || !(chain->expectation.meddled))
            continue;
        scenario.meddlers++;
        if (!scenario.closes && peers_chance(1, 3))
            peers_spawn("dropper", dropper, chain);
        else
            peers_spawn("canceller", canceller, chain);
    }
    for (int i = 0; i < scenario.runtimes_used; i++)
        if (scenario.closes || scenario.drains) {
            scenario.meddlers++;
            peers_spawn("ender", ender, scenario.runtimes[i]);
        }
}

static bool meddlers_are_done(void *arg)
{
    return ((const struct scenario *)arg)->meddlers == 0;
}

/* ---- chains ------------------------------------------------------------- */

static void chains_build(void)
{
    struct chain *chain;

    if (scenario.squatters > 0)
        squatters_start(scenario.runtimes[0], scenario.squatters);
    for (uint64_t n = peers_chance(1, 4) ? 2 : 1; n > 0; n--) {
        chain = &scenario.chains[scenario.chains_used++];
        draw_expectation(&chain->expectation);
        chain->expectation.meddled = peers_chance(1, 4);
        if (scenario.hostile && scenario.chains_used == 1)
            draw_hostile(&chain->expectation);
        if (chain->expectation.meddled)
            chain->expectation.excuses |= EXCUSE_CANCEL;
        chain_build(chain, scenario.runtimes, scenario.runtimes_used,
                    scenario.devices);
    }
    adbc_release_pools();
}

static void chains_build_alone(struct uva_runtime *runtime)
{
    scenario.runtimes[scenario.runtimes_used++] = runtime;
    if (scenario.devices)
        device_register(runtime);
    chains_build();
    scenario.built = true;
}

static bool chains_are_built(void *arg)
{
    return ((const struct scenario *)arg)->built;
}

static void runtime_open_alone(void)
{
    if (hosts_open_alone(scenario.workers, chains_build_alone) != NULL)
        sim_wait(chains_are_built, &scenario);
}

/* ---- the run ------------------------------------------------------------ */

static bool chains_are_over(void *arg)
{
    const struct scenario *s = arg;

    for (int i = 0; i < s->chains_used; i++)
        if (!s->chains[i].expectation.over)
            return false;
    return true;
}

/* Whether fewer threads may be written off than the squatters take. */
static bool lane_is_full(void)
{
    return scenario.stuck_threads > 0 &&
           scenario.stuck_threads < scenario.squatters;
}

/* Returns whether all chains must end by themselves, without the clock
 * advancing. */
static bool chains_need_no_clock(void)
{
    bool pulls_inline = !scenario.slow && !scenario.closes &&
                        !scenario.drains && !lane_is_full();

    if (scenario.devices)
        pulls_inline = pulls_inline && !device_is_stuck();
    for (int i = 0; i < scenario.chains_used; i++)
        pulls_inline = pulls_inline && !scenario.chains[i].expectation.stalls;
    return pulls_inline;
}

/* A job may wait for a thread that the system refused, which only a close
 * ends. */
static void chains_close(void)
{
    for (int i = 0; i < scenario.chains_used; i++)
        scenario.chains[i].expectation.excuses |= EXCUSE_CLOSE;
    hosts_force_close();
}

static bool chains_end_in_time(void)
{
    return sim_wait_until(chains_are_over, &scenario,
                          sim_now_ns() + AN_HOUR_NS);
}

/* Returns whether chains may wait until the close without a fault of the
 * library. */
static bool chains_may_hang(void)
{
    return scenario.hostile || fake_threads_have_failed() || arena_has_failed();
}

/* A producer that will call late may be stuck although its chain is over. */
static void late_calls_await(void)
{
    if (!sim_wait_until(peers_have_called_late, NULL,
                        sim_now_ns() + AN_HOUR_NS))
        peers_unblock();
    sim_wait(peers_have_called_late, NULL);
}

static bool chains_take_time(void)
{
    for (int i = 0; i < scenario.chains_used; i++)
        if (scenario.chains[i].expectation.delays)
            return true;
    return vulkan_is_used() || (scenario.devices && device_takes_time());
}

static bool chains_are_held(void)
{
    for (int i = 0; i < scenario.chains_used; i++)
        if (expectation_is_held(&scenario.chains[i].expectation))
            return true;
    return false;
}

static void chains_await(void)
{
    const bool timed = chains_take_time();
    bool over = chains_end_in_time();

    if (chains_need_no_clock() && !chains_may_hang() && !chains_are_held()) {
        if (!over)
            sim_fail("the chains stand still");
        if (sim_now_ns() >= A_MS_NS && !timed && scenario.squatters == 0 &&
            !fake_uv_moves_time())
            sim_fail("it took a timer to go on");
    }
    if (!over) {
        peers_unblock();
        over = chains_end_in_time();
    }
    if (!over && chains_may_hang())
        chains_close();
    sim_wait(chains_are_over, &scenario);
    sim_wait(meddlers_are_done, &scenario);
    for (int i = 0; i < scenario.chains_used; i++)
        chain_release(&scenario.chains[i]);
    adbc_await(chains_may_hang(), scenario.closes || scenario.drains,
               scenario.stuck_threads);
    late_calls_await();
}

static bool hosts_are_over(void *arg)
{
    return ((const struct scenario *)arg)->ended;
}

static bool hosts_end_in_time(void)
{
    return sim_wait_until(hosts_are_over, &scenario, sim_now_ns() + AN_HOUR_NS);
}

/* A close that waits for streams to end also waits for stuck ones, and for
 * streams that lack a thread; this unblocks them. */
static void unblocker(void *arg)
{
    (void)arg;
    if (hosts_end_in_time())
        return;
    peers_unblock();
    if (!hosts_end_in_time() && chains_may_hang())
        hosts_force_close();
}

static void scenario_body(void *arg)
{
    (void)arg;
    draw_mishaps();
    draw_devices();
    draw_workers();
    if (scenario.alone)
        runtime_open_alone();
    else
        draw_runtimes();
    if (!scenario.alone && scenario.runtimes_used > 0)
        chains_build();
    meddlers_spawn();
    outsiders_spawn();
    chains_await();
    peers_spawn("unblocker", unblocker, NULL);
    hosts_end(!chains_may_hang());
    scenario.ended = true;
    adbc_end();
    if (scenario.posted != 0)
        sim_fail("a call that was accepted for the loop never came");
    for (int i = 0; i < scenario.chains_used; i++)
        if (scenario.chains[i].reported != scenario.chains[i].asked)
            sim_fail("a group was reported %d times",
                     scenario.chains[i].reported);
    uva_workers_release(scenario.workers);
    if (scenario.devices)
        device_end();
    hostile_producers_conclude();
    hostile_handlers_conclude();
    peers_unblock();
}

/* ---- counts ------------------------------------------------------------- */

/* Polling dozens of events for more than a second takes millions of steps. */
#define STEPS_MAX 20000000

static struct sim_plan plan_of(uint64_t seed)
{
    struct sim_plan plan = {.seed = seed, .buffers = true, .steps = STEPS_MAX};

    if (seed % 3 == 0) {
        plan.scheduler = SIM_UNIFORM;
    } else {
        plan.scheduler = SIM_PCT;
        plan.depth = 1 + (int)(seed % 5);
    }
    return plan;
}

static void check_books(void *arg)
{
    (void)arg;
    if (scenario.devices)
        device_check();
    device_stages_check();
    vulkan_check();
    adbc_check();
    hosts_check();
    fake_files_check();
    fake_threads_check();
    arena_check();
}

const char *scenario_run(uint64_t seed, bool aloud)
{
    static char text[512];
    const struct sim_plan plan = plan_of(seed);
    enum sim_end end;

    expectation_trace(aloud);
    end = sim_run(&plan, scenario_body, NULL);
    if (end == SIM_DONE)
        end = sim_run(&(struct sim_plan){.seed = seed}, check_books, NULL);
    if (end == SIM_DONE)
        return NULL;
    (void)snprintf(text, sizeof(text), "%s%s%s",
                   end == SIM_DEADLOCK ? "deadlock"
                   : end == SIM_CUT    ? "no end in sight"
                                       : "",
                   end == SIM_FAILED || sim_failure()[0] == '\0' ? "" : ": ",
                   sim_failure());
    return text;
}
