/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the engine with programs that have known bugs: it finds these, and no
 * bug in the others. */
#define _POSIX_C_SOURCE 200809L
#include "sim/engine.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/atomic.h"

static _Thread_local int own_number = 7; /* one for each fiber */

/* ---- a lost wake-up ----------------------------------------------------- */

/* A worker fills a ring and wakes a loop, which sleeps on a descriptor. */
static struct {
    struct uva__atomic64 tail, posted, descriptor, pending;
    uint64_t head;
    bool by_exchange; /* the correct wake-up; otherwise by a load */
} ring;

enum { ITEMS = 2 };

/* A common mistake: the store must not pass the load of `pending`, but it
 * does. */
static void ring_wake_by_load(void)
{
    uint64_t none = 0;

    if (uva__atomic64_load(&ring.pending) != 0 ||
        !uva__atomic64_cas(&ring.pending, &none, 1))
        return;
    uva__atomic64_exchange(&ring.descriptor, 1);
}

static void ring_worker(void *arg)
{
    (void)arg;
    for (uint64_t i = 1; i <= ITEMS; i++) {
        uva__atomic64_store(&ring.tail, i);
        if (!ring.by_exchange)
            ring_wake_by_load();
        else if (uva__atomic64_exchange(&ring.posted, 1) == 0)
            uva__atomic64_exchange(&ring.descriptor, 1);
    }
}

static void ring_loop(void *arg)
{
    (void)arg;
    for (int i = 0; i < ITEMS; i++) {
        if (uva__atomic64_exchange(&ring.descriptor, 0) == 0)
            continue;
        uva__atomic64_exchange(ring.by_exchange ? &ring.posted : &ring.pending,
                               0);
        ring.head = uva__atomic64_load(&ring.tail);
    }
}

static void ring_first(void *arg)
{
    sim_spawn("worker", ring_worker, arg);
    sim_spawn("loop", ring_loop, arg);
}

/* Returns whether the loop sleeps although the ring is not empty. */
static bool ring_is_lost(const struct sim_plan *plan, bool by_exchange)
{
    memset(&ring, 0, sizeof(ring));
    ring.by_exchange = by_exchange;
    if (sim_run(plan, ring_first, NULL) == SIM_SEEN)
        return false;
    return ring.descriptor.value == 0 && ring.head < ITEMS;
}

static int ring_count_lost(bool buffers, bool by_exchange)
{
    const struct sim_plan plan = {.scheduler = SIM_EXHAUSTIVE,
                                  .buffers = buffers,
                                  .memory = &ring,
                                  .memory_size = sizeof(ring)};
    int lost = 0;

    do
        lost += ring_is_lost(&plan, by_exchange);
    while (sim_next());
    return lost;
}

START_TEST(a_store_passed_by_a_load_is_found_only_with_buffers)
{
    ck_assert_int_eq(ring_count_lost(false, false), 0);
    ck_assert_int_gt(ring_count_lost(true, false), 0);
}
END_TEST

START_TEST(an_exchange_after_the_store_loses_nothing)
{
    ck_assert_int_eq(ring_count_lost(false, true), 0);
    ck_assert_int_eq(ring_count_lost(true, true), 0);
}
END_TEST

START_TEST(chance_finds_the_passed_store_too)
{
    struct sim_plan plan = {.buffers = true};
    int lost = 0;

    for (plan.seed = 1; plan.seed <= 5000; plan.seed++)
        lost += ring_is_lost(&plan, false);
    ck_assert_int_gt(lost, 0);
    plan = (struct sim_plan){.scheduler = SIM_PCT, .depth = 3, .buffers = true};
    for (lost = 0; plan.seed <= 5000; plan.seed++)
        lost += ring_is_lost(&plan, false);
    ck_assert_int_gt(lost, 0);
}
END_TEST

/* ---- credit in two atomics ---------------------------------------------- */

/* A loop gives credit to a worker, which ends when its credit is used up. */
static struct {
    struct uva__atomic64 credit, running, job;
    uint64_t pulled;
    bool one_atomic; /* credit and running in one atomic; otherwise in two */
} credit_program;

static void credit_work_by_two(void)
{
    uint64_t credit;

    while ((credit = uva__atomic64_exchange(&credit_program.credit, 0)) != 0) {
        credit_program.pulled += credit;
        sim_point();
    }
    uva__atomic64_store(&credit_program.running, 0);
}

