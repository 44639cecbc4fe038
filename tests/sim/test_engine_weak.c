/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the engine's weak memory with the programs by which C11's memory is
 * usually described (litmus tests): which odd outcomes they have, and that the
 * rest has no odd outcome. */
#include <check.h>
#include <string.h>

#include "base/atomic.h"
#include "sim/engine.h"

enum { FIBERS = 4, RESULTS = 4 };

static struct {
    struct uva__atomic64 x, y;
    struct uva__lock lock;
    uint64_t cell;             /* plain memory */
    uint64_t results[RESULTS]; /* the values that the fibers read */
} world;

static void (*const *bodies)(void *arg); /* borrows: of this program */

static void first(void *arg)
{
    for (int i = 0; i < FIBERS && bodies[i] != NULL; i++)
        sim_spawn("fiber", bodies[i], arg);
}

/* Whether some schedule ends with those results, or fails for a data race. */
static bool may_end(void (*const of[])(void *arg), const uint64_t *odd)
{
    const struct sim_plan plan = {.scheduler = SIM_EXHAUSTIVE,
                                  .weak = true,
                                  .memory = &world,
                                  .memory_size = sizeof(world)};
    bool found = false;
    enum sim_end end;

    bodies = of;
    do {
        memset(&world, 0, sizeof(world));
        end = sim_run(&plan, first, NULL);
        ck_assert(end == SIM_DONE || end == SIM_SEEN || end == SIM_FAILED);
        found = found || end == SIM_FAILED ||
                (end == SIM_DONE && odd != NULL &&
                 memcmp(world.results, odd, sizeof(world.results)) == 0);
    } while (sim_next());
    return found;
}

static bool may_end_spoiled(void (*const of[])(void *arg), const uint64_t *odd,
                            const void *word, enum sim_defect defect)
{
    bool found;

    sim_spoil(word, defect);
    found = may_end(of, odd);
    sim_spoil(NULL, SIM_SOUND);
    return found;
}

/* ---- a message is passed ------------------------------------------------ */

static void message_send(void *arg)
{
    (void)arg;
    sim_plain(&world.cell);
    uva__atomic64_store(&world.x, 1);
    uva__atomic64_store(&world.y, 1);
}

static void message_receive(void *arg)
{
    (void)arg;
    world.results[0] = uva__atomic64_load(&world.y);
    world.results[1] = uva__atomic64_load(&world.x);
}

static void message_receive_peeking(void *arg)
{
    (void)arg;
    world.results[0] = uva__atomic64_peek(&world.y);
    world.results[1] = uva__atomic64_load(&world.x);
}

static bool message_is_there(void *arg)
{
    (void)arg;
    return uva__atomic64_load(&world.y) == 1;
}

static void message_await(void *arg)
{
    sim_wait(message_is_there, arg);
    world.results[0] = 1;
    world.results[1] = uva__atomic64_load(&world.x);
}

static const uint64_t lost_message[RESULTS] = {1, 0};

START_TEST(what_was_written_before_a_release_is_seen_after_an_acquire)
{
    static void (*const loads[FIBERS])(void *) = {message_send,
                                                  message_receive};
    static void (*const waits[FIBERS])(void *) = {message_send, message_await};
    static void (*const peeks[FIBERS])(void *) = {message_send,
                                                  message_receive_peeking};

    ck_assert(!may_end(loads, lost_message));
    ck_assert(!may_end(waits, lost_message));
    ck_assert(may_end(peeks, lost_message));
    for (int i = 0; i < 2; i++) {
        const enum sim_defect defect = i == 0 ? SIM_UNACQUIRED : SIM_UNRELEASED;

        ck_assert(may_end_spoiled(loads, lost_message, &world.y, defect));
        ck_assert(may_end_spoiled(waits, lost_message, &world.y, defect));
        ck_assert(!may_end_spoiled(loads, lost_message, &world.x, defect));
    }
}
END_TEST

/* ---- over a third fiber ------------------------------------------------- */

static void chain_write(void *arg)
{
    (void)arg;
    uva__atomic64_store(&world.x, 1);
}

static void chain_pass_on(void *arg)
{
    (void)arg;
    world.results[0] = uva__atomic64_load(&world.x);
    uva__atomic64_store(&world.y, 1);
}

static void chain_read(void *arg)
{
    (void)arg;
    world.results[1] = uva__atomic64_load(&world.y);
    world.results[2] = uva__atomic64_load(&world.x);
}

START_TEST(what_was_acquired_is_released_again)
{
    static void (*const chain[FIBERS])(void *) = {chain_write, chain_pass_on,
                                                  chain_read};
    static const uint64_t odd[RESULTS] = {1, 1, 0};

    ck_assert(!may_end(chain, odd));
    ck_assert(may_end_spoiled(chain, odd, &world.y, SIM_UNACQUIRED));
}
END_TEST

