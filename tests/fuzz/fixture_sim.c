/* SPDX-License-Identifier: Apache-2.0 */
/* The script is the first fiber. The peer may be called by the fiber that holds
 * the turn: the script, except while it settles; otherwise a fiber that calls
 * the peer. The close of a runtime is reported only when no fiber holds the
 * turn, because then no call of the peer is on any stack. */
#include "fuzz/fixture.h"

#include <string.h>

#include "sim/arena.h"
#include "sim/engine_chooser.h"
#include "sim/expectation.h"
#include "sim/fake_files.h"
#include "sim/fake_threads.h"
#include "sim/fake_uv.h"
#include "sim/hosts.h"
#include "sim/monitor.h"
#include "sim/peers.h"

/* Shorter than any timer, except the timers that mean `at once`; and long
 * enough for a close. */
#define A_WHILE_NS UINT64_C(500000)
#define A_CLOSE_NS UINT64_C(3000000000)

static struct {
    void (*scenario)(struct fuzz_input in);
    struct fuzz_input in;
    struct uva_workers *workers;
    int holder; /* the fiber that holds the turn, or -1 */
    int depth;  /* how often it has entered */
    int waits;  /* calls that may wait for entering fibers */
} play;

/* ---- the turn ----------------------------------------------------------- */

static bool turn_is_free(void *arg)
{
    (void)arg;
    return play.holder < 0;
}

static bool turn_may_be_passed_by(void *arg)
{
    return turn_is_free(arg) || play.waits > 0;
}

static void turn_take(void)
{
    play.holder = sim_self();
    play.depth = 1;
}

static void turn_await(void)
{
    sim_wait(turn_is_free, NULL);
    turn_take();
}

bool fixture_enter(void *fixture)
{
    (void)fixture;
    fixture_see();
    if (play.holder == sim_self()) {
        play.depth++;
        return true;
    }
    if (sim_choose(3) > 0)
        sim_wait(turn_may_be_passed_by, NULL);
    if (play.holder >= 0)
        return false;
    turn_take();
    return true;
}

void fixture_leave(void *fixture)
{
    (void)fixture;
    sim_flush();
    if (play.holder == sim_self() && --play.depth == 0)
        play.holder = -1;
}

void fixture_wait(void *fixture, bool begins)
{
    (void)fixture;
    sim_flush();
    play.waits += begins ? 1 : -1;
}

void fixture_see(void)
{
    sim_flush();
    sim_point();
}

/* ---- time --------------------------------------------------------------- */