static void credit_work_by_one(void)
{
    uint64_t word = 1;

    while (!uva__atomic64_cas(&credit_program.credit, &word, 0)) {
        credit_program.pulled +=
            uva__atomic64_exchange(&credit_program.credit, 1) >> 1;
        word = 1;
    }
}

static bool credit_has_job(void *arg)
{
    (void)arg;
    return uva__atomic64_load(&credit_program.job) != 0;
}

static void credit_worker_run(void *arg)
{
    while (sim_wait_until(credit_has_job, arg, 1000)) {
        uva__atomic64_store(&credit_program.job, 0);
        if (credit_program.one_atomic)
            credit_work_by_one();
        else
            credit_work_by_two();
    }
}

static void credit_loop(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++) {
        if (credit_program.one_atomic) {
            if ((uva__atomic64_add(&credit_program.credit, 2) & 1) == 0 &&
                (uva__atomic64_or(&credit_program.credit, 1) & 1) == 0)
                uva__atomic64_exchange(&credit_program.job, 1);
            continue;
        }
        uva__atomic64_add(&credit_program.credit, 1);
        if (uva__atomic64_exchange(&credit_program.running, 1) == 0)
            uva__atomic64_exchange(&credit_program.job, 1);
    }
}

static void credit_first(void *arg)
{
    sim_spawn("worker", credit_worker_run, arg);
    sim_spawn("loop", credit_loop, arg);
}

static int credit_count_lost(struct sim_plan plan, bool one_atomic)
{
    int lost = 0;

    for (plan.seed = 1; plan.seed <= 2000; plan.seed++) {
        memset(&credit_program, 0, sizeof(credit_program));
        credit_program.one_atomic = one_atomic;
        ck_assert_int_eq(sim_run(&plan, credit_first, NULL), SIM_DONE);
        lost += credit_program.pulled != 3;
    }
    return lost;
}

START_TEST(credit_lost_between_two_words_is_found_by_both_kinds_of_chance)
{
    const struct sim_plan uniform = {.scheduler = SIM_UNIFORM};
    const struct sim_plan pct = {.scheduler = SIM_PCT, .depth = 3};

    ck_assert_int_gt(credit_count_lost(uniform, false), 0);
    ck_assert_int_gt(credit_count_lost(pct, false), 0);
    ck_assert_int_eq(credit_count_lost(uniform, true), 0);
    ck_assert_int_eq(credit_count_lost(pct, true), 0);
}
END_TEST

/* ---- the choices of a seed ---------------------------------------------- */

START_TEST(the_same_seed_gives_the_same_schedule)
{
    static const enum sim_scheduler kinds[] = {SIM_UNIFORM, SIM_PCT};
    uint64_t others = 0;

    for (size_t i = 0; i < 2; i++) {
        struct sim_plan plan = {
            .scheduler = kinds[i], .depth = 3, .buffers = true};

        for (plan.seed = 1; plan.seed <= 50; plan.seed++) {
            uint64_t print;

            (void)ring_is_lost(&plan, true);
            print = sim_fingerprint();
            (void)ring_is_lost(&plan, true);
            ck_assert_uint_eq(sim_fingerprint(), print);
            plan.seed += 1000;
            (void)ring_is_lost(&plan, true);
            others += sim_fingerprint() != print;
            plan.seed -= 1000;
        }
    }
    ck_assert_uint_gt(others, 50);
}
END_TEST

/* ---- exhaustive search -------------------------------------------------- */

static uint64_t chosen;

static void choose_twice(void *arg)
{
    (void)arg;
    chosen = 2 * sim_choose(3);
    chosen += sim_choose(2);
}

START_TEST(an_exhaustive_search_makes_every_choice_once)
{
    const struct sim_plan plan = {.scheduler = SIM_EXHAUSTIVE};
    int times[6] = {0};

    do {
        ck_assert_int_eq(sim_run(&plan, choose_twice, NULL), SIM_DONE);
        times[chosen]++;
    } while (sim_next());
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(times[i], 1);
    ck_assert_int_eq(sim_run(&plan, choose_twice, NULL), SIM_DONE);
    ck_assert_uint_eq(chosen, 0); /* starts again from the beginning */
    sim_restart();
}
END_TEST