/* ---- two readers -------------------------------------------------------- */

static void readers_write_y(void *arg)
{
    (void)arg;
    uva__atomic64_store(&world.y, 1);
}

static void readers_read_xy(void *arg)
{
    (void)arg;
    world.results[0] = uva__atomic64_load(&world.x);
    world.results[1] = uva__atomic64_load(&world.y);
}

static void readers_read_yx(void *arg)
{
    (void)arg;
    world.results[2] = uva__atomic64_load(&world.y);
    world.results[3] = uva__atomic64_load(&world.x);
}

START_TEST(two_readers_may_see_two_stores_in_different_orders)
{
    static void (*const readers[FIBERS])(void *) = {
        chain_write, readers_write_y, readers_read_xy, readers_read_yx};

    ck_assert(may_end(readers, (const uint64_t[RESULTS]){1, 0, 1, 0}));
}
END_TEST

/* ---- one atomic --------------------------------------------------------- */

static void single_write(void *arg)
{
    (void)arg;
    uva__atomic64_store(&world.x, 1);
    uva__atomic64_store(&world.x, 2);
}

static void single_read(void *arg)
{
    (void)arg;
    world.results[0] = uva__atomic64_peek(&world.x);
    world.results[1] = uva__atomic64_peek(&world.x);
}

static void single_swap(void *arg)
{
    uint64_t expected = 2;

    (void)arg;
    world.results[0] = uva__atomic64_cas(&world.x, &expected, 3);
    world.results[1] = expected;
    world.results[2] = uva__atomic64_peek(&world.x);
}

START_TEST(a_fiber_never_sees_an_atomic_go_back)
{
    static void (*const reads[FIBERS])(void *) = {single_write, single_read};
    static void (*const swaps[FIBERS])(void *) = {single_write, single_swap};

    ck_assert(may_end(reads, (const uint64_t[RESULTS]){1, 2}));
    ck_assert(!may_end(reads, (const uint64_t[RESULTS]){2, 1}));
    ck_assert(!may_end(reads, (const uint64_t[RESULTS]){1, 0}));
    ck_assert(may_end(swaps, (const uint64_t[RESULTS]){1, 2, 3}));
    ck_assert(may_end(swaps, (const uint64_t[RESULTS]){0, 1, 2}));
    ck_assert(!may_end(swaps, (const uint64_t[RESULTS]){0, 2, 2}));
    ck_assert(!may_end(swaps, (const uint64_t[RESULTS]){1, 2, 2}));
}
END_TEST

/* ---- a store and a look at a flag --------------------------------------- */

static void flag_load_y(void *arg)
{
    (void)arg;
    uva__atomic64_store(&world.x, 1);
    world.results[0] = uva__atomic64_load(&world.y);
}

static void flag_load_x(void *arg)
{
    (void)arg;
    uva__atomic64_store(&world.y, 1);
    world.results[1] = uva__atomic64_load(&world.x);
}

static void flag_publish(void *arg)
{
    (void)arg;
    uva__atomic64_store(&world.x, 1);
    world.results[0] = 1 + uva__atomic64_exchange(&world.y, 1);
}

/* Stores a flag that it then exchanges: the view that the other fiber's
 * exchange carried is lost between the two. */
static void flag_clear_by_a_store(void *arg)
{
    (void)arg;
    uva__atomic64_store(&world.y, 2);
    world.results[1] = uva__atomic64_exchange(&world.y, 3);
    world.results[2] = uva__atomic64_load(&world.x);
}

static void flag_clear(void *arg)
{
    (void)arg;
    uva__atomic64_exchange(&world.y, 2);
    world.results[1] = uva__atomic64_exchange(&world.y, 3);
    world.results[2] = uva__atomic64_load(&world.x);
}

START_TEST(a_flag_must_be_exchanged_by_both_sides_and_never_stored)
{
    static void (*const loads[FIBERS])(void *) = {flag_load_y, flag_load_x};
    static void (*const stores[FIBERS])(void *) = {flag_publish,
                                                   flag_clear_by_a_store};
    static void (*const exchanges[FIBERS])(void *) = {flag_publish, flag_clear};
    static const uint64_t missed[RESULTS] = {1, 2, 0};

    ck_assert(may_end(loads, (const uint64_t[RESULTS]){0, 0}));
    ck_assert(may_end(stores, missed));
    ck_assert(!may_end(exchanges, missed));
    ck_assert(may_end_spoiled(exchanges, missed, &world.y, SIM_UNRELEASED));
}
END_TEST