static bool fixture_is_closed(void *arg)
{
    return ((const struct fixture *)arg)->runtime == NULL;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

/* Lets hardly any time pass, and no time while any fiber can run. */
void fixture_settle(void *ctx)
{
    struct fixture *fixture = ctx;

    play.holder = -1;
    if (fixture->closing)
        (void)sim_wait_until(fixture_is_closed, fixture,
                             sim_now_ns() + A_CLOSE_NS);
    (void)sim_wait_until(never, NULL, sim_now_ns() + A_WHILE_NS);
    turn_await();
}

void fixture_pause(void *ctx)
{
    if (sim_choose(2) == 0) {
        fixture_settle(ctx);
        return;
    }
    play.holder = -1;
    for (uint64_t steps = sim_choose(60); steps > 0; steps--)
        sim_point();
    turn_await();
}

/* ---- the loop's thread -------------------------------------------------- */

struct command {
    void (*fn)(void *ctx);
    void *ctx;
};

static void command_run(void *arg)
{
    struct command *command = arg;

    if (fixture_enter(NULL))
        command->fn(command->ctx);
    fixture_leave(NULL);
    arena_free(command);
}

void fixture_post(struct fixture *fixture, void (*fn)(void *ctx), void *ctx)
{
    struct command *command = arena_new(sizeof(*command), "a command");

    *command = (struct command){fn, ctx};
    if (uva_runtime_post(fixture->runtime, command_run, command) != 0)
        arena_free(command);
}

static void fixture_on_closed(void *ctx)
{
    struct fixture *fixture = ctx;

    sim_flush();
    sim_wait(turn_is_free, NULL);
    fixture->runtime = NULL;
}

/* ---- its life ----------------------------------------------------------- */

static void pool_draw(void)
{
    struct uva_workers_options options = {
        .compute_threads = 1 + (int32_t)sim_choose(2),
        .blocking_threads = 1 + (int32_t)sim_choose(3),
        .allocator = arena_allocator()};

    FUZZ_RULE(uva_workers_new(&options, &play.workers, NULL) == 0);
    hosts_limit_workers(play.workers, 1 + (int32_t)sim_choose(1000), 256);
}

void fixture_open(struct fixture *fixture)
{
    memset(fixture, 0, sizeof(*fixture));
    pool_draw();
    hosts_on_closed(fixture_on_closed, fixture);
    fixture->runtime = hosts_open(play.workers);
    FUZZ_RULE(fixture->runtime != NULL);
}

void fixture_fail(struct fixture *fixture, int n)
{
    (void)fixture;
    arena_fail_at(n == 0 ? 0 : arena_was_requested() + n);
}

void fixture_close(struct fixture *fixture)
{
    if (fixture->closing)
        return;
    fixture->closing = true;
    hosts_close(fixture->runtime, 0);
}

void fixture_finish(struct fixture *fixture)
{
    fixture_fail(fixture, 0);
    fixture_close(fixture);
    fixture_settle(fixture);
    FUZZ_RULE(fixture->runtime == NULL);
    hosts_end(false);
    uva_workers_release(play.workers);
}

/* ---- a play ------------------------------------------------------------- */

static void play_body(void *arg)
{
    (void)arg;
    arena_begin();
    fake_files_begin();
    fake_threads_begin(0);
    hosts_begin(false); /* a check must end before its runtime does */
    monitor_begin(true);
    peers_begin(false, false);
    fake_uv_begin(peers_chance(1, 3) ? 1000 * (1 + sim_choose(300)) : 0);
    turn_take();
    play.waits = 0;
    play.scenario(play.in);
}

static void check_books(void *arg)
{
    (void)arg;
    fake_files_check();
    fake_threads_check();
    arena_check();
}

static struct sim_plan plan_read(struct fuzz_input *in)
{
    const int way = fuzz_byte(in);
    struct sim_plan plan = {.buffers = true};

    plan.seed = fuzz_byte(in);
    plan.seed = plan.seed << 8 | fuzz_byte(in);
    plan.script_size = 2 * (size_t)fuzz_byte(in);
    plan.scheduler = way % 4 == 0   ? SIM_PCT
                     : way % 4 == 1 ? SIM_UNIFORM
                                    : SIM_SCRIPTED;
    plan.depth = 1 + way / 4 % 8;
    if (plan.script_size > in->size)
        plan.script_size = in->size;
    plan.script = in->data;
    in->data += plan.script_size;
    in->size -= plan.script_size;
    if (plan.scheduler != SIM_SCRIPTED) /* other choices for each script */
        plan.seed = sim_mix_bytes(plan.seed, in->data, in->size);
    return plan;
}

void fixture_play(void (*scenario)(struct fuzz_input in), struct fuzz_input in)
{
    const struct sim_plan plan = plan_read(&in);
    enum sim_end end;

    expectation_trace(getenv("UVA_FUZZ_TRACE") != NULL);
    play.scenario = scenario;
    play.in = in;
    end = sim_run(&plan, play_body, NULL);
    if (end == SIM_DONE)
        end = sim_run(&(struct sim_plan){.seed = plan.seed}, check_books, NULL);
    if (end == SIM_DONE)
        return;
    if (getenv("UVA_FUZZ_TRACE") != NULL)
        sim_print_trail(stderr);
    (void)fprintf(stderr, "ground: %s%s\n",
                  end == SIM_DEADLOCK ? "deadlock: "
                  : end == SIM_CUT    ? "no end in sight"
                                      : "",
                  sim_failure());
    abort();
}