static struct {
    struct uva__atomic64 word;
    char order[8];
    uint64_t length;
} turns;

static void turns_take(void *arg)
{
    for (int i = 0; i < 2; i++) {
        uva__atomic64_add(&turns.word, 1);
        turns.order[turns.length++] = *(const char *)arg;
    }
}

static void turns_first(void *arg)
{
    (void)arg;
    sim_spawn("a", turns_take, "a");
    sim_spawn("b", turns_take, "b");
}

START_TEST(an_exhaustive_search_sees_every_order_with_and_without_states)
{
    static const char *const orders[] = {"aabb", "abab", "abba",
                                         "baab", "baba", "bbaa"};
    int64_t schedules[2] = {0};

    for (int with = 0; with < 2; with++) {
        const struct sim_plan plan = {.scheduler = SIM_EXHAUSTIVE,
                                      .memory = with ? &turns : NULL,
                                      .memory_size = sizeof(turns)};
        unsigned seen = 0;

        do {
            memset(&turns, 0, sizeof(turns));
            (void)sim_run(&plan, turns_first, NULL);
            for (unsigned i = 0; i < 6; i++)
                seen |= (unsigned)(strcmp(turns.order, orders[i]) == 0) << i;
            schedules[with]++;
        } while (sim_next());
        ck_assert_uint_eq(seen, 63);
    }
    ck_assert_int_lt(schedules[1], schedules[0]);
}
END_TEST

/* ---- store buffers ------------------------------------------------------ */

static struct {
    struct uva__atomic64 words[12], flag;
    bool late[3]; /* whether the other fiber saw a store late */
} stores;

static void stores_write(void *arg)
{
    const int kind = *(const int *)arg;

    if (kind == 2) { /* more than there is room for: the first one is visible */
        for (int i = 0; i < 12; i++)
            uva__atomic64_store(&stores.words[i], 1);
    } else {
        uva__atomic64_store(&stores.words[0], 1);
        ck_assert_uint_eq(uva__atomic64_load(&stores.words[0]), 1);
    }
    if (kind == 1)
        uva__atomic64_add(&stores.flag, 0);
    if (stores.words[0].value == 0)
        stores.late[kind] = true;
}

static void stores_first(void *arg)
{
    const int writer = sim_spawn("writer", stores_write, arg);

    while (!sim_is_over(writer))
        sim_point();
    ck_assert_uint_eq(stores.words[0].value, 1);
}

START_TEST(a_store_waits_for_the_next_exchange_or_a_full_buffer_or_the_end)
{
    struct sim_plan plan = {.buffers = true};

    memset(&stores, 0, sizeof(stores));
    for (plan.seed = 1; plan.seed <= 300; plan.seed++) {
        for (int kind = 0; kind < 3; kind++) {
            memset(stores.words, 0, sizeof(stores.words));
            ck_assert_int_eq(sim_run(&plan, stores_first, &kind), SIM_DONE);
        }
    }
    ck_assert(stores.late[0]);
    ck_assert(!stores.late[1]);
    ck_assert(!stores.late[2]);
}
END_TEST

/* ---- defects ------------------------------------------------------------ */

static struct uva__atomic64 counter;

static void count_up(void *arg)
{
    (void)arg;
    uva__atomic64_add(&counter, 1);
}

static void count_cas(void *arg)
{
    uint64_t seen = uva__atomic64_load(&counter);

    (void)arg;
    while (!uva__atomic64_cas(&counter, &seen, seen + 1))
        ;
}

static void count_first(void *arg)
{
    sim_spawn("add", count_up, arg);
    sim_spawn("cas", count_cas, arg);
}

/* Counts the schedules that lose a value. */
static int count_lost(enum sim_defect defect)
{
    const struct sim_plan plan = {.scheduler = SIM_EXHAUSTIVE, .buffers = true};
    int lost = 0;

    sim_spoil(&counter, defect);
    do {
        counter.value = 0;
        ck_assert_int_eq(sim_run(&plan, count_first, NULL), SIM_DONE);
        lost += counter.value != 2;
    } while (sim_next());
    sim_spoil(NULL, SIM_SOUND);
    return lost;
}

