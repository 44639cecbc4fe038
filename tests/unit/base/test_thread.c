/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of threads, the signals that our threads take, and the clock. */
#define _GNU_SOURCE
#include "base/thread.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/platform.h"
#include "support/check_suite.h"

/* A thread's view of itself. */
struct seen {
    uint64_t number;
    sigset_t blocked;
};

static void *record_thread(void *arg)
{
    struct seen *seen = arg;

    seen->number = uva__thread_self();
    ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, NULL, &seen->blocked), 0);
    return NULL;
}

static struct seen seen_by_new_thread(void)
{
    struct seen seen = {0};
    pthread_t thread;

    ck_assert_int_eq(uva__platform_start_thread(&thread, record_thread, &seen),
                     0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    return seen;
}

START_TEST(a_thread_keeps_its_number_and_another_has_another)
{
    const uint64_t own = uva__thread_self();

    ck_assert_uint_ne(own, 0);
    ck_assert_uint_eq(uva__thread_self(), own);
    ck_assert_uint_ne(seen_by_new_thread().number, 0);
    ck_assert_uint_ne(seen_by_new_thread().number, own);
}
END_TEST

START_TEST(a_thread_takes_no_signals_but_its_own_faults)
{
    static const int blocked[] = {SIGINT, SIGTERM, SIGALRM, SIGUSR1, SIGPROF};
    static const int open[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    const struct seen seen = seen_by_new_thread();

    for (size_t i = 0; i < sizeof(blocked) / sizeof(blocked[0]); i++)
        ck_assert_int_eq(sigismember(&seen.blocked, blocked[i]), 1);
    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
        ck_assert_int_eq(sigismember(&seen.blocked, open[i]), 0);
}
END_TEST

START_TEST(the_starting_thread_keeps_its_own_mask)
{
    sigset_t before, after;

    ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
    (void)seen_by_new_thread();
    ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
    for (int number = 1; number < NSIG; number++)
        ck_assert_int_eq(sigismember(&before, number),
                         sigismember(&after, number));
}
END_TEST

START_TEST(the_clock_never_goes_back)
{
    uint64_t last = uva__clock_ns(), now = last;

    for (int i = 0; i < 1000; i++, last = now) {
        now = uva__clock_ns();
        ck_assert_uint_ge(now, last);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("thread");

    tcase_add_test(tests, a_thread_keeps_its_number_and_another_has_another);
    tcase_add_test(tests, a_thread_takes_no_signals_but_its_own_faults);
    tcase_add_test(tests, the_starting_thread_keeps_its_own_mask);
    tcase_add_test(tests, the_clock_never_goes_back);
    return suite_main("thread", NULL, NULL, tests, NULL);
}