/* ---- plain memory ------------------------------------------------------- */

static void plain_receive(void *arg)
{
    message_receive(arg);
    if (world.results[0] == 1)
        sim_plain(&world.cell);
}

static void plain_touch(void *arg)
{
    (void)arg;
    sim_plain(&world.cell);
}

static void plain_locked(void *arg)
{
    (void)arg;
    uva__lock_take(&world.lock);
    sim_plain(&world.cell);
    world.results[0] |= uva__atomic64_load(&world.x);
    uva__atomic64_store(&world.x, 1);
    uva__lock_drop(&world.lock);
}

static void plain_after_the_end(void *arg)
{
    const int other = sim_spawn("other", plain_touch, arg);

    while (!sim_is_over(other))
        sim_point();
    sim_plain(&world.cell);
}

START_TEST(plain_memory_needs_an_order_of_its_accesses)
{
    static void (*const passed[FIBERS])(void *) = {message_send, plain_receive};
    static void (*const touched[FIBERS])(void *) = {plain_touch, plain_touch};
    static void (*const locked[FIBERS])(void *) = {plain_locked, plain_locked};
    static void (*const joined[FIBERS])(void *) = {plain_after_the_end};

    ck_assert(!may_end(passed, NULL));
    ck_assert(may_end_spoiled(passed, NULL, &world.y, SIM_UNACQUIRED));
    ck_assert(may_end_spoiled(passed, NULL, &world.y, SIM_UNRELEASED));
    ck_assert(may_end(touched, NULL));
    ck_assert(!may_end(locked, NULL));
    ck_assert(may_end_spoiled(locked, NULL, &world.lock, SIM_UNACQUIRED));
    ck_assert(may_end_spoiled(locked, NULL, &world.lock, SIM_UNRELEASED));
    ck_assert(!may_end(locked, (const uint64_t[RESULTS]){0}));
    ck_assert(!may_end(joined, NULL));
}
END_TEST

/* ---- bounds ------------------------------------------------------------- */

static int64_t schedules_with(int preemptions, bool *found)
{
    static void (*const both[FIBERS])(void *) = {message_send, message_receive};
    const struct sim_plan plan = {
        .scheduler = SIM_EXHAUSTIVE, .weak = true, .preemptions = preemptions};
    int64_t count = 0;

    bodies = both;
    do {
        memset(&world, 0, sizeof(world));
        (void)sim_run(&plan, first, NULL);
        count++;
        *found = *found || world.results[1] == 1;
    } while (sim_next());
    return count;
}

START_TEST(fewer_preemptions_are_fewer_schedules)
{
    bool found[3] = {false};
    const int64_t one = schedules_with(1, &found[0]),
                  two = schedules_with(2, &found[1]),
                  all = schedules_with(0, &found[2]);

    ck_assert_int_lt(one, two);
    ck_assert_int_lt(two, all);
    ck_assert(found[0] && found[1] && found[2]);
}
END_TEST

static void write_often(void *arg)
{
    (void)arg;
    for (uint64_t i = 1; i <= 12; i++)
        uva__atomic64_store(&world.x, i);
    world.results[3] = 1;
}

static void read_late(void *arg)
{
    (void)arg;
    sim_point();
    if (world.results[3] == 1)
        world.results[0] = 1 + uva__atomic64_load(&world.x);
}

START_TEST(eight_values_of_an_atomic_are_kept)
{
    static void (*const late[FIBERS])(void *) = {write_often, read_late};

    ck_assert(may_end(late, (const uint64_t[RESULTS]){13, 0, 0, 1}));
    ck_assert(may_end(late, (const uint64_t[RESULTS]){6, 0, 0, 1}));
    ck_assert(!may_end(late, (const uint64_t[RESULTS]){5, 0, 0, 1}));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine, weak memory");
    TCase *litmus = tcase_create("litmus");
    SRunner *runner;
    int failed;

    tcase_add_test(litmus,
                   what_was_written_before_a_release_is_seen_after_an_acquire);
    tcase_add_test(litmus, what_was_acquired_is_released_again);
    tcase_add_test(litmus, two_readers_may_see_two_stores_in_different_orders);
    tcase_add_test(litmus, a_fiber_never_sees_an_atomic_go_back);
    tcase_add_test(litmus,
                   a_flag_must_be_exchanged_by_both_sides_and_never_stored);
    tcase_add_test(litmus, plain_memory_needs_an_order_of_its_accesses);
    tcase_add_test(litmus, fewer_preemptions_are_fewer_schedules);
    tcase_add_test(litmus, eight_values_of_an_atomic_are_kept);
    suite_add_tcase(suite, litmus);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