START_TEST(a_word_that_is_split_loses_what_came_between)
{
    ck_assert_int_eq(count_lost(SIM_SOUND), 0);
    ck_assert_int_gt(count_lost(SIM_SPLIT), 0);
    ck_assert_int_eq(count_lost(SIM_SOUND), 0);
}
END_TEST

static bool ring_is_lost_with_a_peek(void)
{
    struct sim_plan plan = {.buffers = true};
    bool lost = false;

    sim_spoil(&ring.posted, SIM_PEEK);
    for (plan.seed = 1; plan.seed <= 5000 && !lost; plan.seed++)
        lost = ring_is_lost(&plan, true);
    sim_spoil(NULL, SIM_SOUND);
    return lost;
}

START_TEST(a_word_that_is_peeked_at_lets_a_store_pass)
{
    ck_assert(ring_is_lost_with_a_peek());
}
END_TEST

/* ---- how a schedule ends ------------------------------------------------ */

/* Three fibers that each record when they run, three times. */
static char turn_notes[16];

static void turn_note(void *arg)
{
    for (int i = 0; i < 3; i++) {
        sim_point();
        strncat(turn_notes, arg, 1);
    }
}

static void turn_first(void *arg)
{
    static char names[][2] = {"a", "b", "c"};

    (void)arg;
    for (int i = 0; i < 3; i++)
        sim_spawn("turn", turn_note, names[i]);
}

static const char *turns_by_script(const unsigned char *script, size_t size)
{
    const struct sim_plan plan = {
        .scheduler = SIM_SCRIPTED, .script = script, .script_size = size};

    turn_notes[0] = '\0';
    ck_assert_int_eq(sim_run(&plan, turn_first, NULL), SIM_DONE);
    return turn_notes;
}

START_TEST(one_who_is_told_nothing_lets_each_go_on_to_its_end)
{
    ck_assert_str_eq(turns_by_script(NULL, 0), "aaabbbccc");
}
END_TEST

/* The first fiber takes five steps, and `a` takes one to start. */
START_TEST(one_who_is_told_changes_then_and_to_that_one)
{
    ck_assert_str_eq(turns_by_script((unsigned char[]){7, 0}, 2), "abbbcccaa");
    ck_assert_str_eq(turns_by_script((unsigned char[]){7, 1}, 2), "acccaabbb");
    ck_assert_str_eq(turns_by_script((unsigned char[]){7, 2}, 2), "aaabbbccc");
    ck_assert_str_eq(turns_by_script((unsigned char[]){7, 0, 2, 0}, 4),
                     "abcccaabb");
    ck_assert_str_eq(turns_by_script((unsigned char[]){7, 0, 9}, 3),
                     "abbbcccaa");
}
END_TEST

START_TEST(the_passed_store_is_found_by_some_who_are_told)
{
    unsigned char script[4];
    const struct sim_plan plan = {.scheduler = SIM_SCRIPTED,
                                  .buffers = true,
                                  .script = script,
                                  .script_size = sizeof(script)};
    int lost = 0;

    for (int i = 0; i < 1 << 12; i++) {
        script[0] = i & 15;
        script[1] = i >> 4 & 3;
        script[2] = i >> 6 & 15;
        script[3] = i >> 10 & 3;
        lost += ring_is_lost(&plan, false);
        ck_assert(!ring_is_lost(&plan, true));
    }
    ck_assert_int_gt(lost, 0);
}
END_TEST

static struct uva__lock locks[2];

static void lock_both(void *arg)
{
    const int first = *(const int *)arg;

    uva__lock_take(&locks[first]);
    uva__lock_take(&locks[1 - first]);
    uva__lock_drop(&locks[first]);
    uva__lock_drop(&locks[1 - first]);
}

static void lock_first(void *arg)
{
    static const int numbers[] = {0, 1};

    sim_spawn("up", lock_both, (void *)(uintptr_t)&numbers[0]);
    sim_spawn("down", lock_both, (void *)(uintptr_t)&numbers[arg != NULL]);
}

