/* SPDX-License-Identifier: Apache-2.0 */
/* The script is the first fiber. The peer may be called by the fiber that holds
 * the turn: the script, except while it settles; otherwise a fiber that calls
 * the peer. The close of a runtime is reported only when no fiber holds the
 * turn, because then no call of the peer is on any stack. */
#include "fuzz/fixture.h"

#include <string.h>

#include "sim/arena.h"
#include "sim/engine_chooser.h"
#include "sim/executor.h"
#include "sim/expectation.h"
#include "sim/fake_files.h"
#include "sim/fake_threads.h"
#include "sim/fake_uv.h"
#include "sim/hosts.h"
#include "sim/monitor.h"
#include "sim/peers.h"

/* Shorter than any timer, except those that mean `at once`; and long enough for
 * a close. */
#define A_WHILE_NS UINT64_C(500000)
#define A_CLOSE_NS UINT64_C(3000000000)

static struct {
    void (*scene)(struct fuzz_input in);
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

bool ground_enter(void *ground)
{
    (void)ground;
    ground_see();
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

void ground_leave(void *ground)
{
    (void)ground;
    sim_flush();
    if (play.holder == sim_self() && --play.depth == 0)
        play.holder = -1;
}

void ground_wait(void *ground, bool begins)
{
    (void)ground;
    sim_flush();
    play.waits += begins ? 1 : -1;
}

void ground_see(void)
{
    sim_flush();
    sim_point();
}

/* ---- time --------------------------------------------------------------- */

static bool ground_is_gone(void *arg)
{
    return ((const struct ground *)arg)->runtime == NULL;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

/* Lets hardly any time pass, and none while any fiber can run. */
void ground_settle(void *ctx)
{
    struct ground *ground = ctx;

    play.holder = -1;
    if (ground->closing)
        (void)sim_wait_until(ground_is_gone, ground, sim_now_ns() + A_CLOSE_NS);
    (void)sim_wait_until(never, NULL, sim_now_ns() + A_WHILE_NS);
    turn_await();
}

void ground_pause(void *ctx)
{
    if (sim_choose(2) == 0) {
        ground_settle(ctx);
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

    if (ground_enter(NULL))
        command->fn(command->ctx);
    ground_leave(NULL);
    arena_free(command);
}

void ground_post(struct ground *ground, void (*fn)(void *ctx), void *ctx)
{
    struct command *command = arena_new(sizeof(*command), "an errand");

    *command = (struct command){fn, ctx};
    if (uva_runtime_post(ground->runtime, command_run, command) != 0)
        arena_free(command);
}

static void ground_has_gone(void *ctx)
{
    struct ground *ground = ctx;

    sim_flush();
    sim_wait(turn_is_free, NULL);
    ground->runtime = NULL;
}

/* ---- its life ----------------------------------------------------------- */

static void pool_draw(void)
{
    struct uva_workers_options options = {
        .compute_threads = 1 + (int32_t)sim_choose(2),
        .blocking_threads = 1 + (int32_t)sim_choose(3),
        .idle_ms = 1 + (int32_t)sim_choose(1000),
        .allocator = arena_allocator()};

    if (peers_chance(1, 4))
        options.executor = executor_table();
    FUZZ_RULE(uva_workers_new(&options, &play.workers, NULL) == 0);
}

void ground_open(struct ground *ground)
{
    memset(ground, 0, sizeof(*ground));
    pool_draw();
    hosts_say_gone(ground_has_gone, ground);
    ground->runtime = hosts_open(play.workers);
    FUZZ_RULE(ground->runtime != NULL);
}

void ground_fail(struct ground *ground, int n)
{
    (void)ground;
    arena_fail_at(n == 0 ? 0 : arena_asked() + n);
}

void ground_close(struct ground *ground)
{
    if (ground->closing)
        return;
    ground->closing = true;
    hosts_close(ground->runtime, 0);
}

void ground_finish(struct ground *ground)
{
    ground_fail(ground, 0);
    ground_close(ground);
    ground_settle(ground);
    FUZZ_RULE(ground->runtime == NULL);
    hosts_end(false);
    uva_workers_free(play.workers);
    executor_end();
}

/* ---- a play ------------------------------------------------------------- */

static void play_body(void *arg)
{
    (void)arg;
    arena_begin();
    fake_files_begin();
    fake_threads_begin(0);
    hosts_begin(false);    /* a check must end before its runtime does */
    executor_begin(false); /* a refused job would need a thread and memory */
    monitor_begin(true);
    peers_begin(false, false);
    fake_uv_begin(peers_chance(1, 3) ? 1000 * (1 + sim_choose(300)) : 0);
    turn_take();
    play.waits = 0;
    play.scene(play.in);
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
    plan.told_size = 2 * (size_t)fuzz_byte(in);
    plan.scheduler = way % 4 == 0   ? SIM_PCT
                     : way % 4 == 1 ? SIM_UNIFORM
                                    : SIM_TOLD;
    plan.depth = 1 + way / 4 % 8;
    if (plan.told_size > in->size)
        plan.told_size = in->size;
    plan.told = in->data;
    in->data += plan.told_size;
    in->size -= plan.told_size;
    if (plan.scheduler != SIM_TOLD) /* other choices for each script */
        plan.seed = sim_mix_bytes(plan.seed, in->data, in->size);
    return plan;
}

void ground_play(void (*scene)(struct fuzz_input in), struct fuzz_input in)
{
    const struct sim_plan plan = plan_read(&in);
    enum sim_end end;

    expectation_tell(getenv("UVA_FUZZ_TRACE") != NULL);
    play.scene = scene;
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