static int lock_count(struct sim_plan plan, void *arg, enum sim_end end)
{
    int count = 0;

    for (plan.seed = 1; plan.seed <= 300; plan.seed++) {
        memset(locks, 0, sizeof(locks));
        count += sim_run(&plan, lock_first, arg) == end;
        if (end == SIM_DEADLOCK && count == 1 && sim_failure()[0] != 0) {
            ck_assert_ptr_nonnull(strstr(sim_failure(), "up"));
            ck_assert_ptr_nonnull(strstr(sim_failure(), "down"));
        }
    }
    return count;
}

START_TEST(a_deadlock_is_found_and_says_who_waits)
{
    const struct sim_plan uniform = {.scheduler = SIM_UNIFORM};
    const struct sim_plan pct = {.scheduler = SIM_PCT, .depth = 3};

    ck_assert_int_gt(lock_count(uniform, "two orders", SIM_DEADLOCK), 0);
    ck_assert_int_gt(lock_count(pct, "two orders", SIM_DEADLOCK), 0);
    ck_assert_int_eq(lock_count(uniform, NULL, SIM_DONE), 300);
}
END_TEST

static void lock_drop_only(void *arg)
{
    uva__lock_drop(arg);
}

START_TEST(dropping_a_lock_of_another_fails)
{
    const struct sim_plan plan = {.seed = 1};

    memset(locks, 0, sizeof(locks));
    ck_assert_int_eq(sim_run(&plan, lock_drop_only, &locks[0]), SIM_FAILED);
    ck_assert_ptr_nonnull(strstr(sim_failure(), "another"));
}
END_TEST

static void go_round(void *arg)
{
    (void)arg;
    for (;;)
        sim_point();
}

static void fail_late(void *arg)
{
    for (int i = 0; i < 10; i++)
        sim_point();
    sim_fail("after %d %s", 10, (const char *)arg);
}

static void round_and_fail(void *arg)
{
    sim_spawn("round", go_round, arg);
    sim_spawn("fail", fail_late, arg);
}

START_TEST(the_trail_tells_who_did_what)
{
    const struct sim_plan plan = {.seed = 1, .buffers = true};
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    memset(&ring, 0, sizeof(ring));
    (void)sim_run(&plan, ring_first, NULL);
    sim_print_trail(file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_ptr_nonnull(strstr(text, "worker"));
    ck_assert_ptr_nonnull(strstr(text, "store"));
    ck_assert_ptr_nonnull(strstr(text, "seen"));
    free(text);
}
END_TEST

START_TEST(a_schedule_without_an_end_is_cut)
{
    const struct sim_plan plan = {.steps = 1000};

    ck_assert_int_eq(sim_run(&plan, go_round, NULL), SIM_CUT);
    ck_assert_int_ge(sim_steps(), 1000);
    ck_assert_int_eq(sim_self(), -1);
}
END_TEST

START_TEST(who_goes_round_does_not_keep_the_others_waiting_for_ever)
{
    struct sim_plan plan = {.scheduler = SIM_PCT, .depth = 2};

    for (plan.seed = 1; plan.seed <= 50; plan.seed++) {
        ck_assert_int_eq(sim_run(&plan, round_and_fail, "rounds"), SIM_FAILED);
        ck_assert_str_eq(sim_failure(), "after 10 rounds");
    }
    plan = (struct sim_plan){.scheduler = SIM_SCRIPTED};
    ck_assert_int_eq(sim_run(&plan, round_and_fail, "rounds"), SIM_FAILED);
}
END_TEST

/* ---- thread-local variables --------------------------------------------- */

enum { FIBERS = 500 };

static int fibers_arrived;

static void fibers_one(void *arg)
{
    const int number = sim_self();

    ck_assert_int_eq(own_number, 7);
    ck_assert_int_eq(errno, 0);
    own_number = number;
    errno = number;
    for (int i = 0; i < 10; i++) {
        sim_point();
        ck_assert_int_eq(own_number, number);
        ck_assert_int_eq(errno, number);
        ck_assert_int_eq(sim_self(), number);
    }
    fibers_arrived++;
    (void)arg;
}

static void fibers_first(void *arg)
{
    int last = 0;

    for (int i = 0; i < FIBERS; i++)
        last = sim_spawn("one", fibers_one, arg);
    ck_assert_int_eq(last, FIBERS);
    own_number = 8;
}

START_TEST(each_fiber_has_its_own_locals_and_errno)
{
    struct sim_plan plan = {.seed = 1};

    own_number = 99;
    for (; plan.seed <= 3; plan.seed++) {
        fibers_arrived = 0;
        ck_assert_int_eq(sim_run(&plan, fibers_first, NULL), SIM_DONE);
        ck_assert_int_eq(fibers_arrived, FIBERS);
        ck_assert_int_eq(own_number, 99);
    }
}
END_TEST

/* ---- time --------------------------------------------------------------- */

static struct uva__futex bell;
static char woken[64];

static void bell_ring(void *arg)
{
    const uint64_t until_ns = sim_now_ns() + 5000000;

    (void)sim_wait_until(credit_has_job, arg,
                         until_ns); /* no fiber gives one */
    ck_assert_uint_eq(sim_now_ns(), until_ns);
    uva__futex_raise(&bell);
}

static void bell_wait(void *arg)
{
    const int64_t *limit_ms = arg;
    const uint64_t from_ns = sim_now_ns();
    bool in_time = true;

    while (uva__futex_now(&bell) == 0 && in_time)
        in_time = uva__futex_wait(&bell, 0, *limit_ms);
    (void)snprintf(woken, sizeof(woken), "%s after %d ms",
                   in_time ? "woken" : "gone",
                   (int)((sim_now_ns() - from_ns) / 1000000));
}

static void bell_first(void *arg)
{
    sim_spawn("ring", bell_ring, arg);
    sim_spawn("hear", bell_wait, arg);
}

static const char *bell_run(int64_t limit_ms)
{
    struct sim_plan plan = {.seed = 4, .buffers = true};

    memset(&credit_program, 0, sizeof(credit_program));
    memset(&bell, 0, sizeof(bell));
    ck_assert_int_eq(sim_run(&plan, bell_first, &limit_ms), SIM_DONE);
    return woken;
}

START_TEST(the_clock_goes_to_the_first_who_waits_for_it)
{
    ck_assert_str_eq(bell_run(-1), "woken after 5 ms");
    ck_assert_str_eq(bell_run(7), "woken after 5 ms");
    ck_assert_str_eq(bell_run(3), "gone after 3 ms");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine");

    TCase *kernels = tcase_create("known programs");
    tcase_add_test(kernels,
                   a_store_passed_by_a_load_is_found_only_with_buffers);
    tcase_add_test(kernels, an_exchange_after_the_store_loses_nothing);
    tcase_add_test(kernels, chance_finds_the_passed_store_too);
    tcase_add_test(
        kernels,
        credit_lost_between_two_words_is_found_by_both_kinds_of_chance);
    suite_add_tcase(suite, kernels);

    TCase *choices = tcase_create("choices");
    tcase_add_test(choices, the_same_seed_gives_the_same_schedule);
    tcase_add_test(choices, an_exhaustive_search_makes_every_choice_once);
    tcase_add_test(
        choices, an_exhaustive_search_sees_every_order_with_and_without_states);
    tcase_add_test(
        choices,
        a_store_waits_for_the_next_exchange_or_a_full_buffer_or_the_end);
    tcase_add_test(choices, a_word_that_is_split_loses_what_came_between);
    tcase_add_test(choices, a_word_that_is_peeked_at_lets_a_store_pass);
    tcase_add_test(choices, one_who_is_told_nothing_lets_each_go_on_to_its_end);
    tcase_add_test(choices, one_who_is_told_changes_then_and_to_that_one);
    tcase_add_test(choices, the_passed_store_is_found_by_some_who_are_told);
    suite_add_tcase(suite, choices);

    TCase *ends = tcase_create("ends");
    tcase_add_test(ends, a_deadlock_is_found_and_says_who_waits);
    tcase_add_test(ends, dropping_a_lock_of_another_fails);
    tcase_add_test(ends, the_trail_tells_who_did_what);
    tcase_add_test(ends, a_schedule_without_an_end_is_cut);
    tcase_add_test(ends,
                   who_goes_round_does_not_keep_the_others_waiting_for_ever);
    suite_add_tcase(suite, ends);

    TCase *fibers = tcase_create("fibers");
    tcase_add_test(fibers, each_fiber_has_its_own_locals_and_errno);
    tcase_add_test(fibers, the_clock_goes_to_the_first_who_waits_for_it);
    suite_add_tcase(suite, fibers);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
